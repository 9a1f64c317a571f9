//! Tests closed forms against iterative results.
#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn eigenvalues_in_closed_form_match_iterative_ones(elements in proptest::array::uniform9(-1.0..1.0_f64)) {
        let any = nalgebra::Matrix3::from_row_slice(&elements);
        let symmetric = any * any.transpose();
        let sorted = |mut values: nalgebra::Vector3<f64>| {
            values.as_mut_slice().sort_by(f64::total_cmp);
            values
        };
        let (a, b) = (sorted(super::eigenvalues(&symmetric)), sorted(symmetric.symmetric_eigenvalues()));
        prop_assert!((a - b).norm() < 1e-7 * (1.0 + b.norm()), "{a} {b}");
    }
}

fn planar() -> super::KinematicChain {
    let joint = super::RevoluteJoint {
        origin: nalgebra::Isometry3::translation(0.1, 0.0, 0.0),
        axis: nalgebra::Vector3::z_axis(),
        lower_rad: -3.0,
        upper_rad: 3.0,
    };
    super::KinematicChain::new(vec![joint.clone(), joint], nalgebra::Isometry3::identity()).unwrap()
}

/// A pose of another arm is refused: a joint without an angle used to count as zero.
#[test]
fn refuses_angles_of_another_arm() {
    let chain = planar();
    let tip = nalgebra::Point3::origin();
    for angles in [&[0.5][..], &[0.5, 0.5, 0.5]] {
        let q = super::JointVector::from_slice(angles);
        let calls: [&dyn Fn(); 3] = [
            &|| drop(chain.frames(&q)),
            &|| assert!(chain.forward(&q).translation.x.is_finite()),
            &|| assert!(chain.point(&q, &tip).x.is_finite()),
        ];
        for call in calls {
            let call = std::panic::AssertUnwindSafe(call);
            assert!(std::panic::catch_unwind(call).is_err(), "{angles:?}");
        }
    }
    let fits = super::JointVector::from_slice(&[0.5, 0.5]);
    assert!(chain.point(&fits, &tip).x > 0.1);
}

/// An elbow between parallel axes bends to the side of the pose, and no other joint's range changes.
#[test]
fn only_an_elbow_stays_bent() {
    let joint = |x_m: f64, turned: f64, axis| super::RevoluteJoint {
        origin: nalgebra::Isometry3::new(
            nalgebra::Vector3::new(x_m, 0.0, 0.0),
            nalgebra::Vector3::z() * turned,
        ),
        axis,
        lower_rad: -2.0,
        upper_rad: 2.0,
    };
    let (up, side) = (nalgebra::Vector3::z_axis(), nalgebra::Vector3::x_axis());
    // The third joint is the elbow; at its angle zero it is bent by 0.5.
    let joints = vec![
        joint(0.0, 0.0, side),
        joint(0.0, 0.0, up),
        joint(0.1, 0.5, up),
        joint(0.1, 0.0, up),
        joint(0.1, 0.0, side),
    ];
    let chain = super::KinematicChain::new(joints, nalgebra::Isometry3::identity()).unwrap();
    for (at, expected) in [(0.4, (-0.24, 2.0)), (-1.0, (-2.0, -0.76))] {
        let pose = super::JointVector::from_slice(&[0.0, 0.0, at, 0.0, 0.0]);
        let bent = chain.with_bent_elbows(&pose);
        for (index, joint) in bent.joints().iter().enumerate() {
            let (lower, upper) = if index == 2 { expected } else { (-2.0, 2.0) };
            assert!((joint.lower_rad - lower).abs() < 1e-9, "{index}: {joint:?}");
            assert!((joint.upper_rad - upper).abs() < 1e-9, "{index}: {joint:?}");
        }
        assert!(bent.has_within(&pose));
    }
}
