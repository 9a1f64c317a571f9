//! Checks that a controller fits an arm: its joints, and limits wide enough for what the arm is sent.

use firmware_protocol::message::JointLimits;

use super::controller_fault::ControllerFault;
use crate::servo_map::{ServoEntry, ServoMap};

/// Largest acceleration of a segment over the plan's: where full acceleration becomes full
/// deceleration a cubic takes twice as much, and leading set-points onto the goals takes a little.
const ACCELERATION_ROOM: f64 = 2.5;

/// Largest speed of a segment over the plan's, for the same reasons.
const VELOCITY_ROOM: f64 = 1.25;

/// Refuses a controller that would refuse this arm's motions, and warns of limits that guard nothing.
/// It has as many joints as the arm.
pub(super) fn check(
    map: &ServoMap,
    limits: &[JointLimits],
) -> Result<Vec<String>, ControllerFault> {
    let mut warnings = Vec::new();
    for (entry, limits) in map.entries.iter().zip(limits) {
        if let Some(what) = too_strict(entry, limits) {
            let joint = entry.name.clone();
            return Err(ControllerFault::Limit { joint, what });
        }
        warnings.extend(too_wide(entry, limits));
    }
    Ok(warnings)
}

fn too_strict(entry: &ServoEntry, limits: &JointLimits) -> Option<String> {
    let (min_ticks, max_ticks) = entry.range_ticks()?;
    if limits.position_min_urad > min_ticks || limits.position_max_urad < max_ticks {
        return Some(format!(
            "its range is {} to {} microradians; the arm's file has {min_ticks} to {max_ticks}. Widen the controller's range, or narrow the joint in the arm's file",
            limits.position_min_urad, limits.position_max_urad
        ));
    }
    let needed = VELOCITY_ROOM * entry.velocity_max_ticks_s;
    if f64::from(limits.velocity_max_urad_s) < needed {
        return Some(format!(
            "its speed limit is {} microradians/s (at least {needed:.0}, which is {VELOCITY_ROOM} times the arm's). Raise it, or lower `velocity_max_rad_s` in the arm's file",
            limits.velocity_max_urad_s
        ));
    }
    let needed = ACCELERATION_ROOM * entry.acceleration_max_ticks_s2;
    (f64::from(limits.acceleration_max_urad_s2) < needed).then(|| {
        format!(
            "its acceleration limit is {} microradians/s² (at least {needed:.0}, which is {ACCELERATION_ROOM} times the arm's). Raise it, or lower `acceleration_max_rad_s2` in the arm's file",
            limits.acceleration_max_urad_s2
        )
    })
}

/// Warns of a speed limit of more than ten times the arm's, which guards nothing.
fn too_wide(entry: &ServoEntry, limits: &JointLimits) -> Option<String> {
    let max_ticks = 10.0 * entry.velocity_max_ticks_s;
    (f64::from(limits.velocity_max_urad_s) > max_ticks).then(|| {
        format!(
            "{}: the controller's own speed limit is {} microradians/s, more than ten times the arm's. It does not protect the arm: lower it",
            entry.name, limits.velocity_max_urad_s
        )
    })
}
