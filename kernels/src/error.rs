//! What can go wrong between a kernel source and its result.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The host build found a broken invariant, an unsynchronised access or a wrong launch.
    #[error("kernel {kernel} on the host: {message}")]
    Host {
        /// The kernel's name.
        kernel: String,
        /// File, line and condition, or what is wrong with the launch.
        message: String,
    },
}
