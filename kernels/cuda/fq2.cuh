// Fq2 = Fq[u]/(u² + 1): c0 + c1·u, both coordinates as in fq.cuh (below 2p in and out). The names are Fq's.
// Products are calls with operands and results in registers: inlined, a point addition would be 20,000 instructions.
#pragma once
#include "fq_inverse.cuh"

struct Fq2 {
    Fq c0, c1;
};

PS_FN void set_zero(Fq2& z) {
    set_zero(z.c0);
    set_zero(z.c1);
}
PS_FN void set_one(Fq2& z) {
    set_one(z.c0);
    set_zero(z.c1);
}
PS_FN bool same(const Fq2& a, const Fq2& b) { return same(a.c0, b.c0) && same(a.c1, b.c1); }
PS_FN bool is_null(const Fq2& a) { return is_null(a.c0) && is_null(a.c1); }
PS_FN Fq2 select(bool c, const Fq2& a, const Fq2& b) { return {select(c, a.c0, b.c0), select(c, a.c1, b.c1)}; }
PS_FN Fq2 canonical(const Fq2& a) { return {canonical(a.c0), canonical(a.c1)}; }
PS_FN bool is_zero(const Fq2& a) { return is_zero(a.c0) && is_zero(a.c1); }
PS_FN Fq2 add(const Fq2& a, const Fq2& b) { return {add(a.c0, b.c0), add(a.c1, b.c1)}; }
PS_FN Fq2 add_unreduced(const Fq2& a, const Fq2& b) { return {add_unreduced(a.c0, b.c0), add_unreduced(a.c1, b.c1)}; }
PS_FN Fq2 twice(const Fq2& a) { return add(a, a); }
PS_FN Fq2 sub(const Fq2& a, const Fq2& b) { return {sub(a.c0, b.c0), sub(a.c1, b.c1)}; }
PS_FN Fq2 neg(const Fq2& a) { return {neg(a.c0), neg(a.c1)}; }
// p - c0 + (p - c1)·u for canonical coordinates; a coordinate 0 becomes p.
PS_FN Fq2 neg_canonical(const Fq2& a) { return {neg_canonical(a.c0), neg_canonical(a.c1)}; }

// a0·b0 - a1·b1 + (a0·b1 + a1·b0)·u as two sums of two products: 864 wide multiplications.
PS_CALL Fq2 mul(Fq2 a, Fq2 b) { return {mul_add(a.c0, b.c0, neg(a.c1), b.c1), mul_add(a.c0, b.c1, a.c1, b.c0)}; }
// (a0 + a1)·(a0 - a1) + 2·a0·a1·u: 576 wide multiplications.
PS_CALL Fq2 sqr(Fq2 a) {
    return {mul(add_unreduced(a.c0, a.c1), sub(a.c0, a.c1)), mul(add_unreduced(a.c0, a.c0), a.c1)};
}
// a·b + c·d with one reduction a coordinate: 1440 wide multiplications. Four factors below 2p add up to 8p, and
// the sum of four products is below 2.63 p.
PS_CALL Fq2 mul_add(Fq2 a, Fq2 b, Fq2 c, Fq2 d) {
    const Fq x0[4] = {a.c0, neg(a.c1), c.c0, neg(c.c1)}, y0[4] = {b.c0, b.c1, d.c0, d.c1};
    const Fq x1[4] = {a.c0, a.c1, c.c0, c.c1}, y1[4] = {b.c1, b.c0, d.c1, d.c0};
    const Fq2 z = {subtract_once(dot<4>(x0, y0), FQ_2P), subtract_once(dot<4>(x1, y1), FQ_2P)};
    PS_FQ_BELOW(z.c0, FQ_2P);
    PS_FQ_BELOW(z.c1, FQ_2P);
    return z;
}
// 1/a = (a0 - a1·u)/(a0² + a1²), 0 for 0.
PS_CALL Fq2 inverse(Fq2 a) {
    const Fq n = inverse(mul_add(a.c0, a.c0, a.c1, a.c1));
    return {mul(a.c0, n), neg(mul(a.c1, n))};
}
