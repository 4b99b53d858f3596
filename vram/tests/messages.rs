//! Refusals read as the design shows them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use prestage_vram::{Bytes, Class, Error, Holding, Refused, WorkerId};

fn example() -> Refused {
    Refused {
        label: "bc",
        need: Bytes::gib(8),
        free: Bytes::mib(14_848 - 4096 - 4659),
        margin: Bytes::mib(512),
        retained: Bytes::mib(4659),
        budget: Bytes::mib(14_848),
        empty: Bytes::mib(14_848),
        worker: WorkerId(1),
        phase: "stage",
        never: false,
        held: vec![Holding {
            label: "a",
            bytes: Bytes::gib(4),
            worker: Some(WorkerId(1)),
            phase: "stage",
            class: Class::Direct,
        }],
        driver: None,
    }
}

#[test]
fn a_refusal_names_need_free_margin_retained_and_holders() {
    assert_eq!(
        example().to_string(),
        "refused 8.00 GiB for bc (worker 1, stage): free 5.95, margin 0.50, retained 4.55; held: a 4.00 (worker 1)"
    );
    let error: Error = std::sync::Arc::new(example()).into();
    assert_eq!(error.to_string(), example().to_string());
}

#[test]
fn a_refusal_tells_residents_drivers_words_and_what_can_never_be() {
    let key =
        Holding { label: "key h", bytes: Bytes::mib(2), worker: None, phase: "load", class: Class::Pooled };
    let refused = Refused { held: vec![key], driver: Some("CUDA_ERROR_OUT_OF_MEMORY".into()), ..example() };
    assert!(refused.to_string().ends_with(
        "retained 4.55; the driver says: CUDA_ERROR_OUT_OF_MEMORY; held: key h 2.00 MiB (resident)"
    ));
    let refused = Refused { need: Bytes::gib(15), never: true, held: Vec::new(), ..example() };
    assert!(refused.to_string().ends_with("retained 4.55; the empty device grants 14.50; held: nothing"));
}
