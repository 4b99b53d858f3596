// The wrapper over sppark's multi-scalar multiplication in one group. Included at the end of a file that has chosen the group:
// point_t, bucket_t, affine_t, scalar_t, and PEER(name), which is what the functions are called.
//
// Points are affine, (0, 0) for infinity; scalars are 32 bytes; both in Montgomery form, as blst has them. The sum is
// Jacobian, as blst has it.

#ifndef __CUDA_ARCH__

#include "sppark_error.hpp"

using Msm = msm_t<bucket_t, point_t, affine_t, scalar_t>;

// Buckets for sums of n terms that are in the card's memory.
extern "C" RustError::by_value PEER(open)(Msm** msm, size_t n)
{
    return guarded([=] { *msm = new Msm{nullptr, n}; });
}

extern "C" void PEER(close)(Msm* msm) { delete msm; }

// The sum of n terms, points and scalars in the card's memory.
extern "C" RustError::by_value PEER(resident)(Msm* msm, point_t* sum, affine_t* points, size_t n, scalar_t* scalars)
{
    return msm->invoke(*sum, dev_ptr_t<affine_t>{points, n}, n, dev_ptr_t<scalar_t>{scalars, n});
}

// The sum of n terms, points and scalars in host memory: sppark's one call.
extern "C" RustError::by_value PEER(host)(point_t* sum, const affine_t* points, size_t n, const scalar_t* scalars)
{
    return mult_pippenger<bucket_t>(sum, points, n, scalars);
}

#endif
