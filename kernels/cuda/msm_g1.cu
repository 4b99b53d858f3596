// Family `msm_g1`: bucket sums and reduction over G1. Templates in msm.cuh. The products are inlined in the mixed
// additions, where the time goes, and calls elsewhere.
#include "msm.cuh"

PS_FN void g1_sum_entries_body(const Block& blk, Xyzz<Fq>* buckets, Xyzz<Fq>* partial, const Affine<Fq>* bases,
                               const u32* entries, const u32* ends, const u32* counts, const u32* starts, u32 n,
                               u32 size) {
    sum_entries<Fq>(blk, buckets, partial, bases, entries, ends, counts, starts, n, size);
}
PS_FN void g1_sum_partials_body(const Block& blk, Xyzz<FqOutlined>* buckets, Xyzz<FqOutlined>* partial,
                                const Xyzz<FqOutlined>* terms, const u32* offsets, const u32* counts, const u32* starts,
                                u32 n, u32 size) {
    sum_partials<FqOutlined>(blk, buckets, partial, terms, offsets, counts, starts, n, size);
}
PS_FN void g1_reduce_chunks_body(const Block& blk, Xyzz<FqOutlined>* out, const Xyzz<FqOutlined>* buckets, u32 each,
                                 u32 chunks, u32 windows) {
    reduce_chunks<FqOutlined>(blk, out, buckets, each, chunks, windows);
}
PS_FN void g1_fold_rows_body(const Block& blk, Xyzz<FqOutlined>* out, Xyzz<FqOutlined>* in, u32 n) {
    fold_rows<FqOutlined>(blk, out, in, n);
}
PS_FN void g1_to_affine_body(const Block& blk, Affine<FqOutlined>* out, const Xyzz<FqOutlined>* in, u64 n) {
    points_to_affine<FqOutlined>(blk, out, in, n);
}
PS_FN void g1_to_jacobian_body(const Block& blk, Jacobian<FqOutlined>* out, const Xyzz<FqOutlined>* in, u64 n) {
    points_to_jacobian<FqOutlined>(blk, out, in, n);
}

PS_KERNEL(g1_sum_entries, 128, 2,
          (Xyzz<Fq> * buckets, Xyzz<Fq>* partial, const Affine<Fq>* bases, const u32* entries, const u32* ends,
           const u32* counts, const u32* starts, u32 n, u32 size),
          (blk, buckets, partial, bases, entries, ends, counts, starts, n, size))
PS_KERNEL(g1_sum_partials, 128, 2,
          (Xyzz<FqOutlined> * buckets, Xyzz<FqOutlined>* partial, const Xyzz<FqOutlined>* terms, const u32* offsets,
           const u32* counts, const u32* starts, u32 n, u32 size),
          (blk, buckets, partial, terms, offsets, counts, starts, n, size))
PS_KERNEL(g1_reduce_chunks, 128, 2,
          (Xyzz<FqOutlined> * out, const Xyzz<FqOutlined>* buckets, u32 each, u32 chunks, u32 windows),
          (blk, out, buckets, each, chunks, windows))
PS_KERNEL(g1_fold_rows, 128, 2, (Xyzz<FqOutlined> * out, Xyzz<FqOutlined>* in, u32 n), (blk, out, in, n))
PS_KERNEL(g1_to_affine, 128, 1, (Affine<FqOutlined> * out, const Xyzz<FqOutlined>* in, u64 n), (blk, out, in, n))
PS_KERNEL(g1_to_jacobian, 128, 1, (Jacobian<FqOutlined> * out, const Xyzz<FqOutlined>* in, u64 n), (blk, out, in, n))

PS_FAMILY(msm_g1)
