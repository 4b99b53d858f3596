//! What can no longer be written: programs that must not compile.

fn must_not_compile(programs: &str) {
    trybuild::TestCases::new().compile_fail(format!("tests/regressions/ui/{programs}"));
}

#[test]
fn b055_device_memory_is_not_registered_as_host_memory() {
    must_not_compile("b055_*.rs");
}

#[test]
fn b056_read_only_memory_is_not_registered() {
    must_not_compile("b056_*.rs");
}

#[test]
fn b081_borrowed_memory_is_no_source_of_an_asynchronous_copy() {
    must_not_compile("b081_*.rs");
}

#[test]
fn b084_a_download_is_not_read_before_it_was_waited_for() {
    must_not_compile("b084_*.rs");
}
