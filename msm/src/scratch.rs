//! Typed slices out of one block of bytes, so that a sum takes exactly the memory it announced.
//!
//! [`Size`] adds up what [`Arena`] will hand out: the same calls in the same order, so the two cannot differ.

use prestage_vram::Bytes;
use std::mem::MaybeUninit;

/// Every slice starts on a cache line of its own.
const ALIGN: usize = 64;

/// The bytes of a sequence of [`Arena::take`] calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size(usize);

impl Size {
    /// Nothing.
    pub(crate) const ZERO: Self = Self(0);

    /// With room for `n` elements of `T` more.
    pub(crate) const fn and<T>(self, n: usize) -> Self {
        self.and_bytes(n.saturating_mul(size_of::<T>()))
    }

    /// With room for `n` bytes more.
    pub(crate) const fn and_bytes(self, n: usize) -> Self {
        Self(self.0.saturating_add(n.saturating_add(ALIGN - 1) / ALIGN * ALIGN))
    }

    /// The size of a part inside an arena: a multiple of the alignment.
    pub(crate) const fn part(self) -> usize {
        self.0
    }

    /// The size of a whole block, which may start at any address.
    pub(crate) const fn block(self) -> Bytes {
        Bytes::new(self.0.saturating_add(ALIGN - 1) as u64)
    }
}

/// Hands out slices of a block, front to back.
#[derive(Debug)]
pub(crate) struct Arena<'s> {
    rest: &'s mut [MaybeUninit<u8>],
}

impl<'s> Arena<'s> {
    /// The arena over `block`; `None` when it is too short even to be aligned.
    pub(crate) fn new(block: &'s mut [MaybeUninit<u8>]) -> Option<Self> {
        let skip = block.as_ptr().align_offset(ALIGN);
        Some(Self { rest: block.get_mut(skip..)? })
    }

    /// The next `n` elements, each set to `value`; `None` when the block ends before.
    pub(crate) fn take<T: Copy>(&mut self, n: usize, value: T) -> Option<&'s mut [T]> {
        const { assert!(align_of::<T>() <= ALIGN) };
        let bytes = self.take_bytes(Size::ZERO.and::<T>(n).part())?;
        let slice = bytes.as_mut_ptr().cast::<MaybeUninit<T>>();
        // SAFETY: `bytes` covers at least n·size_of::<T>() bytes (or `take_bytes` had failed), is aligned to
        // ALIGN ≥ align_of::<T>(), and is borrowed from nowhere else; `MaybeUninit` allows any content.
        let slice = unsafe { std::slice::from_raw_parts_mut(slice, n) };
        for element in &mut *slice {
            element.write(value);
        }
        // SAFETY: every element was just written.
        Some(unsafe { &mut *(std::ptr::from_mut(slice) as *mut [T]) })
    }

    /// The next `bytes` (a multiple of the alignment) as an arena of their own.
    pub(crate) fn split(&mut self, bytes: usize) -> Option<Self> {
        Some(Self { rest: self.take_bytes(bytes)? })
    }

    fn take_bytes(&mut self, bytes: usize) -> Option<&'s mut [MaybeUninit<u8>]> {
        let rest = std::mem::take(&mut self.rest);
        let (head, tail) = rest.split_at_mut_checked(bytes)?;
        self.rest = tail;
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_what_the_arena_uses() {
        let size = Size::ZERO.and::<u8>(3).and::<u64>(9).and::<[u64; 12]>(0).and::<[u64; 12]>(5);
        let len = size.block().to_usize().unwrap();
        let mut block = vec![MaybeUninit::uninit(); len + 1];
        for start in 0..2 {
            let mut arena = Arena::new(&mut block[start..start + len]).unwrap();
            let bytes = arena.take(3, 7u8).unwrap();
            let words = arena.take(9, 8u64).unwrap();
            assert!(arena.take(0, [1u64; 12]).unwrap().is_empty());
            let points = arena.take(5, [2u64; 12]).unwrap();
            assert_eq!((&*bytes, &*words), (&[7; 3][..], &[8; 9][..]));
            assert_eq!(points, [[2; 12]; 5]);
            assert!(arena.take(64, 0u8).is_none());
        }
        let mut arena = Arena::new(&mut block[..len - ALIGN]).unwrap();
        assert!(arena.split(size.part()).is_none());
        assert!(Arena::new(&mut []).is_none_or(|mut a| a.take(1, 0u8).is_none()));
    }
}
