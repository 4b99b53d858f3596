// One kernel source, two machines.
//
// On the device a `Block` is one thread of a CUDA block. On the host it is a loop over all threads of a
// simulated block, in an order that the caller picks: forwards, backwards or shuffled anew at every phase.
// A kernel body is a sequence of phases, `blk.each([&](u32 t) { … })`, separated by `blk.sync()`; what a
// thread keeps from one phase to the next lives in `PerThread<T>`, and shared memory is reached through
// `Shared<T>`, which on the host reports out-of-range and unsynchronised accesses.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define PS_DEVICE 1
#endif

using u32 = unsigned int;
using u64 = unsigned long long;

#ifdef PS_DEVICE
#define PS_FN __device__ __forceinline__
#define PS_CALL __device__ __noinline__
#define PS_CONSTEXPR __host__ __device__ constexpr
#define PS_TABLE static __device__ constexpr
#define PS_UNROLL _Pragma("unroll")
#define PS_ROLLED _Pragma("unroll 1")
#define PS_UNROLL_BY(n) PS_PRAGMA(unroll n)
#define PS_PRAGMA(text) _Pragma(#text)
#define PS_CHECK(condition) ((void)0)
// From here on the compiler knows nothing of `v`: it derives addresses from it anew, where keeping them would take registers.
#define PS_FORGET(v) asm volatile("" : "+r"(v))
// A structure passed to a kernel by value and read in place, without a copy on the stack.
#define PS_PARAMETER const __grid_constant__
// Field elements are loaded 16 bytes at a time; device memory is aligned well beyond that, host memory need not be.
#define PS_ALIGNED alignas(16)
#else
#define PS_FN inline
#define PS_CALL inline
#define PS_CONSTEXPR constexpr
#define PS_TABLE static constexpr
#define PS_UNROLL
#define PS_ROLLED
#define PS_UNROLL_BY(n)
#define PS_FORGET(v) ((void)0)
#define PS_PARAMETER const
#define PS_ALIGNED
// An invariant of the arithmetic: checked in every host build, free on the device.
#define PS_CHECK(condition)                                                                                            \
    do {                                                                                                               \
        if (!(condition)) ::prestage::fail(#condition, __FILE__, __LINE__);                                            \
    } while (0)
#include "host.hpp"
#endif

#ifdef PS_DEVICE

// Shared memory at a byte offset of the block's dynamic allocation.
template <class T> struct Shared {
    T* base;
    PS_FN T get(u32, u32 i) const { return base[i]; }
    PS_FN void set(u32, u32 i, const T& v) const { base[i] = v; }
    // Adds v atomically and returns what was there: other threads may do the same before the next barrier.
    PS_FN T add(u32, u32 i, T v) const { return atomicAdd(base + i, v); }
};

extern __shared__ uint4 ps_dynamic_shared[];

struct Block {
    template <class F> PS_FN void each(F f) const { f(threadIdx.x); }
    PS_FN void sync() const { __syncthreads(); }
    PS_FN u32 index() const { return blockIdx.x; }
    PS_FN u32 row() const { return blockIdx.y; }
    PS_FN u32 dim() const { return blockDim.x; }
    PS_FN u32 grid() const { return gridDim.x; }
    template <class T> PS_FN Shared<T> shared(u32 offset, u32) const {
        return {reinterpret_cast<T*>(reinterpret_cast<char*>(ps_dynamic_shared) + offset)};
    }
};

template <class T> struct PerThread {
    T value;
    PS_FN explicit PerThread(const Block&) {}
    PS_FN T& operator[](u32) { return value; }
};

// Defines the entry point `name` over the body `name_body(const Block& blk, …)`: at most `threads` threads a
// block, at least `blocks` blocks resident on a multiprocessor.
#define PS_KERNEL(name, threads, blocks, params, args)                                                                 \
    extern "C" __global__ void __launch_bounds__(threads, blocks) name params {                                        \
        const Block blk;                                                                                               \
        name##_body args;                                                                                              \
    }
#define PS_FAMILY(name)

#else

using prestage::Block;
using prestage::PerThread;
using prestage::Shared;

#define PS_KERNEL(name, threads, blocks, params, args)                                                                 \
    static const prestage::Entry ps_entry_##name(#name, threads, &name##_body);
// Makes the linker keep the translation unit, and with it the entries above.
#define PS_FAMILY(name)                                                                                                \
    extern "C" void prestage_family_##name() {}

#endif
