//! Operation numbers of the `*_check` kernels, as in `cuda/field.cu` and `cuda/curve.cu`.

/// Operations of `fr_check`. Values are 8 little-endian limbs of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum FrOp {
    /// a·b/2^256, any a, canonical b: below 2r.
    Mul = 0,
    /// a + b, corrected exactly by 2r.
    Add = 1,
    /// a + b, corrected on the top limb alone.
    AddLoose = 2,
    /// a − b for b ≤ 2r, corrected by 2r.
    Sub = 3,
    /// The representative of a below r.
    Canonical = 4,
    /// The integer of a Montgomery form.
    ToInteger = 5,
    /// The Montgomery form of an integer.
    FromInteger = 6,
}

/// Operations of `fq_check` and `fq2_check`. Values are 12 (24) little-endian limbs of 32 bits, below 2p.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum FqOp {
    /// a·b.
    Mul = 0,
    /// a².
    Sqr = 1,
    /// a + b.
    Add = 2,
    /// a − b.
    Sub = 3,
    /// −a.
    Neg = 4,
    /// a·b + c·d, one reduction.
    MulAdd = 5,
    /// The representative of a below p.
    Canonical = 6,
    /// 1/a by binary GCD, 0 for 0.
    Inverse = 7,
    /// 1/a by exponentiation, 0 for 0 (Fq alone).
    InverseByPower = 8,
    /// 1 if a = 0, else 0.
    IsZero = 9,
}

/// Operations of `g1_check` and `g2_check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum CurveOp {
    /// a + b, b affine, in XYZZ coordinates.
    Mixed = 0,
    /// a + b, both in XYZZ coordinates.
    Full = 1,
    /// 2a.
    Double = 2,
    /// a + b by the affine formulas.
    Affine = 3,
    /// −a.
    Negate = 4,
}
