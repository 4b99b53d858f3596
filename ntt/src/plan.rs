//! What the transforms of a proof take of a device, known before anything runs.

use blstrs::Scalar;
use prestage_vram::Bytes;

use crate::lanes::Lanes;
use crate::tables::{Line, Shape, Tables};
use crate::{Direction, Domain, Error, Ntt};

/// The most chunks that a polynomial is cut into.
pub const MAX_CHUNKS: usize = 64;

/// A domain, and whether its polynomials other than the resident one are whole on the device or pass
/// through it in chunks.
///
/// ```
/// use prestage_ntt::{Domain, Plan};
/// use prestage_vram::{Bytes, Host, HostConfig};
///
/// let host = Host::open(HostConfig::default())?;
/// let plan = Plan::chunked(Domain::new(1 << 27, 7)?, 8)?;
/// let footprint = plan.footprint(&host);
/// assert_eq!(footprint.polynomial, Bytes::mib(4096));
/// assert_eq!(footprint.slots, Bytes::mib(1024));
/// assert!(footprint.tables < Bytes::mib(32));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    domain: Domain,
    /// Logarithm of the number of chunks; zero for whole polynomials.
    log_chunks: u32,
    /// The coset that tables are made for.
    coset: Option<Scalar>,
    /// The most that tables of a card should take.
    table_room: Bytes,
}

/// What tables of a card take at most, unless a plan says otherwise.
const TABLE_ROOM: Bytes = Bytes::mib(32);

/// Device memory of a [`Plan`], exact to the byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// One polynomial: n scalars. How many are there at once is the caller's plan.
    pub polynomial: Bytes,
    /// Twiddle tables, resident from the first transform to the last ([`crate::Twiddles`]).
    pub tables: Bytes,
    /// The two slots of [`crate::Chunked`], `n / k` scalars each; zero without chunks.
    pub slots: Bytes,
}

impl Footprint {
    /// `T`: what is needed beside whole polynomials.
    #[must_use]
    pub fn beside(&self) -> Bytes {
        self.tables + self.slots
    }
}

/// Which tables of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Of the whole domain.
    Whole,
    /// Of one chunk.
    Chunk,
    /// Across the chunks.
    Columns,
}

impl Plan {
    /// Polynomials are whole on the device.
    #[must_use]
    pub const fn whole(domain: Domain) -> Self {
        Self { domain, log_chunks: 0, coset: None, table_room: TABLE_ROOM }
    }

    /// Polynomials of `n` values pass through the device in `chunks` pieces.
    ///
    /// # Errors
    /// [`Error::Chunks`] unless the number is a power of two from 2 to [`MAX_CHUNKS`] whose square is at
    /// most n.
    pub fn chunked(domain: Domain, chunks: usize) -> Result<Self, Error> {
        let log_chunks = chunks.trailing_zeros();
        if !chunks.is_power_of_two()
            || !(2..=MAX_CHUNKS).contains(&chunks)
            || 2 * log_chunks > domain.log_size()
        {
            return Err(Error::Chunks { chunks, size: domain.size() });
        }
        Ok(Self { domain, log_chunks, coset: None, table_room: TABLE_ROOM })
    }

    /// The same plan, its tables made for the coset `shift`: steps on others are slower on some devices. A card has more tables
    /// then, as many bytes of them for one coset as for another.
    #[must_use]
    pub const fn on_coset(mut self, shift: Scalar) -> Self {
        self.coset = Some(shift);
        self
    }

    /// The same plan with other room for the tables of a card, 32 MiB if nothing is said: they take what makes steps fastest
    /// within it, and never less than the few megabytes that they need. A card gains from up to 64 bytes for each value of the
    /// domain and each of the two directions, or three with a coset; worth their making where they stay.
    #[must_use]
    pub const fn with_table_room(mut self, most: Bytes) -> Self {
        self.table_room = most;
        self
    }

    /// What the tables of a card should take at most.
    #[must_use]
    pub const fn table_room(&self) -> Bytes {
        self.table_room
    }

    /// The coset that tables are made for.
    #[must_use]
    pub const fn coset(&self) -> Option<Scalar> {
        self.coset
    }

    /// The domain.
    #[must_use]
    pub const fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Pieces that a polynomial passes through the device in; 1 if it is whole.
    #[must_use]
    pub const fn chunks(&self) -> usize {
        1 << self.log_chunks
    }

    /// Values in one chunk, and in one of the two slots.
    #[must_use]
    pub const fn chunk_len(&self) -> usize {
        self.domain.size() >> self.log_chunks
    }

    /// Columns of the domain, seen as [`Plan::chunks`] rows of [`Plan::chunk_len`] values, that fit a slot.
    #[must_use]
    pub const fn chunk_width(&self) -> usize {
        self.chunk_len() >> self.log_chunks
    }

    /// The device memory that the plan takes, by what it is for.
    #[must_use]
    pub fn footprint<D: Ntt>(&self, device: &D) -> Footprint {
        let slots = if self.log_chunks == 0 { 0 } else { 2 * self.chunk_len() };
        Footprint {
            polynomial: Bytes::of::<Scalar>(self.domain.size()) * device.scale(),
            tables: device.table_charge(self),
            slots: Bytes::of::<Scalar>(slots) * device.scale(),
        }
    }

    /// Tables in the order in which they lie.
    fn parts(&self) -> Vec<(Part, Shape)> {
        let log_size = self.domain.log_size();
        let mut parts = vec![(Part::Whole, Shape::whole(log_size))];
        if self.log_chunks > 0 {
            parts.push((Part::Chunk, Shape::whole(log_size - self.log_chunks)));
            parts.push((Part::Columns, Shape::level(self.log_chunks, log_size)));
        }
        parts
    }

    /// Cache lines of all tables, both directions.
    pub(crate) fn lines<V: Lanes>(&self) -> usize {
        self.parts().iter().map(|(_, shape)| 2 * shape.lines::<V>()).sum()
    }

    /// Bytes of the tables of a card where every value stands for `scale`: for both directions two levels of powers, 64 bytes
    /// each with what makes multiplication by them cheap, so `128 (2^⌈l/2⌉ + 2^⌊l/2⌋)` for `n = 2^l` points; with chunks also those
    /// of a chunk and of the columns.
    pub(crate) fn card_tables(&self, scale: u64) -> Bytes {
        let log_scale = scale.max(1).next_power_of_two().trailing_zeros();
        let log_size = (self.domain.log_size() + log_scale).min(32);
        let levels = |log: u32| (1u64 << (log / 2)) + (1u64 << log.div_ceil(2));
        let mut entries = levels(log_size);
        if self.log_chunks > 0 {
            entries += levels(log_size.saturating_sub(self.log_chunks)) + (1 << self.log_chunks);
        }
        Bytes::new(128 * entries)
    }

    /// Computes all tables.
    pub(crate) fn fill<V: Lanes>(&self, lines: &mut [Line]) {
        let mut rest = lines;
        for (_, shape) in self.parts() {
            for direction in [Direction::Forward, Direction::Inverse] {
                let (head, tail) = rest.split_at_mut(shape.lines::<V>());
                shape.fill::<V>(self.domain.roots(direction), head);
                rest = tail;
            }
        }
    }

    /// One of the tables that [`Plan::fill`] wrote; the plan has chunks if the part needs them.
    pub(crate) fn tables<'a, V: Lanes>(
        &'a self,
        lines: &'a [Line],
        part: Part,
        direction: Direction,
    ) -> Option<Tables<'a, V>> {
        let mut at = 0;
        for (here, shape) in self.parts() {
            let lines_each = shape.lines::<V>();
            if here == part {
                let at = at + if direction == Direction::Forward { 0 } else { lines_each };
                return Some(shape.view(self.domain.roots(direction), lines.get(at..at + lines_each)?));
            }
            at += 2 * lines_each;
        }
        None
    }
}
