// sppark's multi-scalar multiplication in G1 of BLS12-381.

#include <cuda.h>

#include <ff/bls12-381.hpp>

#include <ec/jacobian_t.hpp>
#include <ec/xyzz_t.hpp>

using point_t = jacobian_t<fp_t>;
using bucket_t = xyzz_t<fp_t>;
using affine_t = bucket_t::affine_t;
using scalar_t = fr_t;

#include <msm/pippenger.cuh>

#define PEER(name) prestage_sppark_g1_##name
#include "sppark_msm.hpp"
