//! Plans of the full-size shape against the figures that are written down for a 16 GiB card.

use super::*;
use crate::key::Libsnark;
use crate::sizes::Counts;

const T: Bytes = Bytes::mib(32);

/// A card whose sums take 37 bytes a term and 368 MiB of buckets, or what a test says.
struct Card {
    tables: Bytes,
    scratch: fn(usize) -> Bytes,
}

impl Footprints for Card {
    fn tables(&self, _: Policy) -> Result<Bytes, Error> {
        Ok(self.tables)
    }

    fn scratch(&self, _: Sum, _: usize, batch: usize) -> Bytes {
        (self.scratch)(batch)
    }
}

fn lean() -> Card {
    Card { tables: T, scratch: |n| Bytes::new(37 * n as u64) }
}

fn porep() -> Shape {
    Shape::new::<Libsnark>(&Counts::POREP_32G).unwrap()
}

fn plan(budget: Bytes) -> Result<Plan, Error> {
    Plan::new(&porep(), &lean(), Policy::Auto, budget, Bytes::mib(512))
}

#[test]
fn l2_full_on_a_budget_of_14131_mib() {
    let plan = plan(Bytes::mib(14_643).saturating_sub(Bytes::mib(512))).unwrap();
    assert_eq!(plan.policy(), Policy::Full);
    assert_eq!(
        plan.phases()[..2],
        [
            Phase { name: "stage", peak: Bytes::mib(12_288) },
            Phase { name: "quotient", peak: Bytes::mib(12_288) + T },
        ]
    );
    assert!(plan.peak() <= Bytes::mib(14_131));
    assert!(plan.reason().contains("full is the largest plan and fits"), "{}", plan.reason());
}

#[test]
fn l3_boundary_of_full() {
    let exactly = Bytes::mib(12_288) + T;
    assert_eq!(plan(exactly).unwrap().policy(), Policy::Full);
    let less = plan(exactly.saturating_sub(Bytes::new(1))).unwrap();
    assert_eq!(less.policy(), Policy::AThenBc);
    assert!(less.reason().starts_with("full needs 12.03 GiB; a-then-bc fits"), "{}", less.reason());
}

#[test]
fn l4_a_then_bc_peaks_at_two_polynomials_and_tables() {
    for budget in [Bytes::mib(8_192) + T, Bytes::mib(12_000)] {
        let plan = plan(budget).unwrap();
        assert_eq!(plan.policy(), Policy::AThenBc);
        assert_eq!(plan.peak(), Bytes::mib(8_192) + T);
    }
}

#[test]
fn l5_chunks_then_a_typed_refusal() {
    let at = |mib| plan(Bytes::mib(mib) + T).map(|p| (p.policy(), p.peak()));
    assert_eq!(at(8_191).unwrap(), (Policy::Chunked(4), Bytes::mib(6_144) + T));
    assert_eq!(at(6_144).unwrap(), (Policy::Chunked(4), Bytes::mib(6_144) + T));
    assert_eq!(at(5_120).unwrap(), (Policy::Chunked(8), Bytes::mib(5_120) + T));
    match at(4_096) {
        Err(Error::PlanRefused { policy, phase, need, free, margin }) => {
            assert_eq!((policy, phase), (Policy::Chunked(64), "quotient"));
            assert_eq!(need, Bytes::mib(4_096 + 128) + T);
            assert_eq!((free, margin), (Bytes::mib(4_096) + T, Bytes::mib(512)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn l11_b_and_c_are_gone_when_h_runs() {
    let card = Card { tables: Bytes::ZERO, scratch: |_| Bytes::mib(4_912) };
    let plan = Plan::new(&porep(), &card, Policy::Full, Bytes::mib(14_767), Bytes::ZERO).unwrap();
    assert_eq!(plan.peak(), Bytes::mib(12_288));
    assert_eq!(plan.peak_from("h"), Bytes::mib(9_008));
    // Kept through H, b and c would have made it 17,200 MiB.
    assert!(plan.peak_from("h") + Bytes::mib(8_192) > Bytes::mib(14_767));
}

#[test]
fn sums_are_cut_into_batches_that_fit_and_no_smaller_ones() {
    let plan = plan(Bytes::mib(5_120) + T).unwrap();
    // 2^27 terms at 37 bytes beside a: halved until under what the quotient took.
    assert_eq!(plan.batch(Sum::H), 1 << 24);
    assert!(plan.phases().iter().all(|p| p.peak <= plan.peak_from("quotient")));
    let refused = Plan::new(
        &porep(),
        &Card {
            tables: T,
            scratch: |n| Bytes::gib(20).saturating_sub(Bytes::new(256)) + Bytes::new(n as u64),
        },
        Policy::Full,
        Bytes::gib(14),
        Bytes::ZERO,
    );
    assert!(matches!(refused, Err(Error::PlanRefused { phase: "h", need, .. }) if need == Bytes::gib(24)));
}

#[test]
fn the_least_batch_is_tried_before_a_sum_is_refused() {
    // 4001 terms: halves are 4001, 2001, 1001, 501, 251; what fits is 256 and no more.
    let counts = Counts { rows: 4_000, inputs: 1, aux: 4_000, a_aux: 4_000, b_input: 1, b_aux: 4_000 };
    let shape = Shape::new::<Libsnark>(&counts).unwrap();
    let card = Card { tables: Bytes::ZERO, scratch: |n| Bytes::kib(n as u64) };
    let at = |budget| Plan::new(&shape, &card, Policy::Full, budget, Bytes::ZERO);
    let plan = at(Bytes::kib(128 + 256)).unwrap();
    assert_eq!(Sum::ALL.map(|sum| plan.batch(sum)), [256, 256, 256, 256, 256]);
    let less = at(Bytes::kib(128 + 256).saturating_sub(Bytes::new(1)));
    assert!(matches!(less, Err(Error::PlanRefused { phase: "quotient" | "h", .. })));
}

#[test]
fn small_domains_skip_pieces_that_they_cannot_have() {
    let counts = Counts { rows: 4, inputs: 1, aux: 3, a_aux: 3, b_input: 0, b_aux: 3 };
    let shape = Shape::new::<Libsnark>(&counts).unwrap();
    let card = Card { tables: Bytes::ZERO, scratch: |_| Bytes::ZERO };
    let at = |bytes| Plan::new(&shape, &card, Policy::Auto, Bytes::new(bytes), Bytes::ZERO);
    // n = 128: AThenBc and Chunked(2) both take 256, and there is no Chunked(4) of four rows.
    assert_eq!(at(256).unwrap().policy(), Policy::AThenBc);
    assert!(matches!(at(255), Err(Error::PlanRefused { policy: Policy::Chunked(2), .. })));
}

#[test]
fn policies_are_written_and_read() {
    for residency in [Residency::Auto, Residency::None, Residency::All] {
        assert_eq!(residency.to_string().parse(), Ok(residency));
    }
    assert!("some".parse::<Residency>().unwrap_err().to_string().contains("auto, none or all"));
    for policy in [Policy::Auto, Policy::Full, Policy::AThenBc, Policy::Chunked(16), Policy::None] {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    for wrong in ["", "Full", "chunked", "chunked:", "chunked:3", "chunked:1", "chunked:128", "chunked:-2"] {
        assert!(wrong.parse::<Policy>().unwrap_err().to_string().contains("chunked:K"), "{wrong}");
    }
    assert!(matches!(
        Plan::new(&porep(), &lean(), Policy::Chunked(6), Bytes::gib(64), Bytes::ZERO),
        Err(Error::Chunks { chunks: 6 })
    ));
}

#[test]
fn the_steps_add_up_to_the_phases() {
    for policy in [Policy::Full, Policy::AThenBc, Policy::Chunked(4), Policy::Chunked(64), Policy::None] {
        let plan = Plan::new(&porep(), &lean(), policy, Bytes::mib(14_131), Bytes::mib(512)).unwrap();
        let steps = plan.steps();
        let mut held = Bytes::ZERO;
        for step in &steps {
            match step.change {
                Change::Takes(bytes) => held += bytes,
                Change::Frees(bytes) => held = held.checked_sub(bytes).unwrap(),
                Change::Reuses(bytes) => assert!(bytes <= held),
            }
            assert_eq!(step.held, held, "{policy}: {step:?}");
        }
        assert_eq!(held, Bytes::ZERO, "{policy}");
        for phase in plan.phases() {
            let most = steps.iter().filter(|s| s.phase == phase.name).map(|s| s.held).max();
            assert_eq!(most.unwrap_or_default(), phase.peak, "{policy}, {}", phase.name);
        }
    }
}

#[test]
fn points_stay_where_full_and_the_next_proof_leave_room() {
    let kept = |budget, policy, ahead| {
        let wanted = (policy, Residency::Auto);
        let plan = Plan::beside_points(&porep(), &lean(), wanted, budget, Bytes::ZERO, ahead).unwrap();
        assert!(plan.points().into_iter().sum::<Bytes>() + plan.peak() <= budget);
        Sum::ALL.into_iter().filter(|sum| plan.keeps(*sum)).map(Sum::name).collect::<Vec<_>>()
    };
    let (large, small) = (Bytes::gib(139), Bytes::mib(14_131));
    assert_eq!(kept(large, Policy::Auto, true), ["h", "l", "a", "b1", "b2"]);
    assert_eq!(kept(small, Policy::Auto, true), [""; 0]);
    assert_eq!(kept(small, Policy::AThenBc, false), [""; 0], "as little as `Full` would leave");
    // 12.03 GiB for one proof; L and A take 23.24 GiB, with both B 32.12.
    assert_eq!(kept(Bytes::gib(36), Policy::Auto, false), ["l", "a"]);
    assert_eq!(kept(Bytes::gib(45), Policy::Auto, false), ["l", "a", "b1", "b2"]);
    assert_eq!(
        kept(Bytes::gib(45), Policy::Auto, true),
        ["l", "b1", "b2"],
        "the next proof has room before they do"
    );
    // What is asked for is done.
    let all = (Policy::AThenBc, Residency::All);
    let plan = Plan::beside_points(&porep(), &lean(), all, Bytes::gib(54), Bytes::ZERO, false).unwrap();
    assert_eq!(plan.points(), porep().key_bytes());
    assert!(Plan::beside_points(&porep(), &lean(), all, Bytes::gib(50), Bytes::ZERO, false).is_err());
    let none = (Policy::Auto, Residency::None);
    let streamed = Plan::beside_points(&porep(), &lean(), none, large, Bytes::ZERO, true).unwrap();
    let ahead = Plan::ahead(&porep(), &lean(), Policy::Auto, large, Bytes::ZERO).unwrap();
    assert_eq!(streamed, ahead);
}

#[test]
fn sums_take_more_than_the_quotient_where_there_is_plenty() {
    // 19 GiB for all terms of H at once.
    let card = Card { tables: T, scratch: |n| Bytes::new(152 * n as u64) };
    let batch = |budget| Plan::new(&porep(), &card, Policy::Full, budget, Bytes::ZERO).unwrap().batch(Sum::H);
    assert_eq!((batch(Bytes::gib(45)), batch(Bytes::gib(48))), (1 << 26, (1 << 27) - 1));
}

#[test]
fn p12_sums_leave_room_for_the_next_proof_where_that_costs_little() {
    let budget = Bytes::mib(14_131);
    let alone = Plan::new(&porep(), &lean(), Policy::Full, budget, Bytes::mib(512)).unwrap();
    let ahead = Plan::ahead(&porep(), &lean(), Policy::Full, budget, Bytes::mib(512)).unwrap();
    assert_eq!((alone.batch(Sum::H), ahead.batch(Sum::H)), ((1 << 27) - 1, 1 << 25));
    assert_eq!((alone.batch(Sum::L), ahead.batch(Sum::L)), (130_169_893, 130_169_893_usize.div_ceil(4)));
    assert!(ahead.peak_from("l") + Bytes::mib(12_288) <= budget);
    // While a is still there, what is missing of the next proof is its last polynomial's share.
    assert!(ahead.peak_from("h") + Bytes::mib(8_192) <= budget);
    // On a card with no room for both, sums are as they were.
    let tight = Bytes::mib(12_288) + T;
    let alone = Plan::new(&porep(), &lean(), Policy::Full, tight, Bytes::ZERO).unwrap();
    assert_eq!(Plan::ahead(&porep(), &lean(), Policy::Full, tight, Bytes::ZERO).unwrap(), alone);
}
