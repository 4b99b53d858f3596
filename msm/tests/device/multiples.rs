//! Multiples of one point on an NVIDIA card against those of the CPU, which are checked against blstrs.

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::Curve;
use group::prime::PrimeCurveAffine;
use prestage_msm::{Affine, Multiples, Threads};

use crate::common::random;

/// Zero, one, r − 1, powers of two and random scalars.
fn scalars(n: usize) -> Vec<Scalar> {
    let mut scalars = random(n, 5);
    let edges = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::ZERO, Scalar::from(2).pow_vartime([254])];
    for (i, place) in scalars.iter_mut().enumerate().filter(|(i, _)| i % 11 < edges.len()) {
        *place = edges[i % 11];
    }
    scalars
}

fn on_threads<A: Affine>(base: A) {
    for n in [0, 1, 2, 511, 512, 513, 1500] {
        let scalars = scalars(n);
        let points = Threads.multiples(&base, &scalars).unwrap();
        assert_eq!(points.len(), n);
        for (point, scalar) in points.iter().zip(&scalars) {
            assert_eq!(*point, (base * *scalar).to_affine(), "{n} in {}", A::NAME);
        }
    }
}

#[test]
fn multiples_on_threads_equal_blstrs() {
    on_threads(G1Affine::generator());
    on_threads((G1Affine::generator() * -Scalar::from(77)).to_affine());
    on_threads(G1Affine::identity());
    on_threads(G2Affine::generator());
}

#[cfg(feature = "cuda")]
#[test]
fn multiples_on_a_card_equal_those_of_the_cpu() {
    use crate::card::on_a_card;
    use prestage_vram::{Device, Worker};

    fn check<A: Affine>(card: &prestage_vram::cuda::Cuda, base: A, lengths: &[usize]) {
        for &n in lengths {
            let scalars = scalars(n);
            let mut worker = Worker::new(0);
            let turn = card.turn(&mut worker).unwrap();
            let points = turn.multiples(&base, &scalars).unwrap();
            turn.release().unwrap();
            assert!(points == Threads.multiples(&base, &scalars).unwrap(), "{n} in {}", A::NAME);
            assert_eq!(card.ledger().level().used(), prestage_vram::Bytes::ZERO, "nothing is left");
        }
    }
    on_a_card("multiples_on_a_card_equal_those_of_the_cpu", |card| {
        let other = (G1Affine::generator() * Scalar::from(12_345)).to_affine();
        check(card, other, &[0, 1, 63, 64, 5000, 40_001]);
        // Three chunks.
        check(card, G1Affine::generator(), &[(2 << 20) + 12_345]);
        check(card, G2Affine::generator(), &[1, 700, 40_001]);
    });
}
