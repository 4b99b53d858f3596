//! The container that `.zkey`, `.wtns` and `.r1cs` share: a magic, a version, and numbered sections in any
//! order. Described at <https://github.com/iden3/r1csfile/blob/master/doc/r1cs_bin_format.md>.

use super::cursor::Cursor;
use super::error::{Fault, FileKind, FormatError, Place};

/// Bytes of a section's head: u32 number, u64 length.
const HEAD: u64 = 12;

/// The name of a section for messages, by its number.
pub(crate) type SectionName = fn(u32) -> &'static str;

/// The sections of a file. Only the table is read; it takes as many bytes here as in the file, about.
#[derive(Debug)]
pub(crate) struct Container<'a> {
    kind: FileKind,
    name: SectionName,
    sections: Vec<Section<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct Section<'a> {
    id: u32,
    offset: u64,
    bytes: &'a [u8],
}

impl<'a> Container<'a> {
    /// Walks the table of sections: each lies within the file, none is there twice, nothing follows the last.
    pub(crate) fn parse(
        kind: FileKind,
        bytes: &'a [u8],
        magic: &'static str,
        version: u32,
        name: SectionName,
    ) -> Result<Self, FormatError> {
        let mut cursor = Cursor::new(kind, "file header", 0, bytes);
        let got = *cursor.array()?;
        if got != magic.as_bytes() {
            return Err(cursor.fail_at(None, 0, Fault::Magic { expected: magic, got }));
        }
        let got = cursor.u32_le()?;
        if got != version {
            return Err(cursor.fail_at(None, 4, Fault::Version { expected: version, got }));
        }
        let count = cursor.u32_le()?;
        cursor.enter("section table");
        // A count that cannot be right is refused before the walk that would find out.
        if u64::from(count) * HEAD > cursor.remaining() {
            let (needed, available) = (u64::from(count) * HEAD, cursor.remaining());
            return Err(cursor.fail_at(None, 8, Fault::Truncated { needed, available }));
        }
        let mut sections = Vec::new();
        for index in 0..u64::from(count) {
            let head = cursor.offset();
            let id = cursor.u32_le()?;
            let length = cursor.u64_le()?;
            let (offset, available) = (cursor.offset(), cursor.remaining());
            let bytes = cursor.take(length).map_err(|_| {
                let section = name(id);
                let place = Place { section, index: None, offset: Some(head) };
                FormatError::content(kind, place, Fault::Truncated { needed: length, available })
            })?;
            sections.push((index, head, Section { id, offset, bytes }));
        }
        cursor.end()?;
        sections.sort_by_key(|(_, _, s)| s.id);
        if let Some(pair) = sections.windows(2).find(|pair| pair[0].2.id == pair[1].2.id) {
            let (index, head, Section { id, .. }) = pair[1];
            return Err(cursor.fail_at(Some(index), head, Fault::Twice { id }));
        }
        Ok(Self { kind, name, sections: sections.into_iter().map(|(_, _, s)| s).collect() })
    }

    /// The section of that number, if it is there.
    pub(crate) fn find(&self, id: u32) -> Option<Cursor<'a>> {
        let at = self.sections.binary_search_by_key(&id, |s| s.id).ok()?;
        let Section { offset, bytes, .. } = self.sections[at];
        Some(Cursor::new(self.kind, (self.name)(id), offset, bytes))
    }

    /// The section of that number, which must be there.
    pub(crate) fn section(&self, id: u32) -> Result<Cursor<'a>, FormatError> {
        self.find(id).ok_or_else(|| {
            let place = Place { section: (self.name)(id), index: None, offset: None };
            FormatError::content(self.kind, place, Fault::Missing)
        })
    }
}

/// Writes a container whose sections are small enough to be held.
pub(crate) fn write(
    w: &mut dyn std::io::Write,
    magic: &str,
    version: u32,
    sections: &[(u32, Vec<u8>)],
) -> std::io::Result<()> {
    let count = u32::try_from(sections.len()).map_err(std::io::Error::other)?;
    w.write_all(magic.as_bytes())?;
    w.write_all(&version.to_le_bytes())?;
    w.write_all(&count.to_le_bytes())?;
    for (id, bytes) in sections {
        w.write_all(&id.to_le_bytes())?;
        w.write_all(&(bytes.len() as u64).to_le_bytes())?;
        w.write_all(bytes)?;
    }
    Ok(())
}
