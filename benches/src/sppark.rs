//! sppark, the peer on NVIDIA cards: the templates of the published crate, made for BLS12-381 by `cuda/sppark_*.cu`.
//!
//! It works in the card's primary context, as [`prestage_vram::cuda::Cuda`] does, and so on the same memory. Its calls return
//! when their results are there. All elements are those of blst: points affine, scalars in Montgomery form.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;

use blstrs::{G1Affine, G2Affine, Scalar};
use group::prime::PrimeCurveAffine;
use prestage_msm::Affine;
use sppark::Error as Status;

use crate::Error;

unsafe extern "C" {
    fn prestage_sppark_use(device: c_int) -> Status;
    fn prestage_sppark_trim() -> Status;
    fn prestage_sppark_lock(at: *mut c_void, bytes: usize) -> Status;
    fn prestage_sppark_unlock(at: *mut c_void) -> Status;
    fn prestage_sppark_ntt_resident(values: *mut c_void, log: u32, order: c_int) -> Status;
    fn prestage_sppark_ntt_timed(values: *mut c_void, log: u32, order: c_int, ms: *mut f32) -> Status;
    fn prestage_sppark_ntt_host(values: *mut c_void, log: u32, order: c_int) -> Status;
    fn prestage_sppark_quotient(
        a: *mut c_void,
        b: *mut c_void,
        c: *mut c_void,
        log: u32,
        scale: *const c_void,
    ) -> Status;

    fn prestage_sppark_g1_open(sums: *mut *mut c_void, n: usize) -> Status;
    fn prestage_sppark_g1_close(sums: *mut c_void);
    fn prestage_sppark_g1_resident(
        sums: *mut c_void,
        sum: *mut c_void,
        points: *mut c_void,
        n: usize,
        scalars: *mut c_void,
    ) -> Status;
    fn prestage_sppark_g1_host(
        sum: *mut c_void,
        points: *const c_void,
        n: usize,
        scalars: *const c_void,
    ) -> Status;

    fn prestage_sppark_g2_open(sums: *mut *mut c_void, n: usize) -> Status;
    fn prestage_sppark_g2_close(sums: *mut c_void);
    fn prestage_sppark_g2_resident(
        sums: *mut c_void,
        sum: *mut c_void,
        points: *mut c_void,
        n: usize,
        scalars: *mut c_void,
    ) -> Status;
    fn prestage_sppark_g2_host(
        sum: *mut c_void,
        points: *const c_void,
        n: usize,
        scalars: *const c_void,
    ) -> Status;
}

/// What it is.
pub const NAME: &str = "sppark 0.1.16";

fn done(status: &Status) -> Result<(), Error> {
    if status.code == 0 { Ok(()) } else { Err(Error::Sppark(String::from(status))) }
}

/// How the values of a transform lie before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Natural before and after.
    NaturalToNatural,
    /// Natural before, bits of the index reversed after.
    NaturalToReversed,
}

impl Order {
    /// Its number in sppark.
    const fn number(self) -> c_int {
        match self {
            Self::NaturalToNatural => 0,
            Self::NaturalToReversed => 1,
        }
    }
}

/// sppark on one card. It is used by the thread that opened it.
#[derive(Debug)]
pub struct Sppark(PhantomData<*mut ()>);

impl Sppark {
    /// On the card with this number in this process. The pool that sppark allocates from keeps its memory from call to call.
    ///
    /// # Errors
    /// [`Error::Sppark`] with what CUDA says.
    pub fn open(ordinal: u32) -> Result<Self, Error> {
        let ordinal = c_int::try_from(ordinal).map_err(|_| Error::Sppark("no such card".into()))?;
        // SAFETY: no memory is passed.
        done(&unsafe { prestage_sppark_use(ordinal) })?;
        Ok(Self(PhantomData))
    }

    /// Gives the memory that its pool keeps back to the card.
    ///
    /// # Errors
    /// As [`Sppark::open`].
    pub fn trim(&self) -> Result<(), Error> {
        // SAFETY: no memory is passed.
        done(&unsafe { prestage_sppark_trim() })
    }

    /// Page-locks memory where it lies, in one piece: copies by whoever uses the card run at the link's speed then.
    ///
    /// # Errors
    /// As [`Sppark::open`].
    pub fn lock<T, M: Deref<Target = [T]>>(&self, memory: M) -> Result<Locked<'_, M>, Error> {
        let at: *mut c_void = memory.as_ptr().cast_mut().cast();
        // SAFETY: live memory of that size, which the guard keeps. Locking changes none of its bytes.
        done(&unsafe { prestage_sppark_lock(at, size_of_val(&*memory)) })?;
        Ok(Locked { at, memory, peer: PhantomData })
    }

    /// The forward transform of 2^`log` values in place.
    ///
    /// # Safety
    /// `values` are in the card's memory, and nothing else uses them until this returns.
    ///
    /// # Errors
    /// As [`Sppark::open`].
    pub unsafe fn ntt(&self, values: *mut Scalar, log: u32, order: Order) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        done(&unsafe { prestage_sppark_ntt_resident(values.cast(), log, order.number()) })
    }

    /// As [`Sppark::ntt`]: how long it took between two events on the card, in milliseconds.
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As [`Sppark::open`].
    pub unsafe fn ntt_timed(&self, values: *mut Scalar, log: u32, order: Order) -> Result<f64, Error> {
        let mut ms = 0.0;
        // SAFETY: the caller's promise; the pointer is to a live number.
        done(&unsafe { prestage_sppark_ntt_timed(values.cast(), log, order.number(), &raw mut ms) })?;
        Ok(f64::from(ms))
    }

    /// From the values of a, b and c on the domain of 2^`log` points to the coefficients of the polynomial whose values on
    /// the coset of 7 are (a b − c) `scale`, in place of a; b and c are overwritten. Made of seven transforms.
    ///
    /// # Safety
    /// As [`Sppark::ntt`], for three different places.
    ///
    /// # Errors
    /// As [`Sppark::open`].
    pub unsafe fn quotient(
        &self,
        [a, b, c]: [*mut Scalar; 3],
        log: u32,
        scale: &Scalar,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise; the factor is borrowed until it returns.
        let status = unsafe {
            prestage_sppark_quotient(a.cast(), b.cast(), c.cast(), log, ptr::from_ref(scale).cast())
        };
        done(&status)
    }

    /// The forward transform of a power of two of values in host memory, in place.
    ///
    /// # Errors
    /// As [`Sppark::open`]; for another number of values.
    pub fn ntt_host(&self, values: &mut [Scalar], order: Order) -> Result<(), Error> {
        if !values.len().is_power_of_two() {
            return Err(Error::Sppark(format!("{} values are no power of two", values.len())));
        }
        let log = values.len().ilog2();
        // SAFETY: 2^log values that are borrowed until it returns.
        done(&unsafe { prestage_sppark_ntt_host(values.as_mut_ptr().cast(), log, order.number()) })
    }

    /// Σ scalars\[i\]·bases\[i\] of host memory.
    ///
    /// # Errors
    /// As [`Sppark::open`]; when the lengths differ.
    pub fn msm<A: Peer>(&self, bases: &[A], scalars: &[Scalar]) -> Result<A::Curve, Error> {
        if bases.len() != scalars.len() {
            return Err(Error::Sppark(format!("{} bases and {} scalars", bases.len(), scalars.len())));
        }
        let mut sum = A::identity().to_curve();
        let to = (&raw mut sum).cast();
        // SAFETY: as many points as scalars, borrowed until it returns; a place for a point of the group.
        done(&unsafe { (A::CALLS.host)(to, bases.as_ptr().cast(), bases.len(), scalars.as_ptr().cast()) })?;
        Ok(sum)
    }

    /// Buckets for sums of `n` terms in the card's memory.
    ///
    /// # Errors
    /// As [`Sppark::open`].
    pub fn sums<A: Peer>(&self, n: usize) -> Result<Sums<'_, A>, Error> {
        let mut raw = ptr::null_mut();
        // SAFETY: the pointer is to a live handle.
        done(&unsafe { (A::CALLS.open)(&raw mut raw, n) })?;
        Ok(Sums { raw, n, group: PhantomData })
    }
}

/// Memory that is page-locked as long as this lives.
#[derive(Debug)]
pub struct Locked<'s, M> {
    at: *mut c_void,
    memory: M,
    peer: PhantomData<&'s Sppark>,
}

impl<M> Deref for Locked<'_, M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.memory
    }
}

impl<M> DerefMut for Locked<'_, M> {
    fn deref_mut(&mut self) -> &mut M {
        &mut self.memory
    }
}

impl<M> Drop for Locked<'_, M> {
    fn drop(&mut self) {
        // SAFETY: locked when this was made. What a card that fails says now has been said before.
        let _ = unsafe { prestage_sppark_unlock(self.at) };
    }
}

/// sppark's buckets on the card.
#[derive(Debug)]
pub struct Sums<'s, A: Peer> {
    raw: *mut c_void,
    n: usize,
    group: PhantomData<(&'s Sppark, A)>,
}

impl<A: Peer> Sums<'_, A> {
    /// The sum of as many terms as this was made for.
    ///
    /// # Safety
    /// Bases and scalars are in the card's memory, and nothing writes to them until this returns.
    ///
    /// # Errors
    /// As [`Sppark::open`].
    pub unsafe fn sum(&mut self, bases: *const A, scalars: *const Scalar) -> Result<A::Curve, Error> {
        let mut sum = A::identity().to_curve();
        let to = (&raw mut sum).cast();
        let (bases, scalars) = (bases.cast_mut().cast(), scalars.cast_mut().cast());
        // SAFETY: the handle is alive; the caller's promise; a place for a point of the group.
        done(&unsafe { (A::CALLS.resident)(self.raw, to, bases, self.n, scalars) })?;
        Ok(sum)
    }
}

impl<A: Peer> Drop for Sums<'_, A> {
    fn drop(&mut self) {
        // SAFETY: opened by `Sppark::sums`, closed once.
        unsafe { (A::CALLS.close)(self.raw) };
    }
}

/// A group that sppark has been compiled for.
pub trait Peer: Affine {
    /// Its functions.
    const CALLS: Calls;
}

/// The functions of a group.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    open: unsafe extern "C" fn(*mut *mut c_void, usize) -> Status,
    close: unsafe extern "C" fn(*mut c_void),
    resident: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, usize, *mut c_void) -> Status,
    host: unsafe extern "C" fn(*mut c_void, *const c_void, usize, *const c_void) -> Status,
}

// Points are passed as blst has them: x, y, and of a sum z.
const _: () =
    assert!(size_of::<G1Affine>() == 96 && size_of::<<G1Affine as PrimeCurveAffine>::Curve>() == 144);
const _: () =
    assert!(size_of::<G2Affine>() == 192 && size_of::<<G2Affine as PrimeCurveAffine>::Curve>() == 288);

impl Peer for G1Affine {
    const CALLS: Calls = Calls {
        open: prestage_sppark_g1_open,
        close: prestage_sppark_g1_close,
        resident: prestage_sppark_g1_resident,
        host: prestage_sppark_g1_host,
    };
}

impl Peer for G2Affine {
    const CALLS: Calls = Calls {
        open: prestage_sppark_g2_open,
        close: prestage_sppark_g2_close,
        resident: prestage_sppark_g2_resident,
        host: prestage_sppark_g2_host,
    };
}
