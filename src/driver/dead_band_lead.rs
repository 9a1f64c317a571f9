//! Leads a servo's goals over its dead band, and decides when they cross it.
//!
//! A joint that reverses has to cross its dead band, twice as many ticks as the servo tolerates. In
//! one step that would be a jolt. So the lead changes by one tick per cycle, and only where the goals
//! stay within the joint's speed and acceleration now and in the next cycle, however it moves then.

use super::servo_map::ServoEntry;

/// The lead of one servo's goals, and its history.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeadBandLead {
    /// The present lead, in counts.
    ticks: i32,
    /// The goal before the last one, without lead and rounding; `None` where nothing moved.
    exact: Option<f64>,
    /// The goal sent before the last one.
    sent_previous: i32,
}

/// Input for one servo in one cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServoAim {
    /// The goal in counts, without lead and rounding.
    pub(super) exact: f64,
    /// The desired lead.
    pub(super) lead_ticks: i32,
    /// The goal sent last.
    pub(super) last: i32,
    /// Duration of a cycle.
    pub(super) period_s: f64,
}

impl DeadBandLead {
    /// Notes that the last goal is sent again.
    pub(super) fn hold(&mut self) {
        self.exact = None;
    }

    /// Returns the goal to send, in counts.
    pub(super) fn goal(&mut self, entry: &ServoEntry, aim: &ServoAim) -> i32 {
        let previous = self.exact.replace(aim.exact);
        let step = (aim.lead_ticks - self.ticks).signum();
        if let Some(previous) = previous
            && step != 0
            && self.has_room(entry, aim, previous, step)
        {
            self.ticks += step;
        }
        self.sent_previous = aim.last;
        entry.with_lead(aim.exact, self.ticks)
    }

    /// Returns whether the lead may change by a tick now.
    fn has_room(&self, entry: &ServoEntry, aim: &ServoAim, previous: f64, step: i32) -> bool {
        let speed = entry.velocity_max_ticks_s * aim.period_s;
        let change_max = entry.acceleration_max_ticks_s2 * aim.period_s * aim.period_s;
        let sent_at = |exact: f64| f64::from(entry.with_lead(exact, self.ticks + step));
        let (last, sent) = (f64::from(aim.last), sent_at(aim.exact));
        let change = |next: f64, now: f64, previous: f64| (next - 2.0 * now + previous).abs();
        let predicted = 2.0 * aim.exact - previous;
        (sent - last).abs() <= speed + STEP_ROUNDING
            && change(sent, last, f64::from(self.sent_previous)) <= change_max + CHANGE_ROUNDING
            && [predicted - change_max, predicted + change_max]
                .into_iter()
                .all(|next| change(sent_at(next), sent, last) <= change_max + CHANGE_ROUNDING)
    }
}

/// Contribution of rounding to whole counts to a step, and to the change of a step.
const STEP_ROUNDING: f64 = 1.0;
const CHANGE_ROUNDING: f64 = 2.0;

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use crate::servo_map::ServoMap;
    use arm::ArmModel;
    use proptest::prelude::*;

    fn pan() -> ServoEntry {
        let file = toml::from_str(include_str!("../../scenes/arms/so101.toml")).unwrap();
        ServoMap::new(&ArmModel::new(file).unwrap()).entries[0].clone()
    }

    /// Returns the counts sent for these goals, one per cycle, after one cycle at rest.
    fn sent(entry: &ServoEntry, goals: &[f64]) -> Vec<i32> {
        let (mut lead, mut lead_ticks) = (DeadBandLead::default(), 0);
        let mut sent = vec![entry.with_lead(goals[0], 0)];
        for (at, exact) in goals.iter().enumerate() {
            let previous = goals[at.saturating_sub(1)];
            if (exact - previous).abs() > 0.0 {
                lead_ticks = if *exact > previous { 1 } else { -1 };
            }
            let aim = ServoAim {
                exact: *exact,
                lead_ticks,
                last: *sent.last().unwrap(),
                period_s: 0.01,
            };
            sent.push(lead.goal(entry, &aim));
        }
        sent
    }

    #[test]
    fn a_goal_comes_to_lead_by_the_dead_band_in_the_direction_of_travel() {
        let entry = pan();
        let goals: Vec<f64> = (0..20).map(|at| 2000.0 + 0.5 * f64::from(at)).collect();
        assert_eq!(sent(&entry, &goals).last(), Some(&(2010 + 1)));
        let goals: Vec<f64> = (0..20).map(|at| 2000.0 - 0.5 * f64::from(at)).collect();
        assert_eq!(sent(&entry, &goals).last(), Some(&(1991 - 1)));
    }

    #[test]
    fn a_lead_never_leaves_the_limits() {
        let entry = pan();
        let (lower, upper) = entry.range_ticks().unwrap();
        assert_eq!(entry.with_lead(f64::from(upper), 1), upper);
        assert_eq!(entry.with_lead(f64::from(lower), -1), lower);
        // An arm that was found beyond them may come back but not go further.
        let beyond = f64::from(upper + 9);
        assert_eq!(
            (entry.with_lead(beyond, 1), entry.with_lead(beyond, -1)),
            (upper + 9, upper + 8)
        );
    }

    proptest! {
        /// While a joint moves within its limits, the counts sent stay within them and rounding.
        #[test]
        fn a_crossing_bends_no_goal_beyond_the_joints_limits(
            accelerations in prop::collection::vec(-1.0_f64..1.0, 1..10),
            fast in -8.0_f64..8.0,
        ) {
            let entry = pan();
            let change_max = entry.acceleration_max_ticks_s2 * 1e-4;
            let (mut goals, mut speed) = (vec![2000.0], 0.0_f64);
            // Each acceleration lasts some cycles, mostly around a reversal.
            for fraction in accelerations.iter().flat_map(|fraction| [*fraction; 5]) {
                let lead_ticks = if (speed - fast).abs() > 12.0 { -speed.signum() } else { fraction };
                speed += lead_ticks * change_max;
                goals.push(goals[goals.len() - 1] + speed);
            }
            let sent = sent(&entry, &goals);
            for window in sent.windows(3) {
                let change = f64::from(window[2] - 2 * window[1] + window[0]).abs();
                prop_assert!(change <= change_max + 2.0, "{change} in {window:?}");
            }
        }
    }
}
