// Short sums with little latency: four threads share a point, one coordinate each (X, Y, ZZ, ZZZ), and an addition is
// four products one after another where one thread needs fourteen. Coordinates change hands through shared memory.
#pragma once
#include "msm.cuh"

// Quads of a block: four tiles of coordinates fit the 48 KiB of shared memory that every device has.
template <class F> constexpr u32 QUADS = sizeof(F) > 48 ? 16 : 32;

// The arithmetic of a block of quads; every function is for the whole block. Shared memory: four coordinates and a word
// a thread.
template <class F> struct Quads {
    const Block& blk;
    Shared<F> a, b, c, d;
    Shared<u32> zero;
    PerThread<F> own, part;
    PerThread<u32> infinite;

    PS_FN explicit Quads(const Block& block)
        : blk(block), a(tile(block, 0)), b(tile(block, 1)), c(tile(block, 2)), d(tile(block, 3)),
          zero(block.shared<u32>(4 * u32(sizeof(F)) * block.dim(), block.dim())), own(block), part(block),
          infinite(block) {}
    static PS_FN Shared<F> tile(const Block& block, u32 i) {
        return block.template shared<F>(i * u32(sizeof(F)) * block.dim(), block.dim());
    }

    // p ← p + q, as add_full.
    PS_FN void add_to(PerThread<F>& p, PerThread<F>& q) {
        blk.sync();
        blk.each([&](u32 t) {
            a.set(t, t, p[t]);
            b.set(t, t, q[t]);
        });
        blk.sync();
        // U1 = X1·ZZ2, S1 = Y1·ZZZ2, U2 = ZZ1·X2, S2 = ZZZ1·Y2.
        blk.each([&](u32 t) {
            infinite[t] = u32(is_zero(a.get(t, (t & ~3u) | 2))) | u32(is_zero(b.get(t, (t & ~3u) | 2))) << 1;
            own[t] = mul(p[t], b.get(t, t ^ 2));
            c.set(t, t, own[t]);
        });
        blk.sync();
        // ZZ1·ZZ2, ZZZ1·ZZZ2, P², R², with P = U2 - U1 and R = S2 - S1.
        blk.each([&](u32 t) {
            const bool upper = (t & 2) != 0;
            const F difference = sub(own[t], c.get(t, t ^ 2));
            zero.set(t, t, is_zero(difference));
            d.set(t, t, mul(select(upper, difference, a.get(t, t | 2)), select(upper, difference, b.get(t, t | 2))));
            if (upper) own[t] = difference;
        });
        blk.sync();
        // Q = U1·P², nothing, PPP = P·P², ZZ1·ZZ2·P².
        blk.each([&](u32 t) {
            const u32 quad = t & ~3u;
            c.set(t, t, mul(select(t - quad == 3, d.get(t, quad), own[t]), d.get(t, quad | 2)));
        });
        blk.sync();
        // X = R² - PPP - 2Q, S1·PPP, ZZZ1·ZZZ2·PPP, R·(Q - X).
        blk.each([&](u32 t) {
            const u32 quad = t & ~3u, lane = t - quad;
            const F q2 = c.get(t, quad), ppp = c.get(t, quad | 2);
            const F x = sub(d.get(t, quad | 3), add(twice(q2), ppp));
            const F product = mul(select(lane == 2, d.get(t, quad | 1), own[t]), select(lane == 3, sub(q2, x), ppp));
            part[t] = select(lane == 0, x, product);
            b.set(t, t, product);
        });
        blk.sync();
        blk.each([&](u32 t) {
            const u32 quad = t & ~3u, lane = t - quad;
            F sum = part[t];
            if (lane == 1) sum = sub(b.get(t, quad | 3), sum);
            if (lane == 2) sum = c.get(t, quad | 3);
            if (lane == 3) sum = b.get(t, quad | 2);
            if (zero.get(t, quad | 2)) {
                set_zero(sum);
                // The same x, so the same point or its negative. Rare: every thread doubles by itself.
                if (zero.get(t, quad | 3)) {
                    Xyzz<F> twofold = {a.get(t, quad), a.get(t, quad | 1), a.get(t, quad | 2), a.get(t, quad | 3)};
                    double_in_place(twofold);
                    sum = select(lane < 2, select(lane == 0, twofold.x, twofold.y),
                                 select(lane == 2, twofold.zz, twofold.zzz));
                }
            }
            if (infinite[t] & 1) sum = q[t];
            if (infinite[t] & 2) sum = p[t];
            p[t] = sum;
        });
    }

    // p ← 2p, as double_in_place.
    PS_FN void twofold(PerThread<F>& p) {
        blk.sync();
        // X², V = (2Y)².
        blk.each([&](u32 t) {
            own[t] = (t & 3) == 1 ? twice(p[t]) : p[t];
            a.set(t, t, sqr(own[t]));
        });
        blk.sync();
        // S = X·V, W = 2Y·V, ZZ·V, M² with M = 3X².
        blk.each([&](u32 t) {
            const u32 quad = t & ~3u;
            const F xx = a.get(t, quad), v = a.get(t, quad | 1), m = add(twice(xx), xx);
            const bool last = t - quad == 3;
            part[t] = m;
            own[t] = mul(select(last, m, own[t]), select(last, m, v));
            b.set(t, t, own[t]);
        });
        blk.sync();
        // M·(S - X) with X = M² - 2S, W·Y, nothing, W·ZZZ.
        blk.each([&](u32 t) {
            const u32 quad = t & ~3u, lane = t - quad;
            const F s = b.get(t, quad), w = b.get(t, quad | 1), x = sub(b.get(t, quad | 3), twice(s));
            const F product = mul(select(lane == 0, part[t], w), select(lane == 0, sub(s, x), p[t]));
            part[t] = select(lane == 0, x, product);
            c.set(t, t, product);
        });
        blk.sync();
        blk.each([&](u32 t) {
            const u32 quad = t & ~3u, lane = t - quad;
            F twice_p = part[t];
            if (lane == 1) twice_p = sub(c.get(t, quad), twice_p);
            if (lane == 2) twice_p = own[t];
            p[t] = twice_p;
        });
    }

    // The first quad's p ← the sum of all quads' p; others change too.
    PS_FN void fold(PerThread<F>& p) {
        PerThread<F> other(blk);
        PS_ROLLED
        for (u32 half = blk.dim() / 2; half >= 4; half /= 2) {
            blk.sync();
            blk.each([&](u32 t) { a.set(t, t, p[t]); });
            blk.sync();
            blk.each([&](u32 t) {
                set_zero(other[t]);
                if (t < half) other[t] = a.get(t, t + half);
            });
            add_to(p, other);
        }
    }
};

// Points of which a thread takes one coordinate: affine ones, x and y apart, or without y those in XYZZ coordinates.
template <class F> struct WeighItems {
    const F *x, *y;
    PS_FN F get(u64 i, u32 lane) const {
        if (y == nullptr) return x[4 * i + lane];
        const F coordinate = lane == 0 ? x[i] : y[i];
        if (lane < 2) return coordinate;
        F one;
        set_one(one);
        if (is_null(coordinate) && is_null(x[i])) set_zero(one);
        return one;
    }
};

// src/msm/reduce.rs has the same layout.
struct WeighPart {
    u32 first, log; // 2^log points a sum, one sum after another
    u32 sums, out;  // how many sums, and the place of the first one's result
};
// Sums Σ (i + 1)·P_i in the first `from_one` parts, Σ i·P_i in the others. A quad takes 2^log_each points, a block
// `quads` quads; a sum has as many blocks as it needs, and parts follow each other.
struct Weigh {
    WeighPart part[4];
    u32 from_one, log_each, quads;
    PS_FN u32 blocks(const WeighPart& p) const {
        const u32 points = quads << log_each;
        return (1u << p.log) > points ? (1u << p.log) / points : 1;
    }
};
// Where block or sum number i belongs: its part, its number within the part, and the part's first block.
struct WeighPlace {
    WeighPart part;
    u32 within, first_block;
    bool from_one;
};
PS_FN WeighPlace weigh_place(const Weigh& p, u32 i, bool sums) {
    WeighPlace at = {p.part[0], i, 0, true};
    u32 before = 0, first_block = 0;
    PS_UNROLL
    for (u32 k = 0; k < 4; k++) {
        const u32 blocks = p.part[k].sums * p.blocks(p.part[k]), own = sums ? p.part[k].sums : blocks;
        if (i >= before && i < before + own) at = {p.part[k], i - before, first_block, k < p.from_one};
        before += own;
        first_block += blocks;
    }
    return at;
}

// out[block] ← the block's share of its sum. A quad sums its points by running sums from the top, adds the index of its
// first point times their plain sum by doubling, and the block adds up its quads.
template <class F> PS_FN void weigh(const Block& blk, Xyzz<F>* out, const WeighItems<F>& items, const Weigh& p) {
    const WeighPlace at = weigh_place(p, blk.index(), false);
    const u32 blocks = p.blocks(at.part), log = at.part.log, each = 1u << p.log_each;
    const u64 first = at.part.first + (u64(at.within / blocks) << log);
    const auto chunk = [&](u32 t) { return at.within % blocks * p.quads + t / 4; };
    const auto item = [&](u32 t, u32 k) {
        const u32 i = (chunk(t) << p.log_each) + k;
        F f;
        set_zero(f);
        if (i < 1u << log) f = items.get(first + i, t & 3);
        return f;
    };
    Quads<F> quad(blk);
    PerThread<F> running(blk), total(blk), other(blk);
    blk.each([&](u32 t) {
        running[t] = item(t, each - 1);
        set_zero(total[t]);
        if (each > 1 || at.from_one) total[t] = running[t];
    });
    PS_ROLLED
    for (u32 k = each - 1; k > 0; k--) {
        blk.each([&](u32 t) { other[t] = item(t, k - 1); });
        quad.add_to(running, other);
        if (k > 1 || at.from_one) quad.add_to(total, running);
    }
    if (log > p.log_each) {
        PerThread<F> shifted(blk);
        u32 bit = log - p.log_each - 1;
        const auto take = [&](u32 t) {
            set_zero(other[t]);
            if (chunk(t) >> bit & 1) other[t] = running[t];
        };
        blk.each([&](u32 t) {
            take(t);
            shifted[t] = other[t];
        });
        PS_ROLLED
        for (u32 step = log - 1; step > 0; step--) {
            quad.twofold(shifted);
            if (bit == 0) continue;
            bit--;
            blk.each(take);
            quad.add_to(shifted, other);
        }
        quad.add_to(total, shifted);
    }
    quad.fold(total);
    blk.each([&](u32 t) {
        if (t < 4) reinterpret_cast<F*>(out + blk.index())[t] = total[t];
    });
}

// out[…] ← sum `index` of a `weigh`, from its blocks' shares, which are used up.
template <class F> PS_FN void weigh_fold(const Block& blk, Xyzz<F>* out, Xyzz<F>* shares, const Weigh& p) {
    const WeighPlace at = weigh_place(p, blk.index(), true);
    const u32 blocks = p.blocks(at.part);
    Xyzz<F>* own = shares + at.first_block + u64(at.within) * blocks;
    fold_row(blk, own, 1, blocks);
    blk.each([&](u32 t) {
        if (t == 0) out[at.part.out + at.within] = own[0];
    });
}
