// Family `curve`: every routine of G1 and G2 over arrays, one sum a thread. Like `field`, for checking devices
// and the host build.
#include "curve.cuh"

// Numbers shared with src/check.rs.
enum CurveOp : u32 { CURVE_MIXED = 0, CURVE_FULL = 1, CURVE_DOUBLE = 2, CURVE_AFFINE = 3, CURVE_NEGATE = 4 };

// z·p: the same point with another representative, so that sums meet coordinates other than 1.
template <class F> PS_FN Xyzz<F> rescaled(const Affine<F>& p, const F& z) {
    Xyzz<F> q = to_xyzz(p);
    if (is_infinity(q)) return q;
    const F zz = sqr(z), zzz = mul(zz, z);
    return {mul(q.x, zz), mul(q.y, zzz), zz, zzz};
}

// out[i] = a[i] + b[i] (or 2·a[i], or -a[i]) by the formulas of `op`, with z[i] ≠ 0 to blind the operands.
template <class F>
PS_FN void curve_check(const Block& blk, u32 op, Affine<F>* out, const Affine<F>* a, const Affine<F>* b, const F* z,
                       u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >= n) return;
        const Affine<F> p = a[i], q = b[i];
        if (op == CURVE_AFFINE) {
            const Sum kind = kind_of_sum(p, q);
            out[i] = add_affine(p, q, kind, inverse(slope_denominator(p, q, kind)));
            return;
        }
        Xyzz<F> s = rescaled(p, z[i]);
        if (op == CURVE_MIXED) add_mixed(s, q);
        if (op == CURVE_FULL) add_full(s, rescaled(q, add(z[i], z[i])));
        if (op == CURVE_DOUBLE) double_in_place(s);
        if (op == CURVE_NEGATE) s = negate(s);
        out[i] = to_affine(s);
    });
}

PS_FN void g1_check_body(const Block& blk, u32 op, Affine<Fq>* out, const Affine<Fq>* a, const Affine<Fq>* b,
                         const Fq* z, u64 n) {
    curve_check<FqOutlined>(blk, op, reinterpret_cast<Affine<FqOutlined>*>(out),
                            reinterpret_cast<const Affine<FqOutlined>*>(a),
                            reinterpret_cast<const Affine<FqOutlined>*>(b), reinterpret_cast<const FqOutlined*>(z), n);
}
PS_FN void g2_check_body(const Block& blk, u32 op, Affine<Fq2>* out, const Affine<Fq2>* a, const Affine<Fq2>* b,
                         const Fq2* z, u64 n) {
    curve_check<Fq2>(blk, op, out, a, b, z, n);
}

// A long dependent sum: out[i] = start[i] + steps·b[i] by mixed additions.
PS_FN void g1_chain_body(const Block& blk, Affine<Fq>* out, const Affine<Fq>* start, const Affine<Fq>* b, u32 steps,
                         u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >= n) return;
        Xyzz<Fq> s = to_xyzz(start[i]);
        const Affine<Fq> q = b[i];
        PS_ROLLED
        for (u32 k = 0; k < steps; k++) add_mixed(s, q);
        out[i] = over<Fq>(to_affine(over<FqOutlined>(s)));
    });
}

PS_KERNEL(g1_check, 128, 1, (u32 op, Affine<Fq>* out, const Affine<Fq>* a, const Affine<Fq>* b, const Fq* z, u64 n),
          (blk, op, out, a, b, z, n))
PS_KERNEL(g2_check, 128, 1, (u32 op, Affine<Fq2>* out, const Affine<Fq2>* a, const Affine<Fq2>* b, const Fq2* z, u64 n),
          (blk, op, out, a, b, z, n))
PS_KERNEL(g1_chain, 128, 1, (Affine<Fq> * out, const Affine<Fq>* start, const Affine<Fq>* b, u32 steps, u64 n),
          (blk, out, start, b, steps, n))

PS_FAMILY(curve)
