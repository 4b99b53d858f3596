// The outer steps of a transform that does not fit the device: column transforms of a slot.
//
// The domain of n = 2^lg points is a matrix of k = 2^lk rows of m values each, lk at most 6. A slot has some columns of
// all its rows, `first` … first + width - 1, rows one after another. A transform of n values is
//
//      first:  each column transformed over its k rows (inversely, say)
//              entry (i, j) times w^(±ij), and what else belongs to it: a shift g^i, a scale
//      then:   each row as a transform of m values, which is no business of this file
//      last:   the mirror image: entry (i, j) times w^(ij), then each column
//
// A block takes 2^lc columns of a slot. In shared memory, elements in two halves as everywhere:
//
//      tile[row · 2^lc + c]     the values; rows come in bit-reversed, so that the steps leave natural order
//      column[bit · 2^lc + c]   w^(±j·2^bit), bit < lk: row i takes those of its set bits
//      row[i]                   g^i·scale, for the first step
//      root[e]                  powers of the root of order k, e < k/2
#pragma once
#include "ntt.cuh"

// src/ntt/columns.rs has the same layout. A device aligns elements to 16 bytes and a host need not: the element comes first, and
// the size is a multiple of 16, so that both agree.
struct NttColumns {
    Fr scale;
    Fr* slot;
    const Fr* powers; // squarings of w or 1/w, then those of g
    u64 first;        // the slot's first column
    u32 lg, lk, lc, log_width;
    u64 unused;
};
static_assert(sizeof(NttColumns) == 80, "as in src/ntt/columns.rs");

struct SharedFr {
    Shared<Quad> low, high;
    PS_FN Fr get(u32 t, u32 i) const { return join(low.get(t, i), high.get(t, i)); }
    PS_FN void set(u32 t, u32 i, const Fr& x) const {
        low.set(t, i, {{x.l[0], x.l[1], x.l[2], x.l[3]}});
        high.set(t, i, {{x.l[4], x.l[5], x.l[6], x.l[7]}});
    }
};
// `count` elements from byte `offset` on, which moves past them.
PS_FN SharedFr shared_elements(const Block& blk, u32& offset, u32 count) {
    const SharedFr s = {blk.shared<Quad>(offset, count), blk.shared<Quad>(offset + 16 * count, count)};
    offset += 32 * count;
    return s;
}

template <bool FIRST> PS_FN void columns(const Block& blk, const NttColumns& p) {
    const u32 k = 1u << p.lk, across = 1u << p.lc, elements = across << p.lk, mask = across - 1;
    u32 offset = 0;
    const SharedFr tile = shared_elements(blk, offset, elements);
    const SharedFr column = shared_elements(blk, offset, p.lk << p.lc);
    const SharedFr root = shared_elements(blk, offset, k / 2);
    const SharedFr row = shared_elements(blk, offset, FIRST ? k : 0);
    Fr* slot = p.slot + (u64(blk.index()) << p.lc);

    // x·w^(±ij), at most 2r.
    const auto times_factor = [&](u32 t, Fr x, u32 i, u32 c) {
        PS_ROLLED
        for (u32 bit = 0; bit < p.lk; bit++)
            if (i >> bit & 1) x = fr_mul(x, column.get(t, bit << p.lc | c));
        return x;
    };

    blk.each([&](u32 t) {
        for (u32 c = t; c < across; c += blk.dim()) {
            const u32 j = u32(p.first) + (blk.index() << p.lc) + c;
            Fr x = fr_canonical(times_power(fr_one(), p.powers, j));
            PS_ROLLED
            for (u32 bit = 0; bit < p.lk; bit++) {
                column.set(t, bit << p.lc | c, x);
                x = fr_canonical(fr_mul(x, x));
            }
        }
        // The root of order k is w^m.
        for (u32 e = t; e < k / 2; e += blk.dim())
            root.set(t, e, fr_canonical(times_power(fr_one(), p.powers + (p.lg - p.lk), e)));
        if (FIRST)
            for (u32 i = t; i < k; i += blk.dim()) row.set(t, i, fr_canonical(times_power(p.scale, p.powers + 32, i)));
    });
    if (!FIRST) blk.sync();
    blk.each([&](u32 t) {
        PS_ROLLED
        for (u32 e = t; e < elements; e += blk.dim()) {
            const u32 i = e >> p.lc, c = e & mask;
            Fr x = load(slot, (u64(i) << p.log_width) + c);
            if (!FIRST) x = times_factor(t, x, i, c);
            tile.set(t, reverse_bits(i, p.lk) << p.lc | c, x);
        }
    });
    blk.sync();

    // Radix two, decimation in time: rows i and i + 2^s of blocks of 2^(s + 1).
    PS_ROLLED
    for (u32 s = 0; s < p.lk; s++) {
        blk.each([&](u32 t) {
            PS_ROLLED
            for (u32 e = t; e < elements / 2; e += blk.dim()) {
                const u32 pair = e >> p.lc, c = e & mask, l = pair & ((1u << s) - 1);
                const u32 low = ((pair - l) << 1 | l) << p.lc | c, high = low + (1u << (s + p.lc));
                const Fr x = tile.get(t, low);
                Fr y = tile.get(t, high);
                if (s != 0) y = fr_mul(y, root.get(t, l << (p.lk - 1 - s)));
                tile.set(t, low, fr_add(x, y));
                tile.set(t, high, fr_sub(x, y));
            }
        });
        blk.sync();
    }

    blk.each([&](u32 t) {
        PS_ROLLED
        for (u32 e = t; e < elements; e += blk.dim()) {
            const u32 i = e >> p.lc, c = e & mask;
            Fr x = tile.get(t, e);
            if (FIRST) x = fr_mul(times_factor(t, x, i, c), row.get(t, i));
            store(slot, (u64(i) << p.log_width) + c, fr_canonical(x));
        }
    });
}

// a·b, or (a - b)·scale if `subtract`, over the columns that a slot has of the resident n values at a.
PS_FN void combine_columns(const Block& blk, Fr* a, const Fr* slot, const Fr& scale, u32 log_m, u32 log_width,
                           u64 first, u32 subtract) {
    blk.each([&](u32 t) {
        // A row of the domain has as many values as a slot.
        const u64 e = u64(blk.index()) * blk.dim() + t;
        if (e >> log_m != 0) return;
        const u64 i = e >> log_width, at = (i << log_m) + first + (e & ((1ull << log_width) - 1));
        const Fr x = load(a, at), y = load(slot, e);
        store(a, at, fr_canonical(subtract ? fr_mul(fr_sub(x, y), scale) : fr_mul(x, y)));
    });
}
