// The base field Fq of BLS12-381: 12 limbs of 32 bits, Montgomery form with R = 2^384, as blst and blstrs keep it.
//
// p = 0x1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab
//
// Values are lazy: any representative below 2p is a legal input and every function leaves one, unless its
// comment says otherwise. 2^384 = 9.84 p leaves room for unreduced sums as factors: a product of representatives
// x and y leaves less than (x/p·y/p/9.84 + 1)·p, so below 2p while x/p·y/p stays below 9.84.
// Names are shared with Fq2 (fq2.cuh), so that the curve code is written once.
#pragma once
#include "carry.cuh"

// With OUTLINED, products are calls: for code that is large or rarely run. Otherwise they are inlined.
template <bool OUTLINED> struct PS_ALIGNED FqOf {
    u32 l[12];
};
using Fq = FqOf<false>;
using FqOutlined = FqOf<true>;
template <bool TO, bool FROM> PS_FN FqOf<TO> limbs_as(const FqOf<FROM>& a) {
    FqOf<TO> z;
    PS_UNROLL
    for (int i = 0; i < 12; i++) z.l[i] = a.l[i];
    return z;
}

PS_TABLE u32 FQ_P[12] = {0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0,
                         0xf38512bf, 0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea};
PS_TABLE u32 FQ_2P[12] = {0xffff5556, 0x73fdffff, 0x62a7ffff, 0x3d57fffd, 0xed61ec48, 0xce61a541,
                          0xe70a257e, 0xc8ee9709, 0x869759ae, 0x96374f6c, 0x72ffcd34, 0x340223d4};
PS_TABLE u32 FQ_4P[12] = {0xfffeaaac, 0xe7fbffff, 0xc54ffffe, 0x7aaffffa, 0xdac3d890, 0x9cc34a83,
                          0xce144afd, 0x91dd2e13, 0x0d2eb35d, 0x2c6e9ed9, 0xe5ff9a69, 0x680447a8};
// 2^384 mod p, the Montgomery form of 1.
PS_TABLE u32 FQ_ONE[12] = {0x0002fffd, 0x76090000, 0xc40c0002, 0xebf4000b, 0x53c758ba, 0x5f489857,
                           0x70525745, 0x77ce5853, 0xa256ec6d, 0x5c071a97, 0xfa80e493, 0x15f65ec3};
// 2^1152 mod p: undoes three divisions by R.
PS_TABLE u32 FQ_R3[12] = {0xd94ca1e0, 0xed48ac6b, 0x03a7adf8, 0x315f831e, 0x615e29dd, 0x9a53352a,
                          0x921e1761, 0x34c04e5e, 0x65724728, 0x2512d435, 0x91755d4d, 0x0aa63460};
// -1/p mod 2^32.
#define PS_FQ_M0 0xfffcfffdu

#ifndef PS_DEVICE
namespace prestage {
// a < b over 12 limbs.
inline bool below(const u32* a, const u32* b) {
    for (int i = 11; i >= 0; i--)
        if (a[i] != b[i]) return a[i] < b[i];
    return false;
}
} // namespace prestage
#endif
#define PS_FQ_BELOW(a, bound) PS_CHECK(::prestage::below((a).l, bound))

template <bool O> PS_FN void set_zero(FqOf<O>& z) {
    PS_UNROLL
    for (int i = 0; i < 12; i++) z.l[i] = 0;
}
template <bool O> PS_FN void set_one(FqOf<O>& z) {
    PS_UNROLL
    for (int i = 0; i < 12; i++) z.l[i] = FQ_ONE[i];
}

// Equal limbs: equal elements when both are canonical.
template <bool O> PS_FN bool same(const FqOf<O>& a, const FqOf<O>& b) {
    u32 d = 0;
    PS_UNROLL
    for (int i = 0; i < 12; i++) d |= a.l[i] ^ b.l[i];
    return d == 0;
}
// All limbs zero: the element zero when a is canonical.
template <bool O> PS_FN bool is_null(const FqOf<O>& a) {
    u32 d = 0;
    PS_UNROLL
    for (int i = 0; i < 12; i++) d |= a.l[i];
    return d == 0;
}
template <bool O> PS_FN FqOf<O> select(bool c, const FqOf<O>& a, const FqOf<O>& b) {
    FqOf<O> z;
    PS_UNROLL
    for (int i = 0; i < 12; i++) z.l[i] = c ? a.l[i] : b.l[i];
    return z;
}
// a - m when a >= m, else a.
template <bool O> PS_FN FqOf<O> subtract_once(const FqOf<O>& a, const u32* m) {
    FqOf<O> s;
    const u32 borrow = sub_limbs<12>(s.l, a.l, m);
    PS_UNROLL
    for (int i = 0; i < 12; i++) s.l[i] = borrow ? a.l[i] : s.l[i];
    return s;
}
// The representative below p of a value below 2p.
template <bool O> PS_FN FqOf<O> canonical(const FqOf<O>& a) {
    PS_FQ_BELOW(a, FQ_2P);
    return subtract_once(a, FQ_P);
}
// a = 0 mod p, for a below 2p. The low limb rules out all but one value in 2^31 at once.
template <bool O> PS_FN bool is_zero(const FqOf<O>& a) {
    PS_FQ_BELOW(a, FQ_2P);
    if (a.l[0] != 0 && a.l[0] != FQ_P[0]) return false;
    u32 zero = 0, modulus = 0;
    PS_UNROLL
    for (int i = 0; i < 12; i++) {
        zero |= a.l[i];
        modulus |= a.l[i] ^ FQ_P[i];
    }
    return zero == 0 || modulus == 0;
}

// a + b below 4p, not reduced: a factor, never a result.
template <bool O> PS_FN FqOf<O> add_unreduced(const FqOf<O>& a, const FqOf<O>& b) {
    FqOf<O> s;
    const u32 carry = add_limbs<12>(s.l, a.l, b.l);
    (void)carry;
    PS_CHECK(carry == 0);
    return s;
}
template <bool O> PS_FN FqOf<O> add(const FqOf<O>& a, const FqOf<O>& b) {
    PS_FQ_BELOW(a, FQ_2P);
    PS_FQ_BELOW(b, FQ_2P);
    return subtract_once(add_unreduced(a, b), FQ_2P);
}
template <bool O> PS_FN FqOf<O> twice(const FqOf<O>& a) { return add(a, a); }

template <bool O> PS_FN FqOf<O> sub(const FqOf<O>& a, const FqOf<O>& b) {
    PS_FQ_BELOW(a, FQ_2P);
    PS_FQ_BELOW(b, FQ_2P);
    FqOf<O> s;
#ifdef PS_DEVICE
    asm("{.reg .pred p;.reg .u32 c;"
        "sub.cc.u32 %0,%12,%24;subc.cc.u32 %1,%13,%25;subc.cc.u32 %2,%14,%26;subc.cc.u32 %3,%15,%27;"
        "subc.cc.u32 %4,%16,%28;subc.cc.u32 %5,%17,%29;subc.cc.u32 %6,%18,%30;subc.cc.u32 %7,%19,%31;"
        "subc.cc.u32 %8,%20,%32;subc.cc.u32 %9,%21,%33;subc.cc.u32 %10,%22,%34;subc.cc.u32 %11,%23,%35;"
        "subc.u32 c,0,0;setp.ne.u32 p,c,0;"
        "@p add.cc.u32 %0,%0,0xffff5556;@p addc.cc.u32 %1,%1,0x73fdffff;@p addc.cc.u32 %2,%2,0x62a7ffff;"
        "@p addc.cc.u32 %3,%3,0x3d57fffd;@p addc.cc.u32 %4,%4,0xed61ec48;@p addc.cc.u32 %5,%5,0xce61a541;"
        "@p addc.cc.u32 %6,%6,0xe70a257e;@p addc.cc.u32 %7,%7,0xc8ee9709;@p addc.cc.u32 %8,%8,0x869759ae;"
        "@p addc.cc.u32 %9,%9,0x96374f6c;@p addc.cc.u32 %10,%10,0x72ffcd34;@p addc.u32 %11,%11,0x340223d4;}"
        : PS_W12(s.l)
        : PS_R12(a.l), PS_R12(b.l));
#else
    if (sub_limbs<12>(s.l, a.l, b.l)) add_limbs<12>(s.l, s.l, FQ_2P);
#endif
    PS_FQ_BELOW(s, FQ_2P);
    return s;
}
template <bool O> PS_FN FqOf<O> neg(const FqOf<O>& a) {
    FqOf<O> z;
    set_zero(z);
    return sub(z, a);
}
// p - a for a canonical a, canonical except for p itself when a = 0: for coordinates of finite points.
template <bool O> PS_FN FqOf<O> neg_canonical(const FqOf<O>& a) {
    PS_CHECK(!::prestage::below(FQ_P, a.l));
    FqOf<O> z;
    sub_limbs<12>(z.l, FQ_P, a.l);
    return z;
}

// One row of a Montgomery sum of products: e and o hold the even and odd columns, e[0] ends as zero and the two
// change places for the next row.
template <int K> PS_FN void dot_row(u32* e, u32* o, const Fq* a, const Fq* b, int i, bool first) {
    if (first) {
        PS_UNROLL
        for (int j = 0; j < 12; j += 2) {
            mul_wide(e[j], e[j + 1], a[0].l[j], b[0].l[i]);
            mul_wide(o[j], o[j + 1], a[0].l[j + 1], b[0].l[i]);
        }
    } else {
        shift_mad(e[0], o, a[0].l + 1, b[0].l[i]);
        mad<6>(e, a[0].l, b[0].l[i], o[11]);
    }
    PS_UNROLL
    for (int k = 1; k < K; k++) {
        mad_fits<6>(o, a[k].l + 1, b[k].l[i]);
        mad<6>(e, a[k].l, b[k].l[i], o[11]);
    }
    const u32 q = e[0] * PS_FQ_M0;
    mad_fits<6>(o, FQ_P + 1, q);
    mad<6>(e, FQ_P, q, o[11]);
}

// e + o/2^32 over 12 limbs.
PS_FN Fq merge_rows(const u32* e, const u32* o) {
    u32 shifted[12];
    PS_UNROLL
    for (int i = 0; i < 11; i++) shifted[i] = o[i + 1];
    shifted[11] = 0;
    Fq z;
    const u32 carry = add_limbs<12>(z.l, e, shifted);
    (void)carry;
    PS_CHECK(carry == 0);
    return z;
}

// (a[0]·b[0] + … + a[K-1]·b[K-1])/R in one reduction. The a[k] must add up to at most 8.8 p, the b[k] may be any
// 384-bit values; the result is below (Σ a[k]/p·b[k]/p/9.84 + 1)·p. 144·(K + 1) wide multiplications.
template <int K> PS_FN Fq dot(const Fq* a, const Fq* b) {
    u32 e[12], o[12];
    PS_UNROLL
    for (int i = 0; i < 12; i += 2) {
        dot_row<K>(e, o, a, b, i, i == 0);
        dot_row<K>(o, e, a, b, i + 1, false);
    }
    return merge_rows(e, o);
}

// a·b/R for a up to 8p with a/p·b/p below 9.84.
PS_FN Fq mul(const Fq& a, const Fq& b) {
    const Fq z = dot<1>(&a, &b);
    PS_FQ_BELOW(z, FQ_2P);
    return z;
}
// (a·b + c·d)/R for a/p + c/p up to 8.8 and a/p·b/p + c/p·d/p below 9.84.
PS_FN Fq mul_add(const Fq& a, const Fq& b, const Fq& c, const Fq& d) {
    const Fq x[2] = {a, c}, y[2] = {b, d};
    const Fq z = dot<2>(x, y);
    PS_FQ_BELOW(z, FQ_2P);
    return z;
}

// Products a[I]·a[j] with j > I: w collects the even columns, o the odd ones.
template <int I> PS_FN void square_rows(u32* w, u32* o, const u32* a) {
    if constexpr (I < 11) {
        constexpr int odd = (12 - I) / 2, even = (11 - I) / 2;
        mad<odd>(o + 2 * I, a + I + 1, a[I], o[2 * I + 2 * odd]);
        if constexpr (even > 0) mad<even>(w + 2 * I + 2, a + I + 2, a[I], w[2 * I + 2 + 2 * even]);
        square_rows<I + 1>(w, o, a);
    }
}

// t/R for 24 limbs t with t/R + p below 2^384. 144 wide multiplications.
PS_FN Fq reduce_wide(const u32* t) {
    u32 e[12], o[12];
    PS_UNROLL
    for (int i = 0; i < 12; i++) e[i] = t[i];
    {
        const u32 q = e[0] * PS_FQ_M0;
        PS_UNROLL
        for (int j = 0; j < 12; j += 2) mul_wide(o[j], o[j + 1], FQ_P[j + 1], q);
        mad<6>(e, FQ_P, q, o[11]);
    }
    PS_UNROLL
    for (int i = 1; i < 12; i++) {
        u32* even = i % 2 ? o : e;
        u32* odd = i % 2 ? e : o;
        const u32 sum = even[0] + odd[1];
        const u32 carry = sum < even[0];
        even[0] = sum;
        const u32 q = sum * PS_FQ_M0;
        shift_mad_carry(odd, FQ_P + 1, q, carry);
        mad<6>(even, FQ_P, q, odd[11]);
    }
    Fq z = merge_rows(e, o);
    const u32 carry = add_limbs<12>(z.l, z.l, t + 12);
    (void)carry;
    PS_CHECK(carry == 0);
    return z;
}

// a²/R for a below 3.1 p. 78 + 144 wide multiplications.
PS_FN Fq sqr(const Fq& a) {
    u32 w[24], o[24];
    PS_UNROLL
    for (int i = 0; i < 24; i++) w[i] = o[i] = 0;
    square_rows<0>(w, o, a.l);
    double_and_square(w, o, a.l);
    const Fq z = reduce_wide(w);
    PS_FQ_BELOW(z, FQ_2P);
    return z;
}

// The same as calls, operands and results in registers.
PS_CALL Fq mul_call(Fq a, Fq b) { return mul(a, b); }
PS_CALL Fq sqr_call(Fq a) { return sqr(a); }
PS_CALL Fq mul_add_call(Fq a, Fq b, Fq c, Fq d) { return mul_add(a, b, c, d); }
PS_FN FqOutlined mul(const FqOutlined& a, const FqOutlined& b) {
    return limbs_as<true>(mul_call(limbs_as<false>(a), limbs_as<false>(b)));
}
PS_FN FqOutlined sqr(const FqOutlined& a) { return limbs_as<true>(sqr_call(limbs_as<false>(a))); }
PS_FN FqOutlined mul_add(const FqOutlined& a, const FqOutlined& b, const FqOutlined& c, const FqOutlined& d) {
    return limbs_as<true>(mul_add_call(limbs_as<false>(a), limbs_as<false>(b), limbs_as<false>(c), limbs_as<false>(d)));
}

// a^(p-2) = 1/a by square and multiply, 0 for 0: 381 squarings. The plain definition beside `inverse`
// (fq_inverse.cuh).
PS_CALL Fq inverse_by_power(Fq a) {
    Fq z;
    set_one(z);
    PS_ROLLED
    for (int i = 380; i >= 0; i--) {
        // p - 2: the low limb of p is 0xffffaaab, so nothing is borrowed.
        u32 limb = 0;
        PS_UNROLL
        for (int k = 0; k < 12; k++)
            if (k == i / 32) limb = k == 0 ? FQ_P[0] - 2 : FQ_P[k];
        z = sqr_call(z);
        if (limb >> (i % 32) & 1) z = mul_call(z, a);
    }
    return z;
}
