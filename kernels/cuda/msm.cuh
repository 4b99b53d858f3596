// Bucket sums and their reduction, for G1 and G2.
//
// Buckets are summed in levels. A level cuts every bucket's list into slices of at most `size` terms, and one thread
// sums one slice in XYZZ coordinates, whatever bucket it belongs to: skewed scalars cost nothing extra. A bucket of
// one slice is added to its final sum; of the others, the slices' sums are the list of the next level. Terms of
// level 0 are entries (index and sign) over the bases; of later levels, partial sums.
#pragma once
#include "curve.cuh"
#include "simt.cuh"

// A point of G2 is 96 registers: two and what an addition needs in between do not fit 255. Its accumulators stay in
// device memory and coordinates are loaded as they are used; the stack that spilling would take is reserved for every
// thread that a device can hold.
template <class F> constexpr bool IN_MEMORY = sizeof(F) > sizeof(Fq);

// The bucket of slice j: the last b < n with starts[b] ≤ j.
PS_FN u32 bucket_of_slice(const u32* starts, u32 n, u32 j) {
    u32 low = 0, high = n;
    while (high - low > 1) {
        const u32 middle = low + (high - low) / 2;
        if (starts[middle] <= j)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// A slice of a level: its bucket, its terms, and where its sum goes.
struct Slice {
    u32 bucket, first, end;
    bool last;
};
// `counts` says how many terms each bucket has, `places` where they begin, or end if `ends`; `starts` is the number
// of its first slice, with the total at starts[n]. False past the last slice.
PS_FN bool slice_at(Slice& s, const u32* places, bool ends, const u32* counts, const u32* starts, u32 n, u32 size,
                    u64 j) {
    if (j >= starts[n]) return false;
    s.bucket = bucket_of_slice(starts, n, u32(j));
    const u32 k = u32(j) - starts[s.bucket], count = counts[s.bucket];
    const u32 begin = places[s.bucket] - (ends ? count : 0), left = count - k * size;
    s.first = begin + k * size;
    s.end = s.first + (left < size ? left : size);
    s.last = count <= size;
    return true;
}
template <class F>
PS_FN void finish_slice(const Slice& s, const Xyzz<F>& acc, u64 j, Xyzz<F>* buckets, Xyzz<F>* partial) {
    using G = Outlined<F>;
    if (s.last)
        add_full(*reinterpret_cast<Xyzz<G>*>(buckets + s.bucket), over<G>(acc));
    else if (&acc != partial + j)
        partial[j] = acc;
}

// Level 0: slices of entries.
template <class F>
PS_FN void sum_entries(const Block& blk, Xyzz<F>* buckets, Xyzz<F>* partial, const Affine<F>* bases, const u32* entries,
                       const u32* ends, const u32* counts, const u32* starts, u32 n, u32 size) {
    blk.each([&](u32 t) {
        const u64 j = u64(blk.index()) * blk.dim() + t;
        Slice s;
        if (!slice_at(s, ends, true, counts, starts, n, size, j)) return;
        const auto add_all = [&](Xyzz<F>& acc) {
            acc = xyzz_infinity<F>();
            PS_ROLLED
            for (u32 i = s.first; i < s.end; i++) {
                const u32 entry = entries[i];
                Affine<F> p = bases[entry & 0x7fffffffu];
                if (entry >> 31) p = negate(p);
                add_mixed(acc, p);
            }
        };
        if constexpr (IN_MEMORY<F>) {
            add_all(partial[j]);
            finish_slice(s, partial[j], j, buckets, partial);
        } else {
            Xyzz<F> acc;
            add_all(acc);
            finish_slice(s, acc, j, buckets, partial);
        }
    });
}
// Later levels: slices of partial sums.
template <class F>
PS_FN void sum_partials(const Block& blk, Xyzz<F>* buckets, Xyzz<F>* partial, const Xyzz<F>* terms, const u32* offsets,
                        const u32* counts, const u32* starts, u32 n, u32 size) {
    blk.each([&](u32 t) {
        const u64 j = u64(blk.index()) * blk.dim() + t;
        Slice s;
        if (!slice_at(s, offsets, false, counts, starts, n, size, j)) return;
        const auto add_all = [&](Xyzz<F>& acc) {
            acc = terms[s.first];
            PS_ROLLED
            for (u32 i = s.first + 1; i < s.end; i++) add_full(acc, terms[i]);
        };
        if constexpr (IN_MEMORY<F>) {
            add_all(partial[j]);
            finish_slice(s, partial[j], j, buckets, partial);
        } else {
            Xyzz<F> acc;
            add_all(acc);
            finish_slice(s, acc, j, buckets, partial);
        }
    });
}

// Σ (b + 1)·buckets[b] over `each` consecutive buckets a thread, `chunks` threads a window of chunks·each buckets,
// windows one after another: out[window·chunks + chunk]; out has as much room again for running sums. From the top,
// Σ (k + 1)·S_k takes two additions a bucket; the chunk's first index times its plain sum is added by doubling.
template <class F>
PS_FN void reduce_chunks(const Block& blk, Xyzz<F>* out, const Xyzz<F>* buckets, u32 each, u32 chunks, u32 windows) {
    blk.each([&](u32 t) {
        const u64 g = u64(blk.index()) * blk.dim() + t, threads = u64(chunks) * windows;
        if (g >= threads) return;
        const Xyzz<F>* b = buckets + g * each;
        Xyzz<F>& total = out[g];
        Xyzz<F>& running = out[threads + g];
        running = b[each - 1];
        total = running;
        PS_ROLLED
        for (u32 k = each - 1; k > 0; k--) {
            add_full(running, b[k - 1]);
            add_full(total, running);
        }
        const u32 first = u32(g % chunks) * each;
        Xyzz<F> shifted = xyzz_infinity<F>();
        u32 bits = 0;
        while (first >> bits != 0) bits++;
        PS_ROLLED
        for (u32 bit = bits; bit > 0; bit--) {
            double_in_place(shifted);
            if (first >> (bit - 1) & 1) add_full(shifted, running);
        }
        add_full(total, shifted);
    });
}

// out[row] = Σ in[row·n …  row·n + n), one block a row of a power of two of threads; `in` is used up. Sums stay in
// device memory, which a barrier orders within a block.
template <class F> PS_FN void fold_rows(const Block& blk, Xyzz<F>* out, Xyzz<F>* in, u32 n) {
    Xyzz<F>* row = in + u64(blk.index()) * n;
    blk.each([&](u32 t) {
        PS_ROLLED
        for (u64 i = u64(t) + blk.dim(); i < n; i += blk.dim()) add_full(row[t], row[i]);
    });
    PS_ROLLED
    for (u32 half = blk.dim() / 2; half > 0; half /= 2) {
        blk.sync();
        blk.each([&](u32 t) {
            if (t < half && t + half < n) add_full(row[t], row[t + half]);
        });
    }
    blk.each([&](u32 t) {
        if (t == 0) out[blk.index()] = row[0];
    });
}

// out[i] = in[i] in affine coordinates; i < n.
template <class F> PS_FN void points_to_affine(const Block& blk, Affine<F>* out, const Xyzz<F>* in, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i < n) out[i] = to_affine(in[i]);
    });
}

// x = X/Z², y = Y/Z³, Z = 0 for infinity: blst's points.
template <class F> struct Jacobian {
    F x, y, z;
};
// out[i] = in[i] in Jacobian coordinates, canonical; i < n. With Z = ZZ: X/ZZ = (X·ZZ)/Z², and Y/ZZZ = (Y·ZZZ)/Z³ since
// ZZZ² = ZZ³.
template <class F> PS_FN void points_to_jacobian(const Block& blk, Jacobian<F>* out, const Xyzz<F>* in, u64 n) {
    blk.each([&](u32 t) {
        const u64 i = u64(blk.index()) * blk.dim() + t;
        if (i >= n) return;
        out[i].x = canonical(mul(in[i].x, in[i].zz));
        out[i].y = canonical(mul(in[i].y, in[i].zzz));
        out[i].z = canonical(in[i].zz);
    });
}
