//! `proof.json`: what is read is written and read again as the same proof.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prestage_groth16::format::json;

fuzz_target!(|data: &[u8]| {
    if let Ok(proof) = json::read_proof(data) {
        let mut written = Vec::new();
        json::write_proof(&mut written, &proof).expect("a vector takes everything");
        assert_eq!(json::read_proof(&written).expect("what was written"), proof);
    }
});
