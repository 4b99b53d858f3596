// Family `msm_g2`: bucket sums and reduction over G2. Templates in msm.cuh.
#include "msm.cuh"

PS_FN void g2_sum_entries_body(const Block& blk, Xyzz<Fq2>* buckets, Xyzz<Fq2>* partial, const Affine<Fq2>* bases,
                               const u32* entries, const u32* ends, const u32* counts, const u32* starts, u32 n,
                               u32 size) {
    sum_entries<Fq2>(blk, buckets, partial, bases, entries, ends, counts, starts, n, size);
}
PS_FN void g2_sum_partials_body(const Block& blk, Xyzz<Fq2>* buckets, Xyzz<Fq2>* partial, const Xyzz<Fq2>* terms,
                                const u32* offsets, const u32* counts, const u32* starts, u32 n, u32 size) {
    sum_partials<Fq2>(blk, buckets, partial, terms, offsets, counts, starts, n, size);
}
PS_FN void g2_reduce_chunks_body(const Block& blk, Xyzz<Fq2>* out, const Xyzz<Fq2>* buckets, u32 each, u32 chunks,
                                 u32 windows) {
    reduce_chunks<Fq2>(blk, out, buckets, each, chunks, windows);
}
PS_FN void g2_fold_rows_body(const Block& blk, Xyzz<Fq2>* out, Xyzz<Fq2>* in, u32 n) {
    fold_rows<Fq2>(blk, out, in, n);
}
PS_FN void g2_to_affine_body(const Block& blk, Affine<Fq2>* out, const Xyzz<Fq2>* in, u64 n) {
    points_to_affine<Fq2>(blk, out, in, n);
}
PS_FN void g2_to_jacobian_body(const Block& blk, Jacobian<Fq2>* out, const Xyzz<Fq2>* in, u64 n) {
    points_to_jacobian<Fq2>(blk, out, in, n);
}

PS_KERNEL(g2_sum_entries, 128, 2,
          (Xyzz<Fq2> * buckets, Xyzz<Fq2>* partial, const Affine<Fq2>* bases, const u32* entries, const u32* ends,
           const u32* counts, const u32* starts, u32 n, u32 size),
          (blk, buckets, partial, bases, entries, ends, counts, starts, n, size))
PS_KERNEL(g2_sum_partials, 128, 2,
          (Xyzz<Fq2> * buckets, Xyzz<Fq2>* partial, const Xyzz<Fq2>* terms, const u32* offsets, const u32* counts,
           const u32* starts, u32 n, u32 size),
          (blk, buckets, partial, terms, offsets, counts, starts, n, size))
PS_KERNEL(g2_reduce_chunks, 128, 2, (Xyzz<Fq2> * out, const Xyzz<Fq2>* buckets, u32 each, u32 chunks, u32 windows),
          (blk, out, buckets, each, chunks, windows))
PS_KERNEL(g2_fold_rows, 128, 2, (Xyzz<Fq2> * out, Xyzz<Fq2>* in, u32 n), (blk, out, in, n))
PS_KERNEL(g2_to_affine, 128, 1, (Affine<Fq2> * out, const Xyzz<Fq2>* in, u64 n), (blk, out, in, n))
PS_KERNEL(g2_to_jacobian, 128, 1, (Jacobian<Fq2> * out, const Xyzz<Fq2>* in, u64 n), (blk, out, in, n))

PS_FAMILY(msm_g2)
