//! The places that the guide asks a person to touch by hand.

use super::super::guided_touches::TouchPlace;
use super::super::teach;
use calib::TouchRole;

/// Instruction between two touches of one point in different poses.
const TURNED: &str = "turn and tilt the pen differently and bring its tip to the same point again";

/// Touches of the fixed point that determines the tip.
const TOOL_TOUCHES: usize = 14;

/// Touches of the calibrator, and of each unmeasured point.
const CALIBRATOR_TOUCHES: usize = 8;
const POINT_TOUCHES: usize = 6;

fn place(of: TouchRole, name: &str, times: usize) -> TouchPlace {
    TouchPlace {
        of,
        number: 0,
        name: name.to_owned(),
        again: TURNED,
        times,
    }
}

/// Returns the touches that determine a pen's tip.
pub(super) fn tool() -> Vec<TouchPlace> {
    vec![
        place(
            TouchRole::Point,
            "one fixed point, such as a pin's tip or a mark in the table",
            TOOL_TOUCHES,
        ),
        place(
            TouchRole::Verify,
            "that point once more, with the pen upright as for drawing",
            1,
        ),
    ]
}

/// Returns the touches that determine the joints' zeros.
pub(super) fn zeros() -> Vec<TouchPlace> {
    let mut places = vec![place(
        TouchRole::Calibrator,
        "the calibrator, the point at `calibrator_m`",
        CALIBRATOR_TOUCHES,
    )];
    for (number, name) in ["left", "near", "right"].into_iter().enumerate() {
        places.push(TouchPlace {
            number: number + 1,
            ..place(
                TouchRole::Point,
                &format!(
                    "a fixed point {name} within the arm's reach (you need not measure its place)"
                ),
                POINT_TOUCHES,
            )
        });
    }
    let corners = [
        "the sheet near its lower left corner",
        "the sheet near its lower right corner",
        "the sheet near its upper right corner",
        "the sheet near its upper left corner",
        "the sheet's middle",
        "the sheet between its middle and its upper left corner",
    ];
    places.extend(corners.map(|name| place(TouchRole::Sheet, name, 1)));
    places
}

/// Returns the touches that determine a sheet, flat or on a cylinder.
pub(super) fn sheet(is_rolled: bool) -> Vec<TouchPlace> {
    teach::places(is_rolled)
}
