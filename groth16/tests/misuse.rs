//! Programs that must not compile, with what the compiler says to them.
#![allow(missing_docs)]

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
