// Carry chains: the only place that touches the carry flag.
//
// Each function is one chain. On the device it is a single `asm` statement, because nothing promises that the
// flag survives between two; on the host it is a loop with the carry in a variable. `mad` accumulates fused
// 32×32+64 products (`IMAD.WIDE.U32` with carry) in even columns only: a number is kept as E + 2^32·O, where
// E collects the products of even and O those of odd columns, so that no product is ever split in two.
#pragma once
#include "simt.cuh"

#ifdef PS_DEVICE
// Operand lists and instructions of the chains below.
#define PS_W8(r) "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]), "=&r"(r[6]), "=&r"(r[7])
#define PS_W12(r) PS_W8(r), "=&r"(r[8]), "=&r"(r[9]), "=&r"(r[10]), "=&r"(r[11])
#define PS_R8(a) "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7])
#define PS_R12(a) PS_R8(a), "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11])
#define PS_RW2(r) "+&r"((r)[0]), "+&r"((r)[1])
#define PS_MAD(l, h, a, b)                                                                                             \
    "mad.lo.cc.u32 %" #l ",%" #a ",%" #b ",%" #l ";madc.hi.cc.u32 %" #h ",%" #a ",%" #b ",%" #h ";"
#define PS_MADC(l, h, a, b)                                                                                            \
    "madc.lo.cc.u32 %" #l ",%" #a ",%" #b ",%" #l ";madc.hi.cc.u32 %" #h ",%" #a ",%" #b ",%" #h ";"
#define PS_MADE(l, h, a, b)                                                                                            \
    "madc.lo.cc.u32 %" #l ",%" #a ",%" #b ",%" #l ";madc.hi.u32 %" #h ",%" #a ",%" #b ",%" #h ";"
#else
namespace prestage {
// (lo, hi) += a·b + carry; returns the carry out.
inline u32 mad_step(u32& lo, u32& hi, u32 a, u32 b, u32 carry) {
    const u64 product = u64(a) * b;
    const u64 low = u64(lo) + u32(product) + carry;
    const u64 high = u64(hi) + (product >> 32) + (low >> 32);
    lo = u32(low);
    hi = u32(high);
    return u32(high >> 32);
}
} // namespace prestage
#endif

// The two halves of a·b.
PS_FN void mul_wide(u32& lo, u32& hi, u32 a, u32 b) {
    const u64 p = u64(a) * b;
    lo = u32(p);
    hi = u32(p >> 32);
}

// r = a + b over N limbs; returns the carry. r may be a or b.
template <int N> PS_FN u32 add_limbs(u32* r, const u32* a, const u32* b) {
    static_assert(N == 8 || N == 12, "chain lengths in use");
#ifdef PS_DEVICE
    u32 carry, s[N];
    if constexpr (N == 8)
        asm("add.cc.u32 %0,%9,%17;addc.cc.u32 %1,%10,%18;addc.cc.u32 %2,%11,%19;addc.cc.u32 %3,%12,%20;"
            "addc.cc.u32 %4,%13,%21;addc.cc.u32 %5,%14,%22;addc.cc.u32 %6,%15,%23;addc.cc.u32 %7,%16,%24;"
            "addc.u32 %8,0,0;"
            : PS_W8(s), "=&r"(carry)
            : PS_R8(a), PS_R8(b));
    else
        asm("add.cc.u32 %0,%13,%25;addc.cc.u32 %1,%14,%26;addc.cc.u32 %2,%15,%27;addc.cc.u32 %3,%16,%28;"
            "addc.cc.u32 %4,%17,%29;addc.cc.u32 %5,%18,%30;addc.cc.u32 %6,%19,%31;addc.cc.u32 %7,%20,%32;"
            "addc.cc.u32 %8,%21,%33;addc.cc.u32 %9,%22,%34;addc.cc.u32 %10,%23,%35;addc.cc.u32 %11,%24,%36;"
            "addc.u32 %12,0,0;"
            : PS_W12(s), "=&r"(carry)
            : PS_R12(a), PS_R12(b));
    PS_UNROLL
    for (int i = 0; i < N; i++) r[i] = s[i];
    return carry;
#else
    u64 c = 0;
    for (int i = 0; i < N; i++) {
        c += u64(a[i]) + b[i];
        r[i] = u32(c);
        c >>= 32;
    }
    return u32(c);
#endif
}

// r = a - b over N limbs; returns 0xffffffff when a < b, else 0. r may be a or b.
template <int N> PS_FN u32 sub_limbs(u32* r, const u32* a, const u32* b) {
    static_assert(N == 8 || N == 12, "chain lengths in use");
#ifdef PS_DEVICE
    u32 borrow, s[N];
    if constexpr (N == 8)
        asm("sub.cc.u32 %0,%9,%17;subc.cc.u32 %1,%10,%18;subc.cc.u32 %2,%11,%19;subc.cc.u32 %3,%12,%20;"
            "subc.cc.u32 %4,%13,%21;subc.cc.u32 %5,%14,%22;subc.cc.u32 %6,%15,%23;subc.cc.u32 %7,%16,%24;"
            "subc.u32 %8,0,0;"
            : PS_W8(s), "=&r"(borrow)
            : PS_R8(a), PS_R8(b));
    else
        asm("sub.cc.u32 %0,%13,%25;subc.cc.u32 %1,%14,%26;subc.cc.u32 %2,%15,%27;subc.cc.u32 %3,%16,%28;"
            "subc.cc.u32 %4,%17,%29;subc.cc.u32 %5,%18,%30;subc.cc.u32 %6,%19,%31;subc.cc.u32 %7,%20,%32;"
            "subc.cc.u32 %8,%21,%33;subc.cc.u32 %9,%22,%34;subc.cc.u32 %10,%23,%35;subc.cc.u32 %11,%24,%36;"
            "subc.u32 %12,0,0;"
            : PS_W12(s), "=&r"(borrow)
            : PS_R12(a), PS_R12(b));
    PS_UNROLL
    for (int i = 0; i < N; i++) r[i] = s[i];
    return borrow;
#else
    u64 borrow = 0;
    for (int i = 0; i < N; i++) {
        const u64 d = u64(a[i]) - b[i] - borrow;
        r[i] = u32(d);
        borrow = d >> 63;
    }
    return 0u - u32(borrow);
#endif
}

// acc[0 .. 2P) += (a[0] + a[2]·2^64 + … + a[2P-2]·2^(64(P-1)))·b; top += the carry out.
template <int P> PS_FN void mad(u32* acc, const u32* a, u32 b, u32& top) {
    static_assert(P >= 1 && P <= 6, "chain lengths in use");
#ifdef PS_DEVICE
    if constexpr (P == 1)
        asm(PS_MAD(0, 1, 3, 4) "addc.u32 %2,%2,0;" : PS_RW2(acc), "+&r"(top) : "r"(a[0]), "r"(b));
    else if constexpr (P == 2)
        asm(PS_MAD(0, 1, 5, 7) PS_MADC(2, 3, 6, 7) "addc.u32 %4,%4,0;"
            : PS_RW2(acc), PS_RW2(acc + 2), "+&r"(top)
            : "r"(a[0]), "r"(a[2]), "r"(b));
    else if constexpr (P == 3)
        asm(PS_MAD(0, 1, 7, 10) PS_MADC(2, 3, 8, 10) PS_MADC(4, 5, 9, 10) "addc.u32 %6,%6,0;"
            : PS_RW2(acc), PS_RW2(acc + 2), PS_RW2(acc + 4), "+&r"(top)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(b));
    else if constexpr (P == 4)
        asm(PS_MAD(0, 1, 9, 13) PS_MADC(2, 3, 10, 13) PS_MADC(4, 5, 11, 13) PS_MADC(6, 7, 12, 13) "addc.u32 %8,%8,0;"
            : PS_RW2(acc), PS_RW2(acc + 2), PS_RW2(acc + 4), PS_RW2(acc + 6), "+&r"(top)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b));
    else if constexpr (P == 5)
        asm(PS_MAD(0, 1, 11, 16) PS_MADC(2, 3, 12, 16) PS_MADC(4, 5, 13, 16) PS_MADC(6, 7, 14, 16)
                PS_MADC(8, 9, 15, 16) "addc.u32 %10,%10,0;"
            : PS_RW2(acc), PS_RW2(acc + 2), PS_RW2(acc + 4), PS_RW2(acc + 6), PS_RW2(acc + 8), "+&r"(top)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(b));
    else
        asm(PS_MAD(0, 1, 13, 19) PS_MADC(2, 3, 14, 19) PS_MADC(4, 5, 15, 19) PS_MADC(6, 7, 16, 19) PS_MADC(8, 9, 17, 19)
                PS_MADC(10, 11, 18, 19) "addc.u32 %12,%12,0;"
            : PS_RW2(acc), PS_RW2(acc + 2), PS_RW2(acc + 4), PS_RW2(acc + 6), PS_RW2(acc + 8), PS_RW2(acc + 10),
              "+&r"(top)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(a[10]), "r"(b));
#else
    u32 carry = 0;
    for (int i = 0; i < P; i++) carry = prestage::mad_step(acc[2 * i], acc[2 * i + 1], a[2 * i], b, carry);
    PS_CHECK(top <= 0xffffffffu - carry);
    top += carry;
#endif
}

// The same where the sum is known to fit: no carry leaves the last column.
template <int P> PS_FN void mad_fits(u32* acc, const u32* a, u32 b) {
    u32 top = 0;
    mad<P>(acc, a, b, top);
    PS_CHECK(top == 0);
}

// low += o[1] with the carry into: o = (o >> 64) + (a[0] + a[2]·2^64 + … + a[10]·2^320)·b, 12 limbs.
PS_FN void shift_mad(u32& low, u32* o, const u32* a, u32 b) {
    const u32 o1 = o[1];
    PS_UNROLL
    for (int i = 0; i < 10; i++) o[i] = o[i + 2];
    o[10] = o[11] = 0;
#ifdef PS_DEVICE
    asm("add.cc.u32 %0,%0,%13;" PS_MADC(1, 2, 14, 20) PS_MADC(3, 4, 15, 20) PS_MADC(5, 6, 16, 20) PS_MADC(7, 8, 17, 20)
            PS_MADC(9, 10, 18, 20) PS_MADE(11, 12, 19, 20)
        : "+&r"(low), PS_RW2(o), PS_RW2(o + 2), PS_RW2(o + 4), PS_RW2(o + 6), PS_RW2(o + 8), PS_RW2(o + 10)
        : "r"(o1), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(a[10]), "r"(b));
#else
    const u64 s = u64(low) + o1;
    low = u32(s);
    u32 carry = u32(s >> 32);
    for (int i = 0; i < 6; i++) carry = prestage::mad_step(o[2 * i], o[2 * i + 1], a[2 * i], b, carry);
    PS_CHECK(carry == 0);
#endif
}

// o = (o >> 64) + carry + (a[0] + a[2]·2^64 + … + a[10]·2^320)·b for a carry of 0 or 1, 12 limbs.
PS_FN void shift_mad_carry(u32* o, const u32* a, u32 b, u32 carry) {
    PS_UNROLL
    for (int i = 0; i < 10; i++) o[i] = o[i + 2];
    o[10] = o[11] = 0;
#ifdef PS_DEVICE
    asm("{.reg .u32 t;add.cc.u32 t,%12,0xffffffff;" PS_MADC(0, 1, 13, 19) PS_MADC(2, 3, 14, 19) PS_MADC(4, 5, 15, 19)
            PS_MADC(6, 7, 16, 19) PS_MADC(8, 9, 17, 19) PS_MADE(10, 11, 18, 19) "}"
        : PS_RW2(o), PS_RW2(o + 2), PS_RW2(o + 4), PS_RW2(o + 6), PS_RW2(o + 8), PS_RW2(o + 10)
        : "r"(carry), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(a[10]), "r"(b));
#else
    PS_CHECK(carry <= 1);
    for (int i = 0; i < 6; i++) carry = prestage::mad_step(o[2 * i], o[2 * i + 1], a[2 * i], b, carry);
    PS_CHECK(carry == 0);
#endif
}

// e += (w0, w1, a[0]·b, a[2]·b, a[4]·b) as columns of 1, 1, 2, 2, 2 limbs plus the carry of (x0, x1) + (q0, q1):
// the tail of the two-limb reduction of Fr, 8 limbs.
PS_FN void mad_after_cancel(u32* e, u32 x0, u32 x1, u32 q0, u32 q1, u32 w0, u32 w1, const u32* a, u32 b, u32& top) {
#ifdef PS_DEVICE
    asm("{.reg .u32 t;add.cc.u32 t,%9,%11;addc.cc.u32 t,%10,%12;addc.cc.u32 %0,%0,%13;addc.cc.u32 %1,%1,%14;" PS_MADC(
            2, 3, 15, 18) PS_MADC(4, 5, 16, 18) PS_MADC(6, 7, 17, 18) "addc.u32 %8,%8,0;}"
        : PS_RW2(e), PS_RW2(e + 2), PS_RW2(e + 4), PS_RW2(e + 6), "+&r"(top)
        : "r"(x0), "r"(x1), "r"(q0), "r"(q1), "r"(w0), "r"(w1), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(b));
#else
    const u64 low = (u64(x1) << 32 | x0) + (u64(q1) << 32 | q0);
    u64 c = low < (u64(x1) << 32 | x0);
    c += u64(e[0]) + w0;
    e[0] = u32(c);
    c = (c >> 32) + e[1] + w1;
    e[1] = u32(c);
    u32 carry = u32(c >> 32);
    for (int i = 0; i < 3; i++) carry = prestage::mad_step(e[2 + 2 * i], e[3 + 2 * i], a[2 * i], b, carry);
    PS_CHECK(top <= 0xffffffffu - carry);
    top += carry;
#endif
}

// r = e + 2^32·o over N limbs, where the sum is known to fit; o's last limb must be 0.
template <int N> PS_FN void merge_columns(u32* r, const u32* e, const u32* o) {
    PS_CHECK(o[N - 1] == 0);
    u32 shifted[N];
    shifted[0] = 0;
    PS_UNROLL
    for (int i = 1; i < N; i++) shifted[i] = o[i - 1];
    const u32 carry = add_limbs<N>(r, e, shifted);
    (void)carry;
    PS_CHECK(carry == 0);
}

// w = 2·(w + 2^32·o) + a[0]² + a[1]²·2^64 + … + a[11]²·2^704 over 24 limbs, where the sum is known to fit and w[0]
// and o[23] are 0: the end of a squaring whose products of different limbs are in w and o.
PS_FN void double_and_square(u32* w, u32* o, const u32* a) {
    PS_CHECK(w[0] == 0 && o[23] == 0);
#ifdef PS_DEVICE
    asm("add.cc.u32 %0,%0,%23;addc.cc.u32 %1,%1,%24;addc.cc.u32 %2,%2,%25;addc.cc.u32 %3,%3,%26;"
        "addc.cc.u32 %4,%4,%27;addc.cc.u32 %5,%5,%28;addc.cc.u32 %6,%6,%29;addc.cc.u32 %7,%7,%30;"
        "addc.cc.u32 %8,%8,%31;addc.cc.u32 %9,%9,%32;addc.cc.u32 %10,%10,%33;addc.cc.u32 %11,%11,%34;"
        "addc.cc.u32 %12,%12,%35;addc.cc.u32 %13,%13,%36;addc.cc.u32 %14,%14,%37;addc.cc.u32 %15,%15,%38;"
        "addc.cc.u32 %16,%16,%39;addc.cc.u32 %17,%17,%40;addc.cc.u32 %18,%18,%41;addc.cc.u32 %19,%19,%42;"
        "addc.cc.u32 %20,%20,%43;addc.cc.u32 %21,%21,%44;addc.u32 %22,%22,%45;"
        : PS_RW2(w + 1), PS_RW2(w + 3), PS_RW2(w + 5), PS_RW2(w + 7), PS_RW2(w + 9), PS_RW2(w + 11), PS_RW2(w + 13),
          PS_RW2(w + 15), PS_RW2(w + 17), PS_RW2(w + 19), PS_RW2(w + 21), "+&r"(w[23])
        : PS_R12(o), PS_R8((o + 12)), "r"(o[20]), "r"(o[21]), "r"(o[22]));
    asm("add.cc.u32 %0,%0,%0;addc.cc.u32 %1,%1,%1;addc.cc.u32 %2,%2,%2;addc.cc.u32 %3,%3,%3;"
        "addc.cc.u32 %4,%4,%4;addc.cc.u32 %5,%5,%5;addc.cc.u32 %6,%6,%6;addc.cc.u32 %7,%7,%7;"
        "addc.cc.u32 %8,%8,%8;addc.cc.u32 %9,%9,%9;addc.cc.u32 %10,%10,%10;addc.cc.u32 %11,%11,%11;"
        "addc.cc.u32 %12,%12,%12;addc.cc.u32 %13,%13,%13;addc.cc.u32 %14,%14,%14;addc.cc.u32 %15,%15,%15;"
        "addc.cc.u32 %16,%16,%16;addc.cc.u32 %17,%17,%17;addc.cc.u32 %18,%18,%18;addc.cc.u32 %19,%19,%19;"
        "addc.cc.u32 %20,%20,%20;addc.cc.u32 %21,%21,%21;addc.u32 %22,%22,%22;"
        : PS_RW2(w + 1), PS_RW2(w + 3), PS_RW2(w + 5), PS_RW2(w + 7), PS_RW2(w + 9), PS_RW2(w + 11), PS_RW2(w + 13),
          PS_RW2(w + 15), PS_RW2(w + 17), PS_RW2(w + 19), PS_RW2(w + 21), "+&r"(w[23]));
    asm(PS_MAD(0, 1, 24, 24) PS_MADC(2, 3, 25, 25) PS_MADC(4, 5, 26, 26) PS_MADC(6, 7, 27, 27) PS_MADC(8, 9, 28, 28)
            PS_MADC(10, 11, 29, 29) PS_MADC(12, 13, 30, 30) PS_MADC(14, 15, 31, 31) PS_MADC(16, 17, 32, 32)
                PS_MADC(18, 19, 33, 33) PS_MADC(20, 21, 34, 34) PS_MADE(22, 23, 35, 35)
        : PS_RW2(w), PS_RW2(w + 2), PS_RW2(w + 4), PS_RW2(w + 6), PS_RW2(w + 8), PS_RW2(w + 10), PS_RW2(w + 12),
          PS_RW2(w + 14), PS_RW2(w + 16), PS_RW2(w + 18), PS_RW2(w + 20), PS_RW2(w + 22)
        : PS_R12(a));
#else
    u64 c = 0;
    for (int i = 1; i < 24; i++) {
        c += u64(w[i]) + o[i - 1];
        w[i] = u32(c);
        c >>= 32;
    }
    PS_CHECK(c == 0);
    for (int i = 1; i < 24; i++) {
        c += u64(w[i]) << 1;
        w[i] = u32(c);
        c >>= 32;
    }
    PS_CHECK(c == 0);
    u32 carry = 0;
    for (int i = 0; i < 12; i++) carry = prestage::mad_step(w[2 * i], w[2 * i + 1], a[i], a[i], carry);
    PS_CHECK(carry == 0);
#endif
}
