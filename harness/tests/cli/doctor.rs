//! `prestage doctor`: what is on the machine.

use crate::command::{Work, keys, run};

#[test]
fn the_doctor_ends_well_with_or_without_a_card() {
    let work = Work::new();
    let text = run!(work, "doctor").done().to_owned();
    for name in [
        "processor",
        "host memory",
        "memlock limit",
        "host copies",
        "NVRTC",
        "CUPTI",
        "--device auto takes `",
    ] {
        assert!(text.contains(name), "{name}: {text}");
    }
    let answer = run!(work, "doctor", "--json").json();
    // A card that is here and not taken comes with the reason.
    match answer["device"].as_str().unwrap() {
        "host" if answer["not_taken"].is_string() => {
            assert_eq!(keys(&answer), ["device", "findings", "not_taken"]);
        }
        "host" | "cuda:0" => assert_eq!(keys(&answer), ["device", "findings"]),
        other => panic!("{other}"),
    }
    #[cfg(feature = "cuda")]
    assert!(text.contains(&work.path("cache").join("kernels").display().to_string()), "{text}");
    for finding in answer["findings"].as_array().unwrap() {
        let (present, hint) = (&finding["present"], &finding["hint"]);
        assert!(finding["name"].is_string() && finding["detail"].is_string(), "{finding}");
        // What is missing comes with how to get it.
        assert_eq!(present == false, hint.is_string(), "{finding}");
    }
}

#[test]
fn libraries_are_found_where_the_loader_looks() {
    let work = Work::new();
    std::fs::write(work.path("libnvrtc.so.13"), "").unwrap();
    let args = ["doctor", "--json"].map(std::ffi::OsStr::new);
    let output = work.command(&args).env("LD_LIBRARY_PATH", work.path("")).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let nvrtc = answer["findings"].as_array().unwrap().iter().find(|f| f["name"] == "NVRTC").unwrap();
    assert_eq!(nvrtc["present"], true);
    assert!(nvrtc["detail"].as_str().unwrap().ends_with("/libnvrtc.so.13"));
}
