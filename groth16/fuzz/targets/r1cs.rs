//! `.r1cs`: what is read is written and read again as the same circuit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prestage_groth16::format::r1cs;

fuzz_target!(|data: &[u8]| {
    if let Ok(circuit) = r1cs::read(data) {
        let mut written = Vec::new();
        r1cs::write(&mut written, &circuit).expect("a vector takes everything");
        assert_eq!(r1cs::read(&written).expect("what was written"), circuit);
        let _ = (circuit.density_a(), circuit.density_b(), circuit.domain_size());
    }
});
