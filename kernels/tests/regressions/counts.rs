//! Local memory and spills: what ptxas reported, from counts.tsv, which scripts/counts.py keeps true.

use std::collections::{BTreeMap, BTreeSet};

use prestage_kernels::{Arch, Family};

const TABLE: &str = include_str!("../../counts.tsv");

/// (family, kernel, architecture) to the values by column.
fn rows() -> Vec<([&'static str; 3], BTreeMap<&'static str, u64>)> {
    let mut lines = TABLE.lines().map(|l| l.split('\t').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    lines
        .map(|cells| {
            let values =
                header[3..].iter().copied().zip(cells[3..].iter().map(|v| v.parse().unwrap())).collect();
            ([cells[0], cells[1], cells[2]], values)
        })
        .collect()
}

/// The driver reserves a kernel's local memory for every thread that can be resident: 1536 on each of the 70
/// multiprocessors of the 16 GiB card that plans are made for. That must stay below 64 MiB.
#[test]
fn b045_local_memory_of_all_resident_threads_is_small() {
    for (name, values) in rows() {
        // These compare a device with the host and never run beside a proof.
        if matches!(name[0], "field" | "curve") {
            continue;
        }
        let reserved = values["stack"] * 1536 * 70;
        assert!(
            reserved < 64 << 20,
            "{name:?}: {} bytes a thread, {} MiB in all",
            values["stack"],
            reserved >> 20
        );
    }
}

/// Nothing about local memory is invisible: every kernel that is compiled has a row for every architecture.
#[test]
fn b046_every_kernel_is_accounted_for() {
    let listed: BTreeSet<[&str; 3]> = rows().into_iter().map(|(name, _)| name).collect();
    let archs: Vec<String> = Arch::ALL.iter().map(Arch::to_string).collect();
    let mut expected = BTreeSet::new();
    for family in Family::ALL {
        for kernel in family.kernels() {
            for arch in &archs {
                expected.insert([family.name(), kernel, arch.as_str()]);
            }
        }
    }
    assert_eq!(listed, expected);
}

/// The kernels where the time goes keep their registers: no spill where one point or eight elements fit, little
/// elsewhere.
#[test]
fn b047_hot_kernels_do_not_spill() {
    for (name, values) in rows() {
        let limit = match name[1] {
            "g1_tree_add" | "g1_tree_products" | "g1_tree_invert" | "g1_sum_slices" | "g1_multiples" => 0,
            k if k.starts_with("ntt_") || k.starts_with("fr_") || k.starts_with("msm_") => 256,
            _ => continue,
        };
        assert!(values["spill_stores"] <= limit, "{name:?} spills {} bytes", values["spill_stores"]);
    }
}
