//! Moves kept calibrations that name no frame into the frame of their arm's foot.

use super::calibration_record::{CalibrationRecord, CalibrationSession, FileValues};
use super::edit_scene_file::zero_key;
use arm::{ArmFile, FrameBefore};

/// A calibration that is kept: a record, or a proposal.
pub(super) trait KeptCalibration {
    /// Returns its touches, and the arm on which they were made.
    fn session(&self) -> &CalibrationSession;

    /// Moves it, if it names no frame and its arm has one of before.
    fn move_to_foot(&mut self, arm: &ArmFile);
}

impl KeptCalibration for CalibrationSession {
    fn session(&self) -> &CalibrationSession {
        self
    }

    fn move_to_foot(&mut self, arm: &ArmFile) {
        let Some(before) = arm.frame_before.as_ref().filter(|_| self.frame.is_none()) else {
            return;
        };
        self.frame = arm.frame;
        for touch in &mut self.touches {
            turn(&mut touch.joints_rad, arm, before);
        }
        if let Some(seen) = &mut self.seen {
            seen.origin_m = before.place_m(seen.origin_m);
        }
        if let Some(ink) = &mut self.ink {
            let rests = ink.rests.iter_mut();
            let rests = rests.flat_map(|rest| [&mut rest.sent_deg, &mut rest.measured_deg]);
            for degrees in ink.path_deg.iter_mut().chain(rests) {
                let mut radians: Vec<f64> = degrees.iter().map(|deg| deg.to_radians()).collect();
                turn(&mut radians, arm, before);
                *degrees = radians.into_iter().map(f64::to_degrees).collect();
            }
        }
    }
}

impl KeptCalibration for CalibrationRecord {
    fn session(&self) -> &CalibrationSession {
        &self.session
    }

    fn move_to_foot(&mut self, arm: &ArmFile) {
        if let Some(before) = arm
            .frame_before
            .as_ref()
            .filter(|_| self.session.frame.is_none())
        {
            move_values(&mut self.old, arm, before);
            move_values(&mut self.new, arm, before);
        }
        self.session.move_to_foot(arm);
    }
}

fn turn(joints_rad: &mut [f64], arm: &ArmFile, before: &FrameBefore) {
    for (angle, joint) in joints_rad.iter_mut().zip(&arm.joints) {
        *angle = before.angle_rad(&joint.name, *angle);
    }
}

/// Moves places, and turns poses, zeros and limits.
fn move_values(values: &mut FileValues, arm: &ArmFile, before: &FrameBefore) {
    for (key, numbers) in values.iter_mut() {
        match key.as_str() {
            "origin_m" | "rim_m" | "calibrator_m" => {
                if let Ok(at_m) = <[f64; 3]>::try_from(&numbers[..]) {
                    *numbers = before.place_m(at_m).into();
                }
            }
            "rest_rad" | "ready_rad" | "change_rad" => turn(numbers, arm, before),
            _ => {}
        }
    }
    for joint in &arm.joints {
        for key in ["lower_rad", "upper_rad"] {
            let limit = values.get_mut(&format!("{key} of {}", joint.name));
            if let Some(limit) = limit.and_then(|numbers| numbers.first_mut()) {
                *limit = before.angle_rad(&joint.name, *limit);
            }
        }
        for servo in &joint.servos {
            let zero = values.get_mut(&zero_key(servo.id));
            if let Some(zero) = zero.and_then(|numbers| numbers.first_mut()) {
                *zero -= f64::from(before.zero_ticks(&joint.name, *servo));
            }
        }
    }
}
