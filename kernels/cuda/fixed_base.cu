// Family `fixed_base`: many multiples of one point, in G1 and in G2.
//
// A table holds the point's multiples window by window: d·2^(b·j)·P at position (j << (b - 1)) + d - 1 for window j
// of b bits and d = 1 … 2^(b-1), affine. A multiple is 256/b mixed additions, its digits signed. Sums leave in XYZZ
// coordinates, and a second kernel makes them affine.
#include "curve.cuh"
#include "fr.cuh"
#include "simt.cuh"

// Σ digit_j·2^(b·j)·P for the scalar s in Montgomery form, b one of 4, 8, 16.
//
// With h = Σ 2^(b·j + b - 1), field j of s + h minus 2^(b-1) is a digit of s in [-2^(b-1), 2^(b-1)): the windows need no
// carry from each other. s < 0.453·2^256 and h < 0.534·2^256.
template <class F> PS_FN void multiple(Xyzz<F>& acc, const Affine<F>* table, const Fr& s, u32 bits) {
    const u32 middle = 1u << (bits - 1);
    u32 h = 0, half[8], rest[8];
    for (u32 bit = bits; bit <= 32; bit += bits) h |= 1u << (bit - 1);
    PS_UNROLL
    for (int k = 0; k < 8; k++) half[k] = h;
    const Fr integer = fr_to_integer(s);
    const u32 carry = add_limbs<8>(rest, integer.l, half);
    (void)carry;
    PS_CHECK(carry == 0);
    acc = xyzz_infinity<F>();
    PS_ROLLED
    for (u32 window = 256 / bits; window > 0; window--) {
        const u32 field = rest[0] & (2 * middle - 1);
        PS_UNROLL
        for (int k = 0; k < 7; k++) rest[k] = rest[k] >> bits | rest[k + 1] << (32 - bits);
        rest[7] >>= bits;
        if (field != middle) {
            const bool negative = field < middle;
            Affine<F> p = table[(negative ? middle - field : field - middle) - 1];
            if (negative) p = negate(p);
            add_mixed(acc, p);
        }
        table += middle;
    }
}

// sums[i] = scalars[i]·P; i < n.
PS_FN void g1_multiples_body(const Block& blk, Xyzz<Fq>* sums, const Affine<Fq>* table, const Fr* scalars, u32 bits,
                             u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >= n) return;
        Xyzz<Fq> acc;
        multiple<Fq>(acc, table, scalars[i], bits);
        sums[i] = acc;
    });
}
// The accumulator stays in device memory: two points of G2 do not fit the registers.
PS_FN void g2_multiples_body(const Block& blk, Xyzz<Fq2>* sums, const Affine<Fq2>* table, const Fr* scalars, u32 bits,
                             u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i < n) multiple<Fq2>(sums[i], table, scalars[i], bits);
    });
}

// out[i] = in[i] in affine coordinates; i < n. A thread takes every T-th point of T threads in all, and one inversion
// serves all of its points (Montgomery, "Speeding the Pollard and elliptic curve methods of factorization", 1987,
// section 10.3.1): until then out[i] holds the product of the denominators before, and the point's own, ZZ·ZZZ. Points
// at infinity have none.
template <class F> PS_FN void normalise(const Block& blk, Affine<F>* out, const Xyzz<F>* in, u64 n) {
    blk.each([&](u32 t) {
        const u64 threads = u64(blk.grid()) * blk.dim(), first = u64(blk.index()) * blk.dim() + t;
        if (first >= n) return;
        F product;
        set_one(product);
        u64 i = first;
        PS_ROLLED
        for (; i < n; i += threads) {
            out[i].x = product;
            if (is_infinity(in[i])) continue;
            out[i].y = mul(in[i].zz, in[i].zzz);
            product = mul(product, out[i].y);
        }
        F inverted = inverse(product);
        PS_ROLLED
        do {
            i -= threads;
            if (is_infinity(in[i])) {
                out[i] = affine_infinity<F>();
                continue;
            }
            const F own = mul(inverted, out[i].x);
            inverted = mul(inverted, out[i].y);
            // 1/(ZZ·ZZZ) gives both inverses.
            out[i].x = canonical(mul(in[i].x, mul(own, in[i].zzz)));
            out[i].y = canonical(mul(in[i].y, mul(own, in[i].zz)));
        } while (i != first);
    });
}
PS_FN void g1_normalise_body(const Block& blk, Affine<FqOutlined>* out, const Xyzz<FqOutlined>* in, u64 n) {
    normalise<FqOutlined>(blk, out, in, n);
}
PS_FN void g2_normalise_body(const Block& blk, Affine<Fq2>* out, const Xyzz<Fq2>* in, u64 n) {
    normalise<Fq2>(blk, out, in, n);
}

PS_KERNEL(g1_multiples, 128, 2, (Xyzz<Fq> * sums, const Affine<Fq>* table, const Fr* scalars, u32 bits, u64 n),
          (blk, sums, table, scalars, bits, n))
PS_KERNEL(g2_multiples, 128, 2, (Xyzz<Fq2> * sums, const Affine<Fq2>* table, const Fr* scalars, u32 bits, u64 n),
          (blk, sums, table, scalars, bits, n))
PS_KERNEL(g1_normalise, 128, 2, (Affine<FqOutlined> * out, const Xyzz<FqOutlined>* in, u64 n), (blk, out, in, n))
PS_KERNEL(g2_normalise, 128, 2, (Affine<Fq2> * out, const Xyzz<Fq2>* in, u64 n), (blk, out, in, n))

PS_FAMILY(fixed_base)
