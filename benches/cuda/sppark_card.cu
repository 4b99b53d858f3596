// What a caller of sppark says to the card.

#include <cuda_runtime.h>

#include <util/gpu_t.cuh>
#include <util/rusterror.h>

#include "sppark_error.hpp"

static cudaMemPool_t pool()
{
    int device;
    cudaMemPool_t pool;
    CUDA_OK(cudaGetDevice(&device));
    CUDA_OK(cudaDeviceGetDefaultMemPool(&pool, device));
    return pool;
}

// Makes it the thread's card, and lets the pool that sppark allocates from keep its memory past a synchronisation: what is
// freed after one call is there for the next.
extern "C" RustError::by_value prestage_sppark_use(int device)
{
    return guarded([=] {
        CUDA_OK(cudaSetDevice(device));
        uint64_t all = UINT64_MAX;
        CUDA_OK(cudaMemPoolSetAttribute(pool(), cudaMemPoolAttrReleaseThreshold, &all));
        select_gpu(-1).sync();
    });
}

// Gives what the pool keeps back to the card.
extern "C" RustError::by_value prestage_sppark_trim()
{
    return guarded([] {
        select_gpu(-1).sync();
        CUDA_OK(cudaMemPoolTrimTo(pool(), 0));
    });
}

// Page-locks host memory where it lies, in one piece.
extern "C" RustError::by_value prestage_sppark_lock(void* at, size_t bytes)
{
    return guarded([=] { CUDA_OK(cudaHostRegister(at, bytes, cudaHostRegisterDefault)); });
}

extern "C" RustError::by_value prestage_sppark_unlock(void* at)
{
    return guarded([=] { CUDA_OK(cudaHostUnregister(at)); });
}
