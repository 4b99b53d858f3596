// Inversion in Fq by the binary GCD of Pornin, "Optimized Binary GCD for Modular Inversion"
// (eprint.iacr.org/2020/972): 30 steps at a time on 64-bit approximations of a and b, then one linear update of
// the full numbers. 26 blocks of 30 steps cover the 2·381 - 1 that the worst input needs; 18 are usual.
#pragma once
#include "fq.cuh"

namespace gcd {

// What 30 steps do to (a, b): a ← (a·f0 + b·g0)/2^30 and b ← (a·f1 + b·g1)/2^30, with |f| + |g| ≤ 2^30.
struct Steps {
    int f0, g0, f1, g1;
};

PS_FN u32 leading_zeros(u32 x) {
#ifdef PS_DEVICE
    return u32(__clz(int(x)));
#else
    return x == 0 ? 32 : u32(__builtin_clz(x));
#endif
}

// The low 30 bits of a, below the 34 bits of a that start where the longer of a and b starts: at limb `w`, `s`
// bits from its top. Exact when w < 2.
PS_FN u64 approximation(const u32* a, u32 w, u32 s) {
    u32 h = 0, m = 0, l = 0;
    PS_UNROLL
    for (u32 i = 2; i < 12; i++)
        if (i == w) {
            h = a[i];
            m = a[i - 1];
            l = a[i - 2];
        }
    if (w < 2) return u64(a[1]) << 32 | a[0];
    u64 top = u64(h) << 32 | m;
    if (s != 0) top = top << s | l >> (32 - s);
    return (top & ~0x3fffffffull) | (a[0] & 0x3fffffffu);
}

// a ← a/2 when a is even, else |a - b|/2, with b ← min(a, b).
PS_FN Steps thirty_steps(u64 a, u64 b) {
    int f0 = 1, g0 = 0, f1 = 0, g1 = 1;
    PS_UNROLL_BY(6)
    for (int i = 0; i < 30; i++) {
        // Both differences before it is known which is needed: latency is what counts here.
        const bool odd = a & 1, swap = odd && a < b;
        const u64 over = a - b, under = b - a;
        const int f = f0 - f1, g = g0 - g1;
        b = swap ? a : b;
        f1 = 2 * (swap ? f0 : f1);
        g1 = 2 * (swap ? g0 : g1);
        a = (odd ? (swap ? under : over) : a) >> 1;
        f0 = odd ? (swap ? -f : f) : f0;
        g0 = odd ? (swap ? -g : g) : g0;
    }
    return {f0, g0, f1, g1};
}

PS_FN u32 magnitude(int f) { return f < 0 ? 0u - u32(f) : u32(f); }

// e + 2^32·o = x·f + y·g for f + g ≤ 2^30.
PS_FN void columns(u32* e, u32* o, const u32* x, const u32* y, u32 f, u32 g) {
    PS_UNROLL
    for (int j = 0; j < 12; j += 2) {
        mul_wide(e[j], e[j + 1], x[j], f);
        mul_wide(o[j], o[j + 1], x[j + 1], f);
    }
    mad_fits<6>(e, y, g);
    mad_fits<6>(o, y + 1, g);
}

// (e + 2^32·o)/2^30 over 12 limbs; the 13th limb before the shift is returned.
PS_FN u32 shift_thirty(u32* r, const u32* e, const u32* o, u32 correction) {
    u32 t[13], shifted[12];
    shifted[0] = 0;
    PS_UNROLL
    for (int i = 1; i < 12; i++) shifted[i] = o[i - 1];
    t[12] = o[11] + add_limbs<12>(t, e, shifted) - correction;
    PS_UNROLL
    for (int i = 0; i < 12; i++) r[i] = t[i] >> 30 | t[i + 1] << 2;
    return t[12];
}

// x when c = 0, else -x modulo 2^384.
PS_FN void negate_if(u32* r, const u32* x, bool c) {
    u32 zero[12], n[12];
    PS_UNROLL
    for (int i = 0; i < 12; i++) zero[i] = 0;
    sub_limbs<12>(n, zero, x);
    PS_UNROLL
    for (int i = 0; i < 12; i++) r[i] = c ? n[i] : x[i];
}

// r = |a·f + b·g|/2^30, an exact division. Returns whether the sum was negative.
PS_FN bool combine(Fq& r, const Fq& a, const Fq& b, int f, int g) {
    u32 x[12], y[12], e[12], o[12];
    negate_if(x, a.l, f < 0);
    negate_if(y, b.l, g < 0);
    const u32 fm = magnitude(f), gm = magnitude(g);
    columns(e, o, x, y, fm, gm);
    // 2^384 - a stands for -a, which adds f·2^384 too much; but not for a = 0.
    const u32 correction = (f < 0 && !is_null(a) ? fm : 0) + (g < 0 && !is_null(b) ? gm : 0);
    const bool negative = shift_thirty(r.l, e, o, correction) >> 31 != 0;
    negate_if(r.l, r.l, negative);
    return negative;
}

// (u·f + v·g)/2^30 modulo p for u and v in [0, p]; so is the result.
PS_FN Fq combine_mod(const Fq& u, const Fq& v, int f, int g) {
    const Fq x = select(f < 0, neg_canonical(u), u), y = select(g < 0, neg_canonical(v), v);
    u32 e[12], o[12];
    columns(e, o, x.l, y.l, magnitude(f), magnitude(g));
    const u32 q = (e[0] * PS_FQ_M0) & 0x3fffffffu;
    mad_fits<6>(e, FQ_P, q);
    mad_fits<6>(o, FQ_P + 1, q);
    Fq r;
    shift_thirty(r.l, e, o, 0);
    r = subtract_once(r, FQ_P);
    PS_CHECK(!::prestage::below(FQ_P, r.l));
    return r;
}

} // namespace gcd

// 1/x, and 0 for 0; below 2p.
PS_CALL Fq inverse(Fq x) {
    Fq a = canonical(x), b, u, v;
    PS_UNROLL
    for (int i = 0; i < 12; i++) {
        b.l[i] = FQ_P[i];
        u.l[i] = i == 0;
        v.l[i] = 0;
    }
    // a = x·u and b = x·v throughout; at the end a = 0 and b = 1.
    PS_ROLLED
    for (int block = 0; block < 26; block++) {
        if (is_null(a)) break;
        u32 w = 0, top = 0;
        PS_UNROLL
        for (u32 i = 0; i < 12; i++) {
            const u32 either = a.l[i] | b.l[i];
            if (either != 0) {
                w = i;
                top = either;
            }
        }
        const u32 s = gcd::leading_zeros(top);
        gcd::Steps k = gcd::thirty_steps(gcd::approximation(a.l, w, s), gcd::approximation(b.l, w, s));
        Fq na, nb;
        if (gcd::combine(na, a, b, k.f0, k.g0)) {
            k.f0 = -k.f0;
            k.g0 = -k.g0;
        }
        if (gcd::combine(nb, a, b, k.f1, k.g1)) {
            k.f1 = -k.f1;
            k.g1 = -k.g1;
        }
        const Fq nu = gcd::combine_mod(u, v, k.f0, k.g0);
        v = gcd::combine_mod(u, v, k.f1, k.g1);
        u = nu;
        a = na;
        b = nb;
    }
    PS_CHECK(is_null(a));
    // x = X·R, so v = 1/(X·R), and the product with R³ leaves R/X.
    Fq r3;
    PS_UNROLL
    for (int i = 0; i < 12; i++) r3.l[i] = FQ_R3[i];
    return mul_call(v, r3);
}
PS_FN FqOutlined inverse(const FqOutlined& x) { return limbs_as<true>(inverse(limbs_as<false>(x))); }
