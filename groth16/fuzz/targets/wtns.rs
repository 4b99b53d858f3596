//! `.wtns`: what is read is written and read again as the same witness.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prestage_groth16::format::wtns;

fuzz_target!(|data: &[u8]| {
    if let Ok(witness) = wtns::read(data) {
        let mut written = Vec::new();
        wtns::write(&mut written, &witness).expect("a vector takes everything");
        assert_eq!(wtns::read(&written).expect("what was written"), witness);
    }
});
