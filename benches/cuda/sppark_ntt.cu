// sppark's transforms over the scalar field of BLS12-381: forward, in place, values of 32 bytes in Montgomery form.

#include <cuda.h>

#include <ff/bls12-381.hpp>

#include <ntt/ntt.cuh>

#ifndef __CUDA_ARCH__

#include "sppark_error.hpp"

static void forward(stream_t& stream, fr_t* values, uint32_t log, int order)
{
    NTT::Base_dev_ptr(stream, values, log, static_cast<NTT::InputOutputOrder>(order), NTT::Direction::forward,
                      NTT::Type::standard);
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
    return NTT::Base(select_gpu(-1), values, log, static_cast<NTT::InputOutputOrder>(order), NTT::Direction::forward,
                     NTT::Type::standard);
}

#endif
