// Family `msm_sort`: scalars from the form that they travel in, to signed digits, and a counting sort of
// (window, digit) → (index, sign).
//
// Buckets of a group of windows lie one window after another, 2^(b-1) for a window of b bits: one for each absolute
// value 1 … 2^(b-1) of a digit. One more bucket at the end collects the scalars 1 (and -1). Digits 0 are dropped.
//
// The sort takes two steps. A bin is 2^fine consecutive buckets of one window; entries are first spread over the bins,
// then each block sorts one bin with counters in shared memory.
//
//   keys    [window][scalar]   bucket | sign·2^31, or none: 4 bytes a digit
//   spread  [bin][any order]   bucket within the bin·2^32 | index | sign·2^31: 8 bytes
//           through shared memory, so that what goes to one bin is written together; and so are
//   entries [bucket][any order] index | sign·2^31: 4 bytes
#include "fr.cuh"
#include "scan.cuh"

// src/msm/sort.rs has the same layout.
struct MsmDigits {
    const Fr* scalars;  // canonical, in Montgomery form or integers
    u64 n;              // below 2^31: an entry is an index with the sign above it
    u32 half[8];        // Σ 2^(offset + width - 1) over all windows: makes the digits independent, see below
    u32 width, wide;    // `wide` windows of `width` bits come first, the others have width - 1; 256 bits in all
    u32 first, windows; // the group: windows first … first + windows - 1
    u32 ones;           // scalars 1 have no digits: 1 for yes, 2 for -1 too (points of the prime subgroup)
    u32 collects;       // and the last bucket collects them: in one group of several
    u32 integers;       // scalars are integers
    u32 fine;           // a bin has 2^fine buckets, at most those of a narrow window
};
PS_TABLE u32 NO_KEY = 0xffffffff;
PS_TABLE u32 NEGATIVE = 0x80000000;

// The first bucket of window w of the group; that of the ones for w = windows.
PS_FN u32 first_bucket(const MsmDigits& p, u32 w) {
    const u32 wide = p.wide > p.first ? p.wide - p.first : 0;
    return (w + (w < wide ? w : wide)) << (p.width - 2);
}

// Calls visit(w, key) for each window w of the group, with NO_KEY for a digit 0.
//
// With h = Σ 2^(o + b - 1) over windows of b bits at offset o, field (o, b) of s + h minus 2^(b-1) is a digit of s in
// [-2^(b-1), 2^(b-1)): the windows need no carry from each other. s < 0.453·2^256, and h < 0.534·2^256 for windows of
// four bits or more, so the sum stays within 256 bits.
template <class V> PS_FN void each_digit(const MsmDigits& p, u64 i, V visit) {
    Fr s = p.scalars[i];
    if (!p.integers) s = fr_to_integer(s);
    u32 higher = 0;
    PS_UNROLL
    for (int k = 1; k < 8; k++) higher |= s.l[k];
    Fr minus_one;
    PS_UNROLL
    for (int k = 0; k < 8; k++) minus_one.l[k] = FR_R[k];
    minus_one.l[0] = 0; // r - 1
    const bool zero = higher == 0 && s.l[0] == 0, one = p.ones != 0 && higher == 0 && s.l[0] == 1;
    const bool minus = p.ones == 2 && fr_same(s, minus_one);
    u32 sum[9];
    const u32 carry = add_limbs<8>(sum, s.l, p.half);
    (void)carry;
    PS_CHECK(carry == 0);
    sum[8] = 0;
    PS_ROLLED
    for (u32 w = 0; w < p.windows; w++) {
        u32 key = NO_KEY;
        if (one || minus) {
            if (p.collects && w == 0) key = first_bucket(p, p.windows) | (minus ? NEGATIVE : 0);
        } else if (!zero) {
            const u32 g = p.first + w, bits = g < p.wide ? p.width : p.width - 1;
            const u32 offset = g < p.wide ? g * p.width : p.wide * p.width + (g - p.wide) * (p.width - 1);
            u32 low = 0, high = 0;
            PS_UNROLL
            for (u32 k = 0; k < 8; k++)
                if (k == offset / 32) {
                    low = sum[k];
                    high = sum[k + 1];
                }
            const u32 field = u32((u64(high) << 32 | low) >> (offset % 32)) & ((1u << bits) - 1);
            const u32 middle = 1u << (bits - 1);
            const u32 magnitude = field < middle ? middle - field : field - middle;
            if (magnitude != 0) key = (first_bucket(p, w) + magnitude - 1) | (field < middle ? NEGATIVE : 0);
        }
        visit(w, key);
    }
}

// keys ← the digits of all scalars, `each` a thread; bins[bin] += its entries. Shared memory: half a word a bin, since
// a block has fewer than 2^16 scalars.
PS_FN void msm_digits_body(const Block& blk, const MsmDigits& p, u32* keys, u32* bins, u32 each) {
    const u32 count = (first_bucket(p, p.windows) >> p.fine) + 1, words = (count + 1) / 2;
    const Shared<u32> counters = blk.shared<u32>(0, words);
    blk.each([&](u32 t) {
        for (u32 i = t; i < words; i += blk.dim()) counters.set(t, i, 0);
    });
    blk.sync();
    blk.each([&](u32 t) {
        PS_ROLLED
        for (u32 k = 0; k < each; k++) {
            const u64 i = (u64(blk.index()) * each + k) * blk.dim() + t;
            if (i >= p.n) return;
            each_digit(p, i, [&](u32 w, u32 key) {
                keys[w * p.n + i] = key;
                if (key == NO_KEY) return;
                const u32 bin = (key & ~NEGATIVE) >> p.fine;
                counters.add(t, bin / 2, 1u << (bin % 2 * 16));
            });
        }
    });
    blk.sync();
    blk.each([&](u32 t) {
        for (u32 bin = t; bin < count; bin += blk.dim()) {
            const u32 entries = counters.get(t, bin / 2) >> (bin % 2 * 16) & 0xffff;
            if (entries != 0) add_to(bins + bin, entries);
        }
    });
}

// bins[bin] ← the sum of those before it: where its entries begin. Shared memory: two words a thread.
PS_FN void msm_bins_body(const Block& blk, u32* bins, u64 n) {
    scan_by_one_block(blk, bins, n, [](u32) {});
}

// Keys that a thread spreads, and threads.
PS_TABLE u32 SPREAD_EACH = 16;
PS_TABLE u32 SPREAD_THREADS = 256;
struct SpreadKeys {
    u32 key[16], rank[16];
};
// Spreads 16 keys a thread of window `row` over the bins; cursors are where the bins begin before, and end after.
// Shared memory: two words a key, two a thread, and two for each bin of a wide window and one more.
PS_FN void msm_spread_body(const Block& blk, const MsmDigits& p, const u32* keys, u32* cursors, u64* spread) {
    PerThread<SpreadKeys> mine(blk);
    const u32 first = first_bucket(p, blk.row()) >> p.fine, ones = first_bucket(p, p.windows) >> p.fine;
    const u32 own = (first_bucket(p, blk.row() + 1) >> p.fine) - first, tile = SPREAD_EACH * SPREAD_THREADS;
    const Shared<u64> sorted = blk.shared<u64>(0, tile);
    const Shared<u32> sums = blk.shared<u32>(8 * tile, 2 * SPREAD_THREADS);
    const Shared<u32> counters = blk.shared<u32>(8 * (tile + SPREAD_THREADS), own + 1);
    const Shared<u32> starts = blk.shared<u32>(8 * (tile + SPREAD_THREADS) + 4 * (own + 1), own + 1);
    const auto bin_of = [&](u32 key) {
        const u32 bin = (key & ~NEGATIVE) >> p.fine;
        return bin == ones ? own : bin - first;
    };
    const auto index_of = [&](u32 t, u32 k) { return (u64(blk.index()) * SPREAD_EACH + k) * blk.dim() + t; };
    blk.each([&](u32 t) { each_own(blk, t, own + 1, [&](u64 bin) { counters.set(t, u32(bin), 0); }); });
    blk.sync();
    blk.each([&](u32 t) {
        PS_UNROLL
        for (u32 k = 0; k < SPREAD_EACH; k++) {
            const u64 i = index_of(t, k);
            mine[t].key[k] = i < p.n ? keys[blk.row() * p.n + i] : NO_KEY;
        }
        PS_UNROLL
        for (u32 k = 0; k < SPREAD_EACH; k++)
            mine[t].rank[k] = mine[t].key[k] == NO_KEY ? 0 : counters.add(t, bin_of(mine[t].key[k]), 1);
    });
    blk.sync();
    blk.each([&](u32 t) {
        u32 sum = 0;
        each_own(blk, t, own + 1, [&](u64 bin) { sum += counters.get(t, u32(bin)); });
        sums.set(t, t, sum);
    });
    blk.sync();
    const u32 from = scan_threads(blk, sums);
    // A bin's counter becomes what is added to a place in `sorted` for its place in `spread`.
    blk.each([&](u32 t) {
        u32 before = t == 0 ? 0 : sums.get(t, from + t - 1);
        each_own(blk, t, own + 1, [&](u64 k) {
            const u32 bin = u32(k), entries = counters.get(t, bin);
            starts.set(t, bin, before);
            if (entries != 0)
                counters.set(t, bin, add_to(cursors + (bin == own ? ones : first + bin), entries) - before);
            before += entries;
        });
    });
    blk.sync();
    blk.each([&](u32 t) {
        PS_UNROLL
        for (u32 k = 0; k < SPREAD_EACH; k++) {
            const u32 key = mine[t].key[k];
            if (key == NO_KEY) continue;
            const u32 bin = bin_of(key), bucket = key & ((1u << p.fine) - 1);
            const u32 entry = u32(index_of(t, k)) | (key & NEGATIVE);
            sorted.set(t, starts.get(t, bin) + mine[t].rank[k], u64(bin << 16 | bucket) << 32 | entry);
        }
    });
    blk.sync();
    blk.each([&](u32 t) {
        const u32 all = sums.get(t, from + blk.dim() - 1);
        for (u32 i = t; i < all; i += blk.dim()) {
            const u64 v = sorted.get(t, i);
            spread[counters.get(t, u32(v >> 48)) + i] = v & 0xffffffffffffull;
        }
    });
}

// Entries that a thread has in flight.
PS_TABLE u32 SORT_EACH = 4;
// visit(bucket, entry) for thread t's share of the entries begin … end - 1, in part `part` of `parts`.
template <class V>
PS_FN void each_entry(const Block& blk, u32 t, const u64* spread, u32 begin, u32 end, u32 part, u32 parts, V visit) {
    const u32 step = blk.dim();
    PS_ROLLED
    for (u64 i = begin + u64(part) * SORT_EACH * step + t; i < end; i += u64(parts) * SORT_EACH * step) {
        u64 v[SORT_EACH] = {};
        PS_UNROLL
        for (u32 k = 0; k < SORT_EACH; k++)
            if (i + k * step < end) v[k] = spread[i + k * step];
        PS_UNROLL
        for (u32 k = 0; k < SORT_EACH; k++)
            if (i + k * step < end) visit(u32(v[k] >> 32), u32(v[k]));
    }
}

// src/msm/sort.rs has the same layout.
struct MsmBins {
    const u64* spread;
    const u32* ends;                // of the bins, in `spread` and in `entries`
    u32 *entries, *starts, *counts; // what comes out
    u32* crowded;                   // how many bins are crowded, then their numbers
    u32* cursors;                   // for the buckets of crowded bins
    u32 fine, n, slots; // a bin has 2^fine buckets, n in all; entries that are put in order before they are written
    u32 most;           // entries of a bin that is not crowded
};
// One bin: its buckets, and where its entries are.
struct BinAt {
    u32 first, size, begin, end;
};
PS_FN BinAt bin_at(const MsmBins& p, u32 bin) {
    const u32 first = bin << p.fine, size = p.n - first < 1u << p.fine ? p.n - first : 1u << p.fine;
    return {first, size, bin == 0 ? 0 : p.ends[bin - 1], p.ends[bin]};
}

// Counters ← the sums of those before, from `begin` on; visit(bucket, start, count) for each.
template <class V>
PS_FN void scan_counters(const Block& blk, const Shared<u32>& counters, const Shared<u32>& sums, const BinAt& bin,
                         V visit) {
    blk.each([&](u32 t) {
        u32 sum = 0;
        each_own(blk, t, bin.size, [&](u64 k) { sum += counters.get(t, u32(k)); });
        sums.set(t, t, sum);
    });
    blk.sync();
    const u32 from = scan_threads(blk, sums);
    blk.each([&](u32 t) {
        u32 before = bin.begin + (t == 0 ? 0 : sums.get(t, from + t - 1));
        each_own(blk, t, bin.size, [&](u64 k) {
            const u32 count = counters.get(t, u32(k));
            counters.set(t, u32(k), before);
            visit(bin.first + u32(k), before, count);
            before += count;
        });
    });
}

// Sorts bin `index`: counts, starts and entries of its buckets. Entries of as many buckets as fill the slots are put in
// order in shared memory and written together; then come the next buckets. Crowded bins are left to those below.
// Shared memory: a word a bucket, a word a slot, two a thread.
PS_FN void msm_sort_bin_body(const Block& blk, const MsmBins& p) {
    const BinAt bin = bin_at(p, blk.index());
    const u32 size = bin.size, begin = bin.begin, end = bin.end;
    const Shared<u32> counters = blk.shared<u32>(0, 1u << p.fine);
    const Shared<u32> sums = blk.shared<u32>(4u << p.fine, 2 * blk.dim());
    const Shared<u32> sorted = blk.shared<u32>((4u << p.fine) + 8 * blk.dim(), p.slots);
    if (end - begin > p.most) {
        blk.each([&](u32 t) {
            each_own(blk, t, size, [&](u64 k) { p.counts[bin.first + k] = 0; });
            if (t == 0) p.crowded[1 + add_to(p.crowded, 1)] = blk.index();
        });
        return;
    }
    blk.each([&](u32 t) { each_own(blk, t, size, [&](u64 k) { counters.set(t, u32(k), 0); }); });
    blk.sync();
    blk.each([&](u32 t) {
        each_entry(blk, t, p.spread, begin, end, 0, 1, [&](u32 bucket, u32) { counters.add(t, bucket, 1); });
    });
    blk.sync();
    scan_counters(blk, counters, sums, bin, [&](u32 bucket, u32 start, u32 count) {
        p.counts[bucket] = count;
        p.starts[bucket] = start;
    });
    u32 done = 0;
    PS_ROLLED
    while (done < size) {
        // Buckets done … high - 1 begin within the slots from `base` on; their counters have not moved yet. All threads
        // find the same.
        u32 high = size, base = 0, stop = end;
        blk.sync();
        blk.each([&](u32 t) {
            base = counters.get(t, done);
            u32 last = done;
            high = size;
            while (high - last > 1) {
                const u32 middle = last + (high - last) / 2;
                if (counters.get(t, middle) - base < p.slots)
                    last = middle;
                else
                    high = middle;
            }
            if (high < size) stop = counters.get(t, high);
        });
        blk.sync();
        blk.each([&](u32 t) {
            each_entry(blk, t, p.spread, begin, end, 0, 1, [&](u32 bucket, u32 entry) {
                if (bucket < done || bucket >= high) return;
                const u32 place = counters.add(t, bucket, 1);
                if (place - base < p.slots)
                    sorted.set(t, place - base, entry);
                else
                    p.entries[place] = entry;
            });
        });
        blk.sync();
        blk.each([&](u32 t) {
            for (u32 i = t; i < p.slots && base + i < stop; i += blk.dim()) p.entries[base + i] = sorted.get(t, i);
        });
        done = high;
    }
}

// Crowded bins: most of their entries are in few buckets. The grid's blocks are shared out among them, and visit(bin,
// part, parts) is for part `part` of a bin.
template <class V> PS_FN void each_crowded(const Block& blk, const MsmBins& p, V visit) {
    const u32 crowded = p.crowded[0], parts = crowded < blk.grid() ? blk.grid() / (crowded + (crowded == 0)) : 1;
    PS_ROLLED
    for (u32 i = blk.index() / parts; i < crowded; i += blk.grid() / parts)
        visit(bin_at(p, p.crowded[1 + i]), blk.index() % parts, parts);
}
// Counts the entries of a part by bucket.
PS_FN void count_part(const Block& blk, const MsmBins& p, const Shared<u32>& counters, const BinAt& bin, u32 part,
                      u32 parts) {
    blk.sync();
    blk.each([&](u32 t) { each_own(blk, t, bin.size, [&](u64 k) { counters.set(t, u32(k), 0); }); });
    blk.sync();
    blk.each([&](u32 t) {
        each_entry(blk, t, p.spread, bin.begin, bin.end, part, parts,
                   [&](u32 bucket, u32) { count_shared(counters, t, bucket); });
    });
    blk.sync();
}
// Their counts, from zero. Shared memory: a word a bucket.
PS_FN void msm_crowd_count_body(const Block& blk, const MsmBins& p) {
    const Shared<u32> counters = blk.shared<u32>(0, 1u << p.fine);
    each_crowded(blk, p, [&](const BinAt& bin, u32 part, u32 parts) {
        count_part(blk, p, counters, bin, part, parts);
        blk.each([&](u32 t) {
            each_own(blk, t, bin.size, [&](u64 k) {
                const u32 count = counters.get(t, u32(k));
                if (count != 0) add_to(p.counts + bin.first + k, count);
            });
        });
    });
}
// Their starts. Shared memory: a word a bucket, two a thread.
PS_FN void msm_crowd_starts_body(const Block& blk, const MsmBins& p) {
    const Shared<u32> counters = blk.shared<u32>(0, 1u << p.fine);
    const Shared<u32> sums = blk.shared<u32>(4u << p.fine, 2 * blk.dim());
    each_crowded(blk, p, [&](const BinAt& bin, u32 part, u32) {
        if (part != 0) return;
        blk.sync();
        blk.each([&](u32 t) {
            each_own(blk, t, bin.size, [&](u64 k) { counters.set(t, u32(k), p.counts[bin.first + k]); });
        });
        blk.sync();
        scan_counters(blk, counters, sums, bin,
                      [&](u32 bucket, u32 start, u32) { p.starts[bucket] = p.cursors[bucket] = start; });
    });
}
// Their entries. Shared memory: a word a bucket.
PS_FN void msm_crowd_place_body(const Block& blk, const MsmBins& p) {
    const Shared<u32> counters = blk.shared<u32>(0, 1u << p.fine);
    each_crowded(blk, p, [&](const BinAt& bin, u32 part, u32 parts) {
        count_part(blk, p, counters, bin, part, parts);
        blk.each([&](u32 t) {
            each_own(blk, t, bin.size, [&](u64 k) {
                const u32 count = counters.get(t, u32(k));
                if (count != 0) counters.set(t, u32(k), add_to(p.cursors + bin.first + k, count));
            });
        });
        blk.sync();
        blk.each([&](u32 t) {
            each_entry(blk, t, p.spread, bin.begin, bin.end, part, parts,
                       [&](u32 bucket, u32 entry) { p.entries[count_shared(counters, t, bucket)] = entry; });
        });
    });
}

// Scalars that travel sorted: `width` words with a bit for each that is neither 0 nor 1, `width` words with a bit for
// each 1, then the former as canonical integers, in order. Bit `shift` < 64 of a bitmap is scalar 0; bits below it are
// not scalars of this batch.

PS_FN u32 count_bits(u64 word) {
#ifdef PS_DEVICE
    return u32(__popcll(word));
#else
    u32 n = 0;
    for (; word != 0; word &= word - 1) n++;
    return n;
#endif
}
// Word i of the first bitmap without the bits below the first scalar.
PS_FN u64 others_word(const u64* words, u32 shift, u64 i) { return i == 0 ? words[0] >> shift << shift : words[i]; }

// counts[i] ← set bits of word i, i < n: their exclusive scan is the rank of each word's first.
PS_FN void msm_count_bits_body(const Block& blk, u32* counts, const u64* words, u32 shift, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i < n) counts[i] = count_bits(others_word(words, shift, i));
    });
}
// out[i] ← scalar first + i as an integer, i < n; `ranks` from above.
PS_FN void msm_expand_body(const Block& blk, Fr* out, const u64* words, const u32* ranks, u64 width, u32 shift,
                           u64 first, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >= n) return;
        const u64 at = first + i + shift, word = at / 64, bit = 1ull << (at % 64);
        const u64 others = others_word(words, shift, word);
        Fr s = fr_zero();
        if (others & bit)
            s = reinterpret_cast<const Fr*>(words + 2 * width)[ranks[word] + count_bits(others & (bit - 1))];
        else
            s.l[0] = (words[width + word] & bit) != 0;
        out[i] = s;
    });
}

// data[i] ← 0, i < n.
PS_FN void msm_clear_body(const Block& blk, u32* data, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i < n) data[i] = 0;
    });
}

PS_FN void msm_scan_body(const Block& blk, u32* data, u32* totals, u64 n) {
    scan_block(blk, [&](u64 i) { return data[i]; }, data, totals, n);
}
// data[i] += totals[block of i]: the second half of a scan over several blocks.
PS_FN void msm_scan_add_body(const Block& blk, u32* data, const u32* totals, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i < n) data[i] += totals[i / SCAN_BLOCK];
    });
}

PS_KERNEL(msm_count_bits, 256, 1, (u32 * counts, const u64* words, u32 shift, u64 n), (blk, counts, words, shift, n))
PS_KERNEL(msm_expand, 256, 1, (Fr * out, const u64* words, const u32* ranks, u64 width, u32 shift, u64 first, u64 n),
          (blk, out, words, ranks, width, shift, first, n))
PS_KERNEL(msm_clear, 256, 1, (u32 * data, u64 n), (blk, data, n))
PS_KERNEL(msm_scan, 256, 1, (u32 * data, u32* totals, u64 n), (blk, data, totals, n))
PS_KERNEL(msm_scan_add, 256, 1, (u32 * data, const u32* totals, u64 n), (blk, data, totals, n))
PS_KERNEL(msm_digits, 256, 1, (PS_PARAMETER MsmDigits p, u32* keys, u32* bins, u32 each), (blk, p, keys, bins, each))
PS_KERNEL(msm_bins, 1024, 1, (u32 * bins, u64 n), (blk, bins, n))
PS_KERNEL(msm_spread, 256, 1, (PS_PARAMETER MsmDigits p, const u32* keys, u32* cursors, u64* spread),
          (blk, p, keys, cursors, spread))
PS_KERNEL(msm_sort_bin, 512, 1, (PS_PARAMETER MsmBins p), (blk, p))
PS_KERNEL(msm_crowd_count, 512, 1, (PS_PARAMETER MsmBins p), (blk, p))
PS_KERNEL(msm_crowd_starts, 512, 1, (PS_PARAMETER MsmBins p), (blk, p))
PS_KERNEL(msm_crowd_place, 512, 1, (PS_PARAMETER MsmBins p), (blk, p))

PS_FAMILY(msm_sort)
