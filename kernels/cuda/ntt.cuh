// One pass of a number-theoretic transform over Fr: 2^lr-point transforms of the rows of a tile.
//
// A transform of n = 2^lg values is split into passes of lr_0 + lr_1 + … = lg bits. A pass sees the values as
//
//      index = (block of rows) · 2^(sh + lr)  +  row · 2^sh  +  column,     sh = lg - lr_0 - … - lr_i
//
// and transforms over the rows of each column. A thread block takes a tile of 2^lr rows by 2^lc columns (for
// sh = 0 there are no columns, and 2^lc row blocks stand for them):
//
//      shared memory, one half of an element each:  low[row' · 2^lc + c], high[row' · 2^lc + c]
//      row' = row xor (row / 8 mod 2^(3 - lc)), so that eight rows of a narrow tile meet different banks
//
// 2^(lr + lc - 3) threads hold eight elements each in registers: rows `first + i·2^lo`, i < 8, for a window of
// three row bits that starts at bit lo. An 8-point transform over the window, a multiplication by inner
// twiddles, and an exchange through shared memory move the window on by three bits.
//
// Decimation in frequency (dif) goes from natural to bit-reversed order, first pass to last, and multiplies by
// the factors of the pass when it stores; decimation in time (dit) goes from bit-reversed to natural order, last
// pass to first, and multiplies when it loads. The factor at (row, column) is
//
//      w^(k·column) · f^k · c,     k = row with its lr bits reversed, w of order 2^(lr + sh)
//
// which contains the coset shift f and a scale c (1/n, 1/z) for nothing.
#pragma once
#include "fr_prepared.cuh"

struct alignas(16) Quad {
    u32 v[4];
};

// How the factors of a pass are kept.
enum FactorForm : u32 {
    FACTORS_NONE = 0,   // all are 1
    FACTORS_ONE = 1,    // factors[row·2^sh + column], 32 bytes each
    FACTORS_SPLIT = 2,  // the same prepared in two parts, 64 bytes each
    FACTORS_LEVELS = 3, // low[e mod 2^low_bits]·high[e / 2^low_bits]·shift[k], e = k·column, in four parts each
};

// The parameters of a pass; src/ntt.rs has the same layout.
struct NttPass {
    const Fr* in[3]; // polynomials, by row of the grid; for a quotient a, b or null, c
    Fr* out[3];
    const Quad* inner;      // inner twiddles of this pass: eight planes of 2^lr
    const Quad* inner_next; // those of the second half of the middle kernel
    const Fr* factors;      // FACTORS_ONE, FACTORS_SPLIT
    const FrPrepared4* low; // FACTORS_LEVELS: w^e, null without columns
    const FrPrepared4* high;
    const FrPrepared4* shift; // f^k·c, null when all are 1
    u32 form, low_bits;
    u32 lg, lr, lc, sh;
    u32 canonical; // store canonical values
    u32 natural;   // the last dif pass stores in natural order, out of place
    u32 flip;      // the domain is that of generator 5: the 8th root is -w
};

PS_FN u32 reverse_bits(u32 v, u32 bits) {
#ifdef PS_DEVICE
    return bits == 0 ? 0 : __brev(v) >> (32 - bits);
#else
    u32 r = 0;
    for (u32 i = 0; i < bits; i++) r |= ((v >> i) & 1u) << (bits - 1 - i);
    return r;
#endif
}

// Where a thread works: its column, its eight rows once a window is chosen, and the address of row 0.
struct Place {
    u32 c, r, column, swizzle;
    u64 base;
};

PS_FN Place place_of(const NttPass& p, u32 thread, u32 tile) {
    PS_FORGET(thread);
    Place a;
    a.c = thread & ((1u << p.lc) - 1);
    a.r = thread >> p.lc;
    a.swizzle = p.lc >= 3 ? 0 : (8u >> p.lc) - 1;
    if (p.sh != 0) {
        const u32 across = p.sh - p.lc;
        a.column = (tile & ((1u << across) - 1)) << p.lc | a.c;
        a.base = (u64(tile >> across) << (p.sh + p.lr)) | a.column;
    } else {
        u32 block = tile << p.lc | a.c;
        // For a natural store neighbouring threads take row blocks whose outputs are neighbours.
        if (p.natural) block = reverse_bits(block, p.lg - p.lr);
        a.column = 0;
        a.base = u64(block) << p.lr;
    }
    return a;
}
PS_FN u32 first_row(const Place& a, u32 lo) { return (a.r >> lo) << (lo + 3) | (a.r & ((1u << lo) - 1)); }
PS_FN u64 address(const NttPass& p, const Place& a, u32 row) { return a.base + (u64(row) << p.sh); }

PS_FN Fr join(const Quad& a, const Quad& b) {
    return {{a.v[0], a.v[1], a.v[2], a.v[3], b.v[0], b.v[1], b.v[2], b.v[3]}};
}
PS_FN Fr load(const Fr* p, u64 i) {
    const Quad* q = reinterpret_cast<const Quad*>(p) + 2 * i;
    return join(q[0], q[1]);
}
PS_FN void store(Fr* p, u64 i, const Fr& x) {
    Quad* q = reinterpret_cast<Quad*>(p) + 2 * i;
    q[0] = {{x.l[0], x.l[1], x.l[2], x.l[3]}};
    q[1] = {{x.l[4], x.l[5], x.l[6], x.l[7]}};
}

// x·w^e from w's table of squarings.
PS_FN Fr times_power(Fr x, const Fr* squarings, u32 e) {
    PS_ROLLED
    for (u32 j = 0; j < 32; j++)
        if (e >> j & 1) x = fr_mul(x, load(squarings, j));
    return x;
}

PS_FN FrPrepared4 load(const FrPrepared4* table, u32 i) {
    FrPrepared4 w;
    PS_UNROLL
    for (u32 k = 0; k < 4; k++) w.part[k] = load(table[i].part, k);
    return w;
}

// The tile in shared memory.
struct Tile {
    Shared<Quad> low, high;
    PS_FN u32 index(const NttPass& p, const Place& a, u32 row) const {
        return (row ^ ((row >> 3) & a.swizzle)) << p.lc | a.c;
    }
    PS_FN Fr get(u32 t, const NttPass& p, const Place& a, u32 row) const {
        const u32 i = index(p, a, row);
        return join(low.get(t, i), high.get(t, i));
    }
    PS_FN void set(u32 t, const NttPass& p, const Place& a, u32 row, const Fr& x) const {
        const u32 i = index(p, a, row);
        low.set(t, i, {{x.l[0], x.l[1], x.l[2], x.l[3]}});
        high.set(t, i, {{x.l[4], x.l[5], x.l[6], x.l[7]}});
    }
};
PS_FN Tile tile_of(const Block& blk, const NttPass& p) {
    const u32 elements = 1u << (p.lr + p.lc);
    return {blk.shared<Quad>(0, elements), blk.shared<Quad>(elements * 16, elements)};
}

struct Eight {
    Fr x[8];
};
PS_FN void put_window(u32 t, const NttPass& p, const Place& a, const Tile& s, const Eight& e, u32 lo) {
    const u32 r = first_row(a, lo);
    PS_UNROLL
    for (u32 i = 0; i < 8; i++) s.set(t, p, a, r | i << lo, e.x[i]);
}
PS_FN void get_window(u32 t, const NttPass& p, const Place& a, const Tile& s, Eight& e, u32 lo) {
    const u32 r = first_row(a, lo);
    PS_UNROLL
    for (u32 i = 0; i < 8; i++) e.x[i] = s.get(t, p, a, r | i << lo);
}

// The inner twiddle at `entry`: planes 2k and 2k + 1 hold the halves of part k.
PS_FN FrPrepared4 inner_twiddle(const Quad* planes, u32 lr, u32 entry) {
    FrPrepared4 w;
    PS_UNROLL
    for (u32 k = 0; k < 4; k++) w.part[k] = join(planes[(2 * k << lr) + entry], planes[((2 * k + 1) << lr) + entry]);
    return w;
}
// Entries of the inner table, 2^lr - 1 in all. A step transforms over the top `width` bits of a window at lo: 3, or the
// remaining lr mod 3 bits for the topmost step. Its entries are, for k = 1 … 2^width - 1 and the row bits l below those,
// w^(k·l·2^(lr - lo - 3)). The steps follow one another from the top.
PS_FN u32 first_entry(u32 lr, u32 lo) { return (1u << lr) - (8u << lo); }

// Multiplies the thread's elements of window lo by w^(bitrev(i)·l). The elements are in shared memory and the loop is
// rolled, two products at a time, which keep the multiplier busy: unrolled in registers it would not fit.
PS_FN void twiddle_window(u32 t, const NttPass& p, const Quad* inner, const Place& a, const Tile& s, u32 lo, u32 width) {
    const u32 r = first_row(a, lo), below = 3 - width, mask = (1u << below) - 1;
    const auto twiddle = [&](u32 i) {
        const u32 k = reverse_bits(i >> below, width), l = (i & mask) << lo | (a.r & ((1u << lo) - 1));
        return inner_twiddle(inner, p.lr, first_entry(p.lr, lo) + ((k - 1) << (lo + below) | l));
    };
    u32 i = 8u >> width;
    if (i == 1) {
        s.set(t, p, a, r | 1u << lo, fr_mul_prepared(s.get(t, p, a, r | 1u << lo), twiddle(1)));
        i = 2;
    }
    PS_ROLLED
    for (; i < 8; i += 2) {
        const u32 row_x = r | i << lo, row_y = r | (i + 1) << lo;
        const Fr x = s.get(t, p, a, row_x), y = s.get(t, p, a, row_y);
        s.set(t, p, a, row_x, fr_mul_prepared(x, twiddle(i)));
        s.set(t, p, a, row_y, fr_mul_prepared(y, twiddle(i + 1)));
    }
}

// Transforms over the top `width` bits of a window: natural order in and bit-reversed order out, or (time) the other way.
template <bool INVERSE, bool TIME> PS_FN void dft(Eight& e, u32 width, bool flip) {
    Fr* x = e.x;
    if (width == 3) {
        if (TIME)
            fr_dft8<INVERSE>(x[0], x[4], x[2], x[6], x[1], x[5], x[3], x[7], flip);
        else
            fr_dft8<INVERSE>(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], flip);
    } else if (width == 2) {
        PS_UNROLL
        for (int i = 0; i < 2; i++) fr_dft4<INVERSE>(x[i], x[i + (TIME ? 4 : 2)], x[i + (TIME ? 2 : 4)], x[i + 6]);
    } else {
        PS_UNROLL
        for (int i = 0; i < 4; i++) fr_dft2(x[i], x[i + 4]);
    }
}

// x·(factor of the row), y·(factor of the other row).
PS_FN void multiply_factors(const NttPass& p, const Place& a, u32 row_x, u32 row_y, Fr& x, Fr& y) {
    const u64 ix = (u64(row_x) << p.sh) + a.column, iy = (u64(row_y) << p.sh) + a.column;
    if (p.form == FACTORS_SPLIT) {
        const FrPrepared2 wx = {{load(p.factors, 2 * ix), load(p.factors, 2 * ix + 1)}};
        const FrPrepared2 wy = {{load(p.factors, 2 * iy), load(p.factors, 2 * iy + 1)}};
        x = fr_mul_prepared(x, wx);
        y = fr_mul_prepared(y, wy);
    } else if (p.form == FACTORS_ONE) {
        const Fr wx = load(p.factors, ix), wy = load(p.factors, iy);
        x = fr_mul(x, wx);
        y = fr_mul(y, wy);
    } else if (p.form == FACTORS_LEVELS) {
        const u32 kx = reverse_bits(row_x, p.lr), ky = reverse_bits(row_y, p.lr);
        const u32 ex = kx * a.column, ey = ky * a.column, mask = (1u << p.low_bits) - 1;
        PS_ROLLED
        for (u32 level = 0; level < 3; level++) {
            const FrPrepared4* table = level == 0 ? p.low : level == 1 ? p.high : p.shift;
            if (table == nullptr) continue;
            const u32 at_x = level == 0 ? ex & mask : level == 1 ? ex >> p.low_bits : kx;
            const u32 at_y = level == 0 ? ey & mask : level == 1 ? ey >> p.low_bits : ky;
            x = fr_mul_prepared(x, load(table, at_x));
            y = fr_mul_prepared(y, load(table, at_y));
        }
    }
}
// Takes the thread's elements of window lo through the factors, from shared memory to `done(element, row)`.
template <class D> PS_FN void through_factors(u32 t, const NttPass& p, const Place& a, const Tile& s, u32 lo, D done) {
    const u32 r = first_row(a, lo);
    PS_ROLLED
    for (u32 i = 0; i < 8; i += 2) {
        const u32 ra = r | i << lo, rb = r | (i + 1) << lo;
        Fr x = s.get(t, p, a, ra), y = s.get(t, p, a, rb);
        multiply_factors(p, a, ra, rb, x, y);
        done(x, ra);
        done(y, rb);
    }
}

// Elements of window lr - 3 straight from memory.
PS_FN void load_window(const NttPass& p, const Place& a, const Fr* in, Eight& e) {
    const u32 lo = p.lr - 3, r = first_row(a, lo);
    PS_UNROLL
    for (u32 i = 0; i < 8; i++) e.x[i] = load(in, address(p, a, r | i << lo));
}
// a·b - c in the same place, or a - c without b, by way of shared memory. The inputs are canonical.
PS_FN void load_quotient(u32 t, const NttPass& p, const Place& a, const Tile& s, Eight& e) {
    const u32 lo = p.lr - 3, r = first_row(a, lo);
    PS_ROLLED
    for (u32 i = 0; i < 8; i += 2) {
        const u32 row_x = r | i << lo, row_y = r | (i + 1) << lo;
        const u64 at_x = address(p, a, row_x), at_y = address(p, a, row_y);
        Fr x = load(p.in[0], at_x), y = load(p.in[0], at_y);
        if (p.in[1] != nullptr) x = fr_mul(x, load(p.in[1], at_x)), y = fr_mul(y, load(p.in[1], at_y));
        s.set(t, p, a, row_x, fr_sub(x, load(p.in[2], at_x)));
        s.set(t, p, a, row_y, fr_sub(y, load(p.in[2], at_y)));
    }
    get_window(t, p, a, s, e, lo);
}
PS_FN void store_row(const NttPass& p, const Place& a, Fr* out, u32 row, const Fr& x) {
    u64 at = address(p, a, row);
    if (p.natural) {
        const u32 above = p.lg - p.lr;
        at = (u64(reverse_bits(row, p.lr)) << above) + reverse_bits(u32(a.base >> p.lr), above);
    }
    store(out, at, p.canonical ? fr_canonical(x) : x);
}
PS_FN void store_window(const NttPass& p, const Place& a, const Eight& e, Fr* out, u32 lo) {
    const u32 r = first_row(a, lo);
    PS_UNROLL
    for (u32 i = 0; i < 8; i++) store_row(p, a, out, r | i << lo, e.x[i]);
}

// The bits that the step on window lo transforms over: what is left for the topmost one.
PS_FN u32 width_of(const NttPass& p, u32 lo) { return lo + 3 == p.lr && p.lr % 3 != 0 ? p.lr % 3 : 3; }

// The rows of the tile by decimation in frequency: window lr - 3 in registers on entry, window 0 on return.
template <bool INVERSE>
PS_FN void rows_frequency(const Block& blk, PerThread<Eight>& e, const NttPass& p, const Quad* inner, const Tile& s) {
    u32 lo = p.lr - 3, width = width_of(p, lo);
    PS_ROLLED
    for (;;) {
        blk.each([&](u32 t) { dft<INVERSE, false>(e[t], width, p.flip); });
        if (lo == 0) break;
        blk.each([&](u32 t) {
            const Place a = place_of(p, t, blk.index());
            put_window(t, p, a, s, e[t], lo);
            twiddle_window(t, p, inner, a, s, lo, width);
        });
        blk.sync();
        lo -= width;
        width = 3;
        blk.each([&](u32 t) { get_window(t, p, place_of(p, t, blk.index()), s, e[t], lo); });
    }
}

// By decimation in time: each thread's rows of window 0 in shared memory on entry, window lr - 3 in registers on
// return.
template <bool INVERSE>
PS_FN void rows_time(const Block& blk, PerThread<Eight>& e, const NttPass& p, const Quad* inner, const Tile& s) {
    u32 lo = 0;
    PS_ROLLED
    for (;;) {
        blk.each([&](u32 t) {
            const Place a = place_of(p, t, blk.index());
            if (lo != 0) twiddle_window(t, p, inner, a, s, lo, width_of(p, lo));
            get_window(t, p, a, s, e[t], lo);
            dft<INVERSE, true>(e[t], width_of(p, lo), p.flip);
        });
        if (lo + 3 == p.lr) break;
        PS_FORGET(lo);
        blk.each([&](u32 t) { put_window(t, p, place_of(p, t, blk.index()), s, e[t], lo); });
        blk.sync();
        // The last window overlaps the one before when fewer than three bits are left.
        lo = lo + 6 < p.lr ? lo + 3 : p.lr - 3;
    }
}

template <bool INVERSE, bool QUOTIENT> PS_FN void pass_frequency(const Block& blk, const NttPass& p) {
    const Tile s = tile_of(blk, p);
    PerThread<Eight> e(blk);
    blk.each([&](u32 t) {
        const Place a = place_of(p, t, blk.index());
        if (QUOTIENT)
            load_quotient(t, p, a, s, e[t]);
        else
            load_window(p, a, p.in[blk.row()], e[t]);
    });
    rows_frequency<INVERSE>(blk, e, p, p.inner, s);
    // A contiguous pass goes back through shared memory, so that a warp stores whole rows of 32-byte elements.
    const bool regroup = p.sh == 0 && !p.natural;
    blk.each([&](u32 t) {
        const Place a = place_of(p, t, blk.index());
        put_window(t, p, a, s, e[t], 0);
        if (regroup && p.form == FACTORS_NONE) return;
        through_factors(t, p, a, s, 0, [&](const Fr& x, u32 row) {
            if (regroup)
                s.set(t, p, a, row, x);
            else
                store_row(p, a, p.out[blk.row()], row, x);
        });
    });
    if (!regroup) return;
    blk.sync();
    blk.each([&](u32 t) {
        const Place a = place_of(p, t, blk.index());
        const u32 lo = p.lr - 3, r = first_row(a, lo);
        PS_UNROLL
        for (u32 i = 0; i < 8; i++) store_row(p, a, p.out[blk.row()], r | i << lo, s.get(t, p, a, r | i << lo));
    });
}

template <bool INVERSE> PS_FN void pass_time(const Block& blk, const NttPass& p) {
    const Tile s = tile_of(blk, p);
    const u32 lo = p.sh == 0 ? p.lr - 3 : 0;
    blk.each([&](u32 t) {
        const Place a = place_of(p, t, blk.index());
        const u32 r = first_row(a, lo);
        PS_UNROLL
        for (u32 i = 0; i < 8; i++) s.set(t, p, a, r | i << lo, load(p.in[blk.row()], address(p, a, r | i << lo)));
    });
    if (lo != 0) blk.sync();
    PerThread<Eight> e(blk);
    if (p.form != FACTORS_NONE)
        blk.each([&](u32 t) {
            const Place a = place_of(p, t, blk.index());
            through_factors(t, p, a, s, 0, [&](const Fr& x, u32 row) { s.set(t, p, a, row, x); });
        });
    rows_time<INVERSE>(blk, e, p, p.inner, s);
    blk.each([&](u32 t) {
        store_window(p, place_of(p, t, blk.index()), e[t], p.out[blk.row()], p.lr - 3);
    });
}

// The last pass of an inverse transform, its scale and the coset shift, and the first pass of the forward
// transform back: the tile leaves shared memory once for two passes.
PS_FN void pass_middle(const Block& blk, const NttPass& p) {
    const Tile s = tile_of(blk, p);
    PerThread<Eight> e(blk);
    blk.each([&](u32 t) { load_window(p, place_of(p, t, blk.index()), p.in[blk.row()], e[t]); });
    rows_frequency<true>(blk, e, p, p.inner, s);
    blk.each([&](u32 t) {
        const Place a = place_of(p, t, blk.index());
        put_window(t, p, a, s, e[t], 0);
        through_factors(t, p, a, s, 0, [&](const Fr& x, u32 row) { s.set(t, p, a, row, x); });
    });
    rows_time<false>(blk, e, p, p.inner_next, s);
    blk.each([&](u32 t) {
        store_window(p, place_of(p, t, blk.index()), e[t], p.out[blk.row()], p.lr - 3);
    });
}
