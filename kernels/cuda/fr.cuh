// The scalar field Fr of BLS12-381: 8 limbs of 32 bits, Montgomery form with R = 2^256, as blst and blstrs keep it.
//
// r = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001
//
// Because r = 1 - 2^32 mod 2^64, the Montgomery digit of 64 bits needs no multiplication: it is
// q = -(x0 + 2^32·(x0 + x1)), and adding q·r clears the two low limbs by additions alone. A product costs 64
// wide multiplications and its reduction 48, where a general modulus takes 72.
//
// A *lazy* value is any representative below 2r. 2^256 = 2.2 r, so a sum of two does not fit 8 limbs: sums are
// corrected at once. Bounds are stated at each function and checked in host builds.
#pragma once
#include "carry.cuh"

struct PS_ALIGNED Fr {
    u32 l[8];
};

PS_TABLE u32 FR_R[8] = {0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402, 0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};
PS_TABLE u32 FR_2R[8] = {0x00000002, 0xfffffffe, 0xfffcb7fd, 0xa77b4805,
                         0x1343b00a, 0x6673b010, 0x533afa90, 0xe7db4ea6};
// 2r + 2^224, the most that `fr_add_loose` leaves.
PS_TABLE u32 FR_LOOSE[8] = {0x00000002, 0xfffffffe, 0xfffcb7fd, 0xa77b4805,
                            0x1343b00a, 0x6673b010, 0x533afa90, 0xe7db4ea7};
// 2^256 mod r, the Montgomery form of 1.
PS_TABLE u32 FR_ONE[8] = {0xfffffffe, 0x00000001, 0x00034802, 0x5884b7fa,
                          0xecbc4ff5, 0x998c4fef, 0xacc5056f, 0x1824b159};
// 2^512 mod r, the Montgomery form of 2^256: the factor that brings an integer into Montgomery form.
PS_TABLE u32 FR_R2[8] = {0xf3f29c6d, 0xc999e990, 0x87925c23, 0x2b6cedcb,
                         0x7254398f, 0x05d31496, 0x9f59ff11, 0x0748d9d9};

#ifndef PS_DEVICE
namespace prestage {
// a < b over N limbs.
template <int N> inline bool less(const u32* a, const u32* b) {
    for (int i = N - 1; i >= 0; i--)
        if (a[i] != b[i]) return a[i] < b[i];
    return false;
}
} // namespace prestage
#endif
#define PS_FR_BELOW(a, bound) PS_CHECK(::prestage::less<8>((a).l, bound))

PS_FN Fr fr_zero() {
    Fr z;
    PS_UNROLL
    for (int i = 0; i < 8; i++) z.l[i] = 0;
    return z;
}
PS_FN Fr fr_one() {
    Fr z;
    PS_UNROLL
    for (int i = 0; i < 8; i++) z.l[i] = FR_ONE[i];
    return z;
}
// Equal limbs: equal elements when both are canonical.
PS_FN bool fr_same(const Fr& a, const Fr& b) {
    u32 d = 0;
    PS_UNROLL
    for (int i = 0; i < 8; i++) d |= a.l[i] ^ b.l[i];
    return d == 0;
}
PS_FN bool fr_is_zero(const Fr& a) {
    u32 d = 0;
    PS_UNROLL
    for (int i = 0; i < 8; i++) d |= a.l[i];
    return d == 0;
}

// a - m when a >= m, else a, exactly.
PS_FN Fr fr_subtract_once(const Fr& a, const u32* m) {
    Fr s;
    const u32 borrow = sub_limbs<8>(s.l, a.l, m);
    PS_UNROLL
    for (int i = 0; i < 8; i++) s.l[i] = borrow ? a.l[i] : s.l[i];
    return s;
}
// The canonical representative of any 256-bit value. The second subtraction is all but never taken: a product
// of a prepared factor leaves less than r + 2^228, and 2^256 is below 3r.
PS_FN Fr fr_canonical(const Fr& a) {
    Fr s = fr_subtract_once(a, FR_R);
    if (s.l[7] >= FR_R[7]) s = fr_subtract_once(s, FR_R);
    PS_FR_BELOW(s, FR_R);
    return s;
}

// a + b - (2r when that is not negative), exactly: at most 2r when both are at most 2r.
// Use this for whatever is subtracted later.
PS_FN Fr fr_add(const Fr& a, const Fr& b) {
    Fr s, d;
    const u32 carry = add_limbs<8>(s.l, a.l, b.l);
    const u32 borrow = sub_limbs<8>(d.l, s.l, FR_2R);
    // The sum is at least 2r when it left 256 bits or did not borrow.
    const bool keep = borrow && !carry;
    PS_UNROLL
    for (int i = 0; i < 8; i++) s.l[i] = keep ? s.l[i] : d.l[i];
    return s;
}

// a + b corrected on the top limb alone: cheaper, and at most 2r + 2^224 when a + b is at most 4r + 2^224.
// Never subtract such a value: 0 - (2r + 2^224) + 2r is negative and wraps. That needs the top limb to be met
// exactly, once in 2^33 or so, and random tests never see it.
PS_FN Fr fr_add_loose(const Fr& a, const Fr& b) {
    Fr s;
#ifdef PS_DEVICE
    asm("{.reg .pred p;.reg .u32 c;"
        "add.cc.u32 %0,%8,%16;addc.cc.u32 %1,%9,%17;addc.cc.u32 %2,%10,%18;addc.cc.u32 %3,%11,%19;"
        "addc.cc.u32 %4,%12,%20;addc.cc.u32 %5,%13,%21;addc.cc.u32 %6,%14,%22;addc.cc.u32 %7,%15,%23;"
        "addc.u32 c,0,0;setp.gt.u32 p,%7,0xe7db4ea6;setp.ne.or.u32 p,c,0,p;"
        "@p sub.cc.u32 %0,%0,0x00000002;@p subc.cc.u32 %1,%1,0xfffffffe;@p subc.cc.u32 %2,%2,0xfffcb7fd;"
        "@p subc.cc.u32 %3,%3,0xa77b4805;@p subc.cc.u32 %4,%4,0x1343b00a;@p subc.cc.u32 %5,%5,0x6673b010;"
        "@p subc.cc.u32 %6,%6,0x533afa90;@p subc.u32 %7,%7,0xe7db4ea6;}"
        : PS_W8(s.l)
        : PS_R8(a.l), PS_R8(b.l));
#else
    const u32 carry = add_limbs<8>(s.l, a.l, b.l);
    if (carry || s.l[7] > FR_2R[7]) sub_limbs<8>(s.l, s.l, FR_2R);
#endif
    PS_CHECK(!::prestage::less<8>(FR_LOOSE, s.l));
    return s;
}

// a - b, plus 2r when that is negative. b must be at most 2r; the result is below 2r when a is, and otherwise at
// most a.
PS_FN Fr fr_sub(const Fr& a, const Fr& b) {
    PS_CHECK(!::prestage::less<8>(FR_2R, b.l));
    Fr s;
#ifdef PS_DEVICE
    asm("{.reg .pred p;.reg .u32 c;"
        "sub.cc.u32 %0,%8,%16;subc.cc.u32 %1,%9,%17;subc.cc.u32 %2,%10,%18;subc.cc.u32 %3,%11,%19;"
        "subc.cc.u32 %4,%12,%20;subc.cc.u32 %5,%13,%21;subc.cc.u32 %6,%14,%22;subc.cc.u32 %7,%15,%23;"
        "subc.u32 c,0,0;setp.ne.u32 p,c,0;"
        "@p add.cc.u32 %0,%0,0x00000002;@p addc.cc.u32 %1,%1,0xfffffffe;@p addc.cc.u32 %2,%2,0xfffcb7fd;"
        "@p addc.cc.u32 %3,%3,0xa77b4805;@p addc.cc.u32 %4,%4,0x1343b00a;@p addc.cc.u32 %5,%5,0x6673b010;"
        "@p addc.cc.u32 %6,%6,0x533afa90;@p addc.u32 %7,%7,0xe7db4ea6;}"
        : PS_W8(s.l)
        : PS_R8(a.l), PS_R8(b.l));
#else
    if (sub_limbs<8>(s.l, a.l, b.l)) add_limbs<8>(s.l, s.l, FR_2R);
#endif
    return s;
}

// One reduction by 2^64. In: columns e[0 .. 10) plus column 10 in `e10`, odd columns o[k] at column k + 1,
// k < 8. Out: the value divided by 2^64 modulo r, in e[0 .. 8), column 8 in e[8], odd columns o[0 .. 6).
PS_FN void fr_reduce_two(u32* e, u32* o, u32 e10) {
    u32 high[6];
    PS_UNROLL
    for (int i = 0; i < 6; i++) high[i] = FR_R[i + 2];
    const u32 x0 = e[0];
    const u64 column1 = u64(e[1]) + o[0];
    const u32 x1 = u32(column1), carry1 = u32(column1 >> 32);
    const u64 q = 0ull - (u64(x0 + x1) << 32 | x0);
    const u32 q0 = u32(q), q1 = u32(q >> 32);
    // (x + q·(2^64 - 2^32 + 1)) / 2^64 with column 2 of the odd half: below 2^64, since x1 = 2^32 - 1 with a
    // carry cannot happen.
    const u64 w = q - q1 + (u64(o[1]) + carry1);
    u32 carry7 = 0;
    PS_UNROLL
    for (int i = 0; i < 6; i++) o[i] = o[i + 2];
    o[6] = o[7] = 0;
    mad<3>(o, high + 1, q0, carry7);
    mad<3>(o, high, q1, carry7);
    const u32 e8 = e[8], e9 = e[9];
    PS_UNROLL
    for (int i = 0; i < 6; i++) e[i] = e[i + 2];
    u32 carry6 = 0;
    mad<3>(e, high, q0, carry6);
    u64 s = u64(e8) + carry6;
    e[6] = u32(s);
    s = (s >> 32) + e9 + carry7;
    e[7] = u32(s);
    e[8] = e10 + u32(s >> 32);
    mad_after_cancel(e, x0, x1, q0, q1, u32(w), u32(w >> 32), high + 1, q1, e[8]);
    e[9] = 0;
}

// Adds a·b0 at column 0 and a·b1 at column 1 to e[0 .. 10), o[0 .. 8) whose columns from 8 and 7 up are empty,
// except for column 8 in e[8].
PS_FN void fr_add_rows(u32* e, u32* o, const u32* a, u32 b0, u32 b1) {
    e[9] = 0;
    mad<4>(e, a, b0, e[8]);
    o[6] = o[7] = 0;
    mad_fits<4>(o, a + 1, b0);
    mad<4>(o, a, b1, e[9]);
    mad_fits<4>(e + 2, a + 1, b1);
}

// x·w/2^256 for any 256-bit x and a canonical w: below 2r. 112 wide multiplications.
PS_FN Fr fr_mul(const Fr& x, const Fr& w) {
    PS_FR_BELOW(w, FR_R);
    u32 e[10], o[8];
    PS_UNROLL
    for (int j = 0; j < 8; j += 2) {
        mul_wide(e[j], e[j + 1], w.l[j], x.l[0]);
        mul_wide(o[j], o[j + 1], w.l[j + 1], x.l[0]);
    }
    e[8] = e[9] = 0;
    mad<4>(o, w.l, x.l[1], e[9]);
    mad_fits<4>(e + 2, w.l + 1, x.l[1]);
    fr_reduce_two(e, o, 0);
    PS_UNROLL
    for (int s = 1; s < 4; s++) {
        PS_CHECK(e[8] == 0);
        fr_add_rows(e, o, w.l, x.l[2 * s], x.l[2 * s + 1]);
        fr_reduce_two(e, o, 0);
    }
    Fr z;
    o[6] = o[7] = 0;
    PS_CHECK(e[8] == 0);
    merge_columns<8>(z.l, e, o);
    PS_FR_BELOW(z, FR_2R);
    return z;
}

// The integer of a Montgomery form, canonical.
PS_FN Fr fr_to_integer(const Fr& a) {
    Fr one = fr_zero();
    one.l[0] = 1;
    return fr_canonical(fr_mul(a, one));
}
// The canonical Montgomery form of a 256-bit integer.
PS_FN Fr fr_from_integer(const Fr& a) {
    Fr factor;
    PS_UNROLL
    for (int i = 0; i < 8; i++) factor.l[i] = FR_R2[i];
    return fr_canonical(fr_mul(a, factor));
}
