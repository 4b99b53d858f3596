//! Page-locked host memory that is kept for its next use.

use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prestage_vram::{Bytes, Ledger, LockedPages};

use crate::memory::wipe;
use crate::pinned::whole_pages;
use crate::{Error, Pages, Pinned, Transfer};

/// Page-locked memory that goes back to its pool when it is dropped, and from there to whoever asks next. Locking costs up to
/// half a second a GiB, and giving locked memory back stops a card: so what one proof has used, the next one uses.
///
/// A pool is one device's. Clones share it. At no time is more locked than was in use at once before: what does not fit a
/// request is given back first, the oldest of it first, and all that is idle when the device or the budget of locked memory
/// refuses. Idle memory goes with the last clone of the pool, memory in use when it is dropped after that.
///
/// Memory is handed on as the last user left it, within this process. It may hold a witness: it is overwritten with zeros
/// before it is given back to the device.
///
/// ```
/// use prestage_transfer::PinnedPool;
/// use prestage_vram::{Device, Host, HostConfig};
///
/// let host = Host::open(HostConfig::default())?;
/// let pool = PinnedPool::new(&host);
/// let first = pool.uninit::<u64>(&host, 1000)?.par_fill(|i| i as u64);
/// let at = first.as_ptr();
/// drop(first);
/// let second = pool.uninit::<u64>(&host, 900)?.par_fill(|_| 7);
/// assert_eq!(second.as_ptr(), at);
/// # Ok::<(), prestage_transfer::Error>(())
/// ```
#[derive(Clone)]
pub struct PinnedPool(Arc<Inner>);

struct Inner {
    ledger: Ledger,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Oldest first.
    idle: Vec<Kept>,
    /// Bytes lent out now.
    used: Bytes,
    /// The most that was lent out at once.
    most: Bytes,
}

impl State {
    fn idle(&self) -> Bytes {
        self.idle.iter().map(Kept::bytes).sum()
    }

    fn lend(&mut self, bytes: Bytes) {
        self.used += bytes;
        self.most = self.most.max(self.used);
    }

    /// The smallest idle block for `whole` bytes that wastes no more than half of that.
    fn best(&mut self, whole: Bytes) -> Option<Kept> {
        let fits =
            |block: &Kept| block.bytes() >= whole && block.bytes() <= whole + Bytes::new(whole.get() / 2);
        let sizes = self.idle.iter().enumerate().filter(|(_, block)| fits(block));
        let at = sizes.min_by_key(|(_, block)| block.bytes())?.0;
        Some(self.idle.remove(at))
    }

    /// Idle blocks without which `bytes` more keep the pool within what was in use at once.
    fn surplus(&mut self, bytes: Bytes) -> Vec<Kept> {
        let most = self.most.max(self.used + bytes);
        let mut over = (self.used + self.idle() + bytes).saturating_sub(most);
        let mut surplus = Vec::new();
        while over > Bytes::ZERO && !self.idle.is_empty() {
            let block = self.idle.remove(0);
            over = over.saturating_sub(block.bytes());
            surplus.push(block);
        }
        surplus
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PinnedPool {
    /// A pool of the device's memory, empty at first.
    #[must_use]
    pub fn new(device: &impl Transfer) -> Self {
        Self(Arc::new(Inner { ledger: device.ledger().clone(), state: Mutex::default() }))
    }

    /// `len` elements that are not initialised yet. Memory for another device than the pool's is pinned for this use alone.
    ///
    /// # Errors
    /// As [`Pinned::uninit`].
    pub fn uninit<T: Copy + 'static>(
        &self,
        device: &impl Transfer,
        len: usize,
    ) -> Result<Pinned<MaybeUninit<T>>, Error> {
        let whole = whole_pages::<T>(len)?;
        if whole == Bytes::ZERO || *device.ledger() != self.0.ledger {
            return Pinned::uninit(device, len);
        }
        if let Some(idle) = self.idle_uninit(len) {
            return Ok(idle);
        }
        let class = class(whole);
        let block = match self.pin(device, class) {
            Err(e) if e.is_unpinnable() => {
                let idle = std::mem::take(&mut self.0.lock().idle);
                if idle.is_empty() && class == whole {
                    return Err(e);
                }
                drop(idle);
                self.pin(device, whole)?
            }
            pinned => pinned?,
        };
        self.0.lock().lend(block.bytes());
        Ok(self.lent(block, len))
    }

    /// `len` elements of memory that is idle here now; nothing is pinned. `None` where no idle memory fits.
    #[must_use]
    pub fn idle_uninit<T: Copy + 'static>(&self, len: usize) -> Option<Pinned<MaybeUninit<T>>> {
        let whole = whole_pages::<T>(len).ok()?;
        let block = {
            let mut state = self.0.lock();
            let block = state.best(whole)?;
            state.lend(block.bytes());
            block
        };
        Some(self.lent(block, len))
    }

    /// Bytes that wait for their next use.
    #[must_use]
    pub fn idle(&self) -> Bytes {
        self.0.lock().idle()
    }

    fn pin(&self, device: &impl Transfer, bytes: Bytes) -> Result<Kept, Error> {
        // Given back without the lock: that takes its time.
        let surplus = self.0.lock().surplus(bytes);
        drop(surplus);
        Block::pin(device, bytes).map(Kept)
    }

    fn lent<T>(&self, block: Kept, len: usize) -> Pinned<MaybeUninit<T>> {
        let (at, locked) = (block.0.as_ptr().cast(), block.bytes());
        Pinned::lent(at, len, locked, Lent { block: Some(block), home: Arc::downgrade(&self.0) })
    }
}

impl fmt::Debug for PinnedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        f.debug_struct("PinnedPool").field("idle", &state.idle()).field("used", &state.used).finish()
    }
}

/// Sizes that blocks come in: sixteen to each doubling, so that requests of nearly the same size share blocks.
fn class(whole: Bytes) -> Bytes {
    let step = whole.get().checked_ilog2().map_or(1, |log| (1 << log) / 16);
    whole.round_up(Bytes::of::<u8>(crate::page_size()).max(Bytes::new(step)))
}

/// Page-locked memory and its place in the account.
pub(crate) struct Block {
    // Memory goes before its place in the account.
    pages: Pages,
    locked: LockedPages,
}

impl Block {
    /// `whole` bytes, a multiple of a page.
    pub(crate) fn pin(device: &impl Transfer, whole: Bytes) -> Result<Self, Error> {
        let mut locked = device.ledger().locked().reserve(whole)?;
        let pages = device.pin(whole)?;
        let start = pages.as_ptr().addr().get();
        locked.place(start, start..start + pages.len())?;
        Ok(Self { pages, locked })
    }

    pub(crate) fn as_ptr(&self) -> NonNull<u8> {
        self.pages.as_ptr()
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.locked.bytes()
    }
}

/// A block of a pool: overwritten before it is given back to the device.
struct Kept(Block);

impl Kept {
    fn bytes(&self) -> Bytes {
        self.0.bytes()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let Block { pages, .. } = &self.0;
        // SAFETY: the pages are this block's alone, and `MaybeUninit` allows any content.
        wipe(unsafe { std::slice::from_raw_parts_mut(pages.as_ptr().as_ptr().cast(), pages.len()) });
    }
}

/// A block that is lent out.
pub(crate) struct Lent {
    /// `None` only while it is being dropped.
    block: Option<Kept>,
    home: Weak<Inner>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(block), Some(home)) = (self.block.take(), self.home.upgrade()) {
            let mut state = home.lock();
            state.used = state.used.saturating_sub(block.bytes());
            state.idle.push(block);
        }
    }
}
