//! Colours. Causes take the palette of Okabe and Ito, which stays distinct under every common colour blindness
//! (<https://jfly.uni-koeln.de/color/>); work is slate, so that idle time is what stands out; memory classes differ
//! in lightness.

use crate::timeline::IdleCause;

/// What a shape is painted with. Neutral inks have a class, so that a page can recolour them for a dark background.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::timeline) struct Ink {
    pub(super) rgb: (u8, u8, u8),
    pub(super) alpha: f64,
    pub(super) class: Option<&'static str>,
}

const fn neutral(rgb: (u8, u8, u8), class: &'static str) -> Ink {
    Ink { rgb, alpha: 1.0, class: Some(class) }
}

const fn plain(r: u8, g: u8, b: u8) -> Ink {
    Ink { rgb: (r, g, b), alpha: 1.0, class: None }
}

pub(super) const PAPER: Ink = neutral((255, 255, 255), "paper");
pub(super) const LANE: Ink = neutral((246, 247, 249), "lane");
pub(super) const GRID: Ink = neutral((223, 226, 231), "grid");
pub(super) const TEXT: Ink = neutral((27, 31, 36), "text");
pub(super) const MUTED: Ink = neutral((92, 99, 110), "muted");
pub(super) const WHITE: Ink = plain(255, 255, 255);
pub(super) const BLACK: Ink = plain(20, 22, 26);
pub(super) const ALARM: Ink = plain(200, 30, 30);

pub(super) const DISC: Ink = neutral((20, 22, 26), "disc");
pub(super) const DISC_TEXT: Ink = neutral((255, 255, 255), "number");
/// Under words on stripes; stays white on dark pages.
pub(super) const PLATE: Ink = Ink { rgb: (255, 255, 255), alpha: 0.88, class: Some("plate") };
pub(super) const HELD: Ink = neutral((70, 76, 86), "held");

/// Tones of device work, used in turn so that neighbouring phases can be told apart.
pub(in crate::timeline) const WORK: [Ink; 5] = [
    neutral((55, 71, 92), "work0"),
    neutral((88, 107, 131), "work1"),
    neutral((38, 50, 66), "work2"),
    neutral((116, 134, 156), "work3"),
    neutral((146, 161, 180), "work4"),
];

/// Resident, direct, pooled, retained: from dark to light.
pub(super) const MEMORY: [Ink; 4] =
    [neutral((53, 38, 92), "memory0"), plain(106, 81, 163), plain(158, 143, 205), plain(218, 212, 238)];

impl Ink {
    pub(super) const fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    pub(in crate::timeline) fn hex(self) -> String {
        let (r, g, b) = self.rgb;
        format!("#{r:02x}{g:02x}{b:02x}")
    }

    /// White or black, whichever reads better on this.
    pub(super) fn contrast(self) -> Self {
        let (r, g, b) = self.rgb;
        let light = 299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b);
        if light > 140_000 { BLACK } else { WHITE }
    }
}

/// The colour of idle time with this cause, and of the lanes whose work is that cause.
pub(in crate::timeline) const fn of(cause: IdleCause) -> Ink {
    match cause {
        IdleCause::Alloc => plain(213, 94, 0),
        IdleCause::Transfer => plain(0, 114, 178),
        IdleCause::Sync => plain(204, 121, 167),
        IdleCause::Host => plain(230, 159, 0),
        IdleCause::Turn => plain(0, 158, 115),
        IdleCause::Launch => plain(240, 228, 66),
        IdleCause::Unattributed => plain(120, 120, 120),
    }
}
