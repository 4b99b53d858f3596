// sppark's transforms over the scalar field of BLS12-381, in place, values of 32 bytes in Montgomery form; and the quotient of
// Groth16 made of them, as a caller of sppark would.

#include <cuda.h>

#include <ff/bls12-381.hpp>

#include <ntt/ntt.cuh>

// a := (a b - c) scale, value by value.
__global__ void prestage_mul_sub_scale(fr_t* a, const fr_t* b, const fr_t* c, const fr_t scale, size_t n)
{
#ifdef __CUDA_ARCH__
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) {
        fr_t value = a[i];
        value *= (fr_t)b[i];
        value -= (fr_t)c[i];
        value *= scale;
        a[i] = value;
    }
#endif
}

#ifndef __CUDA_ARCH__

#include "sppark_error.hpp"

using Order = NTT::InputOutputOrder;
using Direction = NTT::Direction;
using Type = NTT::Type;

static void forward(stream_t& stream, fr_t* values, uint32_t log, int order)
{
    NTT::Base_dev_ptr(stream, values, log, static_cast<Order>(order), Direction::forward, Type::standard);
}

// Of 2^log values in the card's memory, waited for.
extern "C" RustError::by_value prestage_sppark_ntt_resident(fr_t* values, uint32_t log, int order)
{
    return guarded([=] {
        stream_t& stream = select_gpu(-1);
        forward(stream, values, log, order);
        stream.sync();
    });
}

// The same, and how long it took on the card, in milliseconds.
extern "C" RustError::by_value prestage_sppark_ntt_timed(fr_t* values, uint32_t log, int order, float* ms)
{
    return guarded([=] {
        stream_t& stream = select_gpu(-1);
        cudaEvent_t start, end;
        CUDA_OK(cudaEventCreate(&start));
        CUDA_OK(cudaEventCreate(&end));
        CUDA_OK(cudaEventRecord(start, stream));
        forward(stream, values, log, order);
        CUDA_OK(cudaEventRecord(end, stream));
        CUDA_OK(cudaEventSynchronize(end));
        CUDA_OK(cudaEventElapsedTime(ms, start, end));
        CUDA_OK(cudaEventDestroy(start));
        CUDA_OK(cudaEventDestroy(end));
    });
}

// Of 2^log values in host memory: sppark's one call.
extern "C" RustError::by_value prestage_sppark_ntt_host(fr_t* values, uint32_t log, int order)
{
    return NTT::Base(select_gpu(-1), values, log, static_cast<Order>(order), Direction::forward, Type::standard);
}

// From the values of a, b and c on the domain to the coefficients of (a b - c) scale, whose values on the coset of 7 are meant:
// in place of a, in natural order, waited for. b and c are overwritten.
extern "C" RustError::by_value prestage_sppark_quotient(fr_t* a, fr_t* b, fr_t* c, uint32_t log, const fr_t* scale)
{
    return guarded([=] {
        stream_t& stream = select_gpu(-1);
        for (fr_t* values : {a, b, c}) {
            NTT::Base_dev_ptr(stream, values, log, Order::NR, Direction::inverse, Type::standard);
            NTT::Base_dev_ptr(stream, values, log, Order::RN, Direction::forward, Type::coset);
        }
        size_t n = (size_t)1 << log;
        prestage_mul_sub_scale<<<(n + 255) / 256, 256, 0, stream>>>(a, b, c, *scale, n);
        CUDA_OK(cudaGetLastError());
        NTT::Base_dev_ptr(stream, a, log, Order::NN, Direction::inverse, Type::coset);
        stream.sync();
    });
}

#endif
