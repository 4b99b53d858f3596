// Points of y² = x³ + b over F: G1 with F = Fq, G2 with F = Fq2. b never appears, since no formula here uses it.
//
// `Affine` is blst's layout: canonical Montgomery coordinates, (0, 0) for infinity, which is not on either curve.
// `Xyzz` is x = X/ZZ, y = Y/ZZZ with ZZ³ = ZZZ², coordinates below 2p, infinity as ZZ = 0.
// Points never cross a call: four coordinates by value would go over the stack, and by pointer nvcc has put two live
// points into one stack slot. What is rare or not on a hot path runs over a field whose products are calls
// (`Outlined<F>`) instead; the layout is the same.
// Formulas: hyperelliptic.org/EFD, shortw/xyzz, with a = 0. They hold for any point of the curve, in the
// subgroup or not; equal, opposite and infinite operands are told apart.
#pragma once
#include "fq2.cuh"

template <class F> struct Affine {
    F x, y;
};
template <class F> struct Xyzz {
    F x, y, zz, zzz;
};

// The field with the same elements whose products are calls.
template <class F> struct OutlinedOf {
    using Type = F;
};
template <> struct OutlinedOf<Fq> {
    using Type = FqOutlined;
};
template <class F> using Outlined = typename OutlinedOf<F>::Type;
PS_FN Fq field_as(const FqOutlined& a, Fq*) { return limbs_as<false>(a); }
PS_FN FqOutlined field_as(const Fq& a, FqOutlined*) { return limbs_as<true>(a); }
template <class F> PS_FN F field_as(const F& a, F*) { return a; }
template <class T, class F> PS_FN T over(const F& a) { return field_as(a, static_cast<T*>(nullptr)); }
template <class T, class F> PS_FN Affine<T> over(const Affine<F>& p) { return {over<T>(p.x), over<T>(p.y)}; }
template <class T, class F> PS_FN Xyzz<T> over(const Xyzz<F>& p) {
    return {over<T>(p.x), over<T>(p.y), over<T>(p.zz), over<T>(p.zzz)};
}

template <class F> PS_FN Affine<F> affine_infinity() {
    Affine<F> p;
    set_zero(p.x);
    set_zero(p.y);
    return p;
}
template <class F> PS_FN bool is_infinity(const Affine<F>& p) { return is_null(p.x) && is_null(p.y); }
// -p with canonical coordinates.
template <class F> PS_FN Affine<F> negate(const Affine<F>& p) { return {p.x, canonical(neg(p.y))}; }

template <class F> PS_FN Xyzz<F> xyzz_infinity() {
    Xyzz<F> p;
    set_zero(p.x);
    set_zero(p.y);
    set_zero(p.zz);
    set_zero(p.zzz);
    return p;
}
template <class F> PS_FN bool is_infinity(const Xyzz<F>& p) { return is_zero(p.zz); }
template <class F> PS_FN Xyzz<F> to_xyzz(const Affine<F>& p) {
    if (is_infinity(p)) return xyzz_infinity<F>();
    Xyzz<F> q;
    q.x = p.x;
    q.y = p.y;
    set_one(q.zz);
    set_one(q.zzz);
    return q;
}
template <class F> PS_FN Affine<F> to_affine(const Xyzz<F>& p) {
    if (is_infinity(p)) return affine_infinity<F>();
    // 1/(ZZ·ZZZ) gives both inverses.
    const F i = inverse(mul(p.zz, p.zzz));
    return {canonical(mul(p.x, mul(i, p.zzz))), canonical(mul(p.y, mul(i, p.zz)))};
}
template <class F> PS_FN Xyzz<F> negate(const Xyzz<F>& p) { return {p.x, neg(p.y), p.zz, p.zzz}; }

// p ← 2p: dbl-2008-s-1 with a = 0. A point of order two has y = 0 and gives ZZ = 0.
template <class F> PS_FN void double_in_place(Xyzz<F>& p) {
    const F u = twice(p.y);
    const F v = sqr(u);
    const F w = mul(u, v);
    const F s = mul(p.x, v);
    const F xx = sqr(p.x);
    const F m = add(twice(xx), xx);
    p.x = sub(sqr(m), twice(s));
    p.y = mul_add(m, sub(s, p.x), neg(p.y), w);
    p.zz = mul(v, p.zz);
    p.zzz = mul(w, p.zzz);
}
template <class F> PS_FN Xyzz<F> doubled(const Xyzz<F>& p) {
    Xyzz<F> r = p;
    double_in_place(r);
    return r;
}

// X and Y of a sum from P = U2 - U1, R = S2 - S1, PPP = P³, Q = U1·P² and S1; zz and zzz are the caller's.
template <class F> PS_FN void finish_sum(Xyzz<F>& a, const F& r, const F& q, const F& ppp, const F& s1) {
    const F x = sub(sqr(r), add(twice(q), ppp));
    a.y = mul_add(r, sub(q, x), neg(s1), ppp);
    a.x = x;
}

// a += b for an affine b: madd-2008-s. For Fq 2,606 wide multiplications.
template <class F> PS_FN void add_mixed(Xyzz<F>& a, const Affine<F>& b) {
    if (is_infinity(b)) return;
    if (is_infinity(a)) {
        a = to_xyzz(b);
        return;
    }
    const F p = sub(mul(b.x, a.zz), a.x);
    const F r = sub(mul(b.y, a.zzz), a.y);
    if (is_zero(p)) {
        a = is_zero(r) ? over<F>(doubled(to_xyzz(over<Outlined<F>>(b)))) : xyzz_infinity<F>();
        return;
    }
    const F pp = sqr(p);
    const F ppp = mul(p, pp);
    const F q = mul(a.x, pp);
    a.zz = mul(a.zz, pp);
    a.zzz = mul(a.zzz, ppp);
    finish_sum(a, r, q, ppp, a.y);
}

// a += b: add-2008-s. Works on points in memory as well as in registers: coordinates are read where they are used.
template <class F> PS_FN void add_full(Xyzz<F>& a, const Xyzz<F>& b) {
    if (is_infinity(b)) return;
    if (is_infinity(a)) {
        a = b;
        return;
    }
    const F u1 = mul(a.x, b.zz);
    const F s1 = mul(a.y, b.zzz);
    const F p = sub(mul(b.x, a.zz), u1);
    const F r = sub(mul(b.y, a.zzz), s1);
    if (is_zero(p)) {
        if (is_zero(r))
            double_in_place(a);
        else
            a = xyzz_infinity<F>();
        return;
    }
    const F pp = sqr(p);
    const F ppp = mul(p, pp);
    const F q = mul(u1, pp);
    a.zz = mul(mul(a.zz, b.zz), pp);
    a.zzz = mul(mul(a.zzz, b.zzz), ppp);
    finish_sum(a, r, q, ppp, s1);
}

// How the sum of two affine points comes about.
enum class Sum : u32 {
    Chord,    // different x: slope (y2 - y1)/(x2 - x1)
    Tangent,  // equal points: slope 3x²/2y
    Infinity, // opposite points, or two infinities
    First,    // the second is infinity
    Second,   // the first is infinity
};

template <class F> PS_FN Sum kind_of_sum(const Affine<F>& a, const Affine<F>& b) {
    const bool ia = is_infinity(a), ib = is_infinity(b);
    if (ia || ib) return ia ? (ib ? Sum::Infinity : Sum::Second) : Sum::First;
    if (!same(a.x, b.x)) return Sum::Chord;
    // The same x means b = ±a; a doubled point of order two is infinity.
    return same(a.y, b.y) && !is_null(a.y) ? Sum::Tangent : Sum::Infinity;
}

// The denominator of the slope, 1 where there is none: never zero, so that it can join a shared inversion.
template <class F> PS_FN F slope_denominator(const Affine<F>& a, const Affine<F>& b, Sum kind) {
    F d;
    set_one(d);
    if (kind == Sum::Chord) d = sub(b.x, a.x);
    if (kind == Sum::Tangent) d = twice(a.y);
    return d;
}

// a + b given 1/denominator, canonical coordinates: for Fq 1,671 wide multiplications with its share of the inversion.
template <class F>
PS_FN Affine<F> add_affine(const Affine<F>& a, const Affine<F>& b, Sum kind, const F& inverse_denominator) {
    if (kind == Sum::First) return a;
    if (kind == Sum::Second) return b;
    if (kind == Sum::Infinity) return affine_infinity<F>();
    F numerator = sub(b.y, a.y);
    if (kind == Sum::Tangent) {
        const F xx = sqr(a.x);
        numerator = add(twice(xx), xx);
    }
    const F slope = mul(numerator, inverse_denominator);
    const F x = canonical(sub(sqr(slope), add_unreduced(a.x, b.x)));
    return {x, canonical(sub(mul(slope, sub(a.x, x)), a.y))};
}
