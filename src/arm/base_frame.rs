//! Frame in which an arm's files give places, and the frame of files from before it was named.

use std::collections::BTreeMap;

use nalgebra::Vector3;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArmFile, ServoFile};
use base::units::Finite;

/// Frame in which places of an arm, its scenes and its calibrations are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BaseFrame {
    /// The arm's foot: z is 0 on the table, and a ruler finds the origin.
    Foot,
}

/// Frame and zeros of the files that name no frame, as seen from the present ones. Its axes are parallel to them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrameBefore {
    /// Its origin.
    pub origin_m: [Finite; 3],
    /// Angle of each joint at its zero of then; absent where it has not changed.
    #[serde(default)]
    pub zeros_rad: BTreeMap<String, Finite>,
}

/// Places are kept to the nanometre, angles to the nanoradian: a file that was rewritten says what it was read as.
fn rounded(value: f64) -> f64 {
    (value * 1e9).round() / 1e9 + 0.0
}

impl FrameBefore {
    /// Returns a place of that frame in the present one.
    #[must_use]
    pub fn place_m(&self, at_m: [f64; 3]) -> [f64; 3] {
        let origin_m = self.origin_m.map(Finite::get);
        (Vector3::from(at_m) + Vector3::from(origin_m))
            .map(rounded)
            .into()
    }

    /// Returns whether any place or zero of then is elsewhere now.
    #[must_use]
    pub fn has_moved(&self) -> bool {
        let mut figures = self.origin_m.iter().chain(self.zeros_rad.values());
        figures.any(|figure| figure.get() != 0.0)
    }

    /// Returns the present angle of a joint at its zero of then.
    #[must_use]
    pub fn zero_rad(&self, joint: &str) -> f64 {
        self.zeros_rad.get(joint).map_or(0.0, |zero| zero.get())
    }

    /// Returns the present angle of a joint at an angle of then.
    #[must_use]
    pub fn angle_rad(&self, joint: &str, then_rad: f64) -> f64 {
        rounded(then_rad + self.zero_rad(joint))
    }

    /// Returns by how many counts a servo's zero of then is above its present one.
    #[must_use]
    pub fn zero_ticks(&self, joint: &str, servo: ServoFile) -> i32 {
        let at_zero = ServoFile {
            zero_tick: 0,
            ..servo
        };
        at_zero.ticks(self.zero_rad(joint))
    }
}

impl ArmFile {
    /// Returns its servos with the zeros that its joints had before their frame was named: what was measured with the same
    /// zeros is known by these.
    #[must_use]
    pub fn servos_before(&self) -> Vec<ServoFile> {
        let joints = self.joints.iter().flat_map(|joint| {
            joint.servos.iter().map(move |servo| {
                let before = self.frame_before.as_ref();
                let ticks = before.map_or(0, |before| before.zero_ticks(&joint.name, *servo));
                ServoFile {
                    zero_tick: servo.zero_tick.saturating_add(ticks),
                    ..*servo
                }
            })
        });
        joints.collect()
    }
}
