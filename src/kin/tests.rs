//! Tests of closed forms against those found step by step.
#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn eigenvalues_in_closed_form_are_those_found_step_by_step(of in proptest::array::uniform9(-1.0..1.0_f64)) {
        let any = nalgebra::Matrix3::from_row_slice(&of);
        let symmetric = any * any.transpose();
        let sorted = |mut of: nalgebra::Vector3<f64>| {
            of.as_mut_slice().sort_by(f64::total_cmp);
            of
        };
        let (a, b) = (sorted(super::eigenvalues(&symmetric)), sorted(symmetric.symmetric_eigenvalues()));
        prop_assert!((a - b).norm() < 1e-7 * (1.0 + b.norm()), "{a} {b}");
    }
}
