//! `.zkey`: a key that is read with full checks is read without them, and is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prestage_groth16::format::{PointChecks, zkey};

fuzz_target!(|data: &[u8]| {
    let _ = zkey::read_verifying_key(data);
    if let Ok(key) = zkey::read(data, PointChecks::Unchecked) {
        assert!(key.rows().a.n_terms() + key.rows().b.n_terms() <= data.len() / 44);
        if let Ok(checked) = zkey::read(data, PointChecks::Full) {
            assert_eq!((checked.a(), checked.b_g2()), (key.a(), key.b_g2()));
        }
    }
});
