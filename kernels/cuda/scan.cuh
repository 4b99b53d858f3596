// Exclusive prefix sums, and the atomic counter behind histograms.
#pragma once
#include "simt.cuh"

// Adds one to *counter and returns what it was. Threads of a warp that meet at the same counter add up first, so
// that a histogram with one huge bin does not queue at it.
PS_FN u32 count_one(u32* counter) {
#ifdef PS_DEVICE
    const u32 active = __activemask();
    const u32 peers = __match_any_sync(active, reinterpret_cast<u64>(counter));
    const u32 lane = threadIdx.x & 31, leader = u32(__ffs(int(peers))) - 1;
    u32 first = 0;
    if (lane == leader) first = atomicAdd(counter, u32(__popc(peers)));
    first = __shfl_sync(peers, first, int(leader));
    return first + u32(__popc(peers & ((1u << lane) - 1)));
#else
    return (*counter)++;
#endif
}

// A block's share: 256 threads, 8 consecutive values each.
PS_TABLE u32 SCAN_THREADS = 256;
PS_TABLE u32 SCAN_EACH = 8;

struct ScanEight {
    u32 v[8];
    u32 before;
};

// data[i] ← sum of the block's values before i, totals[block] ← the block's sum; i < n. Shared memory: 2·256 words.
PS_FN void scan_block(const Block& blk, u32* data, u32* totals, u64 n) {
    PerThread<ScanEight> mine(blk);
    const Shared<u32> sums = blk.shared<u32>(0, 2 * SCAN_THREADS);
    blk.each([&](u32 t) {
        const u64 first = (u64(blk.index()) * SCAN_THREADS + t) * SCAN_EACH;
        u32 sum = 0;
        PS_UNROLL
        for (u32 k = 0; k < SCAN_EACH; k++) {
            const u32 v = first + k < n ? data[first + k] : 0;
            mine[t].v[k] = sum;
            sum += v;
        }
        mine[t].before = sum;
        sums.set(t, t, sum);
    });
    blk.sync();
    // Inclusive sums over the threads (Hillis and Steele), two buffers in turn.
    u32 from = 0;
    PS_ROLLED
    for (u32 step = 1; step < SCAN_THREADS; step *= 2) {
        const u32 to = SCAN_THREADS - from;
        blk.each([&](u32 t) {
            const u32 own = sums.get(t, from + t);
            sums.set(t, to + t, t >= step ? own + sums.get(t, from + t - step) : own);
        });
        blk.sync();
        from = to;
    }
    blk.each([&](u32 t) {
        const u64 first = (u64(blk.index()) * SCAN_THREADS + t) * SCAN_EACH;
        const u32 inclusive = sums.get(t, from + t), before = inclusive - mine[t].before;
        PS_UNROLL
        for (u32 k = 0; k < SCAN_EACH; k++)
            if (first + k < n) data[first + k] = mine[t].v[k] + before;
        if (t + 1 == SCAN_THREADS) totals[blk.index()] = inclusive;
    });
}
