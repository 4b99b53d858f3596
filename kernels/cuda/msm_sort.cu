// Family `msm_sort`: scalars from the form that they travel in, to signed digits, and a counting sort of
// (window, digit) → (index, sign).
//
// Buckets of a group of windows: window w of the group has the buckets w·2^(c-1) … for digits of absolute value
// 1 … 2^(c-1); one more bucket at the end collects the scalars 1 (and -1). Digits 0 are dropped.
#include "fr.cuh"
#include "scan.cuh"

// src/msm.rs has the same layout.
struct MsmDigits {
    const Fr* scalars;  // canonical, in Montgomery form or integers
    u64 n;              // below 2^31: an entry is an index with the sign above it
    u32 half[8];        // Σ 2^(offset + width - 1) over all windows: makes the digits independent, see below
    u32 width, wide;    // `wide` windows of `width` bits come first, the others have width - 1; 256 bits in all
    u32 first, windows; // the group: windows first … first + windows - 1
    u32 ones;           // scalars 1 go to the last bucket: 1 for yes, 2 for -1 too (points of the prime subgroup)
    u32 integers;       // scalars are integers
};

// Calls visit(bucket, negative) for each digit of scalar i in the group.
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
    if (higher == 0 && s.l[0] == 0) return;
    if (p.ones != 0) {
        Fr minus_one;
        PS_UNROLL
        for (int k = 0; k < 8; k++) minus_one.l[k] = FR_R[k];
        minus_one.l[0] = 0; // r - 1
        const bool one = higher == 0 && s.l[0] == 1, negative = p.ones == 2 && fr_same(s, minus_one);
        if (one || negative) {
            if (p.first == 0) visit(p.windows << (p.width - 1), negative);
            return;
        }
    }
    u32 sum[9];
    const u32 carry = add_limbs<8>(sum, s.l, p.half);
    (void)carry;
    PS_CHECK(carry == 0);
    sum[8] = 0;
    PS_ROLLED
    for (u32 w = 0; w < p.windows; w++) {
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
        if (field == middle) continue;
        const bool negative = field < middle;
        const u32 magnitude = negative ? middle - field : field - middle;
        visit((w << (p.width - 1)) + magnitude - 1, negative);
    }
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

// counts[bucket] ← the number of entries, from zeros.
PS_FN void msm_count_body(const Block& blk, const MsmDigits& p, u32* counts) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >= p.n) return;
        each_digit(p, i, [&](u32 bucket, bool) { count_one(counts + bucket); });
    });
}
// entries[…] ← index | sign·2^31, grouped by bucket; cursors are the buckets' offsets before and their ends after.
PS_FN void msm_scatter_body(const Block& blk, const MsmDigits& p, u32* cursors, u32* entries) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >= p.n) return;
        each_digit(p, i, [&](u32 bucket, bool negative) {
            entries[count_one(cursors + bucket)] = u32(i) | (negative ? 0x80000000u : 0);
        });
    });
}

// data[i] ← 0, i < n.
PS_FN void msm_clear_body(const Block& blk, u32* data, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i < n) data[i] = 0;
    });
}

PS_FN void msm_scan_body(const Block& blk, u32* data, u32* totals, u64 n) { scan_block(blk, data, totals, n); }
// data[i] += totals[block of i]: the second half of a scan over several blocks.
PS_FN void msm_scan_add_body(const Block& blk, u32* data, const u32* totals, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i < n) data[i] += totals[i / (SCAN_THREADS * SCAN_EACH)];
    });
}
// For the scan of slices: slices[b] ← ⌈counts[b]/size⌉ and slices[n] ← 0.
PS_FN void msm_slices_body(const Block& blk, u32* slices, const u32* counts, u32 size, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i <= n) slices[i] = i == n ? 0 : (counts[i] + size - 1) / size;
    });
}
// The counts of the next level: a bucket of one slice is finished, others have one partial sum a slice.
PS_FN void msm_next_counts_body(const Block& blk, u32* counts, u32 size, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >= n) return;
        const u32 slices = (counts[i] + size - 1) / size;
        counts[i] = slices > 1 ? slices : 0;
    });
}

PS_KERNEL(msm_count_bits, 256, 1, (u32 * counts, const u64* words, u32 shift, u64 n), (blk, counts, words, shift, n))
PS_KERNEL(msm_expand, 256, 1,
          (Fr * out, const u64* words, const u32* ranks, u64 width, u32 shift, u64 first, u64 n),
          (blk, out, words, ranks, width, shift, first, n))
PS_KERNEL(msm_clear, 256, 1, (u32 * data, u64 n), (blk, data, n))
PS_KERNEL(msm_count, 256, 1, (PS_PARAMETER MsmDigits p, u32* counts), (blk, p, counts))
PS_KERNEL(msm_scatter, 256, 1, (PS_PARAMETER MsmDigits p, u32* cursors, u32* entries), (blk, p, cursors, entries))
PS_KERNEL(msm_scan, 256, 1, (u32 * data, u32* totals, u64 n), (blk, data, totals, n))
PS_KERNEL(msm_scan_add, 256, 1, (u32 * data, const u32* totals, u64 n), (blk, data, totals, n))
PS_KERNEL(msm_slices, 256, 1, (u32 * slices, const u32* counts, u32 size, u64 n), (blk, slices, counts, size, n))
PS_KERNEL(msm_next_counts, 256, 1, (u32 * counts, u32 size, u64 n), (blk, counts, size, n))

PS_FAMILY(msm_sort)
