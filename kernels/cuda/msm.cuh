// Bucket sums in slices, for G1 and G2: what small sums and little scratch are for (msm_tree.cuh is the other way).
//
// Every bucket's list is cut into slices of at most `size` entries, and one thread sums one slice in XYZZ coordinates,
// whatever bucket it belongs to: skewed scalars cost nothing extra. A bucket of one slice is added to its final sum;
// of the others, the slices' sums are added up: few by one thread, many by blocks in two steps.
#pragma once
#include "curve.cuh"
#include "msm_lists.cuh"

// A point of G2 is 96 registers: two and what an addition needs in between do not fit 255. Its accumulators stay in
// device memory and coordinates are loaded as they are used; the stack that spilling would take is reserved for every
// thread that a device can hold.
template <class F> constexpr bool IN_MEMORY = sizeof(F) > sizeof(Fq);

// The slices of n buckets: a bucket's entries, and the number of its first slice, from msm_slices.
struct Slices {
    const u32 *counts, *starts, *places, *totals;
    u32 n, size;
    PS_FN u32 first(u32 bucket) const { return places[bucket] + totals[bucket / SCAN_BLOCK]; }
    PS_FN u32 blocks() const { return (n + SCAN_BLOCK - 1) / SCAN_BLOCK; }
    PS_FN u32 all() const { return totals[blocks()]; }
    PS_FN u32 of(u32 bucket) const { return (counts[bucket] + size - 1) / size; }
    // The last bucket whose first slice is at most j.
    PS_FN u32 bucket(u32 j) const {
        const u32 block = last_at_most(0, blocks(), [&](u32 b) { return totals[b]; }, j), low = block * SCAN_BLOCK;
        const u32 high = low + SCAN_BLOCK < n ? low + SCAN_BLOCK : n;
        return last_at_most(low, high, [&](u32 b) { return places[b] + totals[block]; }, j);
    }

private:
    template <class V> PS_FN static u32 last_at_most(u32 low, u32 high, V value, u32 j) {
        while (high - low > 1) {
            const u32 middle = low + (high - low) / 2;
            if (value(middle) <= j)
                low = middle;
            else
                high = middle;
        }
        return low;
    }
};

// partial[j] ← slice j, or a bucket += its only slice.
template <class F>
PS_FN void sum_slices(const Block& blk, Xyzz<F>* buckets, Xyzz<F>* partial, const Affine<F>* bases, const u32* entries,
                      const Slices& slices) {
    blk.each([&](u32 t) {
        const u64 j = u64(blk.index()) * blk.dim() + t;
        if (j >= slices.all()) return;
        const u32 bucket = slices.bucket(u32(j)), k = u32(j) - slices.first(bucket), count = slices.counts[bucket];
        const u32 first = slices.starts[bucket] + k * slices.size, left = count - k * slices.size;
        const u32 end = first + (left < slices.size ? left : slices.size);
        const auto add_all = [&](Xyzz<F>& acc) {
            acc = xyzz_infinity<F>();
            PS_ROLLED
            for (u32 i = first; i < end; i++) {
                const u32 entry = entries[i];
                Affine<F> p = bases[entry & ~REF_NEGATIVE];
                if (entry & REF_NEGATIVE) p = negate(p);
                add_mixed(acc, p);
            }
        };
        const auto finish = [&](const Xyzz<F>& acc) {
            using G = Outlined<F>;
            if (count <= slices.size)
                add_full(*reinterpret_cast<Xyzz<G>*>(buckets + bucket), over<G>(acc));
            else if (&acc != partial + j)
                partial[j] = acc;
        };
        if constexpr (IN_MEMORY<F>) {
            add_all(partial[j]);
            finish(partial[j]);
        } else {
            Xyzz<F> acc;
            add_all(acc);
            finish(acc);
        }
    });
}

// Slices that one thread adds up.
PS_TABLE u32 SLICES_EACH = 32;
// A bucket of several slices += their sums; those of more than 32 go to `longer`, counters[1] of them.
template <class F>
PS_FN void merge_slices(const Block& blk, Xyzz<F>* buckets, Xyzz<F>* partial, const Slices& slices, u32* longer,
                        u32* counters) {
    blk.each([&](u32 t) {
        const u64 b = u64(blk.index()) * blk.dim() + t;
        if (b >= slices.n) return;
        const u32 count = slices.of(u32(b));
        if (count < 2) return;
        if (count > SLICES_EACH) {
            longer[add_to(counters + 1, 1)] = u32(b);
            return;
        }
        const Xyzz<F>* terms = partial + slices.first(u32(b));
        if constexpr (IN_MEMORY<F>) {
            for (u32 k = 0; k < count; k++) add_full(buckets[b], terms[k]);
        } else {
            Xyzz<F> acc = terms[0];
            PS_ROLLED
            for (u32 k = 1; k < count; k++) add_full(acc, terms[k]);
            add_full(buckets[b], acc);
        }
    });
}

// Points that a block adds up in the first step of a long bucket.
PS_TABLE u32 LONG_EACH = 1024;
// row[0] ← Σ row[k·stride] over k < n; the other terms are used up.
template <class F> PS_FN void fold_row(const Block& blk, Xyzz<F>* row, u32 stride, u32 n) {
    blk.each([&](u32 t) {
        PS_ROLLED
        for (u64 i = u64(t) + blk.dim(); i < n; i += blk.dim()) add_full(row[t * u64(stride)], row[i * stride]);
    });
    PS_ROLLED
    for (u32 half = blk.dim() / 2; half > 0; half /= 2) {
        blk.sync();
        blk.each([&](u32 t) {
            if (t < half && t + half < n) add_full(row[t * u64(stride)], row[(t + half) * u64(stride)]);
        });
    }
    blk.sync();
}
// The slices of long buckets, 1024 to one, shared out among the grid's blocks.
template <class F>
PS_FN void fold_longer(const Block& blk, Xyzz<F>* partial, const Slices& slices, const u32* longer,
                       const u32* counters) {
    u32 turn = 0;
    PS_ROLLED
    for (u32 i = 0; i < counters[1]; i++) {
        const u32 first = slices.first(longer[i]), count = slices.of(longer[i]);
        PS_ROLLED
        for (u32 k = 0; k < count; k += LONG_EACH) {
            if (turn == blk.index())
                fold_row(blk, partial + first + k, 1, count - k < LONG_EACH ? count - k : LONG_EACH);
            turn = turn + 1 == blk.grid() ? 0 : turn + 1;
        }
    }
}
// The rest of them: a long bucket += its sums, one bucket a block at a time.
template <class F>
PS_FN void merge_longer(const Block& blk, Xyzz<F>* buckets, Xyzz<F>* partial, const Slices& slices, const u32* longer,
                        const u32* counters) {
    PS_ROLLED
    for (u32 i = blk.index(); i < counters[1]; i += blk.grid()) {
        const u32 b = longer[i];
        Xyzz<F>* row = partial + slices.first(b);
        fold_row(blk, row, LONG_EACH, (slices.of(b) + LONG_EACH - 1) / LONG_EACH);
        blk.each([&](u32 t) {
            if (t == 0) add_full(buckets[b], row[0]);
        });
        blk.sync();
    }
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
