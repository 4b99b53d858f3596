//! The recorded runs are verified, and their pictures are pictures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use prestage_benches::{Error, Outcome, Recorded, msm, ntt, prove, transfer};
use prestage_harness::timeline::svg;
use prestage_vram::{Host, Track};

type Run = fn(&Recorded<Host>, u32) -> Result<Outcome, Error>;

#[test]
fn every_target_has_a_verified_timeline() {
    // Sums on the CPU read bases and scalars where they lie: nothing is copied up for them.
    let runs: [(&str, u64, Run); 4] =
        [("ntt", 4, ntt), ("msm", 2, msm), ("transfer", 3, transfer), ("prove", 2, prove)];
    for (name, results, run) in runs {
        let Outcome { report, timeline } = run(&Recorded::host().unwrap(), 8).unwrap();
        assert_eq!(report.verified.proofs(), results, "{name}");
        assert_eq!(report.times.busy() + report.times.idle().total(), report.times.wall(), "{name}");
        let (uploads, kernels) = (timeline.on(Track::Upload).count(), timeline.on(Track::Compute).count());
        match name {
            "msm" => assert_eq!((uploads, kernels), (0, 6)),
            "transfer" => assert!(uploads >= 2, "{uploads}"),
            _ => assert!(uploads >= 2 && kernels >= 2, "{name}: {uploads}, {kernels}"),
        }
        let svg = svg(&report, &timeline).unwrap();
        let picture = roxmltree::Document::parse(&svg).unwrap();
        assert_eq!(picture.root_element().tag_name().name(), "svg", "{name}");
    }
}
