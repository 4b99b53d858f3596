//! `verification_key.json`: what is read is written and read again as the same key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prestage_groth16::format::json;

fuzz_target!(|data: &[u8]| {
    if let Ok(vk) = json::read_verifying_key(data) {
        let mut written = Vec::new();
        json::write_verifying_key(&mut written, &vk).expect("a vector takes everything");
        assert_eq!(json::read_verifying_key(&written).expect("what was written"), vk);
    }
});
