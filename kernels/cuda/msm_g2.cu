// Family `msm_g2`: bucket sums and reduction over G2. Templates in msm.cuh, msm_tree.cuh and msm_quads.cuh.
#include "msm_quads.cuh"
#include "msm_tree.cuh"

PS_FN void g2_tree_products_body(const Block& blk, Fq2* before, Fq2* products, const Affine<Fq2>* bases, Fq2* x, Fq2* y,
                                 const RefPair* pairs, const TreeLevel* level) {
    tree_products<Fq2>(blk, before, products, TreePoints<Fq2>{bases, x, y}, pairs, level);
}
PS_FN void g2_tree_invert_body(const Block& blk, Fq2* products, Fq2* before, const TreeLevel* level) {
    tree_invert<Fq2>(blk, products, before, level);
}
PS_FN void g2_tree_add_body(const Block& blk, const Fq2* before, const Fq2* inverses, const Affine<Fq2>* bases, Fq2* x,
                            Fq2* y, const RefPair* pairs, const TreeLevel* level) {
    tree_add<Fq2>(blk, before, inverses, TreePoints<Fq2>{bases, x, y}, pairs, level);
}
PS_FN void g2_tree_gather_body(const Block& blk, const Affine<Fq2>* bases, Fq2* x, Fq2* y, const u32* finals, u32 first,
                               u32 n) {
    tree_gather<Fq2>(blk, TreePoints<Fq2>{bases, x, y}, finals, first, n);
}
PS_FN void g2_tree_longer_body(const Block& blk, Xyzz<Fq2>* partial, const Affine<Fq2>* bases, Fq2* x, Fq2* y,
                               u32* finals, const u32* refs, const u32* starts, const u32* counts, const u32* longer,
                               const u32* number, const TreeLevel* level) {
    tree_longer<Fq2>(blk, partial, TreePoints<Fq2>{bases, x, y}, finals, refs, starts, counts, longer, number, level);
}
PS_FN void g2_sum_slices_body(const Block& blk, Xyzz<Fq2>* buckets, Xyzz<Fq2>* partial, const Affine<Fq2>* bases,
                              const u32* entries, const Slices& slices) {
    sum_slices<Fq2>(blk, buckets, partial, bases, entries, slices);
}
PS_FN void g2_merge_slices_body(const Block& blk, Xyzz<Fq2>* buckets, Xyzz<Fq2>* partial, const Slices& slices,
                                u32* longer, u32* counters) {
    merge_slices<Fq2>(blk, buckets, partial, slices, longer, counters);
}
PS_FN void g2_fold_longer_body(const Block& blk, Xyzz<Fq2>* partial, const Slices& slices, const u32* longer,
                               const u32* counters) {
    fold_longer<Fq2>(blk, partial, slices, longer, counters);
}
PS_FN void g2_merge_longer_body(const Block& blk, Xyzz<Fq2>* buckets, Xyzz<Fq2>* partial, const Slices& slices,
                                const u32* longer, const u32* counters) {
    merge_longer<Fq2>(blk, buckets, partial, slices, longer, counters);
}
PS_FN void g2_weigh_body(const Block& blk, Xyzz<Fq2>* out, const Fq2* x, const Fq2* y, const Weigh& p) {
    weigh(blk, out, WeighItems<Fq2>{x, y}, p);
}
PS_FN void g2_weigh_fold_body(const Block& blk, Xyzz<Fq2>* out, Xyzz<Fq2>* shares, const Weigh& p) {
    weigh_fold<Fq2>(blk, out, shares, p);
}
PS_FN void g2_to_affine_body(const Block& blk, Affine<Fq2>* out, const Xyzz<Fq2>* in, u64 n) {
    points_to_affine<Fq2>(blk, out, in, n);
}
PS_FN void g2_to_jacobian_body(const Block& blk, Jacobian<Fq2>* out, const Xyzz<Fq2>* in, u64 n) {
    points_to_jacobian<Fq2>(blk, out, in, n);
}

PS_KERNEL(g2_tree_products, 128, 3,
          (Fq2 * before, Fq2* products, const Affine<Fq2>* bases, Fq2* x, Fq2* y, const RefPair* pairs,
           const TreeLevel* level),
          (blk, before, products, bases, x, y, pairs, level))
PS_KERNEL(g2_tree_invert, 64, 4, (Fq2 * products, Fq2* before, const TreeLevel* level), (blk, products, before, level))
PS_KERNEL(g2_tree_add, 128, 2,
          (const Fq2* before, const Fq2* inverses, const Affine<Fq2>* bases, Fq2* x, Fq2* y, const RefPair* pairs,
           const TreeLevel* level),
          (blk, before, inverses, bases, x, y, pairs, level))
PS_KERNEL(g2_tree_gather, 128, 4, (const Affine<Fq2>* bases, Fq2* x, Fq2* y, const u32* finals, u32 first, u32 n),
          (blk, bases, x, y, finals, first, n))
PS_KERNEL(g2_tree_longer, 128, 2,
          (Xyzz<Fq2> * partial, const Affine<Fq2>* bases, Fq2* x, Fq2* y, u32* finals, const u32* refs,
           const u32* starts, const u32* counts, const u32* longer, const u32* number, const TreeLevel* level),
          (blk, partial, bases, x, y, finals, refs, starts, counts, longer, number, level))
PS_KERNEL(g2_sum_slices, 128, 2,
          (Xyzz<Fq2> * buckets, Xyzz<Fq2>* partial, const Affine<Fq2>* bases, const u32* entries,
           PS_PARAMETER Slices slices),
          (blk, buckets, partial, bases, entries, slices))
PS_KERNEL(g2_merge_slices, 128, 2,
          (Xyzz<Fq2> * buckets, Xyzz<Fq2>* partial, PS_PARAMETER Slices slices, u32* longer, u32* counters),
          (blk, buckets, partial, slices, longer, counters))
PS_KERNEL(g2_fold_longer, 128, 2,
          (Xyzz<Fq2> * partial, PS_PARAMETER Slices slices, const u32* longer, const u32* counters),
          (blk, partial, slices, longer, counters))
PS_KERNEL(g2_merge_longer, 128, 2,
          (Xyzz<Fq2> * buckets, Xyzz<Fq2>* partial, PS_PARAMETER Slices slices, const u32* longer, const u32* counters),
          (blk, buckets, partial, slices, longer, counters))
PS_KERNEL(g2_weigh, 128, 2, (Xyzz<Fq2> * out, const Fq2* x, const Fq2* y, PS_PARAMETER Weigh p), (blk, out, x, y, p))
PS_KERNEL(g2_weigh_fold, 32, 4, (Xyzz<Fq2> * out, Xyzz<Fq2>* shares, PS_PARAMETER Weigh p), (blk, out, shares, p))
PS_KERNEL(g2_to_affine, 128, 1, (Affine<Fq2> * out, const Xyzz<Fq2>* in, u64 n), (blk, out, in, n))
PS_KERNEL(g2_to_jacobian, 128, 1, (Jacobian<Fq2> * out, const Xyzz<Fq2>* in, u64 n), (blk, out, in, n))

PS_FAMILY(msm_g2)
