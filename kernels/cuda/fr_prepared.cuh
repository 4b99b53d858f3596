// Products of Fr by factors known in advance, and the 2-, 4- and 8-point transforms made of them.
//
// A factor w is prepared as several parts w·2^(32·d·k)·2^s mod r, k = 0, 1, …: x·w is then the sum of d-limb
// pieces of x times the parts, only 64 or 96 bits of it are left to reduce, and the wide multiplications fall
// from 112 to 94 (two parts), 82 (four) and 76 (eight, one a limb). Any 256-bit x will do; results are below
// r + 2^228, so at most 2r.
#pragma once
#include "fr.cuh"

// w, w the 8th root of unity 7^((r-1)/8): w², (w + w³)/2 and (w - w³)/2, each in eight parts c·2^(32k+64) mod r.
PS_TABLE u32 FR_CORE[3][8][8] = {
    {
        {0xffffffff, 0x00000000, 0x0001a401, 0xac435bfd, 0x6c6127fa, 0xb8c927fa, 0x4c658788, 0x1964257b},
        {0xc7edfb36, 0x381204c8, 0xc7ed6ccb, 0xc59889a0, 0x307d7343, 0x26b07cda, 0xd246eae2, 0x274ed2c8},
        {0xa932a94b, 0x1ebb51ea, 0x71204f7e, 0x85590315, 0xd1333fc5, 0xd858ed2c, 0x3e3a33b3, 0x177671e7},
        {0xcc3033f3, 0xdd027557, 0x3d5071f7, 0xda5fec58, 0x53ff4e10, 0xd6b1d7c9, 0x8bee15e0, 0x1c496903},
        {0xc18913d6, 0x0aa7201c, 0x36ee4982, 0x599f2bf5, 0x35f10b23, 0x1350d0f3, 0x97ad1bbc, 0x2c46a4ef},
        {0x9e3a2626, 0x234eedaf, 0x05d6a1f7, 0xce1bb45d, 0xb4dc675b, 0x44ba87bb, 0x600997ad, 0x26b36dfa},
        {0xaa89cfb1, 0xf3b05674, 0x6006b9fe, 0x072f0140, 0x25667a26, 0xce9a0dbf, 0x2d598374, 0x4d2ce405},
        {0x5593a1d4, 0x54f62ddc, 0x689ce4a1, 0x29f28715, 0x4630a8ab, 0xa058db80, 0x070dfcaa, 0x2c58143f},
    },
    {
        {0xf6a9f8d3, 0xba57c562, 0x1f20e4ca, 0xc04a4d6f, 0xce896cf4, 0x09880dbf, 0x781d81d6, 0x004e6924},
        {0xff52d945, 0xf7571f8d, 0xce8fb81d, 0xf73aa5b5, 0xb5671ff4, 0xcfc8eb48, 0x991a3450, 0x6f7ad07b},
        {0x09d2daa4, 0xf57ffea0, 0xfecf34ea, 0x972eebec, 0x05704ac0, 0x3db91ca5, 0xb129df2c, 0x42e76657},
        {0x6c423be5, 0x9d909ebe, 0xdefa0ebb, 0x29068efd, 0x1eb45710, 0x39794f00, 0x5279960e, 0x39b26554},
        {0x80971d0d, 0xebab1ed7, 0x31502db1, 0xd8f58aeb, 0xbcfcb499, 0xae09fb03, 0xf9a32492, 0x3ebe4e3e},
        {0x75723d57, 0x0b24dfb5, 0x09962581, 0x3f2e8508, 0xfd568c14, 0xc4787367, 0xefc02a37, 0x5bb5d7db},
        {0x357acc6a, 0x3ff770ec, 0x5e4c2b4c, 0x9d3dbf02, 0xed78bd49, 0xdfa1a7e9, 0xf34d6761, 0x1d1faa85},
        {0xbfaff1d0, 0x75cada99, 0xd78e3f1c, 0x4ad5aa3f, 0x1e7b5f2a, 0xa3e452ac, 0x41e1bf7d, 0x23331afa},
    },
    {
        {0xb5207076, 0x26487153, 0x2b628d66, 0x4bab99c8, 0x9c71ccb9, 0xf987e9c6, 0x46f735b5, 0x15e73b31},
        {0xcfa1c55c, 0xe57eab19, 0xeedbbbf7, 0xc5a31cd4, 0x2363b302, 0xdbafb376, 0x1823a42b, 0x22785db0},
        {0xb3e17f90, 0x1bc045cb, 0x3c54eb8a, 0x5d88f78a, 0xbd55d3b7, 0x1a43fd94, 0xca799d59, 0x40673954},
        {0x71c7e8bf, 0x421996d0, 0xb01f010d, 0x64caeb1b, 0x2b6b2134, 0xd2235f95, 0xeed06729, 0x45d3328c},
        {0x65cee6d1, 0x0bf901ed, 0x699bcc00, 0x98b79679, 0x4496a0fd, 0xee5e7adc, 0x635ab84b, 0x62e3db52},
        {0x259ffc37, 0x402eea99, 0x6c8ec9b7, 0x61ab62eb, 0x97ce0587, 0x836c7beb, 0xf28cccea, 0x042ca6c4},
        {0xf6c8238e, 0x2ed7d8a8, 0xef11cf0b, 0xd1843b80, 0x68ddf412, 0x6054274e, 0x2f509bb9, 0x379857e1},
        {0x853b4619, 0x718cdd74, 0x6a9b8e90, 0x53216ec1, 0x3d61f7d3, 0x27cfb500, 0xaffe24e6, 0x18729c53},
    },
};
// What turns a factor w·2^256 into its parts, by one Montgomery product each.
// Two parts: w·2^160, w·2^288. Four parts: w·2^(64k+96).
PS_TABLE u32 FR_SPLIT[6][8] = {
    {0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000001, 0x00000000, 0x00000000}, // 2^160
    {0xcaaf6b13, 0x355094ea, 0x69a568ef, 0xf6b10cb3, 0x40cc3869, 0xe2c926a6, 0xed269aad, 0x736a6d3b}, // 2^288
    {0x00000000, 0x00000000, 0x00000000, 0x00000001, 0x00000000, 0x00000000, 0x00000000, 0x00000000}, // 2^96
    {0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000001, 0x00000000, 0x00000000}, // 2^160
    {0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000001}, // 2^224
    {0xcaaf6b13, 0x355094ea, 0x69a568ef, 0xf6b10cb3, 0x40cc3869, 0xe2c926a6, 0xed269aad, 0x736a6d3b}, // 2^288
};

struct FrPrepared2 {
    Fr part[2];
};
struct FrPrepared4 {
    Fr part[4];
};

// Part k of a factor in Montgomery form, canonical: table row `split` is FR_SPLIT's.
PS_FN Fr fr_part(const Fr& w, u32 split) {
    Fr s;
    PS_UNROLL
    for (int i = 0; i < 8; i++) s.l[i] = FR_SPLIT[split][i];
    return fr_canonical(fr_mul(w, s));
}

// Adds a·b0 at column 0 and a·b1 at column 1 to full columns e[0 .. 10), o[0 .. 8); what leaves columns 8, 9 and 10
// is counted in c8, c9 and c10.
PS_FN void fr_add_rows_full(u32* e, u32* o, const u32* a, u32 b0, u32 b1, u32& c8, u32& c9, u32& c10) {
    mad<4>(e, a, b0, c8);
    mad<4>(o, a + 1, b0, c9);
    mad<4>(o, a, b1, c9);
    mad<4>(e + 2, a + 1, b1, c10);
}
// The same into empty columns.
PS_FN void fr_first_rows(u32* e, u32* o, const u32* a, u32 b0, u32 b1, u32& c9) {
    PS_UNROLL
    for (int j = 0; j < 8; j += 2) {
        mul_wide(e[j], e[j + 1], a[j], b0);
        mul_wide(o[j], o[j + 1], a[j + 1], b0);
    }
    e[8] = e[9] = 0;
    mad<4>(o, a, b1, c9);
    mad_fits<4>(e + 2, a + 1, b1);
}
// Adds counts to columns 8 and 9, the carry to column 10.
PS_FN u32 fr_settle(u32* e, u32 c8, u32 c9, u32 c10) {
    u64 s = u64(e[8]) + c8;
    e[8] = u32(s);
    s = (s >> 32) + e[9] + c9;
    e[9] = u32(s);
    return c10 + u32(s >> 32);
}

// One limb of reduction and the end of a product: (e + 2^32·o)/2^32 modulo r from columns e[0 .. 9), o[0 .. 6).
PS_FN Fr fr_reduce_one(u32* e, u32* o) {
    u32 high[6];
    PS_UNROLL
    for (int i = 0; i < 6; i++) high[i] = FR_R[i + 2];
    // q = -x0 mod 2^32; adding q·(1 - 2^32 + 2^64·…) cancels x0, leaves its carry in column 1, and -q in column 1
    // with the borrow above: together x0 and, unless x0 = 0, 2^32 - 1 - x0 ones higher up.
    const u32 x0 = e[0], q = 0u - x0, above = x0 != 0 ? ~x0 : 0u;
    mad<3>(e + 2, high, q, e[8]);
    o[6] = o[7] = 0;
    u32 top = 0;
    // A second limb of ones passes the carry of x0 + q on.
    mad_after_cancel(o, x0, 0xffffffffu, q, 0, x0, above, high + 1, q, top);
    PS_CHECK(top == 0);
    u32 shifted[8];
    PS_UNROLL
    for (int i = 0; i < 8; i++) shifted[i] = e[i + 1];
    Fr z;
    const u32 carry = add_limbs<8>(z.l, shifted, o);
    (void)carry;
    PS_CHECK(carry == 0);
    return z;
}

// x·w, 94 wide multiplications.
PS_FN Fr fr_mul_prepared(const Fr& x, const FrPrepared2& w) {
    u32 e[10], o[8];
    u32 c8 = 0, c9 = 0, c10 = 0;
    fr_first_rows(e, o, w.part[0].l, x.l[0], x.l[1], c9);
    fr_add_rows_full(e, o, w.part[1].l, x.l[4], x.l[5], c8, c9, c10);
    fr_reduce_two(e, o, fr_settle(e, c8, c9, c10));
    o[6] = o[7] = 0;
    e[9] = 0;
    c8 = c9 = c10 = 0;
    fr_add_rows_full(e, o, w.part[0].l, x.l[2], x.l[3], c8, c9, c10);
    fr_add_rows_full(e, o, w.part[1].l, x.l[6], x.l[7], c8, c9, c10);
    fr_reduce_two(e, o, fr_settle(e, c8, c9, c10));
    const Fr z = fr_reduce_one(e, o);
    PS_FR_BELOW(z, FR_2R);
    return z;
}

// x·w, 82 wide multiplications.
PS_FN Fr fr_mul_prepared(const Fr& x, const FrPrepared4& w) {
    u32 e[10], o[8];
    u32 c8 = 0, c9 = 0, c10 = 0;
    fr_first_rows(e, o, w.part[0].l, x.l[0], x.l[1], c9);
    PS_UNROLL
    for (int k = 1; k < 4; k++) fr_add_rows_full(e, o, w.part[k].l, x.l[2 * k], x.l[2 * k + 1], c8, c9, c10);
    fr_reduce_two(e, o, fr_settle(e, c8, c9, c10));
    const Fr z = fr_reduce_one(e, o);
    PS_FR_BELOW(z, FR_2R);
    return z;
}

// x·FR_CORE[C], 76 wide multiplications.
template <int C> PS_FN Fr fr_mul_core(const Fr& x) {
    u32 e[10], o[8];
    PS_UNROLL
    for (int j = 0; j < 8; j += 2) {
        mul_wide(e[j], e[j + 1], FR_CORE[C][0][j], x.l[0]);
        mul_wide(o[j], o[j + 1], FR_CORE[C][0][j + 1], x.l[0]);
    }
    e[8] = e[9] = 0;
    PS_UNROLL
    for (int k = 1; k < 8; k++) {
        mad<4>(e, FR_CORE[C][k], x.l[k], e[8]);
        mad<4>(o, FR_CORE[C][k] + 1, x.l[k], e[9]);
    }
    fr_reduce_two(e, o, 0);
    PS_CHECK(e[8] == 0);
    o[6] = o[7] = 0;
    Fr z;
    merge_columns<8>(z.l, e, o);
    PS_FR_BELOW(z, FR_2R);
    return z;
}

// (a, b) ← (a + b, a - b). b must be at most 2r. With an exact sum it is at most 2r when a is, so it may be
// subtracted later; a loose one may not.
PS_FN void fr_butterfly(Fr& a, Fr& b) {
    const Fr s = fr_add(a, b);
    b = fr_sub(a, b);
    a = s;
}
PS_FN void fr_butterfly_loose(Fr& a, Fr& b) {
    const Fr s = fr_add_loose(a, b);
    b = fr_sub(a, b);
    a = s;
}
PS_FN void fr_swap(Fr& a, Fr& b) {
    const Fr t = a;
    a = b;
    b = t;
}

// Transforms of 2, 4 and 8 values in place: natural order in, bit-reversed order out, by the powers of w, of
// 1/w with INVERSE, and of -w (or -1/w) with `flip`: 5^((r-1)/8) = -7^((r-1)/8), and that is all in which the
// domains of the two generators differ here.
// The first value may be loose, the others must be at most 2r. Output 0 is at most 2r when the first value is: it
// is the only one that the next step uses without a product.
PS_FN void fr_dft2(Fr& x0, Fr& x1) { fr_butterfly(x0, x1); }
template <bool INVERSE> PS_FN void fr_dft4(Fr& x0, Fr& x1, Fr& x2, Fr& x3) {
    fr_butterfly(x0, x2);
    fr_butterfly(x1, x3);
    x3 = fr_mul_core<0>(x3);
    fr_butterfly(x0, x1);
    fr_butterfly_loose(x2, x3);
    if (INVERSE) fr_swap(x2, x3);
}
template <bool INVERSE> PS_FN void fr_dft8(Fr& x0, Fr& x1, Fr& x2, Fr& x3, Fr& x4, Fr& x5, Fr& x6, Fr& x7, bool flip) {
    fr_butterfly(x0, x4);
    fr_butterfly(x1, x5);
    fr_butterfly(x2, x6);
    fr_butterfly(x3, x7);
    fr_dft4<INVERSE>(x0, x1, x2, x3);
    // The odd outputs, from the differences d0 … d3: d0 ± w²·d2 ± (w·d1 + w³·d3), and w·d1 + w³·d3 is
    // (d1 + d3)(w + w³)/2 + (d1 - d3)(w - w³)/2.
    x6 = fr_mul_core<0>(x6);
    fr_butterfly_loose(x4, x6);
    fr_butterfly_loose(x5, x7);
    x5 = fr_mul_core<1>(x5);
    x7 = fr_mul_core<2>(x7);
    fr_butterfly(x5, x7);
    fr_butterfly_loose(x4, x5);
    fr_butterfly_loose(x6, x7);
    if (INVERSE) {
        fr_swap(x4, x7);
        fr_swap(x5, x6);
    }
    if (flip) {
        fr_swap(x4, x5);
        fr_swap(x6, x7);
    }
}
