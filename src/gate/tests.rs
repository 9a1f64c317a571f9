//! Stops at every place of a real drawing.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]

mod disturbance;
mod ends;
mod landing;
pub(crate) mod mapped;
mod meshed;
mod planned_together;
mod trimmed;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::collision_world::CollisionWorld;
use super::neighbour_body::JudgedMotion;
use super::stop_proof::StopProof;
use super::*;
use base::units::{ArmMeasurement, ClockInstant, Finite};
use permit::PermitRegistry;
use scene::SceneLibrary;

pub(super) fn reading(q: JointVector, at: ClockInstant) -> ArmMeasurement {
    ArmMeasurement {
        at,
        position_rad: q,
        velocity_rad_s: q.map(|_, _| 0.0),
        servos: Vec::new(),
    }
}

/// Begins a drawing with only its stops proven: a full check costs more.
pub(super) fn begin(scene: &Arc<Scene>, trajectory: &Trajectory) -> Execution {
    begin_led(scene, trajectory, SagLead::none(&scene.arm))
}

/// The same with goals that lead.
pub(super) fn begin_led(scene: &Arc<Scene>, trajectory: &Trajectory, sag: SagLead) -> Execution {
    let stops = super::stop_proof::StopProof::prove(
        collision_world::CollisionWorld::new(scene),
        trajectory,
        None,
    )
    .unwrap();
    let checked = CheckedTrajectory {
        scene: Arc::clone(scene),
        permit: permit(scene),
        trajectory: trajectory.clone(),
        stops,
        trim: None,
        concert: concert::ConcertPart::of_all(std::iter::once(None)).remove(0),
    };
    let first = *trajectory.samples.first().unwrap();
    let measured = reading(first, ClockInstant::ZERO);
    checked
        .begin_led(&measured, sag, ClockInstant::ZERO)
        .unwrap()
}

fn permit(scene: &Scene) -> MotionPermit {
    PermitRegistry::everything()
        .ask(scene, ClockInstant::ZERO)
        .unwrap()
}

/// Returns the time of the next tick. Panics for a motion that never ends.
fn next_tick(now: ClockInstant, trajectory: &Trajectory) -> ClockInstant {
    const LONGEST: std::time::Duration = std::time::Duration::from_secs(120);
    assert!(now < ClockInstant::ZERO.after(LONGEST), "not at its end");
    now.after(trajectory.period)
}

/// Runs up to `stop_at`, stops, and returns every goal that was sent.
fn goals_of_stop(scene: &Arc<Scene>, trajectory: &Trajectory, stop_at: usize) -> Vec<JointVector> {
    let first = *trajectory.samples.first().unwrap();
    let mut now = ClockInstant::ZERO;
    let mut execution = begin(scene, trajectory);
    let mut goals = vec![first];
    for tick in 0.. {
        if tick == stop_at {
            execution.stop();
        }
        now = next_tick(now, trajectory);
        let is = reading(*goals.last().unwrap(), now);
        match execution.next(&is, now).unwrap() {
            ExecutionStep::Go(setpoint) => goals.push(*setpoint.goal_rad()),
            ExecutionStep::Hold => {}
            ExecutionStep::Finished => break,
        }
    }
    goals
}

/// Largest acceleration of a goal, as a fraction of the joint's limit: all of it by the plan, and a
/// brake's on top.
const PUSH_SHARE: f64 = 1.0 + super::stop_proof::BRAKE_SHARE;

#[test]
fn stops_stay_within_limits_wherever_they_come() {
    let scene = SceneLibrary::new(None).scene("default", None).unwrap();
    let plan = plan::draw(&scene, &scene.rest_rad, &plan::SilentObserver).unwrap();
    let (limits, period) = (scene.arm.limits, plan.trajectory.period.as_secs_f64());
    let (mut worst, mut beyond) = (0.0_f64, 0);
    for stop_at in (1..plan.trajectory.samples.len()).step_by(97) {
        let goals = goals_of_stop(&scene, &plan.trajectory, stop_at);
        let last = *goals.last().unwrap();
        let goals: Vec<JointVector> = goals.into_iter().chain([last, last]).collect();
        for window in goals.windows(3) {
            let [a, b, c] = window else { continue };
            let accel = a
                .zip(b, |a, b| b - a)
                .zip(&b.zip(c, |b, c| c - b), |then, now| {
                    (now - then) / period.powi(2)
                });
            for (accel, limit) in accel.iter().zip(limits.acceleration_rad_s2.iter()) {
                worst = worst.max(accel.abs() / limit);
                beyond += usize::from(accel.abs() > limit * PUSH_SHARE);
            }
        }
        for (joint, angle) in last.iter().enumerate() {
            assert!(*angle >= limits.lower_rad.get(joint).unwrap() - 1e-6);
            assert!(*angle <= limits.upper_rad.get(joint).unwrap() + 1e-6);
        }
    }
    assert_eq!(beyond, 0, "worst {worst}");
}

/// A disturbance or request during a motion.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// This many ticks without a reading.
    Blind(usize),
    Hold(HoldAt),
    Resume,
    /// From now on the arm lags by this many ticks.
    Lag(usize),
    Stop,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1_usize..14).prop_map(Event::Blind),
        2 => Just(Event::Hold(HoldAt::Once)),
        1 => Just(Event::Hold(HoldAt::StrokeEnd)),
        4 => Just(Event::Resume),
        2 => (0_usize..12).prop_map(Event::Lag),
        1 => Just(Event::Stop),
    ]
}

pub(super) fn drawing() -> &'static (Arc<Scene>, Trajectory) {
    static DRAWING: std::sync::OnceLock<(Arc<Scene>, Trajectory)> = std::sync::OnceLock::new();
    DRAWING.get_or_init(|| {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let plan = plan::draw(&scene, &scene.rest_rad, &plan::SilentObserver).unwrap();
        (scene, plan.trajectory)
    })
}

/// Tests on that drawing, with what its stops are proven to do.
pub(super) fn judged<T>(test: impl FnOnce(&JudgedMotion<'_>) -> T) -> T {
    let (scene, trajectory) = drawing();
    let stops = StopProof::prove(CollisionWorld::new(scene), trajectory, None).unwrap();
    test(&JudgedMotion {
        scene,
        trajectory,
        stops: &stops,
        copies: None,
    })
}

/// Returns every goal in force, tick by tick, with the reading that it was judged by.
fn run_events(events: &[(usize, Event)]) -> Vec<(JointVector, JointVector)> {
    let (scene, trajectory) = drawing();
    let mut execution = begin(scene, trajectory);
    let mut now = ClockInstant::ZERO;
    let mut goals = vec![*execution.goal_rad()];
    let mut is = reading(*execution.goal_rad(), now);
    let mut goals_and_readings = vec![(*execution.goal_rad(), is.position_rad)];
    let (mut lag, mut blind, mut gap) = (0_usize, 0_usize, 0_usize);
    let mut events = events.iter();
    let mut next = events.next();
    for _ in 0..2_500 {
        now = next_tick(now, trajectory);
        if blind == 0 {
            let then = goals.len().saturating_sub(1 + lag);
            is = reading(*goals.get(then).unwrap(), now);
        }
        blind = blind.saturating_sub(1);
        gap += 1;
        if let Some((after, event)) = next
            && gap >= *after
        {
            match event {
                Event::Blind(ticks) => blind = *ticks,
                Event::Hold(at) => {
                    execution.hold(*at);
                }
                Event::Resume => drop(execution.resume(&is, permit(scene), now)),
                Event::Lag(ticks) => lag = *ticks,
                Event::Stop => execution.stop(),
            }
            (next, gap) = (events.next(), 0);
        }
        match execution.next(&is, now) {
            Ok(ExecutionStep::Go(setpoint)) => goals.push(*setpoint.goal_rad()),
            Ok(ExecutionStep::Hold) | Err(_) => goals.push(*execution.goal_rad()),
            Ok(ExecutionStep::Finished) => {
                // From here on it stands.
                goals_and_readings.push((*execution.goal_rad(), is.position_rad));
                break;
            }
        }
        goals_and_readings.push((*execution.goal_rad(), is.position_rad));
    }
    goals_and_readings
}

proptest! {
    #![proptest_config(ProptestConfig {
        // `PROPTEST_CASES` may ask for fewer.
        cases: ProptestConfig::default().cases.min(48),
        rng_seed: RngSeed::Fixed(0x5eed),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// For any order of missed readings, holds, resumes and stops: no goal ever asks more speed of a
    /// joint than its limit, or more acceleration than its limit and a brake, and none is further
    /// ahead of the measured position than the maximum following error.
    #[test]
    fn no_goal_jumps_whatever_happens(
        events in prop::collection::vec((1_usize..160, event()), 1..24)
    ) {
        let (scene, trajectory) = drawing();
        let (limits, period) = (scene.arm.limits, trajectory.period.as_secs_f64());
        let goals_and_readings = run_events(&events);
        let goals: Vec<JointVector> = goals_and_readings.iter().map(|(goal, _)| *goal).collect();
        for (tick, window) in goals.windows(3).enumerate() {
            let [a, b, c] = window else { continue };
            for joint in 0..a.len() {
                let at = |q: &JointVector| q.get(joint).copied().unwrap();
                let speed = limits.velocity_rad_s.get(joint).unwrap() * period;
                let accel = limits.acceleration_rad_s2.get(joint).unwrap() * period.powi(2);
                let (step, change) = (at(c) - at(b), at(c) - 2.0 * at(b) + at(a));
                prop_assert!(step.abs() <= speed * 1.001, "tick {tick} joint {joint}: {step} rad");
                prop_assert!(
                    change.abs() <= accel * PUSH_SHARE,
                    "tick {tick} joint {joint}: {change} rad; {accel}"
                );
            }
        }
        for (goal, measured) in &goals_and_readings {
            for (joint, fastest) in limits.velocity_rad_s.iter().enumerate() {
                let ahead = (goal.get(joint).unwrap() - measured.get(joint).unwrap()).abs();
                prop_assert!(ahead <= fastest * (0.15 + period), "joint {joint} is {ahead} rad ahead");
            }
        }
    }
}

/// A motion held at once stands clear of the paper; resumed, it draws all the same samples.
#[test]
fn a_motion_that_was_held_goes_on_where_it_was() {
    let (scene, trajectory) = drawing();
    let draw = trajectory
        .spans
        .iter()
        .find(|span| span.kind == SpanKind::Draw);
    let at = draw.map(|span| span.first + 40).unwrap();
    let height_mm = |q: &JointVector| {
        let tip = clearance::tip_m(scene, 0, q).unwrap();
        scene.surface.project(&tip).height_mm
    };
    let mut execution = begin(scene, trajectory);
    let (mut now, mut goals, mut tick) = (ClockInstant::ZERO, vec![*execution.goal_rad()], 0);
    let mut held_ticks = 0;
    loop {
        now = next_tick(now, trajectory);
        let measured = reading(*execution.goal_rad(), now);
        if tick == at {
            assert!(execution.hold(HoldAt::Once));
        }
        if execution.is_held() {
            held_ticks += 1;
            assert!(height_mm(execution.goal_rad()) > scene.heights.lift_mm - 1.0);
        }
        if held_ticks == 30 {
            let moved = reading(execution.goal_rad().map(|_, q| q + 0.1), now);
            let pushed = execution.resume(&moved, permit(scene), now);
            assert!(
                matches!(pushed, Err(ExecutionError::Moved(_))),
                "{pushed:?}"
            );
            execution.resume(&measured, permit(scene), now).unwrap();
            held_ticks += 1;
        }
        match execution.next(&measured, now).unwrap() {
            ExecutionStep::Go(setpoint) => goals.push(*setpoint.goal_rad()),
            ExecutionStep::Hold => {}
            ExecutionStep::Finished => break,
        }
        tick += 1;
    }
    assert!(held_ticks >= 30);
    let (last, end) = (goals.last().unwrap(), trajectory.samples.last().unwrap());
    assert!(last.distance_max(end) < 1e-9);
    // It left the path between two samples, and came back to the same place.
    let deepest = goals.windows(2).map(|pair| match pair {
        [a, b] => a.distance_max(b),
        _ => 0.0,
    });
    assert!(deepest.fold(0.0, f64::max) < 0.03);
}

/// Held where the tip is up, the arm stands on its path without a lift, and goes on only from there.
#[test]
fn a_hold_with_the_tip_up_stands_where_it_is() {
    let (scene, trajectory) = drawing();
    let mut execution = begin(scene, trajectory);
    let mut now = ClockInstant::ZERO;
    while !execution.is_held() {
        now = next_tick(now, trajectory);
        if execution.progress().sample == 3 {
            assert!(execution.hold(HoldAt::Once));
        }
        let measured = reading(*execution.goal_rad(), now);
        execution.next(&measured, now).unwrap();
        assert!(!execution.is_lifting());
    }
    assert_eq!(execution.progress().doing, SpanKind::Approach);
    let is_rad = *execution.goal_rad();
    let moved = reading(is_rad.map(|_, q| q + 0.1), now);
    assert!(matches!(
        execution.resume(&moved, permit(scene), now),
        Err(ExecutionError::Moved(_))
    ));
    execution
        .resume(&reading(is_rad, now), permit(scene), now)
        .unwrap();
}

/// Held in the middle of a stroke for its end, the motion stands only when that stroke is drawn.
#[test]
fn a_hold_at_the_strokes_end_draws_that_stroke() {
    let (scene, trajectory) = drawing();
    let draw = trajectory
        .spans
        .iter()
        .find(|span| span.kind == SpanKind::Draw);
    let draw = draw.unwrap();
    let mut execution = begin(scene, trajectory);
    let mut now = ClockInstant::ZERO;
    while !execution.is_held() {
        now = next_tick(now, trajectory);
        if execution.progress().sample == draw.first + 5 {
            execution.hold(HoldAt::StrokeEnd);
        }
        let measured = reading(*execution.goal_rad(), now);
        assert!(!matches!(
            execution.next(&measured, now).unwrap(),
            ExecutionStep::Finished
        ));
    }
    let stands = execution.progress();
    assert!(stands.sample >= draw.end, "{stands:?}");
    assert_eq!(
        trajectory
            .spans
            .iter()
            .filter(|span| {
                span.kind == SpanKind::Draw
                    && span.first > draw.first
                    && span.first <= stands.sample
            })
            .count(),
        0
    );
}

/// Hops are short and low, but the motion stands lifted on each of them.
#[test]
fn a_hold_at_any_strokes_end_stands_before_the_next_stroke() {
    for name in ["hatched", "bottle", "bumpy", "widowx"] {
        let scene = SceneLibrary::new(None).scene(name, None).unwrap();
        let trajectory = plan::draw(&scene, &scene.rest_rad, &plan::SilentObserver)
            .unwrap()
            .trajectory;
        let draws = || {
            let spans = trajectory.spans.iter();
            spans.filter(|span| span.kind == SpanKind::Draw)
        };
        for (draw, next) in draws().zip(draws().skip(1)).step_by(3) {
            let mut execution = begin(&scene, &trajectory);
            let mut now = ClockInstant::ZERO;
            run_to(&mut execution, &mut now, draw.first + 5);
            assert!(execution.hold(HoldAt::StrokeEnd));
            while !execution.is_held() {
                tick(&mut execution, &mut now).unwrap();
            }
            let stands = execution.progress().sample;
            assert!(
                (draw.end..next.first).contains(&stands),
                "{name}: {stands} after {draw:?}"
            );
            let tip = clearance::tip_m(&scene, draw.pen, execution.goal_rad()).unwrap();
            let height_mm = clearance::height_mm(&scene, &tip).unwrap();
            assert!(
                height_mm > scene.heights.lift_mm - 1.0,
                "{name}: {height_mm} mm"
            );
            let measured = reading(*execution.goal_rad(), now);
            execution.resume(&measured, permit(&scene), now).unwrap();
            run_to(&mut execution, &mut now, next.first + 5);
        }
    }
}

/// A later request to hold at the stroke's end does not delay an earlier request to hold at once.
#[test]
fn a_hold_at_once_is_not_put_off_to_the_strokes_end() {
    let (mut execution, mut now) = (begin(&drawing().0, &drawing().1), ClockInstant::ZERO);
    let at = sample_in_stroke();
    run_to(&mut execution, &mut now, at);
    assert!(execution.hold(HoldAt::Once) && execution.hold(HoldAt::StrokeEnd));
    let reach = execution.next_reach();
    while !execution.is_held() {
        tick(&mut execution, &mut now).unwrap();
    }
    let held = execution.progress();
    assert!((at..=reach).contains(&held.sample), "{held:?}; {reach}");
}

/// A paused stroke is not held: it still has to be drawn to its end.
#[test]
fn a_paused_stroke_is_not_held_and_neither_is_a_moving_one() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begin(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, sample_in_stroke());
    assert!(execution.hold(HoldAt::StrokeEnd));
    execution.wait(true);
    for _ in 0..80 {
        assert!(!execution.is_held());
        tick(&mut execution, &mut now).unwrap();
    }
    assert!(matches!(
        tick(&mut execution, &mut now),
        Ok(ExecutionStep::Hold)
    ));
    assert!(!execution.is_held());
    execution.wait(false);
    while !execution.is_held() {
        tick(&mut execution, &mut now).unwrap();
    }
    let stroke = trajectory.span_at(sample_in_stroke()).unwrap();
    assert!(execution.progress().sample >= stroke.end);
    let stands = reading(*execution.goal_rad(), now);
    execution.resume(&stands, permit(scene), now).unwrap();
    run_to(&mut execution, &mut now, sample_in_travel());
    assert!(execution.hold(HoldAt::Once) && !execution.is_held());
    while !execution.is_held() {
        let before = *execution.goal_rad();
        tick(&mut execution, &mut now).unwrap();
        assert!(execution.is_held() || execution.goal_rad().distance_max(&before) > 0.0);
    }
    assert!(matches!(
        tick(&mut execution, &mut now),
        Ok(ExecutionStep::Hold)
    ));
    assert!(execution.is_held());
}

/// A joint that is pushed hard and does not follow stalls long before the leash: the goal goes back
/// to where the joint is, and up.
#[test]
fn a_stalled_joint_is_let_go_and_lifted() {
    let (scene, trajectory) = drawing();
    let draw = trajectory
        .spans
        .iter()
        .find(|span| span.kind == SpanKind::Draw);
    let from = draw.map(|span| span.first + 30).unwrap();
    let mut execution = begin(scene, trajectory);
    let (mut now, mut stuck, mut error) = (ClockInstant::ZERO, None, None);
    let mut furthest = 0.0_f64;
    loop {
        now = next_tick(now, trajectory);
        let mut measured = reading(*execution.goal_rad(), now);
        if execution.progress().sample >= from || stuck.is_some() {
            let at = *stuck.get_or_insert(*measured.position_rad.first().unwrap());
            furthest = furthest.max((measured.position_rad.first().unwrap() - at).abs());
            *measured.position_rad.first_mut().unwrap() = at;
            let behind = (execution.goal_rad().first().unwrap() - at).abs();
            measured.servos = vec![base::units::ServoState {
                id: 1,
                // A servo's push: all it has at three degrees.
                load_ratio: Some((behind / 0.05).min(1.0)),
                ..<_>::default()
            }];
        }
        match execution.next(&measured, now) {
            Ok(ExecutionStep::Finished) => break,
            Ok(_) => {}
            Err(refusal) => error = Some(refusal),
        }
    }
    let Some(ExecutionError::Stalled { joint, .. }) = error else {
        panic!("{error:?}");
    };
    assert_eq!(joint, "shoulder_pan");
    assert!(execution.has_lifted());
    let left = (execution.goal_rad().first().unwrap() - stuck.unwrap()).abs();
    assert!(left < 0.06, "the goal is still {left} rad away");
    // The leash is 0.45 rad.
    assert!(furthest < 0.3, "the goal went {furthest} rad ahead");
}

/// Ticks up to a sample, with the arm following exactly.
fn run_to(execution: &mut Execution, now: &mut ClockInstant, sample: usize) {
    while execution.progress().sample < sample {
        tick(execution, now).unwrap();
    }
}

fn tick(
    execution: &mut Execution,
    now: &mut ClockInstant,
) -> Result<ExecutionStep, ExecutionError> {
    *now = next_tick(*now, &drawing().1);
    execution.next(&reading(*execution.goal_rad(), *now), *now)
}

/// Ticks until the motion has finished and returns the number of ticks.
fn run_out(execution: &mut Execution, now: &mut ClockInstant) -> usize {
    for ticks in 0..2_000 {
        if matches!(tick(execution, now).unwrap(), ExecutionStep::Finished) {
            return ticks;
        }
    }
    panic!("not at its end");
}

fn height_mm(q: &JointVector) -> f64 {
    let (scene, _) = drawing();
    let tip = clearance::tip_m(scene, 0, q).unwrap();
    scene.surface.project(&tip).height_mm
}

/// Returns a sample in the middle of the first stroke.
pub(super) fn sample_in_stroke() -> usize {
    let mut spans = drawing().1.spans.iter();
    let draw = spans.find(|span| span.kind == SpanKind::Draw).unwrap();
    draw.first + 40
}

/// Returns a sample in the middle of the longest travel move.
fn sample_in_travel() -> usize {
    let spans = drawing().1.spans.iter();
    let travels = spans.filter(|span| span.kind == SpanKind::Travel);
    let longest = travels.max_by_key(|span| span.end - span.first).unwrap();
    usize::midpoint(longest.first, longest.end)
}

#[test]
fn a_proof_says_what_it_was_judged_against() {
    let (scene, trajectory) = drawing();
    let checked = super::check(
        scene,
        permit(scene),
        &reading(scene.rest_rad, ClockInstant::ZERO),
        ClockInstant::ZERO,
        trajectory.clone(),
    );
    let checked = checked.unwrap();
    assert_eq!(checked.revision(), scene.revision);
    assert!(Arc::ptr_eq(checked.scene(), scene));
    assert!(checked.permit().covers(scene, ClockInstant::ZERO));
    assert_eq!(checked.trajectory().samples, trajectory.samples);
    let start = reading(scene.rest_rad, ClockInstant::ZERO);
    let mut execution = checked.begin(&start, ClockInstant::ZERO).unwrap();
    assert_eq!(execution.checked().revision(), scene.revision);
    assert!(execution.is_allowed(ClockInstant::ZERO));
    assert_eq!(Some(execution.span()), trajectory.span_at(0));
    let mut now = ClockInstant::ZERO;
    let ExecutionStep::Go(setpoint) = tick(&mut execution, &mut now).unwrap() else {
        panic!("nothing was sent");
    };
    let limits = scene.arm.limits;
    assert_eq!(*setpoint.velocity_cap_rad_s(), limits.velocity_rad_s);
    assert_eq!(
        *setpoint.acceleration_cap_rad_s2(),
        limits.acceleration_rad_s2
    );
}

#[test]
fn an_expired_permit_no_longer_allows_a_motion_and_resumes_nothing() {
    let (scene, trajectory) = drawing();
    let permits = PermitRegistry::none();
    let lasts = std::time::Duration::from_secs(600);
    permits
        .enable(scene, ClockInstant::ZERO, Some(lasts), 0)
        .unwrap();
    let permit = || permits.ask(scene, ClockInstant::ZERO).unwrap();
    let mut execution = begin(scene, trajectory);
    let mut now = ClockInstant::ZERO;
    let reading_of = |execution: &Execution, now| reading(*execution.goal_rad(), now);
    let not_held = execution.resume(&reading_of(&execution, now), permit(), now);
    assert_eq!(not_held, Err(ExecutionError::NotHeld));
    run_to(&mut execution, &mut now, 10);
    assert!(execution.hold(HoldAt::Once));
    // It may resume while the hold still brakes.
    execution
        .resume(&reading_of(&execution, now), permit(), now)
        .unwrap();
    assert!(execution.is_allowed(now));
    assert!(!execution.is_allowed(ClockInstant::ZERO.after(lasts)));
    assert!(execution.hold(HoldAt::StrokeEnd));
    let later = now.after(lasts);
    let expired = execution.resume(&reading_of(&execution, later), permit(), later);
    assert_eq!(expired, Err(ExecutionError::Expired));
}

#[test]
fn a_halt_stands_on_the_path_and_lifts_nothing() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begin(scene, trajectory), ClockInstant::ZERO);
    let at = sample_in_stroke();
    run_to(&mut execution, &mut now, at);
    let reach = execution.next_reach();
    execution.halt();
    assert!(run_out(&mut execution, &mut now) > 0);
    let end = execution.progress();
    assert!((at..=reach).contains(&end.sample), "{end:?}; {reach}");
    assert!(reach - end.sample <= 2, "{end:?}; {reach}");
    assert!(height_mm(execution.goal_rad()) < 1.0);
    assert!(!execution.has_lifted() && !execution.was_stopped() && !execution.is_held());
    assert!(!execution.hold(HoldAt::Once), "it ends already");
    execution.stop();
    assert!(matches!(
        tick(&mut execution, &mut now),
        Ok(ExecutionStep::Finished)
    ));
    assert!(!execution.has_lifted());
}

/// A motion counts as lifting from the end of its brake on, but not while it brakes.
#[test]
fn a_motion_lifts_where_it_has_left_its_path() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begin(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, sample_in_stroke());
    assert!(!execution.is_lifting());
    execution.stop();
    let (mut lifts, mut before) = (0, height_mm(execution.goal_rad()));
    while !matches!(tick(&mut execution, &mut now), Ok(ExecutionStep::Finished)) {
        let height = height_mm(execution.goal_rad());
        assert_eq!(execution.is_lifting(), height - before > 1e-3 || lifts > 0);
        lifts += u32::from(execution.is_lifting());
        before = height;
    }
    assert!(!execution.is_lifting());
    let took = trajectory.period * lifts;
    let least = execution.lift_time();
    assert!(took >= least && took <= least + trajectory.period);
}

#[test]
fn a_halt_on_the_way_up_stands_there() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begin(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, sample_in_stroke());
    execution.stop();
    while height_mm(execution.goal_rad()) < 2.0 {
        tick(&mut execution, &mut now).unwrap();
    }
    execution.halt();
    let ticks = run_out(&mut execution, &mut now);
    assert!((3..20).contains(&ticks), "{ticks} ticks to a stand");
    let height = height_mm(execution.goal_rad());
    assert!(height < scene.heights.lift_mm - 1.0, "{height} mm");
    assert!(execution.was_stopped() && !execution.has_lifted());
}

/// For an arm with the lowest acceleration limits that its file may have.
#[test]
fn a_reversed_lift_asks_no_more_of_a_joint_than_a_brake() {
    let mut scene = Scene::clone(&drawing().0);
    let mut file = scene.arm.file.clone();
    for joint in &mut file.joints {
        joint.acceleration_max_rad_s2 = Finite::new(4.0).unwrap();
    }
    scene.arm = Arc::new(arm::ArmModel::new(file).unwrap());
    let scene = Arc::new(scene);
    let plan = plan::draw(&scene, &scene.rest_rad, &plan::SilentObserver).unwrap();
    let (limits, trajectory) = (scene.arm.limits, plan.trajectory);
    let mut spans = trajectory.spans.iter();
    let draw = spans.find(|span| span.kind == SpanKind::Draw).unwrap();
    for (up, down) in [(10, 6), (20, 10), (30, 6), (40, 10)] {
        let (mut execution, mut now) = (begin(&scene, &trajectory), ClockInstant::ZERO);
        run_to(&mut execution, &mut now, draw.first + 40);
        execution.hold(HoldAt::Once);
        let (mut goals, mut ticks_up) = (Vec::new(), 0);
        while ticks_up < up + down {
            tick(&mut execution, &mut now).unwrap();
            goals.push(*execution.goal_rad());
            ticks_up += usize::from(execution.is_lifting());
            if ticks_up == up {
                let measured = reading(*execution.goal_rad(), now);
                execution.resume(&measured, permit(&scene), now).unwrap();
            }
        }
        execution.stop();
        while !matches!(
            tick(&mut execution, &mut now).unwrap(),
            ExecutionStep::Finished
        ) {
            goals.push(*execution.goal_rad());
        }
        for window in goals.windows(3) {
            let [a, b, c] = window else { continue };
            for (joint, limit) in limits.acceleration_rad_s2.iter().enumerate() {
                let at = |q: &JointVector| q.get(joint).copied().unwrap();
                let accel = (at(c) - 2.0 * at(b) + at(a)) / trajectory.period.as_secs_f64().powi(2);
                assert!(
                    accel.abs() <= limit * PUSH_SHARE,
                    "up {up}, down {down}: {accel} rad/s²"
                );
            }
        }
    }
}

#[test]
fn a_stand_ends_the_motion_at_once() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begin(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, sample_in_stroke());
    assert!(execution.hold(HoldAt::Once));
    execution.stand();
    assert!(execution.was_stopped() && !execution.is_held());
    assert_eq!(run_out(&mut execution, &mut now), 0);
}

#[test]
fn a_paused_motion_stands_on_its_path_until_it_may_go_on() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begin(scene, trajectory), ClockInstant::ZERO);
    let at = sample_in_stroke();
    run_to(&mut execution, &mut now, at);
    let reach = execution.next_reach();
    assert!(reach > at + 1 && reach <= at + 1 + 30, "{at} to {reach}");
    execution.wait(true);
    for _ in 0..80 {
        tick(&mut execution, &mut now).unwrap();
    }
    assert!(matches!(
        tick(&mut execution, &mut now),
        Ok(ExecutionStep::Hold)
    ));
    let waits = execution.progress().sample;
    assert!((at..=reach).contains(&waits), "{waits}; {at} to {reach}");
    assert!(height_mm(execution.goal_rad()) < 1.0);
    execution.wait(false);
    run_to(&mut execution, &mut now, reach + 5);
    execution.stop();
    // A stop ignores a pause.
    execution.wait(true);
    run_out(&mut execution, &mut now);
    assert!(execution.has_lifted());
    assert!(height_mm(execution.goal_rad()) > scene.heights.lift_mm - 1.0);
}

#[test]
fn a_reach_ends_with_the_motion() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begin(scene, trajectory), ClockInstant::ZERO);
    let last = trajectory.samples.len() - 1;
    let mut before = execution.next_reach();
    while execution.progress().sample < last {
        let (here, reach) = (execution.progress().sample, execution.next_reach());
        assert!(reach > here && reach <= last && reach + 40 > before);
        before = reach;
        tick(&mut execution, &mut now).unwrap();
    }
    assert_eq!(execution.next_reach(), last);
}

/// A joint that stalls during a lift is left where it is: there is nowhere better to go.
#[test]
fn a_stall_on_the_way_up_ends_there() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begin(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, sample_in_stroke());
    execution.stop();
    while height_mm(execution.goal_rad()) < 1.0 {
        tick(&mut execution, &mut now).unwrap();
    }
    let stuck = *execution.goal_rad();
    let mut error = None;
    for _ in 0..600 {
        now = next_tick(now, trajectory);
        let measured = reading(stuck.map(|_, q| q - 1.0), now);
        match execution.next(&measured, now) {
            Ok(ExecutionStep::Finished) => break,
            Ok(_) => {}
            Err(refusal) => error = Some(refusal),
        }
    }
    assert!(
        matches!(error, Some(ExecutionError::Stalled { .. })),
        "{error:?}"
    );
    assert!(!execution.has_lifted());
}

/// A pen pressed as deep as it may draw must not travel.
#[test]
fn a_tip_that_is_pressed_into_the_sheet_does_not_travel() {
    let mut scene = Scene::clone(&drawing().0);
    scene.heights.press_mm = 0.6;
    let scene = Arc::new(scene);
    let plan = plan::draw(&scene, &scene.rest_rad, &plan::SilentObserver).unwrap();
    let drawn = plan.trajectory;
    let mut spans = drawn.spans.iter();
    let draw = spans.find(|span| span.kind == SpanKind::Draw).unwrap();
    let pressed_rad = *drawn.samples.get(draw.first + 40).unwrap();
    let count = 200_usize;
    let slide = (0..count).map(|tick| {
        let fraction = tick as f64 / count as f64;
        let eased = fraction.powi(3) * (10.0 + fraction * (6.0 * fraction - 15.0));
        pressed_rad.map(|joint, at| if joint == 0 { at + 0.12 * eased } else { at })
    });
    let span = |kind, first, end| TrajectorySpan {
        kind,
        item: None,
        pen: 0,
        first,
        end,
    };
    let sliding = Trajectory {
        reached: Vec::new(),
        period: drawn.period,
        samples: slide.collect(),
        spans: vec![span(SpanKind::Draw, 0, 3), span(SpanKind::Travel, 3, count)],
    };
    let refused = preview(&scene, &sliding).unwrap_err();
    assert!(
        refused
            .0
            .iter()
            .any(|refusal| refusal.rule == GateRule::Sheet),
        "{refused}"
    );
}

#[test]
fn a_refusal_names_its_stroke_and_place() {
    let refusal = |item, at_mm| GateRefusal {
        arm: None,
        rule: GateRule::Sheet,
        sample: 7,
        doing: Some(SpanKind::Draw),
        item,
        at_mm,
        excess: None,
        why: "too deep".to_owned(),
    };
    let all = RefusedTrajectory(vec![
        refusal(Some(2), Some([10.04, 3.0])),
        refusal(Some(0), None),
        refusal(None, Some([1.0, 1.0])),
    ]);
    assert_eq!(
        all.to_string(),
        "refused: stroke 3 at (10.0, 3.0) mm: too deep; stroke 1: too deep; too deep"
    );
}
