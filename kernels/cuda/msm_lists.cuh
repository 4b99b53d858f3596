// What the threads of a tree level and of slices agree on: references, pairs, how lists shrink.
#pragma once
#include "scan.cuh"

// A reference: bit 31 for the negative, bit 30 for a base, else the index of a point of the tree. Point 0 of the tree
// is infinity.
PS_TABLE u32 REF_NEGATIVE = 0x80000000;
PS_TABLE u32 REF_BASE = 0x40000000;
PS_TABLE u32 REF_INDEX = 0x3fffffff;
PS_TABLE u32 REF_INFINITY = 0;

// Two references whose sum a level makes.
struct RefPair {
    u32 first, second;
};
// The sums of a level: points first … first + pairs - 1 of the tree.
struct TreeLevel {
    u32 first, pairs;
};

// A level turns a list of m references into ⌈m/2⌉, of which the last is its own when m is odd. A list of one or two
// ends there.
PS_FN u32 next_count(u32 m) { return m <= 2 ? 0 : (m + 1) / 2; }

// Threads that walk over the pairs of a level: one a pair while that fits the chip, then one for eight pairs or more.
// Each thread multiplies up the denominators of its pairs.
PS_FN u32 tree_walkers(u32 pairs) {
    const u32 few = pairs < 67584 ? pairs : 67584, many = pairs / 8;
    const u32 walkers = few > many ? few : many;
    return walkers < 405504 ? walkers : 405504;
}
// Threads that invert the walkers' products: one for two products while that is a warp a scheduler, then for four
// while that is two warps.
PS_FN u32 tree_inverters(u32 walkers) {
    const u32 two = (walkers + 1) / 2, four = (walkers + 3) / 4;
    const u32 few = two < 16896 ? two : 16896, many = four < 33792 ? four : 33792;
    return few > many ? few : many;
}
