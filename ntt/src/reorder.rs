//! Bit reversal in place.

use blstrs::Scalar;
use rayon::prelude::*;

use crate::tile::reverse;

/// Neighbours that move together: a run of 16 values is eight cache lines.
const LOG_RUN: u32 = 4;
const RUN: usize = 1 << LOG_RUN;

/// A slice whose disjoint parts are exchanged by different threads.
#[derive(Clone, Copy)]
struct Values(*mut Scalar);

// SAFETY: each task of `reverse_bits` touches indices with its own middle bits, or their mirror.
unsafe impl Send for Values {}
// SAFETY: as above.
unsafe impl Sync for Values {}

impl Values {
    /// # Safety
    /// `index` is in range and no other task's.
    unsafe fn read(self, index: usize) -> Scalar {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(index).read() }
    }

    /// # Safety
    /// As for `read`.
    unsafe fn write(self, index: usize, x: Scalar) {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(index).write(x) }
    }
}

/// Exchanges value i with the value whose index has the bits of i in reverse. The length is a power
/// of two.
///
/// An index is high, middle and low bits; all values with one middle form a square of runs, which is
/// exchanged, transposed, with the square of the mirrored middle (Carter and Gatlin, "Towards an
/// optimal bit-reversal permutation program", 1998).
pub(crate) fn reverse_bits(values: &mut [Scalar]) {
    let log_size = values.len().trailing_zeros();
    if log_size < 2 * LOG_RUN {
        for i in 0..values.len() {
            let j = reverse(i, log_size);
            if i < j {
                values.swap(i, j);
            }
        }
        return;
    }
    let log_middle = log_size - 2 * LOG_RUN;
    let all = Values(values.as_mut_ptr());
    (0..1usize << log_middle).into_par_iter().for_each(|middle| {
        let mirror = reverse(middle, log_middle);
        if middle > mirror {
            return;
        }
        let at =
            |high: usize, middle: usize, low: usize| high << (log_size - LOG_RUN) | middle << LOG_RUN | low;
        // SAFETY: indices are below 2^log_size, and their middle bits are `middle` or `mirror`, which no
        // other task has.
        unsafe {
            let mut square = [values_zero(); RUN * RUN];
            for high in 0..RUN {
                for low in 0..RUN {
                    square[reverse(low, LOG_RUN) << LOG_RUN | reverse(high, LOG_RUN)] =
                        all.read(at(high, middle, low));
                }
            }
            if middle != mirror {
                let mut other = [values_zero(); RUN * RUN];
                for high in 0..RUN {
                    for low in 0..RUN {
                        other[reverse(low, LOG_RUN) << LOG_RUN | reverse(high, LOG_RUN)] =
                            all.read(at(high, mirror, low));
                    }
                }
                for high in 0..RUN {
                    for low in 0..RUN {
                        all.write(at(high, middle, low), other[high << LOG_RUN | low]);
                    }
                }
            }
            for high in 0..RUN {
                for low in 0..RUN {
                    all.write(at(high, mirror, low), square[high << LOG_RUN | low]);
                }
            }
        }
    });
}

const fn values_zero() -> Scalar {
    <Scalar as ff::Field>::ZERO
}
