//! A line begins only where its pen is.

use super::*;

/// A drawing whose arm reads, from the first line's beginning on, where it was on its way down.
struct Descent {
    execution: Execution,
    now: ClockInstant,
    line: usize,
    high_rad: JointVector,
}

impl Descent {
    fn new(gain_p: Option<u8>) -> Self {
        let (scene, trajectory) = drawing();
        let sag = SagLead::new(&scene.arm, |_| gain_p, None);
        let mut execution = begin_led(scene, trajectory, sag);
        let mut now = ClockInstant::ZERO;
        let spans = &trajectory.spans;
        let line = spans.iter().find(|span| span.kind == SpanKind::Draw);
        let line = line.unwrap().first;
        let mut before = trajectory.samples.iter().take(line).rev();
        let high_rad = *before.find(|joints| height_mm(joints) > 2.5).unwrap();
        run_to(&mut execution, &mut now, line);
        Self {
            execution,
            now,
            line,
            high_rad,
        }
    }

    /// Ticks so often with a tip that is at its goal or still over the sheet; returns how far the goal is on its line.
    fn tick(&mut self, times: usize, is_down: bool) -> usize {
        for _ in 0..times {
            self.now = next_tick(self.now, &drawing().1);
            let at_rad = if is_down {
                *self.execution.goal_rad()
            } else {
                self.high_rad
            };
            let step = self.execution.next(&reading(at_rad, self.now), self.now);
            step.unwrap();
        }
        self.execution.progress().sample - self.line
    }
}

#[test]
fn a_line_begins_only_where_its_pen_is() {
    let mut late = Descent::new(Some(16));
    let waits_at = late.tick(100, false);
    assert!(waits_at < 8, "{waits_at}");
    assert!(late.tick(40, true) > waits_at + 20);

    let mut there = Descent::new(Some(16));
    assert_eq!(there.tick(40, true), 40, "nothing is waited for");
}

#[test]
fn a_tip_that_never_comes_down_is_waited_for_no_longer_than_a_while() {
    let mut descent = Descent::new(Some(16));
    assert!(descent.tick(145, false) < 8);
    assert!(descent.tick(40, false) > 10);
}

/// No reading brings an arm to its path whose servos nobody knows.
#[test]
fn a_line_of_servos_without_figures_begins_at_once() {
    assert_eq!(Descent::new(None).tick(20, false), 20);
}

#[test]
fn a_stop_does_not_wait_for_a_tip() {
    let mut descent = Descent::new(Some(16));
    descent.tick(50, false);
    descent.execution.stop();
    let ticks = run_out(&mut descent.execution, &mut descent.now);
    assert!(ticks < 60, "{ticks}");
}
