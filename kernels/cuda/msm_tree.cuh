// Bucket sums as a tree of affine additions, for G1 and G2.
//
// A level adds up pairs of references (msm_lists.cu), each addition of which needs one inversion; a level shares them.
//
//   products  every thread walks over its pairs and multiplies up their denominators; the product before each is kept
//   invert    few threads invert all threads' products, in the same way
//   add       every thread walks back: the product before × the inverse so far is the inverse of one denominator
//
// Points are never copied between levels. Sums of all levels, the buckets before them and infinity as point 0 lie in
// one array of x and one of y: denominators need x alone.
#pragma once
#include "curve.cuh"
#include "msm_lists.cuh"

// Where a reference leads to.
template <class F> struct Operand {
    const F *x, *y;
    bool negative;
};
template <class F> struct TreePoints {
    const Affine<F>* bases;
    F *x, *y;
    PS_FN Operand<F> at(u32 ref) const {
        const u64 i = ref & REF_INDEX;
        const bool base = (ref & REF_BASE) != 0;
        return {base ? &bases[i].x : x + i, base ? &bases[i].y : y + i, (ref & REF_NEGATIVE) != 0};
    }
};
template <class F> PS_FN Affine<F> load(const Operand<F>& o) {
    Affine<F> p = {*o.x, *o.y};
    // Not of (0, 0), which is infinity.
    if (o.negative && !is_null(p.y)) p.y = neg_canonical(p.y);
    return p;
}
// Enough to know that two points with these x have a chord between them.
template <class F> PS_FN bool has_chord(const F& x1, const F& x2) {
    return !is_null(x1) && !is_null(x2) && !same(x1, x2);
}

// before[j] ← the product of the thread's denominators before pair j, products[thread] ← that of all.
template <class F>
PS_FN void tree_products(const Block& blk, F* before, F* products, const TreePoints<F>& points, const RefPair* pairs,
                         const TreeLevel* level) {
    const u32 n = level->pairs, walkers = tree_walkers(n);
    blk.each([&](u32 t) {
        const u32 first = u32(u64(blk.index()) * blk.dim() + t);
        PS_ROLLED
        for (u32 walker = first; walker < walkers; walker += blk.grid() * blk.dim()) {
            RefPair pair = pairs[walker];
            F product;
            PS_ROLLED
            for (u32 j = walker; j < n; j += walkers) {
                const Operand<F> a = points.at(pair.first), b = points.at(pair.second);
                const F x1 = *a.x, x2 = *b.x;
                if (j + walkers < n) pair = pairs[j + walkers];
                F d;
                if (has_chord(x1, x2)) {
                    d = sub(x2, x1);
                } else {
                    const Affine<F> p = load(a), q = load(b);
                    d = slope_denominator(p, q, kind_of_sum(p, q));
                }
                if (j == walker) {
                    product = d;
                } else {
                    before[j] = product;
                    product = mul(product, d);
                }
            }
            products[walker] = product;
        }
    });
}

// products[i] ← 1/products[i] for all walkers of a level; `before` has room for as many.
template <class F> PS_FN void tree_invert(const Block& blk, F* products, F* before, const TreeLevel* level) {
    const u32 n = tree_walkers(level->pairs), inverters = tree_inverters(n);
    blk.each([&](u32 t) {
        const u32 first = u32(u64(blk.index()) * blk.dim() + t);
        if (first >= inverters) return;
        F product = products[first];
        PS_ROLLED
        for (u32 i = first + inverters; i < n; i += inverters) {
            before[i] = product;
            product = mul(product, products[i]);
        }
        product = inverse(product);
        PS_ROLLED
        for (u32 i = first + (n - 1 - first) / inverters * inverters; i > first; i -= inverters) {
            const F one = mul(before[i], product);
            product = mul(product, products[i]);
            products[i] = one;
        }
        products[first] = product;
    });
}

// The sum of pair j ← point level->first + j, given `before` and the inverted products.
template <class F>
PS_FN void tree_add(const Block& blk, const F* before, const F* inverses, const TreePoints<F>& points,
                    const RefPair* pairs, const TreeLevel* level) {
    const u32 n = level->pairs, walkers = tree_walkers(n), to = level->first;
    blk.each([&](u32 t) {
        const u32 first = u32(u64(blk.index()) * blk.dim() + t);
        PS_ROLLED
        for (u32 walker = first; walker < walkers; walker += blk.grid() * blk.dim()) {
            F inverse = inverses[walker];
            u32 j = walker + (n - 1 - walker) / walkers * walkers;
            RefPair pair = pairs[j];
            PS_ROLLED
            for (;;) {
                const Affine<F> p = load(points.at(pair.first)), q = load(points.at(pair.second));
                const bool last = j == walker;
                Sum kind = Sum::Chord;
                F own = inverse;
                if (!last) {
                    own = mul(before[j], inverse);
                    pair = pairs[j - walkers];
                }
                F d;
                if (has_chord(p.x, q.x)) {
                    d = sub(q.x, p.x);
                } else {
                    kind = kind_of_sum(p, q);
                    d = slope_denominator(p, q, kind);
                }
                if (!last) inverse = mul(inverse, d);
                const Affine<F> sum = add_affine(p, q, kind, own);
                points.x[to + j] = sum.x;
                points.y[to + j] = sum.y;
                if (last) break;
                j -= walkers;
            }
        }
    });
}

// Point first + b ← the point that finals[b] refers to, b < n. Three quarters of the time is memory's.
template <class F>
PS_FN void tree_gather(const Block& blk, const TreePoints<F>& points, const u32* finals, u32 first, u32 n) {
    blk.each([&](u32 t) {
        const u64 b = u64(blk.index()) * blk.dim() + t;
        if (b >= n) return;
        const Affine<F> p = load(points.at(finals[b]));
        points.x[first + b] = p.x;
        points.y[first + b] = p.y;
    });
}

// What a level of the tree would still have to do for few long lists: one block a list, until all are done. The sums
// follow those of the levels. `partial` has room for the threads of the grid.
template <class F>
PS_FN void tree_longer(const Block& blk, Xyzz<F>* partial, const TreePoints<F>& points, u32* finals, const u32* refs,
                       const u32* starts, const u32* counts, const u32* longer, const u32* number,
                       const TreeLevel* level) {
    Xyzz<F>* own = partial + u64(blk.index()) * blk.dim();
    PS_ROLLED
    for (u32 i = blk.index(); i < number[1]; i += blk.grid()) {
        const u32 b = longer[i], count = counts[b];
        blk.each([&](u32 t) {
            Xyzz<F>& sum = own[t];
            sum = xyzz_infinity<F>();
            PS_ROLLED
            for (u32 k = t; k < count; k += blk.dim()) add_mixed(sum, load(points.at(refs[starts[b] + k])));
        });
        PS_ROLLED
        for (u32 half = blk.dim() / 2; half > 0; half /= 2) {
            blk.sync();
            blk.each([&](u32 t) {
                if (t < half) add_full(own[t], own[t + half]);
            });
        }
        blk.each([&](u32 t) {
            if (t != 0) return;
            const Affine<F> p = to_affine(own[0]);
            const u32 at = level->first + i;
            points.x[at] = p.x;
            points.y[at] = p.y;
            finals[b] = at;
        });
        blk.sync();
    }
}
