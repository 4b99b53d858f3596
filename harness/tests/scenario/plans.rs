//! Plans of the full-size shape, made through the path of `prestage plan`, with the footprints of the simulated card's own
//! stages.

use prestage_groth16::{Error as Proving, Policy, Residency};
use prestage_harness::Error;
use prestage_harness::scenario::{Outlook, Target, Wanted};
use prestage_ntt::Domain;
use prestage_vram::{Bytes, Card, Host, HostConfig, LedgerConfig, Margin, Sim};

use super::{card, porep};

const MIB: u64 = 1 << 20;

const AUTO: (Wanted, Residency) = (Wanted::Policy(Policy::Auto), Residency::Auto);

fn open(usable: Bytes, margin: Margin) -> Result<Sim, prestage_vram::Error> {
    Target::open_sim(card(usable), 1, LedgerConfig { margin, ..LedgerConfig::default() })
}

fn outlook_on(sim: &Sim, wanted: Wanted) -> Result<Outlook, Error> {
    let shape = porep().shape().unwrap();
    let domain = Domain::new(1 << 27, 7).unwrap();
    Outlook::new(("porep-32g", &shape), &domain, ("sim", sim), (wanted, Residency::Auto), 1)
}

/// With exactly this budget.
fn outlook(budget: Bytes) -> Result<Outlook, Error> {
    outlook_on(&open(budget, Margin::Fixed(Bytes::ZERO)).unwrap(), Wanted::Policy(Policy::Auto))
}

/// T: the tables of the quotient, whose polynomials are whole.
fn tables() -> Bytes {
    let t = Bytes::new(outlook(Bytes::gib(20)).unwrap().tables_bytes);
    assert!(t > Bytes::ZERO && t <= Bytes::mib(32), "T is {t}");
    t
}

#[test]
fn l1_sizes_of_the_porep_shape() {
    let plan = outlook(Bytes::gib(14)).unwrap();
    assert_eq!((plan.domain, plan.polynomial_bytes, plan.padding), (134_217_728, 4_294_967_296, 3_938_859));
    let gib = plan.key_bytes.map(|b| format!("{:.2}", Bytes::new(b).as_gib()));
    assert_eq!(gib, ["12.00", "11.64", "11.60", "2.96", "5.92"]);
}

#[test]
fn l2_full_on_a_16_gib_card() {
    let sim = open(Bytes::mib(14_643), Margin::Fixed(Bytes::mib(512))).unwrap();
    let plan = outlook_on(&sim, Wanted::Policy(Policy::Auto)).unwrap();
    assert_eq!((plan.policy.as_str(), plan.budget_bytes), ("full", 14_131 * MIB));
    assert_eq!(Bytes::new(plan.phases[1].peak_bytes), Bytes::mib(12_288) + tables());
    assert!(plan.peak_bytes <= plan.budget_bytes);
    assert_eq!(plan.remaining_bytes, plan.budget_bytes - plan.peak_bytes);
    assert_eq!(plan.capacity_bytes - plan.context_bytes - plan.margin_bytes, plan.budget_bytes);
    // As a person would write it: the sums on the lines above.
    let text = plan.to_string();
    for words in [["c", "+", "4.00", "GiB", "12.00", "GiB"], ["b", "-", "4.00", "GiB", "8.00", "GiB"]] {
        assert!(text.lines().any(|line| line.split_whitespace().eq(words)), "{text}");
    }
    assert!(text.contains("margin 512.00 MiB = budget 13.80 GiB"), "{text}");
}

#[test]
fn l3_boundary_of_full() {
    let exactly = Bytes::mib(12_288) + tables();
    assert_eq!(outlook(exactly).unwrap().policy, "full");
    let less = outlook(exactly.saturating_sub(Bytes::new(1))).unwrap();
    assert_eq!(less.policy, "a-then-bc");
    assert!(less.reason.starts_with("full needs 12.0"), "{}", less.reason);
}

#[test]
fn l4_a_then_bc_down_to_two_polynomials() {
    let least = Bytes::mib(8_192) + tables();
    for budget in [least, Bytes::mib(10_000), (Bytes::mib(12_288) + tables()).saturating_sub(Bytes::new(1))] {
        let plan = outlook(budget).unwrap();
        assert_eq!((plan.policy.as_str(), Bytes::new(plan.peak_bytes)), ("a-then-bc", least));
    }
    assert_ne!(outlook(least.saturating_sub(Bytes::new(1))).unwrap().policy, "a-then-bc");
}

#[test]
fn l5_chunked_then_refused() {
    // Pieces have tables of their own.
    let whole = tables().get();
    let large = open(Bytes::gib(20), Margin::Fixed(Bytes::ZERO)).unwrap();
    let tables = |k| outlook_on(&large, Wanted::Policy(Policy::Chunked(k))).unwrap().tables_bytes;
    for (mib, t, k) in [(8_191, whole, 4), (6_144, tables(4), 4), (5_120, tables(8), 8)] {
        let t = Bytes::new(t);
        assert!(t <= Bytes::mib(32), "{t}");
        let plan = outlook(Bytes::mib(mib) + t).unwrap();
        assert_eq!(plan.policy, format!("chunked:{k}"), "{mib}");
        assert!(plan.peak_bytes <= plan.budget_bytes);
        let polynomials = plan.phases.iter().take(2).flat_map(|p| &p.steps);
        let largest = polynomials.map(|s| s.change_bytes.unsigned_abs()).max().unwrap();
        assert_eq!(largest, 4_096 * MIB, "no 8 GiB allocation anywhere");
    }
    let t = Bytes::new(tables(64));
    match outlook(Bytes::mib(4_096) + t) {
        Err(Error::Groth16(Proving::PlanRefused { need, free, margin, .. })) => {
            assert!(need > free, "{need} {free}");
            assert_eq!((free, margin), (Bytes::mib(4_096) + t, Bytes::ZERO));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn l6_margin_above_usable_is_a_budget_of_nothing() {
    let sim = open(Bytes::mib(300), Margin::Fixed(Bytes::mib(512))).unwrap();
    match outlook_on(&sim, Wanted::Policy(Policy::Auto)) {
        Err(Error::Groth16(Proving::PlanRefused { free, margin, .. })) => {
            assert_eq!((free, margin), (Bytes::ZERO, Bytes::mib(512)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn l7_margins_are_honoured_or_refused() {
    let usable = Bytes::mib(14_767);
    let capacity = usable + Bytes::mib(1_536);
    for (margin, bytes) in [
        (Margin::Fixed(Bytes::ZERO), Bytes::ZERO),
        (Margin::default(), Bytes::mib(512)),
        (Margin::Permille(50), Bytes::new(capacity.get() / 20)),
    ] {
        let plan = outlook_on(&open(usable, margin).unwrap(), Wanted::Policy(Policy::Auto)).unwrap();
        assert_eq!(Bytes::new(plan.margin_bytes), bytes);
        assert_eq!(Bytes::new(plan.budget_bytes), usable.saturating_sub(bytes));
    }
    let over = open(usable, Margin::Fixed(capacity + Bytes::new(1)));
    assert!(matches!(over, Err(prestage_vram::Error::MarginTooLarge { .. })));
}

#[test]
fn l11_b_and_c_are_gone_before_the_h_sum() {
    let sim = open(Bytes::mib(14_767), Margin::Fixed(Bytes::ZERO)).unwrap();
    let plan = outlook_on(&sim, Wanted::Policy(Policy::Full)).unwrap();
    let held_after = |phase: &str| {
        let phase = plan.phases.iter().find(|p| p.name == phase).unwrap();
        phase.steps.last().unwrap().held_bytes
    };
    assert_eq!((held_after("quotient"), held_after("h")), (4_096 * MIB, 0));
    // The original's scratch beside a alone, and beside all three.
    let scratch = 4_912 * MIB;
    assert_eq!(held_after("quotient") + scratch, 9_008 * MIB);
    assert!(plan.peak_bytes <= plan.budget_bytes);
    assert!(3 * plan.polynomial_bytes + scratch > plan.budget_bytes);
}

#[test]
fn chunked_takes_as_few_pieces_as_will_do() {
    for (mib, policy) in [(14_000, "chunked:2"), (6_200, "chunked:4"), (4_700, "chunked:16")] {
        let sim = open(Bytes::mib(mib), Margin::Fixed(Bytes::ZERO)).unwrap();
        assert_eq!(outlook_on(&sim, Wanted::Chunked).unwrap().policy, policy, "{mib}");
    }
}

#[test]
fn every_preset_and_the_cpu_have_an_outlook() {
    let shape = porep().shape().unwrap();
    let domain = Domain::new(1 << 27, 7).unwrap();
    for (name, _) in prestage_vram::sim::PRESETS {
        let ledger = LedgerConfig { ahead: true, ..LedgerConfig::default() };
        let sim = Target::open_sim(Card::preset(name).unwrap(), 1, ledger).unwrap();
        let plan = Outlook::new(("p", &shape), &domain, (name, &sim), AUTO, 2).unwrap();
        assert_eq!(plan.policy, "full", "{name}");
        let last = plan.ahead.last().unwrap();
        assert_eq!(last.polynomials, 3, "{name}: the next set fits once a is gone\n{plan}");
        if *name == "h200-141g" {
            assert_eq!(plan.ahead[0].polynomials, 3, "a large card holds both sets at once");
        }
    }
    let host = Host::open(HostConfig::default()).unwrap();
    let plan = Outlook::new(("p", &shape), &domain, ("host", &host), AUTO, 1).unwrap();
    assert_eq!((plan.policy.as_str(), plan.ahead.len()), ("full", 0));
}
