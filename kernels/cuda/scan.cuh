// Exclusive prefix sums, and the atomic counters behind histograms.
#pragma once
#include "simt.cuh"

// Adds v to *counter and returns what it was.
PS_FN u32 add_to(u32* counter, u32 v) {
#ifdef PS_DEVICE
    return atomicAdd(counter, v);
#else
    const u32 before = *counter;
    *counter += v;
    return before;
#endif
}

// The same for 1 in shared memory, where many threads may meet at one counter: those of a warp add up first, so that
// a histogram with one huge bin does not queue at it.
PS_FN u32 count_shared(const Shared<u32>& counters, u32 t, u32 i) {
#ifdef PS_DEVICE
    const u32 active = __activemask();
    const u32 peers = __match_any_sync(active, i);
    const u32 lane = t & 31, leader = u32(__ffs(int(peers))) - 1;
    u32 first = 0;
    if (lane == leader) first = counters.add(t, i, u32(__popc(peers)));
    first = __shfl_sync(peers, first, int(leader));
    return first + u32(__popc(peers & ((1u << lane) - 1)));
#else
    return counters.add(t, i, 1);
#endif
}

// Inclusive sums of one value a thread, which `sums` holds at 0 … dim - 1 (Hillis and Steele, two buffers in turn).
// Returns where they begin in `sums`, which has room for two values a thread. The caller's barrier is before.
template <class T> PS_FN u32 scan_threads(const Block& blk, const Shared<T>& sums) {
    u32 from = 0;
    PS_ROLLED
    for (u32 step = 1; step < blk.dim(); step *= 2) {
        const u32 to = blk.dim() - from;
        blk.each([&](u32 t) {
            const T own = sums.get(t, from + t);
            sums.set(t, to + t, t >= step ? own + sums.get(t, from + t - step) : own);
        });
        blk.sync();
        from = to;
    }
    return from;
}

// A block's share: 256 threads, 8 consecutive values each.
PS_TABLE u32 SCAN_THREADS = 256;
PS_TABLE u32 SCAN_EACH = 8;
PS_TABLE u32 SCAN_BLOCK = 2048;

template <class T> struct ScanEight {
    T v[8];
    T before;
};

// out[i] ← sum of the block's values(k) for k before i, totals[block] ← the block's sum; i < n. Shared memory: 2·256
// values.
template <class T, class V> PS_FN void scan_block(const Block& blk, V values, T* out, T* totals, u64 n) {
    PerThread<ScanEight<T>> mine(blk);
    const Shared<T> sums = blk.shared<T>(0, 2 * SCAN_THREADS);
    blk.each([&](u32 t) {
        const u64 first = (u64(blk.index()) * SCAN_THREADS + t) * SCAN_EACH;
        T sum = 0;
        PS_UNROLL
        for (u32 k = 0; k < SCAN_EACH; k++) {
            const T v = first + k < n ? values(first + k) : 0;
            mine[t].v[k] = sum;
            sum += v;
        }
        mine[t].before = sum;
        sums.set(t, t, sum);
    });
    blk.sync();
    const u32 from = scan_threads(blk, sums);
    blk.each([&](u32 t) {
        const u64 first = (u64(blk.index()) * SCAN_THREADS + t) * SCAN_EACH;
        const T inclusive = sums.get(t, from + t), before = inclusive - mine[t].before;
        PS_UNROLL
        for (u32 k = 0; k < SCAN_EACH; k++)
            if (first + k < n) out[first + k] = mine[t].v[k] + before;
        if (t + 1 == SCAN_THREADS) totals[blk.index()] = inclusive;
    });
}

// visit(i) for thread t's share of n values: as many for each thread, one after another.
template <class V> PS_FN void each_own(const Block& blk, u32 t, u64 n, V visit) {
    const u64 each = (n + blk.dim() - 1) / blk.dim(), end = (t + 1) * each < n ? (t + 1) * each : n;
    PS_ROLLED
    for (u64 i = t * each; i < end; i++) visit(i);
}

// The exclusive scan of n values by one block, and finish(total) in one of its threads. Shared memory: two values a
// thread.
template <class T, class F> PS_FN void scan_by_one_block(const Block& blk, T* data, u64 n, F finish) {
    const Shared<T> sums = blk.shared<T>(0, 2 * blk.dim());
    blk.each([&](u32 t) {
        T sum = 0;
        each_own(blk, t, n, [&](u64 i) { sum += data[i]; });
        sums.set(t, t, sum);
    });
    blk.sync();
    const u32 from = scan_threads(blk, sums);
    blk.each([&](u32 t) {
        T before = t == 0 ? 0 : sums.get(t, from + t - 1);
        each_own(blk, t, n, [&](u64 i) {
            const T v = data[i];
            data[i] = before;
            before += v;
        });
        if (t + 1 == blk.dim()) finish(before);
    });
}
