// Family `msm_lists`: lists of references that shrink from level to level, whatever is referred to.
//
//   level k: counts, starts of all lists → (steps, totals) where pairs and the lists of level k + 1 go
//            → pairs for the additions, references of level k + 1, or the end of a list in `finals`
#include "msm_lists.cuh"

// Pairs above, references of the next level below: both are scanned at once.
PS_FN u64 list_step(u32 m) { return u64(m / 2) << 32 | next_count(m); }

// places[b] ← Σ list_step(counts) before list b within its scan block, totals[block]; n lists.
PS_FN void msm_list_steps_body(const Block& blk, u64* places, u64* totals, const u32* counts, u64 n) {
    scan_block(blk, [&](u64 i) { return list_step(counts[i]); }, places, totals, n);
}
// The scan of the totals; the level's pairs, and where the next level's sums begin. The first level's begin at `first`,
// which is 0 for the others. counters ← 0.
PS_FN void msm_list_totals_body(const Block& blk, u64* totals, u64 blocks, TreeLevel* level, u32 first, u32* counters) {
    scan_by_one_block(blk, totals, blocks, [&](u64 total) {
        if (first != 0) level[0].first = first;
        level[0].pairs = u32(total >> 32);
        level[1].first = level[0].first + level[0].pairs;
        counters[0] = counters[1] = 0;
    });
}

// src/msm/tree.rs has the same layout.
struct MsmLists {
    const u32 *refs, *starts, *counts; // of this level
    const u64 *places, *totals;        // from the scan
    const TreeLevel* level;
    RefPair* pairs;
    u32 *next_refs, *next_starts, *next_counts;
    u32* finals;   // what a list ends as
    u32* crowded;  // numbers of blocks whose lists have more than PAIRS_EACH pairs
    u32* counters; // [0]: how many
    u32 n, bases;  // lists; REF_BASE where references are indices of bases, else 0
};
PS_TABLE u32 LISTS_EACH = 256;
PS_TABLE u32 PAIRS_EACH = 16384;

// One block's lists: first pair, first reference, next reference and length of each, in shared memory.
struct ListTable {
    Shared<u32> pair, start, next, count;
};
PS_FN ListTable list_table(const Block& blk) {
    return {blk.shared<u32>(0, LISTS_EACH + 1), blk.shared<u32>(4 * (LISTS_EACH + 1), LISTS_EACH),
            blk.shared<u32>(4 * (2 * LISTS_EACH + 1), LISTS_EACH),
            blk.shared<u32>(4 * (3 * LISTS_EACH + 1), LISTS_EACH)};
}
// Fills the table with the lists of block `number`.
PS_FN void fill_list_table(const ListTable& table, const MsmLists& p, u32 number, u32 t) {
    const u32 b = number * LISTS_EACH + t, m = b < p.n ? p.counts[b] : 0;
    // A block of lists is within one block of the scan. Past the last list, pairs go on where they stopped.
    const u64 at = b < p.n ? p.places[b] : p.places[p.n - 1] + list_step(p.counts[p.n - 1]);
    const u64 place = at + p.totals[number * LISTS_EACH / SCAN_BLOCK];
    const u32 pair = u32(place >> 32);
    table.pair.set(t, t, pair);
    if (t + 1 == LISTS_EACH) table.pair.set(t, LISTS_EACH, pair + m / 2);
    table.start.set(t, t, b < p.n ? p.starts[b] : 0);
    table.next.set(t, t, u32(place));
    table.count.set(t, t, m);
}
// Makes pair k of the block's.
PS_FN void make_pair(const ListTable& table, const MsmLists& p, u32 number, u32 t, u32 k) {
    const u32 j = table.pair.get(t, 0) + k;
    u32 list = 0;
    PS_UNROLL
    for (u32 step = LISTS_EACH / 2; step > 0; step /= 2)
        if (table.pair.get(t, list + step) <= j) list += step;
    const u32 r = j - table.pair.get(t, list);
    const u32* refs = p.refs + table.start.get(t, list) + 2 * u64(r);
    p.pairs[j] = {refs[0] | p.bases, refs[1] | p.bases};
    const u32 sum = p.level->first + j;
    if (table.count.get(t, list) == 2)
        p.finals[number * LISTS_EACH + list] = sum;
    else
        p.next_refs[table.next.get(t, list) + r] = sum;
}

// Pairs of the lists of a block. Shared memory: 4·256 + 1 words.
PS_FN void msm_list_pairs_body(const Block& blk, const MsmLists& p) {
    const ListTable table = list_table(blk);
    blk.each([&](u32 t) {
        fill_list_table(table, p, blk.index(), t);
        const u32 b = u32(u64(blk.index()) * LISTS_EACH + t);
        if (b >= p.n) return;
        const u32 m = table.count.get(t, t), next = table.next.get(t, t);
        p.next_counts[b] = next_count(m);
        p.next_starts[b] = next;
        if (m % 2 == 1) {
            const u32 last = p.refs[table.start.get(t, t) + m - 1] | p.bases;
            if (m == 1)
                p.finals[b] = last;
            else
                p.next_refs[next + m / 2] = last;
        } else if (m == 0 && p.bases != 0) {
            p.finals[b] = REF_INFINITY;
        }
    });
    blk.sync();
    blk.each([&](u32 t) {
        const u32 pairs = table.pair.get(t, LISTS_EACH) - table.pair.get(t, 0);
        PS_ROLLED
        for (u32 k = t; k < pairs && pairs <= PAIRS_EACH; k += LISTS_EACH) make_pair(table, p, blk.index(), t, k);
        if (t == 0 && pairs > PAIRS_EACH) p.crowded[add_to(p.counters, 1)] = blk.index();
    });
}
// The pairs of crowded blocks: as many of the grid's blocks for each.
PS_FN void msm_list_crowded_body(const Block& blk, const MsmLists& p) {
    const ListTable table = list_table(blk);
    const u32 crowded = p.counters[0], share = crowded < blk.grid() ? blk.grid() / (crowded + (crowded == 0)) : 1;
    PS_ROLLED
    for (u32 i = blk.index() / share; i < crowded; i += blk.grid() / share) {
        const u32 number = p.crowded[i], part = blk.index() % share;
        blk.sync();
        blk.each([&](u32 t) { fill_list_table(table, p, number, t); });
        blk.sync();
        blk.each([&](u32 t) {
            const u32 pairs = table.pair.get(t, LISTS_EACH) - table.pair.get(t, 0);
            PS_ROLLED
            for (u64 k = part * LISTS_EACH + t; k < pairs; k += u64(share) * LISTS_EACH)
                make_pair(table, p, number, t, u32(k));
        });
    }
}

// longer ← the lists that have not ended, counters[1] of them.
PS_FN void msm_list_longer_body(const Block& blk, u32* longer, u32* counters, const u32* counts, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i < n && counts[i] != 0) longer[add_to(counters + 1, 1)] = u32(i);
    });
}

// Pairs (first + b, finals[b]) whose sums replace the points first + b, b < n.
PS_FN void msm_pairs_merge_body(const Block& blk, RefPair* pairs, TreeLevel* level, const u32* finals, u32 first,
                                u32 n) {
    blk.each([&](u32 t) {
        const u64 b = u64(blk.index()) * blk.dim() + t;
        if (b == 0) *level = {first, n};
        if (b < n) pairs[b] = {first + u32(b), finals[b]};
    });
}

// src/msm/tree.rs has the same layout.
struct MsmHalving {
    u32 rows, row_pairs;    // points rows …: neighbours in pairs
    u32 columns[2], split;  // windows from columns[0] on, from window `split` on they follow columns[1]
    u32 half, column_pairs; // a window is 2·2^half points, whose halves are added up
    u32 sums;               // where the sums go: those of rows, then those of columns
};
PS_FN void msm_pairs_halve_body(const Block& blk, RefPair* pairs, TreeLevel* level, const MsmHalving& p) {
    blk.each([&](u32 t) {
        const u64 j = u64(blk.index()) * blk.dim() + t, n = u64(p.row_pairs) + p.column_pairs;
        if (j == 0) *level = {p.sums, u32(n)};
        if (j >= n) return;
        if (j < p.row_pairs) {
            pairs[j] = {p.rows + 2 * u32(j), p.rows + 2 * u32(j) + 1};
            return;
        }
        const u32 k = u32(j) - p.row_pairs, window = k >> p.half, within = k & ((1u << p.half) - 1);
        const u32 first = window < p.split ? p.columns[0] + (window << (p.half + 1))
                                           : p.columns[1] + ((window - p.split) << (p.half + 1));
        pairs[j] = {first + within, first + within + (1u << p.half)};
    });
}

// Slices of at most `size` entries: places[b] ← Σ ⌈counts/size⌉ before bucket b within its scan block, and totals.
PS_FN void msm_slices_body(const Block& blk, u32* places, u32* totals, const u32* counts, u32 size, u64 n) {
    scan_block(blk, [&](u64 i) { return (counts[i] + size - 1) / size; }, places, totals, n);
}
// The scan of the totals, with their sum after them. counters ← 0.
PS_FN void msm_slice_totals_body(const Block& blk, u32* totals, u64 blocks, u32* counters) {
    scan_by_one_block(blk, totals, blocks, [&](u32 total) {
        totals[blocks] = total;
        counters[0] = counters[1] = 0;
    });
}

PS_KERNEL(msm_list_steps, 256, 1, (u64 * places, u64* totals, const u32* counts, u64 n),
          (blk, places, totals, counts, n))
PS_KERNEL(msm_list_totals, 1024, 1, (u64 * totals, u64 blocks, TreeLevel* level, u32 first, u32* counters),
          (blk, totals, blocks, level, first, counters))
PS_KERNEL(msm_list_pairs, 256, 1, (PS_PARAMETER MsmLists p), (blk, p))
PS_KERNEL(msm_list_crowded, 256, 1, (PS_PARAMETER MsmLists p), (blk, p))
PS_KERNEL(msm_list_longer, 256, 1, (u32 * longer, u32* counters, const u32* counts, u64 n),
          (blk, longer, counters, counts, n))
PS_KERNEL(msm_pairs_merge, 256, 1, (RefPair * pairs, TreeLevel* level, const u32* finals, u32 first, u32 n),
          (blk, pairs, level, finals, first, n))
PS_KERNEL(msm_pairs_halve, 256, 1, (RefPair * pairs, TreeLevel* level, PS_PARAMETER MsmHalving p),
          (blk, pairs, level, p))
PS_KERNEL(msm_slices, 256, 1, (u32 * places, u32* totals, const u32* counts, u32 size, u64 n),
          (blk, places, totals, counts, size, n))
PS_KERNEL(msm_slice_totals, 1024, 1, (u32 * totals, u64 blocks, u32* counters), (blk, totals, blocks, counters))

PS_FAMILY(msm_lists)
