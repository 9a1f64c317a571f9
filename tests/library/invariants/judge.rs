//! Every goal of a motion against its joint's limits, and against the two goals before it.

use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::sync::Arc;

use steadyhand::scene::Scene;

use super::{PERIOD_S, joint_of};

/// Judges frames of goals, one a cycle.
pub(crate) struct Judge {
    scene: Arc<Scene>,
    /// How many times as much as its joint a goal may speed up.
    times: f64,
    /// The last goal and the one before it, by servo.
    before: BTreeMap<u8, [i32; 2]>,
    /// Goals that were judged.
    pub(crate) frames: usize,
    pub(crate) reached: Reached,
}

/// The greatest share of what is allowed that anything came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reached {
    pub(crate) step: f64,
    pub(crate) change: f64,
}

impl Judge {
    pub(crate) fn new(scene: &Arc<Scene>) -> Self {
        Self {
            scene: Arc::clone(scene),
            times: if scene.arm.file.servo.is_some() {
                2.0
            } else {
                1.0
            },
            before: BTreeMap::new(),
            frames: 0,
            reached: Reached::default(),
        }
    }

    /// Forgets earlier goals: the next ones do not follow them, because torque was switched on again.
    pub(crate) fn forget(&mut self) {
        self.before.clear();
    }

    /// The goals of one cycle: none is beyond its joint's limits, none further from the one before
    /// than the joint's speed allows, and no step differs more from the one before than its
    /// acceleration allows.
    pub(crate) fn hear(&mut self, goals: &[(u8, i32)]) {
        let limits = self.scene.arm.limits;
        for (id, ticks) in goals {
            let Some((joint, servo)) = joint_of(&self.scene, *id) else {
                continue;
            };
            self.frames += 1;
            let ends = [limits.lower_rad, limits.upper_rad].map(|end| servo.ticks(end[joint]));
            let range = ends[0].min(ends[1])..=ends[0].max(ends[1]);
            assert!(
                range.contains(ticks),
                "servo {id} to {ticks}, outside {range:?}"
            );
            let scale = f64::from(servo.ticks_per_turn) / TAU;
            let [last, then] = *self.before.get(id).unwrap_or(&[*ticks; 2]);
            let step = f64::from(ticks - last).abs();
            let step_max = limits.velocity_rad_s[joint] * PERIOD_S * scale + 1.0;
            assert!(
                step <= step_max,
                "servo {id}: {step} ticks in a cycle, {step_max:.2} allowed"
            );
            let change = f64::from(ticks - 2 * last + then).abs();
            let hardest = self.times * limits.acceleration_rad_s2[joint];
            let change_max = hardest * PERIOD_S * PERIOD_S * scale + 2.0;
            assert!(
                change <= change_max,
                "servo {id}: {change} ticks a cycle each cycle, {change_max:.2} allowed: {then}, {last}, {ticks}"
            );
            self.reached.step = self.reached.step.max(step / step_max);
            self.reached.change = self.reached.change.max(change / change_max);
            self.before.insert(*id, [*ticks, last]);
        }
    }
}
