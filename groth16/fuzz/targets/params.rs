//! bellman parameters: whatever is read ends where the notes say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prestage_groth16::Density;
use prestage_groth16::format::{Note, PointChecks, params};

fuzz_target!(|data: &[u8]| {
    let _ = params::read_verifying_key(data);
    if let Ok(read) = params::read(data, PointChecks::Unchecked) {
        for note in &read.notes {
            if let Note::Trailing { offset, bytes } = note {
                assert_eq!(offset + bytes, data.len() as u64);
            }
        }
        let _ = params::read(data, PointChecks::Full);
        let (a, b) = (read.value.a.len(), read.value.b_g1.len());
        let n = a.max(b);
        let density = |k| Density::from_fn(n, |i| i < k);
        if let Ok(key) = read.value.with_densities(density(a), density(b)) {
            let mut written = Vec::new();
            params::write(&mut written, &key).expect("it came from such a file").expect("a vector");
            assert_eq!(written, data[..written.len()]);
        }
    }
});
