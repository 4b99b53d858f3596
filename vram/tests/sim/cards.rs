//! Cards as text.

use prestage_vram::Card;
use prestage_vram::sim::{CardError, PRESETS};

const TEMPLATE: &str = include_str!("../../presets/template.toml");

#[test]
fn the_template_and_every_preset_know_the_same_kernels() {
    let template = Card::from_toml(TEMPLATE).unwrap();
    for (name, _) in PRESETS {
        let card = Card::preset(name).unwrap();
        assert_eq!(card.name, *name);
        assert!(card.kernels.keys().eq(template.kernels.keys()), "{name}");
    }
}

#[test]
fn what_is_no_card_is_refused_in_one_line() {
    let unknown = Card::preset("gtx-480").unwrap_err();
    assert!(matches!(&unknown, CardError::Unknown { name } if name == "gtx-480"));
    assert!(unknown.to_string().contains("rtx-5070-ti-16g"), "{unknown}");
    for (from, to, says) in [
        ("capacity = \"16GiB\"", "capacity = \"16GB\"", "16GB"),
        ("capacity = \"16GiB\"", "", "capacity"),
        ("capacity = \"16GiB\"", "capacity = \"0\"", "capacity"),
        ("margin = \"512MiB\"", "margin = \"512MiB\"\nmargins = 3", "margins"),
        ("upload_pageable = 7.0", "upload_pageable = 0.0", "link.upload_pageable"),
        ("download_pinned = 25.0", "download_pinned = nan", "link.download_pinned"),
        ("copy_engines = 2", "copy_engines = 3", "copy_engines"),
        ("launch_ns = 4_000", "launch_ns = -1", "launch_ns"),
        ("\"clean\"", "\"explode\"", "explode"),
    ] {
        let text = TEMPLATE.replace(from, to);
        assert_ne!(text, TEMPLATE);
        let words = Card::from_toml(&text).unwrap_err().to_string();
        assert!(words.contains(says) && !words.contains('\n'), "{words}");
    }
}
