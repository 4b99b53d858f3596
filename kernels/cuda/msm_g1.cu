// Family `msm_g1`: bucket sums and reduction over G1. Templates in msm.cuh, msm_tree.cuh and msm_quads.cuh. The
// products are inlined where the time goes, and calls elsewhere.
#include "msm_quads.cuh"
#include "msm_tree.cuh"

PS_FN void g1_tree_products_body(const Block& blk, Fq* before, Fq* products, const Affine<Fq>* bases, Fq* x, Fq* y,
                                 const RefPair* pairs, const TreeLevel* level) {
    tree_products<Fq>(blk, before, products, TreePoints<Fq>{bases, x, y}, pairs, level);
}
PS_FN void g1_tree_invert_body(const Block& blk, FqOutlined* products, FqOutlined* before, const TreeLevel* level) {
    tree_invert<FqOutlined>(blk, products, before, level);
}
PS_FN void g1_tree_add_body(const Block& blk, const Fq* before, const Fq* inverses, const Affine<Fq>* bases, Fq* x,
                            Fq* y, const RefPair* pairs, const TreeLevel* level) {
    tree_add<Fq>(blk, before, inverses, TreePoints<Fq>{bases, x, y}, pairs, level);
}
PS_FN void g1_tree_gather_body(const Block& blk, const Affine<FqOutlined>* bases, FqOutlined* x, FqOutlined* y,
                               const u32* finals, u32 first, u32 n) {
    tree_gather<FqOutlined>(blk, TreePoints<FqOutlined>{bases, x, y}, finals, first, n);
}
PS_FN void g1_tree_longer_body(const Block& blk, Xyzz<FqOutlined>* partial, const Affine<FqOutlined>* bases,
                               FqOutlined* x, FqOutlined* y, u32* finals, const u32* refs, const u32* starts,
                               const u32* counts, const u32* longer, const u32* number, const TreeLevel* level) {
    tree_longer<FqOutlined>(blk, partial, TreePoints<FqOutlined>{bases, x, y}, finals, refs, starts, counts, longer,
                            number, level);
}
PS_FN void g1_sum_slices_body(const Block& blk, Xyzz<Fq>* buckets, Xyzz<Fq>* partial, const Affine<Fq>* bases,
                              const u32* entries, const Slices& slices) {
    sum_slices<Fq>(blk, buckets, partial, bases, entries, slices);
}
PS_FN void g1_merge_slices_body(const Block& blk, Xyzz<FqOutlined>* buckets, Xyzz<FqOutlined>* partial,
                                const Slices& slices, u32* longer, u32* counters) {
    merge_slices<FqOutlined>(blk, buckets, partial, slices, longer, counters);
}
PS_FN void g1_fold_longer_body(const Block& blk, Xyzz<FqOutlined>* partial, const Slices& slices, const u32* longer,
                               const u32* counters) {
    fold_longer<FqOutlined>(blk, partial, slices, longer, counters);
}
PS_FN void g1_merge_longer_body(const Block& blk, Xyzz<FqOutlined>* buckets, Xyzz<FqOutlined>* partial,
                                const Slices& slices, const u32* longer, const u32* counters) {
    merge_longer<FqOutlined>(blk, buckets, partial, slices, longer, counters);
}
PS_FN void g1_weigh_body(const Block& blk, Xyzz<FqOutlined>* out, const FqOutlined* x, const FqOutlined* y,
                         const Weigh& p) {
    weigh(blk, out, WeighItems<FqOutlined>{x, y}, p);
}
PS_FN void g1_weigh_fold_body(const Block& blk, Xyzz<FqOutlined>* out, Xyzz<FqOutlined>* shares, const Weigh& p) {
    weigh_fold<FqOutlined>(blk, out, shares, p);
}
PS_FN void g1_to_affine_body(const Block& blk, Affine<FqOutlined>* out, const Xyzz<FqOutlined>* in, u64 n) {
    points_to_affine<FqOutlined>(blk, out, in, n);
}
PS_FN void g1_to_jacobian_body(const Block& blk, Jacobian<FqOutlined>* out, const Xyzz<FqOutlined>* in, u64 n) {
    points_to_jacobian<FqOutlined>(blk, out, in, n);
}

PS_KERNEL(g1_tree_products, 128, 6,
          (Fq * before, Fq* products, const Affine<Fq>* bases, Fq* x, Fq* y, const RefPair* pairs,
           const TreeLevel* level),
          (blk, before, products, bases, x, y, pairs, level))
PS_KERNEL(g1_tree_invert, 64, 4, (FqOutlined * products, FqOutlined* before, const TreeLevel* level),
          (blk, products, before, level))
PS_KERNEL(g1_tree_add, 128, 3,
          (const Fq* before, const Fq* inverses, const Affine<Fq>* bases, Fq* x, Fq* y, const RefPair* pairs,
           const TreeLevel* level),
          (blk, before, inverses, bases, x, y, pairs, level))
PS_KERNEL(g1_tree_gather, 128, 4,
          (const Affine<FqOutlined>* bases, FqOutlined* x, FqOutlined* y, const u32* finals, u32 first, u32 n),
          (blk, bases, x, y, finals, first, n))
PS_KERNEL(g1_tree_longer, 128, 2,
          (Xyzz<FqOutlined> * partial, const Affine<FqOutlined>* bases, FqOutlined* x, FqOutlined* y, u32* finals,
           const u32* refs, const u32* starts, const u32* counts, const u32* longer, const u32* number,
           const TreeLevel* level),
          (blk, partial, bases, x, y, finals, refs, starts, counts, longer, number, level))
PS_KERNEL(g1_sum_slices, 128, 2,
          (Xyzz<Fq> * buckets, Xyzz<Fq>* partial, const Affine<Fq>* bases, const u32* entries,
           PS_PARAMETER Slices slices),
          (blk, buckets, partial, bases, entries, slices))
PS_KERNEL(g1_merge_slices, 128, 2,
          (Xyzz<FqOutlined> * buckets, Xyzz<FqOutlined>* partial, PS_PARAMETER Slices slices, u32* longer,
           u32* counters),
          (blk, buckets, partial, slices, longer, counters))
PS_KERNEL(g1_fold_longer, 128, 2,
          (Xyzz<FqOutlined> * partial, PS_PARAMETER Slices slices, const u32* longer, const u32* counters),
          (blk, partial, slices, longer, counters))
PS_KERNEL(g1_merge_longer, 128, 2,
          (Xyzz<FqOutlined> * buckets, Xyzz<FqOutlined>* partial, PS_PARAMETER Slices slices, const u32* longer,
           const u32* counters),
          (blk, buckets, partial, slices, longer, counters))
PS_KERNEL(g1_weigh, 128, 2, (Xyzz<FqOutlined> * out, const FqOutlined* x, const FqOutlined* y, PS_PARAMETER Weigh p),
          (blk, out, x, y, p))
PS_KERNEL(g1_weigh_fold, 32, 4, (Xyzz<FqOutlined> * out, Xyzz<FqOutlined>* shares, PS_PARAMETER Weigh p),
          (blk, out, shares, p))
PS_KERNEL(g1_to_affine, 128, 1, (Affine<FqOutlined> * out, const Xyzz<FqOutlined>* in, u64 n), (blk, out, in, n))
PS_KERNEL(g1_to_jacobian, 128, 1, (Jacobian<FqOutlined> * out, const Xyzz<FqOutlined>* in, u64 n), (blk, out, in, n))

PS_FAMILY(msm_g1)
