//! The `prestage` command line.
fn main() {}
