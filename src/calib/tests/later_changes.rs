//! What was measured with one sheet, play or arm, and is used with another.

use super::kept::{scene, with_sheet};
use crate::*;

/// A reading is a difference: accepted on another sheet it made values that nobody measured a good calibration.
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
