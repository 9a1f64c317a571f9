//! Zeros of joints from touches by hand.

use nalgebra::Vector3;

use super::kept::{hand, scene, session};
use crate::*;

/// The elbow's error in these touches.
const ELBOW_OFF_DEG: f64 = 4.0;

/// Returns the assessment of touches of six points in five poses each, measured with a wrong zero of the elbow.
fn with_elbow_off() -> TouchAssessment {
    let assumed = scene();
    let mut hand = hand(&assumed, 41);
    let mut touches = Vec::new();
    for (number, at_mm) in [[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]]
        .into_iter()
        .enumerate()
    {
        for (high, lift_m) in [0.0, 0.05].into_iter().enumerate() {
            let at = assumed.surface.at(at_mm).point_m + Vector3::z() * lift_m;
            touches.extend((0..5).map(|_| TouchContact {
                number: 2 * number + high,
                ..hand.touch(at, TouchRole::Point)
            }));
        }
    }
    for touch in &mut touches {
        touch.joints_rad[2] -= ELBOW_OFF_DEG.to_radians();
    }
    assess(
        &session(CalibrationKind::Zeros, &assumed, touches),
        &assumed,
        None,
    )
    .unwrap()
}

/// The limits went with the zero, past the stop that a hand had found.
#[test]
fn a_zero_found_by_touches_moves_no_limit_outward() {
    let assessed = with_elbow_off();
    let text = format!("{:?} {:?}", assessed.old, assessed.new);
    let turned_deg = (assessed.new["zero_tick of servo 3"][0] - 2048.0) * 360.0 / 4096.0;
    assert!((turned_deg.abs() - ELBOW_OFF_DEG).abs() < 0.3, "{text}");
    let lower = "lower_rad of elbow_flex";
    let moved_deg = (assessed.new[lower][0] - assessed.old[lower][0]).to_degrees();
    assert!((moved_deg - turned_deg.abs()).abs() < 0.01, "{text}");
    assert!(
        !assessed.new.contains_key("upper_rad of elbow_flex"),
        "{text}"
    );
}

/// The pan, which turns all touched points with it, was told to be turned farther, and the next step was a remark.
#[test]
fn zeros_are_found_from_points_of_unknown_place_alone() {
    let assessed = with_elbow_off();
    let reasons = assessed.finding.reasons.join("; ");
    check(&assessed.finding, &assessed.change, false).unwrap_or_else(|_| panic!("{reasons}"));
    assert!(reasons.contains("shoulder_pan"), "{reasons}");
    assert_eq!(
        assessed.new["zero_tick of servo 1"],
        assessed.old["zero_tick of servo 1"]
    );
}

#[test]
fn the_next_step_is_the_first_reason_to_touch_again() {
    let mut finding = FitFinding::good();
    finding.usable("a remark".to_owned());
    finding.redo("touch more".to_owned());
    finding.redo("touch slower".to_owned());
    assert_eq!(finding.reasons, ["touch more", "a remark", "touch slower"]);
}
