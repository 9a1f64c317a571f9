//! Measurements with one sheet, play or arm that are used with another.

use super::kept::{hand, port_origin, practice, record, scene, session, with_sheet};
use crate::*;

/// A reading is a difference: accepted on another sheet it made unmeasured values a good calibration.
#[test]
fn refuses_a_reading_of_a_cross_that_was_drawn_on_another_sheet() {
    let drawn_on = scene();
    let origin = CalibrationOrigin::default();
    let session = CalibrationSession {
        read_mm: Some([0.4, 0.0]),
        ..begin_session(CalibrationKind::Sheet, &drawn_on, None, origin).unwrap()
    };
    assess(&session, &drawn_on, None).unwrap();
    let restored = with_sheet(&drawn_on, 4.0, 0.0, 0.0);
    let error = assess(&session, &restored, None).unwrap_err().to_string();
    let parts = [
        "the sheet of scene default",
        "`steadyhand calibrate discard`",
    ];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    // Touches find the sheet wherever the file has it.
    let touched = CalibrationSession {
        read_mm: None,
        ..session.clone()
    };
    assess(&touched, &restored, None).unwrap();
    // Older proposals do not say on what.
    let older = CalibrationSession {
        drawn_on: String::new(),
        ..session
    };
    assess(&older, &restored, None).unwrap();
}

/// Play and sag that practice, or other servos, gave the arm's file raised the pen of an arm at a port.
#[test]
fn play_of_another_arm_does_not_count() {
    let mut worn = scene();
    let compensation = toml::from_str(
        "sag_deg_per_n_m = [0.0, 0.164, 0.1989, 0.0, 0.0]\nplay_deg = [0.0, 0.0, 0.0, 0.0, 0.0]",
    );
    std::sync::Arc::make_mut(&mut worn.arm).file.compensation = Some(compensation.unwrap());
    let play = |number, origin: &CalibrationOrigin| {
        let session = CalibrationSession {
            origin: origin.clone(),
            ..session(CalibrationKind::Play, &worn, Vec::new())
        };
        let new = [(
            "sag_deg_per_n_m".to_owned(),
            vec![0.0, 0.164, 0.1989, 0.0, 0.0],
        )];
        let assessed = TouchAssessment {
            new: new.into(),
            ..TouchAssessment::default()
        };
        record(number, session, &assessed)
    };
    let port = port_origin("12345678");
    let lacks = |history: &[CalibrationRecord], scene: &scene::Scene| {
        let lacks = missing(history, scene, &port);
        lacks.into_iter().find(|lack| lack.contains("play and sag"))
    };
    let history = [play(8, &practice())];
    let lack = lacks(&history, &worn).unwrap();
    for part in [
        "calibration 8 was",
        "`steadyhand calibrate play --scene default`",
        "`steadyhand calibrate restore 8 --before`",
    ] {
        assert!(lack.contains(part), "{lack}");
    }
    assert!(lacks(&[play(8, &port_origin("87654321"))], &worn).is_some());
    assert_eq!(lacks(&[play(8, &port)], &worn), None);
    // A file without it, or with values that a person wrote, does not rest on it.
    assert_eq!(lacks(&history, &scene()), None);
    let other = [play(7, &port), play(8, &practice())];
    assert_eq!(lacks(&other, &worn), None);
}

/// It stayed, unsaid, on a sheet whose touches had no error, and drew up to 2 mm beside it.
#[test]
fn a_sheet_that_is_touched_anew_has_no_correction_of_the_one_before() {
    let mut corrected = scene();
    let mut coefficients_mm = [[0.0; 6]; 2];
    coefficients_mm[0][0] = 1.9;
    let correction = scene::SheetCorrection::new(coefficients_mm, corrected.surface.size_mm());
    corrected.correction = Some(correction.unwrap());
    let mut session = session(
        CalibrationKind::Sheet,
        &corrected,
        hand(&corrected, 22).sheet(),
    );
    let assessed = assess(&session, &corrected, None).unwrap();
    assert_eq!(assessed.old["correction.x_mm"], coefficients_mm[0]);
    assert_eq!(assessed.new["correction.x_mm"], [0.0; 6]);
    assert_eq!(assessed.new["correction.y_mm"], [0.0; 6]);
    // Probes leave origin and axes where they were.
    session.probed = true;
    let probed = assess(&session, &corrected, None).unwrap();
    assert!(
        !probed.new.contains_key("correction.x_mm"),
        "{:?}",
        probed.new
    );
}
