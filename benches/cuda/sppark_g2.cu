// sppark's multi-scalar multiplication in G2 of BLS12-381.

#include <cuda.h>

#include <ff/bls12-381-fp2.hpp>

#include <ec/jacobian_t.hpp>
#include <ec/xyzz_t.hpp>

using point_t = jacobian_t<fp2_t>;
using bucket_t = xyzz_t<fp2_t>;
using affine_t = bucket_t::affine_t;
using scalar_t = fr_t;

#define __MSM_SORT_DONT_IMPLEMENT__ // The sort is the same for both groups: it is in sppark_g1.cu.
#include <msm/pippenger.cuh>

#define PEER(name) prestage_sppark_g2_##name
#include "sppark_msm.hpp"
