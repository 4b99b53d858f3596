//! Wrong command lines, help, version.

use crate::command::{Work, run};

#[test]
fn no_verb_shows_help_and_is_wrong_usage() {
    let ran = Work::new().run(&[]);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""));
    for verb in ["doctor", "demo", "setup", "prove", "verify", "replay", "plan", "run", "compare", "kernels"]
    {
        assert!(ran.stderr.contains(&format!("\n  {verb} ")), "{verb}: {}", ran.stderr);
    }
}

#[test]
fn help_and_version_are_answers() {
    let work = Work::new();
    assert_eq!(run!(work, "--version").done(), format!("prestage {}\n", env!("CARGO_PKG_VERSION")));
    let help = run!(work, "--help");
    for word in ["Exit status: 0", "PRESTAGE_CACHE_DIR", "verify"] {
        assert!(help.done().contains(word), "{word}");
    }
    for verb in ["doctor", "demo", "setup", "prove", "verify", "replay", "plan", "run", "compare", "kernels"]
    {
        assert!(run!(work, verb, "--help").done().contains("--json"), "{verb}");
    }
    for verb in ["demo", "prove", "plan", "run", "replay"] {
        assert!(run!(work, verb, "--help").done().contains("sim:PATH.toml"), "{verb}");
    }
    assert!(run!(work, "prove", "--help").done().contains("only with --r1cs"));
    // What the help says is accepted, is.
    let help = run!(work, "prove", "--help");
    assert!(help.done().contains("chunked:K") && help.done().contains("a-then-bc"));
}

#[test]
fn wrong_arguments_are_one_line_and_status_two() {
    let work = Work::new();
    let line = |args: &[&str]| {
        let args: Vec<&std::ffi::OsStr> = args.iter().map(std::ffi::OsStr::new).collect();
        work.run(&args).misused().to_owned()
    };
    let prove = ["prove", "--key", "k", "--witness", "w", "--proof", "p"];
    let with = |more: &[&str]| line(&[&prove, more].concat());
    assert!(line(&["frobnicate"]).contains("frobnicate"));
    assert!(line(&["verify", "--vkey", "v"]).contains("--proof"), "names what is missing");
    assert!(line(&["doctor", "--jsn"]).contains("; tip: "));
    for (flag, bad, says) in [
        ("--policy", "chunked", "chunked:K"),
        ("--policy", "chunked:3", "power of two"),
        ("--policy", "chunked:128", "power of two"),
        ("--policy", "Full", "a-then-bc"),
        ("--device", "gpu", "names no device"),
        ("--device", "host@", "names no device"),
        ("--device", "cuda:-1", "names no device"),
        ("--margin", "lots", "lots"),
        ("--margin", "lots", "50permille"),
        ("--margin", "70000permille", "50permille"),
        ("--margin", "1001permille", "more than the whole device"),
        ("--device", "sim:", "sim:PATH.toml"),
    ] {
        let line = with(&[flag, bad]);
        assert!(line.contains(says) && line.contains(flag), "{flag} {bad}: {line}");
    }
    assert!(with(&["--margin=-1MiB"]).contains("-1MiB"));
    assert!(line(&["prove", "--key", ""]).contains("--key"), "an empty name names nothing");
    assert!(with(&["--no-check"]).contains("--r1cs"), "no check without a circuit to check against");
    for size in ["3", "21", "x", ""] {
        assert!(line(&["demo", "--log-size", size]).contains("--log-size"));
    }
    let setup =
        |seed: &str| line(&["setup", "--r1cs", "r", "--key", "k", "--vkey", "v", "--insecure-seed", seed]);
    for seed in ["", "xyz", "0x", &"1".repeat(65)] {
        assert!(setup(seed).contains("1 to 64 hex digits"), "{seed}");
    }
}

#[test]
fn with_json_a_wrong_command_line_is_an_object_too() {
    let ran = run!(Work::new(), "demo", "--json", "--log-size", "99");
    let line = ran.line_and_status(2);
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["error"], line);
}

/// Before any work: what is no NVIDIA card has no records.
#[test]
fn records_are_of_nvidia_cards() {
    let work = Work::new();
    for device in ["host", "sim:h200-141g", "host,host"] {
        let ran = run!(work, "run", "--shape", "square-2^4", "--device", device, "--cupti");
        let line = ran.refused();
        assert!(line.contains("--cupti records what NVIDIA cards do") && line.contains(device), "{line}");
    }
    let multiplier = |name: &str| crate::command::fixture(&format!("multiplier/{name}"));
    let ran = run!(
        work,
        "prove",
        "--device",
        "host",
        "--cupti",
        "--key",
        multiplier("circuit.zkey"),
        "--witness",
        multiplier("witness.wtns"),
        "--proof",
        work.path("proof.json")
    );
    assert!(ran.refused().contains("host is none"), "{}", ran.refused());
    assert!(!work.path("proof.json").exists());
}
