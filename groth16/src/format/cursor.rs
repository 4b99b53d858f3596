//! Reading forward in a slice of a file, with errors that know where they are.

use super::error::{Fault, FileKind, FormatError, Place};

/// A position in one section of a file. It can be cloned to look ahead.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    kind: FileKind,
    section: &'static str,
    /// Offset of `rest` in the file.
    offset: u64,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(kind: FileKind, section: &'static str, offset: u64, bytes: &'a [u8]) -> Self {
        Self { kind, section, offset, rest: bytes }
    }

    /// Names the part of the file that follows.
    pub(crate) fn enter(&mut self, section: &'static str) {
        self.section = section;
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.rest.len() as u64
    }

    pub(crate) fn fail(&self, fault: impl Into<Fault>) -> FormatError {
        self.fail_at(None, self.offset, fault)
    }

    pub(crate) fn fail_at(&self, index: Option<u64>, offset: u64, fault: impl Into<Fault>) -> FormatError {
        let place = Place { section: self.section, index, offset: Some(offset) };
        FormatError::content(self.kind, place, fault)
    }

    /// The next `n` bytes. The length is compared with what is there before anything else is done with it.
    pub(crate) fn take(&mut self, n: u64) -> Result<&'a [u8], FormatError> {
        let available = self.remaining();
        let cut = usize::try_from(n).ok().and_then(|n| self.rest.split_at_checked(n));
        let Some((head, tail)) = cut else {
            return Err(self.fail(Fault::Truncated { needed: n, available }));
        };
        self.rest = tail;
        self.offset += n;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], FormatError> {
        let available = self.remaining();
        let Some((head, tail)) = self.rest.split_first_chunk() else {
            return Err(self.fail(Fault::Truncated { needed: N as u64, available }));
        };
        self.rest = tail;
        self.offset += N as u64;
        Ok(head)
    }

    pub(crate) fn u32_le(&mut self) -> Result<u32, FormatError> {
        Ok(u32::from_le_bytes(*self.array()?))
    }

    pub(crate) fn u32_be(&mut self) -> Result<u32, FormatError> {
        Ok(u32::from_be_bytes(*self.array()?))
    }

    pub(crate) fn u64_le(&mut self) -> Result<u64, FormatError> {
        Ok(u64::from_le_bytes(*self.array()?))
    }

    /// Checks that nothing is left.
    pub(crate) fn end(&self) -> Result<(), FormatError> {
        match self.remaining() {
            0 => Ok(()),
            bytes => Err(self.fail(Fault::Trailing { bytes })),
        }
    }

    /// Checks that exactly `n` items of `size` bytes are left in this section.
    pub(crate) fn expect_items(&self, what: &'static str, n: u64, size: u64) -> Result<(), FormatError> {
        let (got, odd) = (self.remaining() / size, self.remaining() % size);
        if got != n {
            return Err(self.fail(Fault::Count { what, expected: n, got }));
        }
        if odd != 0 { Err(self.fail(Fault::Trailing { bytes: odd })) } else { Ok(()) }
    }

    /// Checks that exactly `expected` bytes are left in this section.
    pub(crate) fn expect_length(&self, expected: u64) -> Result<(), FormatError> {
        match self.remaining() {
            got if got == expected => Ok(()),
            got => Err(self.fail(Fault::SectionLength { expected, got })),
        }
    }
}
