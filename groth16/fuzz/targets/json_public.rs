//! `public.json`: what is read is written and read again as the same inputs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prestage_groth16::format::json;

fuzz_target!(|data: &[u8]| {
    if let Ok(inputs) = json::read_public(data) {
        let mut written = Vec::new();
        json::write_public(&mut written, &inputs).expect("a vector takes everything");
        assert_eq!(json::read_public(&written).expect("what was written"), inputs);
    }
});
