//! Proofs of 192 bytes: a proof has one encoding.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prestage_groth16::format::proof;

fuzz_target!(|data: &[u8]| {
    if let Ok(read) = proof::read(data) {
        assert_eq!(proof::to_bytes(&read), data);
    }
});
