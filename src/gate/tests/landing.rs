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

/// A trim may keep the goal of a line above the sheet: there its tip has landed.
#[test]
fn a_trimmed_line_waits_for_no_tip_that_is_at_its_goal() {
    let ticks_of = |trim_mm: f64| {
        let mut scene = Scene::clone(&drawing().0);
        (scene.heights.press_mm, scene.heights.depth_trim_mm) = (0.1, 0.3);
        scene.pens.iter_mut().for_each(|pen| pen.press_mm = None);
        let plan = plan::draw(&scene, &scene.rest_rad, &plan::SilentObserver).unwrap();
        let (scene, trajectory) = (Arc::new(scene), plan.trajectory);
        let mut spans = trajectory.spans.iter();
        let draw = spans.find(|span| span.kind == SpanKind::Draw).unwrap();
        let at = draw.first + 20;
        let start = reading(*trajectory.samples.first().unwrap(), ClockInstant::ZERO);
        let sag = SagLead::new(&scene.arm, |_| Some(16), None);
        let checked = trimmed::checked(&scene, &trajectory).unwrap();
        let mut execution = checked.begin_led(&start, sag, ClockInstant::ZERO).unwrap();
        let goals = trimmed::run(&mut execution, |execution, _, _| {
            if execution.progress().sample == at {
                let change = DepthTrimChange::To(trim_mm);
                execution.change_depth_trim(change).unwrap();
            }
        });
        let heights = goals
            .iter()
            .map(|(sample, goal)| (*sample, height_mm(goal)));
        let spans = &trajectory.spans;
        let draws = |sample: usize| {
            spans.iter().any(|span| {
                span.kind == SpanKind::Draw && (span.first + 60..span.end).contains(&sample)
            })
        };
        let highest = heights
            .filter(|(sample, _)| draws(*sample) && *sample > at + 200)
            .map(|(_, mm)| mm)
            .fold(-9.0, f64::max);
        (goals.len(), highest)
    };
    let [(planned, _), (trimmed, highest_mm)] = [0.0, -0.3].map(ticks_of);
    assert!(highest_mm > 0.0, "{highest_mm}");
    // At the end the trim comes back.
    assert!(trimmed < planned + 60, "{trimmed} {planned}");
}

/// Goals do not jump where a trim is changed while a tip is waited for.
#[test]
fn a_trim_that_comes_while_a_tip_is_waited_for_acts_once_it_has_landed() {
    let (scene, trajectory, at) = trimmed::trimmable(|_| {});
    let start = reading(*trajectory.samples.first().unwrap(), ClockInstant::ZERO);
    let sag = SagLead::new(&scene.arm, |_| Some(16), None);
    let checked = trimmed::checked(&scene, &trajectory).unwrap();
    let mut execution = checked.begin_led(&start, sag, ClockInstant::ZERO).unwrap();
    let line = at - 20;
    let high_rad = *trajectory.samples.get(line - 20).unwrap();
    let (mut now, mut waited, mut depths_mm) = (ClockInstant::ZERO, 0, Vec::new());
    while execution.progress().sample < line + 60 {
        now = next_tick(now, &trajectory);
        let waits = execution.progress().sample >= line && waited < 60;
        waited += usize::from(waits);
        if waited == 30 {
            execution
                .change_depth_trim(DepthTrimChange::To(0.3))
                .unwrap();
        }
        let at_rad = if waits {
            high_rad
        } else {
            *execution.goal_rad()
        };
        execution.next(&reading(at_rad, now), now).unwrap();
        depths_mm.push((waited, execution.depth_trim().unwrap().now_mm));
    }
    let trimmed_mm = |of: usize| {
        depths_mm
            .iter()
            .filter(move |(waited, _)| *waited == of)
            .map(|(_, mm)| *mm)
    };
    assert!(trimmed_mm(50).all(|mm| mm.abs() < 1e-9));
    assert!(trimmed_mm(60).next_back().unwrap() > 0.2);
    let steps = depths_mm
        .windows(2)
        .filter_map(|two| Some(two.last()?.1 - two.first()?.1));
    assert!(steps.fold(0.0, f64::max) < 0.0101);
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
