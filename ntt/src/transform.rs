//! The value that describes one transform: direction, coset, and the order of its two sides.

use blstrs::Scalar;

/// How the n values of a polynomial lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// Value i at position i.
    #[default]
    Natural,
    /// Value i at the position that has the `log n` bits of i in reverse.
    Reversed,
}

/// Which way a transform goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Coefficients to evaluations.
    Forward,
    /// Evaluations to coefficients, with the factor `1/n`.
    Inverse,
}

/// One transform: between the coefficients of a polynomial of degree below n and its values at
/// `g w^i`, where the coset shift g is 1 unless set.
///
/// ```
/// use prestage_ntt::{Order, Transform};
/// let to_coefficients = Transform::inverse().to(Order::Reversed);
/// let to_coset = Transform::forward().on_coset(blstrs::Scalar::from(7)).from(Order::Reversed);
/// assert_eq!(to_coefficients.output, to_coset.input);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transform {
    /// Coefficients to evaluations, or back.
    pub direction: Direction,
    /// Evaluations lie on this multiple of the domain; `None` stands for the domain itself.
    pub shift: Option<Scalar>,
    /// Order of the values before.
    pub input: Order,
    /// Order of the values after.
    pub output: Order,
}

impl Transform {
    const fn new(direction: Direction) -> Self {
        Self { direction, shift: None, input: Order::Natural, output: Order::Natural }
    }

    /// Coefficients to evaluations on the domain, both in natural order.
    #[must_use]
    pub const fn forward() -> Self {
        Self::new(Direction::Forward)
    }

    /// Evaluations on the domain to coefficients, both in natural order.
    #[must_use]
    pub const fn inverse() -> Self {
        Self::new(Direction::Inverse)
    }

    /// Evaluations are those on the coset `shift * H`. Zero is refused when the transform runs.
    #[must_use]
    pub const fn on_coset(mut self, shift: Scalar) -> Self {
        self.shift = Some(shift);
        self
    }

    /// Values come in `order`.
    #[must_use]
    pub const fn from(mut self, order: Order) -> Self {
        self.input = order;
        self
    }

    /// Values leave in `order`.
    #[must_use]
    pub const fn to(mut self, order: Order) -> Self {
        self.output = order;
        self
    }
}
