// Family `ntt`: passes of transforms over Fr, the tables they need, and pointwise steps. src/ntt.rs knows which
// launches make a transform.
//
// Budget of a pass at 128 threads: 32 KiB of shared memory (tile of 2^10), five blocks an SM, at most 96 registers.
#include "ntt_columns.cuh"

PS_FN void ntt_dif_body(const Block& blk, const NttPass& p) { pass_frequency<false, false>(blk, p); }
PS_FN void ntt_dif_inverse_body(const Block& blk, const NttPass& p) { pass_frequency<true, false>(blk, p); }
PS_FN void ntt_dif_inverse_quotient_body(const Block& blk, const NttPass& p) { pass_frequency<true, true>(blk, p); }
PS_FN void ntt_dit_body(const Block& blk, const NttPass& p) { pass_time<false>(blk, p); }
PS_FN void ntt_dit_inverse_body(const Block& blk, const NttPass& p) { pass_time<true>(blk, p); }
PS_FN void ntt_middle_body(const Block& blk, const NttPass& p) { pass_middle(blk, p); }

// powers[j] = w^(2^j) and powers[32 + j] = f^(2^j), canonical, for j < 32: one thread.
PS_FN void ntt_powers_body(const Block& blk, Fr* powers, const Fr& w, const Fr& f) {
    blk.each([&](u32 t) {
        if (t >= 2) return;
        Fr x = t == 0 ? w : f;
        PS_ROLLED
        for (u32 j = 0; j < 32; j++) {
            store(powers, 32 * t + j, x);
            x = fr_canonical(fr_mul(x, x));
        }
    });
}

// The factors of a pass: i = row·2^sh + column < 2^(lr + sh), in one part or two. `digit` is the number of bits
// of all passes before it, so that its share of the shift is f^(2^digit).
PS_FN void ntt_factors_body(const Block& blk, Fr* out, const Fr* powers, const Fr& scale, u32 lg, u32 lr, u32 sh,
                            u32 digit, u32 parts) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >> (lr + sh) != 0) return;
        const u32 k = reverse_bits(u32(i >> sh), lr), column = u32(i & ((1ull << sh) - 1));
        Fr x = times_power(scale, powers + (lg - lr - sh), k * column);
        x = fr_canonical(times_power(x, powers + 32 + digit, k));
        if (parts == 1) {
            store(out, i, x);
        } else {
            store(out, 2 * i, fr_part(x, 0));
            store(out, 2 * i + 1, fr_part(x, 1));
        }
    });
}

PS_FN void store_prepared(FrPrepared4* out, u64 i, const Fr& x) {
    PS_ROLLED
    for (u32 k = 0; k < 4; k++) store(out[i].part, k, fr_part(x, 2 + k));
}
// out[i] = scale·base^(i·2^skip) in four parts, i < n, where squarings[j] = base^(2^j).
PS_FN void ntt_level_body(const Block& blk, FrPrepared4* out, const Fr* squarings, const Fr& scale, u32 skip, u32 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i < n) store_prepared(out, i, fr_canonical(times_power(scale, squarings + skip, u32(i))));
    });
}

// Inner twiddles of 2^lr-point transforms: `planes` as in inner_twiddle.
PS_FN void ntt_inner_body(const Block& blk, Quad* planes, const Fr* powers, u32 lg, u32 lr) {
    blk.each([&](u32 t) {
        const u64 index = u64(blk.index()) * blk.dim() + t;
        if (index >= (1u << lr) - 1) return;
        const u32 i = u32(index);
        // The windows from the top: the step over b bits, then three bits at a time.
        u32 below = lr, first = 0, width = lr % 3 != 0 ? lr % 3 : 3;
        while (i - first >= ((1u << width) - 1) << (below - width)) {
            first += ((1u << width) - 1) << (below - width);
            below -= width;
            width = 3;
        }
        const u32 lo = below - width, k = ((i - first) >> lo) + 1, l = (i - first) & ((1u << lo) - 1);
        // The root of order 2^lr is w^(2^(lg - lr)).
        Fr one = fr_one();
        const Fr x = fr_canonical(times_power(one, powers + (lg - lr) + (lr - below), k * l));
        PS_ROLLED
        for (u32 part = 0; part < 4; part++) {
            const Fr q = fr_part(x, 2 + part);
            planes[(2 * part << lr) + i] = {{q.l[0], q.l[1], q.l[2], q.l[3]}};
            planes[((2 * part + 1) << lr) + i] = {{q.l[4], q.l[5], q.l[6], q.l[7]}};
        }
    });
}

// x[i] ← x[i]·c·f^e, e = i or, with `reversed`, the bit reversal of i over lg bits; i < 2^lg. powers as above.
PS_FN void fr_scale_body(const Block& blk, Fr* x, const Fr* powers, const Fr& c, u32 lg, u32 reversed) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >> lg != 0) return;
        const Fr w = fr_canonical(times_power(c, powers + 32, reversed ? reverse_bits(u32(i), lg) : u32(i)));
        store(x, i, fr_canonical(fr_mul(load(x, i), w)));
    });
}
// out = (a·b - c)·s, canonical; i < n.
PS_FN void fr_quotient_body(const Block& blk, Fr* out, const Fr* a, const Fr* b, const Fr* c, const Fr& s, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i < n) store(out, i, fr_canonical(fr_mul(fr_sub(fr_mul(load(a, i), load(b, i)), load(c, i)), s)));
    });
}
// out = a·b, canonical; i < n.
PS_FN void fr_product_body(const Block& blk, Fr* out, const Fr* a, const Fr* b, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i < n) store(out, i, fr_canonical(fr_mul(load(a, i), load(b, i))));
    });
}
// a = (a - b)·s, canonical; i < n.
PS_FN void fr_sub_scale_body(const Block& blk, Fr* a, const Fr* b, const Fr& s, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i < n) store(a, i, fr_canonical(fr_mul(fr_sub(load(a, i), load(b, i)), s)));
    });
}
// out[i] = a[bitrev(i)] over lg bits, out of place.
PS_FN void fr_bit_reverse_body(const Block& blk, Fr* out, const Fr* a, u32 lg) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >> lg == 0) store(out, i, load(a, reverse_bits(u32(i), lg)));
    });
}
// The same in place: the thread of the smaller index of a pair swaps it.
PS_FN void fr_bit_reverse_in_place_body(const Block& blk, Fr* x, u32 lg) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >> lg != 0) return;
        const u32 j = reverse_bits(u32(i), lg);
        if (i >= j) return;
        const Fr a = load(x, i), b = load(x, j);
        store(x, i, b);
        store(x, j, a);
    });
}

PS_FN void ntt_first_columns_body(const Block& blk, const NttColumns& p) { columns<true>(blk, p); }
PS_FN void ntt_last_columns_body(const Block& blk, const NttColumns& p) { columns<false>(blk, p); }
PS_FN void ntt_combine_columns_body(const Block& blk, Fr* a, const Fr* slot, const Fr& scale, u32 log_m,
                                    u32 log_width, u64 first, u32 subtract) {
    combine_columns(blk, a, slot, scale, log_m, log_width, first, subtract);
}

// Transforms of 1, 2 and 4 values from their definition, by one thread, in place or not:
// y_k = c·Σ x_j·s_j·w^(jk), times f^k when `shift_output`, else s_j = f^j; order of x and y as said.
PS_FN void ntt_tiny_body(const Block& blk, Fr* out, const Fr* in, const Fr* powers, const Fr& scale, u32 lg,
                         u32 shift_output, u32 reversed_in, u32 reversed_out) {
    blk.each([&](u32 t) {
        if (t != 0) return;
        const u32 n = 1u << lg;
        Fr x[4], y[4];
        for (u32 j = 0; j < n; j++) {
            const Fr v = load(in, reversed_in ? reverse_bits(j, lg) : j);
            x[j] = times_power(v, powers + 32, shift_output ? 0 : j);
        }
        for (u32 k = 0; k < n; k++) {
            Fr s = fr_zero();
            for (u32 j = 0; j < n; j++) s = fr_add(s, fr_canonical(times_power(x[j], powers, j * k % n)));
            s = times_power(s, powers + 32, shift_output ? k : 0);
            y[k] = fr_canonical(fr_mul(s, scale));
        }
        for (u32 k = 0; k < n; k++) store(out, reversed_out ? reverse_bits(k, lg) : k, y[k]);
    });
}

PS_KERNEL(ntt_dif, 128, 5, (PS_PARAMETER NttPass p), (blk, p))
PS_KERNEL(ntt_dif_inverse, 128, 5, (PS_PARAMETER NttPass p), (blk, p))
PS_KERNEL(ntt_dif_inverse_quotient, 128, 5, (PS_PARAMETER NttPass p), (blk, p))
PS_KERNEL(ntt_dit, 128, 5, (PS_PARAMETER NttPass p), (blk, p))
PS_KERNEL(ntt_dit_inverse, 128, 5, (PS_PARAMETER NttPass p), (blk, p))
PS_KERNEL(ntt_middle, 128, 5, (PS_PARAMETER NttPass p), (blk, p))
PS_KERNEL(ntt_powers, 32, 1, (Fr * powers, PS_PARAMETER Fr w, PS_PARAMETER Fr f), (blk, powers, w, f))
PS_KERNEL(ntt_factors, 128, 1,
          (Fr * out, const Fr* powers, PS_PARAMETER Fr scale, u32 lg, u32 lr, u32 sh, u32 digit, u32 parts),
          (blk, out, powers, scale, lg, lr, sh, digit, parts))
PS_KERNEL(ntt_level, 128, 1, (FrPrepared4 * out, const Fr* squarings, PS_PARAMETER Fr scale, u32 skip, u32 n),
          (blk, out, squarings, scale, skip, n))
PS_KERNEL(ntt_inner, 128, 1, (Quad * planes, const Fr* powers, u32 lg, u32 lr), (blk, planes, powers, lg, lr))
PS_KERNEL(ntt_tiny, 32, 1,
          (Fr * out, const Fr* in, const Fr* powers, PS_PARAMETER Fr scale, u32 lg, u32 shift_output, u32 reversed_in,
           u32 reversed_out),
          (blk, out, in, powers, scale, lg, shift_output, reversed_in, reversed_out))
PS_KERNEL(ntt_first_columns, 128, 1, (PS_PARAMETER NttColumns p), (blk, p))
PS_KERNEL(ntt_last_columns, 128, 1, (PS_PARAMETER NttColumns p), (blk, p))
PS_KERNEL(ntt_combine_columns, 128, 1,
          (Fr * a, const Fr* slot, PS_PARAMETER Fr scale, u32 log_m, u32 log_width, u64 first, u32 subtract),
          (blk, a, slot, scale, log_m, log_width, first, subtract))
PS_KERNEL(fr_scale, 128, 1, (Fr * x, const Fr* powers, PS_PARAMETER Fr c, u32 lg, u32 reversed),
          (blk, x, powers, c, lg, reversed))
PS_KERNEL(fr_quotient, 128, 1, (Fr * out, const Fr* a, const Fr* b, const Fr* c, PS_PARAMETER Fr s, u64 n),
          (blk, out, a, b, c, s, n))
PS_KERNEL(fr_product, 128, 1, (Fr * out, const Fr* a, const Fr* b, u64 n), (blk, out, a, b, n))
PS_KERNEL(fr_sub_scale, 128, 1, (Fr * a, const Fr* b, PS_PARAMETER Fr s, u64 n), (blk, a, b, s, n))
PS_KERNEL(fr_bit_reverse, 128, 1, (Fr * out, const Fr* a, u32 lg), (blk, out, a, lg))
PS_KERNEL(fr_bit_reverse_in_place, 128, 1, (Fr * x, u32 lg), (blk, x, lg))

PS_FAMILY(ntt)
