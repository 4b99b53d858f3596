//! The kernel sources: one family, one module.

/// A file of the crate's `cuda` folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The name that `#include` uses.
    pub name: &'static str,
    /// The text.
    pub text: &'static str,
}

macro_rules! source {
    ($name:literal) => {
        Source { name: $name, text: include_str!(concat!("../cuda/", $name)) }
    };
}

/// Headers, each given to every family.
const HEADERS: &[Source] = &[
    source!("simt.cuh"),
    source!("carry.cuh"),
    source!("fr.cuh"),
    source!("fr_prepared.cuh"),
    source!("fq.cuh"),
    source!("fq_inverse.cuh"),
    source!("fq2.cuh"),
    source!("curve.cuh"),
    source!("ntt.cuh"),
    source!("ntt_columns.cuh"),
    source!("scan.cuh"),
    source!("msm.cuh"),
    source!("msm_lists.cuh"),
    source!("msm_tree.cuh"),
    source!("msm_quads.cuh"),
];

/// A group of kernels that is compiled and loaded as one module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Family {
    /// Every routine of Fr, Fq and Fq2 over arrays, for comparing a device with the host.
    Field,
    /// Every routine of G1 and G2 over arrays, for comparing a device with the host.
    Curve,
    /// Transforms over Fr and pointwise steps.
    Ntt,
    /// Digits of scalars, and their sort into buckets.
    MsmSort,
    /// Lists of references that shrink from level to level.
    MsmLists,
    /// Bucket sums and reduction over G1.
    MsmG1,
    /// Bucket sums and reduction over G2.
    MsmG2,
    /// Many multiples of one point: what keys are made of.
    FixedBase,
}

impl Family {
    /// All families.
    pub const ALL: &'static [Self] = &[
        Self::Field,
        Self::Curve,
        Self::Ntt,
        Self::MsmSort,
        Self::MsmLists,
        Self::MsmG1,
        Self::MsmG2,
        Self::FixedBase,
    ];

    /// Those that a proof needs.
    pub const PROVING: &'static [Self] =
        &[Self::Ntt, Self::MsmSort, Self::MsmLists, Self::MsmG1, Self::MsmG2];

    /// The name used in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Field => "field",
            Self::Curve => "curve",
            Self::Ntt => "ntt",
            Self::MsmSort => "msm_sort",
            Self::MsmLists => "msm_lists",
            Self::MsmG1 => "msm_g1",
            Self::MsmG2 => "msm_g2",
            Self::FixedBase => "fixed_base",
        }
    }

    /// The translation unit.
    #[must_use]
    pub const fn source(self) -> Source {
        match self {
            Self::Field => source!("field.cu"),
            Self::Curve => source!("curve.cu"),
            Self::Ntt => source!("ntt.cu"),
            Self::MsmSort => source!("msm_sort.cu"),
            Self::MsmLists => source!("msm_lists.cu"),
            Self::MsmG1 => source!("msm_g1.cu"),
            Self::MsmG2 => source!("msm_g2.cu"),
            Self::FixedBase => source!("fixed_base.cu"),
        }
    }

    /// The headers that the translation unit may include.
    #[must_use]
    pub const fn headers(self) -> &'static [Source] {
        HEADERS
    }

    /// The names of the kernels, in the order of their definition.
    #[must_use]
    pub fn kernels(self) -> Vec<&'static str> {
        let text = self.source().text;
        text.match_indices("\nPS_KERNEL(")
            .filter_map(|(at, start)| text[at + start.len()..].split(',').next())
            .map(str::trim)
            .collect()
    }
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
