//! Row P10. Alone in its binary, so that nothing else of this process takes memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use common::devices::Subject;
use common::{blinding, squares};
use prestage_groth16::{Assignment, Circom, Options, Policy, Prover, Residency, setup_insecure_from_seed};
use prestage_vram::{Bytes, Device, Holding, Host, LedgerConfig, Level, Reading, Sim, Worker};

/// What a proof could leave behind on a device.
type Left = (Vec<Holding>, Level, Bytes, Reading);

fn left<D: Device>(device: &D) -> Left {
    let ledger = device.ledger();
    (ledger.held(), ledger.level(), ledger.locked().bytes(), device.reading().unwrap())
}

/// What this process keeps in memory.
#[cfg(target_os = "linux")]
fn resident() -> Bytes {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split_whitespace().nth(1).unwrap().parse().unwrap();
    Bytes::of::<u8>(pages * prestage_transfer::page_size())
}

#[cfg(not(target_os = "linux"))]
fn resident() -> Bytes {
    Bytes::ZERO
}

/// Twenty proofs, the policies in turn, each with an assignment of its own, verified.
fn prove_twenty<D: Subject>(residency: Residency) {
    let (r1cs, witness) = squares(2000, 3);
    let key = setup_insecure_from_seed::<Circom>(&r1cs, [7; 32]).unwrap();
    let policies = [Policy::Full, Policy::AThenBc, Policy::Chunked(4), Policy::None];
    let device = D::open_for(11, LedgerConfig::default());
    let prover = Prover::new(&device, key).unwrap().keeping(residency);
    // What stays pinned between proofs: the places of results.
    let pinned = device.ledger().locked().bytes();
    let mut worker = Worker::new(0);
    let mut stays = Bytes::ZERO;
    let mut after = Vec::new();
    // The largest first: what it takes of host memory is kept.
    for policy in policies.into_iter().cycle().skip(2).take(20) {
        let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
        assert!(device.ledger().locked().bytes() > pinned);
        let options = Options::default().policy(policy).insecure_blinding(blinding(1));
        let proved = prover.prove(&mut worker, &assignment, &options).unwrap();
        assert_eq!(proved.plan.policy(), policy);
        stays = proved.plan.points().into_iter().sum();
        drop(assignment);
        let (held, level, locked, reading) = left(&device);
        after.push(((held, level, locked, reading), resident()));
        // Besides that, what the next proof will use.
        assert_eq!(locked, pinned + prover.memory().idle());
    }
    let [second, last] = [1, 19].map(|i: usize| &after[i]);
    assert_eq!(second.0, last.0);
    let (held, level, ..) = &last.0;
    assert!(held.iter().all(|holding| holding.worker.is_none()), "{held:?}");
    assert_eq!((level.used(), stays == Bytes::ZERO), (stays, residency == Residency::None));
    assert!(last.1.saturating_sub(second.1) <= Bytes::mib(16), "{} grew to {}", second.1, last.1);
    drop(prover);
    assert_eq!(device.ledger().locked().bytes(), Bytes::ZERO);
    assert_eq!(device.ledger().level().used(), Bytes::ZERO);
}

#[test]
fn p10_twenty_proofs_leave_what_two_left() {
    prove_twenty::<Host>(Residency::None);
    prove_twenty::<Host>(Residency::All);
    prove_twenty::<Sim>(Residency::None);
}

#[cfg(feature = "cuda")]
#[test]
fn p10_twenty_proofs_on_an_nvidia_card_leave_what_two_left() {
    common::devices::on_a_card("p10", || {
        prove_twenty::<prestage_vram::cuda::Cuda>(Residency::None);
        prove_twenty::<prestage_vram::cuda::Cuda>(Residency::All);
    });
}
