//! Leads a servo's goals over its dead band, and decides when they cross it.
//!
//! A joint that reverses has its dead band to cross, twice as many ticks as the servo tolerates. In one
//! step that would be a blow. The lead changes by one tick in a cycle, and only where the goals stay
//! within the joint's speed and acceleration now and in the next cycle, for any movement of the joint
//! then.

use super::servo_map::ServoEntry;

/// The lead of one servo's goals, and its history.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeadBandLead {
    /// By how much they lead, in counts.
    ticks: i32,
    /// The goal before the last one, without lead and rounding; `None` where nothing moved.
    exact: Option<f64>,
    /// The goal sent before the last one.
    sent_before: i32,
}

/// Input for one servo in one cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServoAim {
    /// The goal in counts, without lead and rounding.
    pub(super) exact: f64,
    /// The lead that is wanted.
    pub(super) wanted: i32,
    /// The goal sent last.
    pub(super) last: i32,
    /// Duration of a cycle.
    pub(super) period_s: f64,
}

impl DeadBandLead {
    /// No goal is sent but the last one, again.
    pub(super) fn hold(&mut self) {
        self.exact = None;
    }

    /// The goal to send, in counts.
    pub(super) fn goal(&mut self, entry: &ServoEntry, aim: &ServoAim) -> i32 {
        let before = self.exact.replace(aim.exact);
        let step = (aim.wanted - self.ticks).signum();
        if let Some(before) = before
            && step != 0
            && self.has_room(entry, aim, before, step)
        {
            self.ticks += step;
        }
        self.sent_before = aim.last;
        entry.with_lead(aim.exact, self.ticks)
    }

    /// Returns whether the lead may change by a tick now.
    fn has_room(&self, entry: &ServoEntry, aim: &ServoAim, before: f64, step: i32) -> bool {
        let speed = entry.velocity_max_ticks_s * aim.period_s;
        let bend = entry.acceleration_max_ticks_s2 * aim.period_s * aim.period_s;
        let led = |exact: f64| f64::from(entry.with_lead(exact, self.ticks + step));
        let (last, sent) = (f64::from(aim.last), led(aim.exact));
        let change = |next: f64, now: f64, then: f64| (next - 2.0 * now + then).abs();
        let ahead = 2.0 * aim.exact - before;
        (sent - last).abs() <= speed + STEP_ROUNDING
            && change(sent, last, f64::from(self.sent_before)) <= bend + BEND_ROUNDING
            && [ahead - bend, ahead + bend]
                .into_iter()
                .all(|next| change(led(next), sent, last) <= bend + BEND_ROUNDING)
    }
}

/// Contribution of rounding to whole counts to a step, and to the change of a step.
const STEP_ROUNDING: f64 = 1.0;
const BEND_ROUNDING: f64 = 2.0;

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

    /// Returns the counts sent for these goals, one a cycle, after one cycle of standing.
    fn sent(entry: &ServoEntry, goals: &[f64]) -> Vec<i32> {
        let (mut lead, mut wanted) = (DeadBandLead::default(), 0);
        let mut sent = vec![entry.with_lead(goals[0], 0)];
        for (at, exact) in goals.iter().enumerate() {
            let before = goals[at.saturating_sub(1)];
            if (exact - before).abs() > 0.0 {
                wanted = if *exact > before { 1 } else { -1 };
            }
            let aim = ServoAim {
                exact: *exact,
                wanted,
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
        // An arm that was found beyond them comes back and goes no further.
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
            bends in prop::collection::vec(-1.0_f64..1.0, 1..10),
            fast in -8.0_f64..8.0,
        ) {
            let entry = pan();
            let bend = entry.acceleration_max_ticks_s2 * 1e-4;
            let (mut goals, mut speed) = (vec![2000.0], 0.0_f64);
            // Each acceleration for some cycles, and mostly about a turn-round.
            for share in bends.iter().flat_map(|share| [*share; 5]) {
                let wanted = if (speed - fast).abs() > 12.0 { -speed.signum() } else { share };
                speed += wanted * bend;
                goals.push(goals[goals.len() - 1] + speed);
            }
            let sent = sent(&entry, &goals);
            for three in sent.windows(3) {
                let change = f64::from(three[2] - 2 * three[1] + three[0]).abs();
                prop_assert!(change <= bend + 2.0, "{change} in {three:?}");
            }
        }
    }
}
