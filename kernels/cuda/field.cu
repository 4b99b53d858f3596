// Family `field`: every routine of Fr, Fq and Fq2 over arrays, one element a thread. The kernels let a device
// be compared with the host build, and the host build with blstrs; no prover calls them.
#include "fq2.cuh"
#include "fr.cuh"

// Numbers shared with src/check.rs.
enum FrOp : u32 {
    FR_MUL = 0,
    FR_ADD = 1,
    FR_ADD_LOOSE = 2,
    FR_SUB = 3,
    FR_CANONICAL = 4,
    FR_TO_INTEGER = 5,
    FR_FROM_INTEGER = 6,
};
enum FqOp : u32 {
    FQ_MUL = 0,
    FQ_SQR = 1,
    FQ_ADD = 2,
    FQ_SUB = 3,
    FQ_NEG = 4,
    FQ_MUL_ADD = 5,
    FQ_CANONICAL = 6,
    FQ_INVERSE = 7,
    FQ_INVERSE_BY_POWER = 8,
    FQ_IS_ZERO = 9,
};

// out[i] = op(a[i], b[i]), i < n.
PS_FN void fr_check_body(const Block& blk, u32 op, Fr* out, const Fr* a, const Fr* b, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >= n) return;
        const Fr x = a[i], y = b[i];
        Fr z = fr_zero();
        if (op == FR_MUL) z = fr_mul(x, y);
        if (op == FR_ADD) z = fr_add(x, y);
        if (op == FR_ADD_LOOSE) z = fr_add_loose(x, y);
        if (op == FR_SUB) z = fr_sub(x, y);
        if (op == FR_CANONICAL) z = fr_canonical(x);
        if (op == FR_TO_INTEGER) z = fr_to_integer(x);
        if (op == FR_FROM_INTEGER) z = fr_from_integer(x);
        out[i] = z;
    });
}

template <class F> PS_FN F field_op(u32 op, const F& x, const F& y, const F& z, const F& w) {
    if (op == FQ_MUL) return mul(x, y);
    if (op == FQ_SQR) return sqr(x);
    if (op == FQ_ADD) return add(x, y);
    if (op == FQ_SUB) return sub(x, y);
    if (op == FQ_NEG) return neg(x);
    if (op == FQ_MUL_ADD) return mul_add(x, y, z, w);
    if (op == FQ_CANONICAL) return canonical(x);
    if (op == FQ_INVERSE) return inverse(x);
    F flag;
    set_zero(flag);
    if (op == FQ_IS_ZERO && is_zero(x)) set_one(flag);
    return flag;
}

// out[i] = op(a[i], b[i], c[i], d[i]), i < n.
PS_FN void fq_check_body(const Block& blk, u32 op, Fq* out, const Fq* a, const Fq* b, const Fq* c, const Fq* d, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >= n) return;
        out[i] = op == FQ_INVERSE_BY_POWER ? inverse_by_power(a[i]) : field_op<Fq>(op, a[i], b[i], c[i], d[i]);
    });
}
PS_FN void fq2_check_body(const Block& blk, u32 op, Fq2* out, const Fq2* a, const Fq2* b, const Fq2* c, const Fq2* d,
                          u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i < n) out[i] = field_op<Fq2>(op, a[i], b[i], c[i], d[i]);
    });
}

// A chain of dependent operations, x ← x·w + x - y a step: what a single operation cannot show, a bound that
// creeps up, it does.
PS_FN void fr_chain_body(const Block& blk, Fr* x, const Fr* w, const Fr* y, u32 steps, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >= n) return;
        Fr v = x[i];
        const Fr f = w[i], s = y[i];
        PS_ROLLED
        for (u32 k = 0; k < steps; k++) v = fr_sub(fr_add(fr_mul(v, f), v), s);
        x[i] = v;
    });
}
PS_FN void fq_chain_body(const Block& blk, Fq* x, const Fq* w, const Fq* y, u32 steps, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >= n) return;
        Fq v = x[i];
        const Fq f = w[i], s = y[i];
        PS_ROLLED
        for (u32 k = 0; k < steps; k++) v = sub(add(mul(v, f), sqr(v)), s);
        x[i] = v;
    });
}

PS_KERNEL(fr_check, 128, 1, (u32 op, Fr* out, const Fr* a, const Fr* b, u64 n), (blk, op, out, a, b, n))
PS_KERNEL(fq_check, 128, 1, (u32 op, Fq* out, const Fq* a, const Fq* b, const Fq* c, const Fq* d, u64 n),
          (blk, op, out, a, b, c, d, n))
PS_KERNEL(fq2_check, 128, 1, (u32 op, Fq2* out, const Fq2* a, const Fq2* b, const Fq2* c, const Fq2* d, u64 n),
          (blk, op, out, a, b, c, d, n))
PS_KERNEL(fr_chain, 128, 1, (Fr * x, const Fr* w, const Fr* y, u32 steps, u64 n), (blk, x, w, y, steps, n))
PS_KERNEL(fq_chain, 128, 1, (Fq * x, const Fq* w, const Fq* y, u32 steps, u64 n), (blk, x, w, y, steps, n))

PS_FAMILY(field)
