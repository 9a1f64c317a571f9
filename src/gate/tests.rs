//! Stops at every place of a real drawing.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]

mod ends;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use base::units::{ArmMeasurement, ClockInstant, Finite};
use permit::PermitRegistry;
use scene::SceneLibrary;

struct Wanted;

impl plan::PlanObserver for Wanted {
    fn progress(&self, _: usize, _: usize) {}
    fn cancelled(&self) -> bool {
        false
    }
}

pub(super) fn seen(q: JointVector, at: ClockInstant) -> ArmMeasurement {
    ArmMeasurement {
        at,
        position_rad: q,
        velocity_rad_s: q.map(|_, _| 0.0),
        servos: Vec::new(),
    }
}

/// The default drawing, with nothing but its stops judged: a whole check costs more.
pub(super) fn begun(scene: &Arc<Scene>, trajectory: &Trajectory) -> Execution {
    let stops = super::stop_proof::StopProof::prove(
        collision_world::CollisionWorld::new(scene),
        trajectory,
    )
    .unwrap();
    let checked = CheckedTrajectory {
        scene: Arc::clone(scene),
        permit: leave(scene),
        trajectory: trajectory.clone(),
        stops,
    };
    let first = *trajectory.samples.first().unwrap();
    checked
        .begin(&seen(first, ClockInstant::ZERO), ClockInstant::ZERO)
        .unwrap()
}

fn leave(scene: &Scene) -> MotionPermit {
    PermitRegistry::everything()
        .ask(scene, ClockInstant::ZERO)
        .unwrap()
}

/// The next tick. None of these motions takes as long: what never comes to its end is seen here.
fn later(now: ClockInstant, trajectory: &Trajectory) -> ClockInstant {
    const LONGEST: std::time::Duration = std::time::Duration::from_secs(120);
    assert!(now < ClockInstant::ZERO.after(LONGEST), "not at its end");
    now.after(trajectory.period)
}

/// Runs as far as `stop_at`, stops, and returns every goal that was sent.
fn stopped(scene: &Arc<Scene>, trajectory: &Trajectory, stop_at: usize) -> Vec<JointVector> {
    let first = *trajectory.samples.first().unwrap();
    let mut now = ClockInstant::ZERO;
    let mut execution = begun(scene, trajectory);
    let mut goals = vec![first];
    for tick in 0.. {
        if tick == stop_at {
            execution.stop();
        }
        now = later(now, trajectory);
        let is = seen(*goals.last().unwrap(), now);
        match execution.next(&is, now).unwrap() {
            ExecutionStep::Go(setpoint) => goals.push(*setpoint.goal_rad()),
            ExecutionStep::Hold => {}
            ExecutionStep::Finished => break,
        }
    }
    goals
}

/// The most that goals ask of a joint's acceleration limit: all of it by the plan, and as much as a brake has on top.
const PUSH_SHARE: f64 = 1.0 + super::stop_proof::BRAKE_SHARE;

#[test]
fn stops_stay_within_limits_wherever_they_come() {
    let scene = SceneLibrary::new(None).scene("default", None).unwrap();
    let plan = plan::draw(&scene, &scene.rest_rad, &Wanted).unwrap();
    let (limits, period) = (scene.arm.limits, plan.trajectory.period.as_secs_f64());
    let (mut worst, mut beyond) = (0.0_f64, 0);
    for stop_at in (1..plan.trajectory.samples.len()).step_by(97) {
        let goals = stopped(&scene, &plan.trajectory, stop_at);
        let last = *goals.last().unwrap();
        let goals: Vec<JointVector> = goals.into_iter().chain([last, last]).collect();
        for three in goals.windows(3) {
            let [a, b, c] = three else { continue };
            let push = a
                .zip(b, |a, b| b - a)
                .zip(&b.zip(c, |b, c| c - b), |then, now| {
                    (now - then) / period.powi(2)
                });
            for (push, most) in push.iter().zip(limits.acceleration_rad_s2.iter()) {
                worst = worst.max(push.abs() / most);
                beyond += usize::from(push.abs() > most * PUSH_SHARE);
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
    /// N ticks without a reading.
    Blind(usize),
    Hold(HoldAt),
    Resume,
    /// The arm lags N ticks behind from now on.
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
        let plan = plan::draw(&scene, &scene.rest_rad, &Wanted).unwrap();
        (scene, plan.trajectory)
    })
}

/// Every goal in force, tick by tick, and the reading that it was judged by.
fn eventful(events: &[(usize, Event)]) -> Vec<(JointVector, JointVector)> {
    let (scene, trajectory) = drawing();
    let mut execution = begun(scene, trajectory);
    let mut now = ClockInstant::ZERO;
    let mut goals = vec![*execution.goal_rad()];
    let mut is = seen(*execution.goal_rad(), now);
    let mut said = vec![(*execution.goal_rad(), is.position_rad)];
    let (mut lag, mut blind, mut gap) = (0_usize, 0_usize, 0_usize);
    let mut events = events.iter();
    let mut next = events.next();
    for _ in 0..2_500 {
        now = later(now, trajectory);
        if blind == 0 {
            let then = goals.len().saturating_sub(1 + lag);
            is = seen(*goals.get(then).unwrap(), now);
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
                Event::Resume => drop(execution.resume(&is, leave(scene), now)),
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
                said.push((*execution.goal_rad(), is.position_rad));
                break;
            }
        }
        said.push((*execution.goal_rad(), is.position_rad));
    }
    said
}

proptest! {
    #![proptest_config(ProptestConfig {
        // `PROPTEST_CASES` may ask for fewer.
        cases: ProptestConfig::default().cases.min(48),
        rng_seed: RngSeed::Fixed(0x5eed),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// For any order of missed readings, holds, resumes and stops: no goal ever asks more speed
    /// of a joint than its limit, or acceleration than a brake on its path adds to that, and none is further ahead of
    /// the measured position than the maximum following error.
    #[test]
    fn no_goal_jumps_whatever_happens(
        events in prop::collection::vec((1_usize..160, event()), 1..24)
    ) {
        let (scene, trajectory) = drawing();
        let (limits, period) = (scene.arm.limits, trajectory.period.as_secs_f64());
        let said = eventful(&events);
        let goals: Vec<JointVector> = said.iter().map(|(goal, _)| *goal).collect();
        for (tick, three) in goals.windows(3).enumerate() {
            let [a, b, c] = three else { continue };
            for joint in 0..a.len() {
                let at = |q: &JointVector| q.get(joint).copied().unwrap();
                let speed = limits.velocity_rad_s.get(joint).unwrap() * period;
                let push = limits.acceleration_rad_s2.get(joint).unwrap() * period.powi(2);
                let (step, change) = (at(c) - at(b), at(c) - 2.0 * at(b) + at(a));
                prop_assert!(step.abs() <= speed * 1.001, "tick {tick} joint {joint}: {step} rad");
                prop_assert!(
                    change.abs() <= push * PUSH_SHARE,
                    "tick {tick} joint {joint}: {change} rad; {push}"
                );
            }
        }
        for (goal, is) in &said {
            for (joint, fastest) in limits.velocity_rad_s.iter().enumerate() {
                let ahead = (goal.get(joint).unwrap() - is.get(joint).unwrap()).abs();
                prop_assert!(ahead <= fastest * (0.15 + period), "joint {joint} is {ahead} rad ahead");
            }
        }
    }
}

/// A motion held at once stands up from the paper; resumed, it draws all the same samples.
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
    let mut execution = begun(scene, trajectory);
    let (mut now, mut goals, mut tick) = (ClockInstant::ZERO, vec![*execution.goal_rad()], 0);
    let mut held_ticks = 0;
    loop {
        now = later(now, trajectory);
        let is = seen(*execution.goal_rad(), now);
        if tick == at {
            assert!(execution.hold(HoldAt::Once));
        }
        if execution.is_held() {
            held_ticks += 1;
            assert!(height_mm(execution.goal_rad()) > scene.heights.lift_mm - 1.0);
        }
        if held_ticks == 30 {
            let away = seen(execution.goal_rad().map(|_, q| q + 0.1), now);
            let pushed = execution.resume(&away, leave(scene), now);
            assert!(
                matches!(pushed, Err(ExecutionError::Moved(_))),
                "{pushed:?}"
            );
            execution.resume(&is, leave(scene), now).unwrap();
            held_ticks += 1;
        }
        match execution.next(&is, now).unwrap() {
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
    let mut execution = begun(scene, trajectory);
    let mut now = ClockInstant::ZERO;
    while !execution.is_held() {
        now = later(now, trajectory);
        if execution.progress().sample == 3 {
            assert!(execution.hold(HoldAt::Once));
        }
        let is = seen(*execution.goal_rad(), now);
        execution.next(&is, now).unwrap();
        assert!(!execution.is_lifting());
    }
    assert_eq!(execution.progress().doing, SpanKind::Approach);
    let is_rad = *execution.goal_rad();
    let away = seen(is_rad.map(|_, q| q + 0.1), now);
    assert!(matches!(
        execution.resume(&away, leave(scene), now),
        Err(ExecutionError::Moved(_))
    ));
    execution
        .resume(&seen(is_rad, now), leave(scene), now)
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
    let mut execution = begun(scene, trajectory);
    let mut now = ClockInstant::ZERO;
    while !execution.is_held() {
        now = later(now, trajectory);
        if execution.progress().sample == draw.first + 5 {
            execution.hold(HoldAt::StrokeEnd);
        }
        let is = seen(*execution.goal_rad(), now);
        assert!(!matches!(
            execution.next(&is, now).unwrap(),
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

/// Hops are short and low, and yet the motion stands on each of them, lifted.
#[test]
fn a_hold_at_any_strokes_end_stands_before_the_next_stroke() {
    for name in ["hatched", "bottle", "widowx"] {
        let scene = SceneLibrary::new(None).scene(name, None).unwrap();
        let trajectory = plan::draw(&scene, &scene.rest_rad, &Wanted)
            .unwrap()
            .trajectory;
        let draws = || {
            let spans = trajectory.spans.iter();
            spans.filter(|span| span.kind == SpanKind::Draw)
        };
        for (draw, next) in draws().zip(draws().skip(1)).step_by(3) {
            let mut execution = begun(&scene, &trajectory);
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
            let is = seen(*execution.goal_rad(), now);
            execution.resume(&is, leave(&scene), now).unwrap();
            run_to(&mut execution, &mut now, next.first + 5);
        }
    }
}

/// A later request to hold at the stroke's end does not delay an earlier request to hold at once.
#[test]
fn a_hold_at_once_is_not_put_off_to_the_strokes_end() {
    let (mut execution, mut now) = (begun(&drawing().0, &drawing().1), ClockInstant::ZERO);
    let at = in_a_stroke();
    run_to(&mut execution, &mut now, at);
    assert!(execution.hold(HoldAt::Once) && execution.hold(HoldAt::StrokeEnd));
    let reach = execution.next_reach();
    while !execution.is_held() {
        tick(&mut execution, &mut now).unwrap();
    }
    let held = execution.progress();
    assert!((at..=reach).contains(&held.sample), "{held:?}; {reach}");
}

/// Standing is not being held: a stroke that waits has still to be drawn to its end.
#[test]
fn a_stroke_that_waits_is_not_held_and_neither_is_what_moves() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begun(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, in_a_stroke());
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
    let stroke = trajectory.span_at(in_a_stroke()).unwrap();
    assert!(execution.progress().sample >= stroke.end);
    let stands = seen(*execution.goal_rad(), now);
    execution.resume(&stands, leave(scene), now).unwrap();
    run_to(&mut execution, &mut now, on_the_way());
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

/// A joint that a servo pushes hard, and that does not come, is given up long before the leash:
/// the goal goes back to where the joint is, and up.
#[test]
fn a_stalled_joint_is_let_go_and_lifted() {
    let (scene, trajectory) = drawing();
    let draw = trajectory
        .spans
        .iter()
        .find(|span| span.kind == SpanKind::Draw);
    let from = draw.map(|span| span.first + 30).unwrap();
    let mut execution = begun(scene, trajectory);
    let (mut now, mut stuck, mut broken) = (ClockInstant::ZERO, None, None);
    let mut furthest = 0.0_f64;
    loop {
        now = later(now, trajectory);
        let mut is = seen(*execution.goal_rad(), now);
        if execution.progress().sample >= from || stuck.is_some() {
            let at = *stuck.get_or_insert(*is.position_rad.first().unwrap());
            furthest = furthest.max((is.position_rad.first().unwrap() - at).abs());
            *is.position_rad.first_mut().unwrap() = at;
            let behind = (execution.goal_rad().first().unwrap() - at).abs();
            is.servos = vec![base::units::ServoState {
                id: 1,
                // A servo's push: all it has at three degrees.
                load_ratio: Some((behind / 0.05).min(1.0)),
                ..<_>::default()
            }];
        }
        match execution.next(&is, now) {
            Ok(ExecutionStep::Finished) => break,
            Ok(_) => {}
            Err(why) => broken = Some(why),
        }
    }
    let Some(ExecutionError::Stalled { joint, .. }) = broken else {
        panic!("{broken:?}");
    };
    assert_eq!(joint, "shoulder_pan");
    assert!(execution.has_lifted());
    let left = (execution.goal_rad().first().unwrap() - stuck.unwrap()).abs();
    assert!(left < 0.06, "{left} rad are still asked of it");
    // The leash is 0.45 rad.
    assert!(furthest < 0.3, "the goal went {furthest} rad ahead");
}

/// Ticks as far as a sample, the arm following.
fn run_to(execution: &mut Execution, now: &mut ClockInstant, sample: usize) {
    while execution.progress().sample < sample {
        tick(execution, now).unwrap();
    }
}

fn tick(
    execution: &mut Execution,
    now: &mut ClockInstant,
) -> Result<ExecutionStep, ExecutionError> {
    *now = later(*now, &drawing().1);
    execution.next(&seen(*execution.goal_rad(), *now), *now)
}

/// Ticks until nothing comes any more, and how many.
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

/// A sample in the middle of the first stroke.
pub(super) fn in_a_stroke() -> usize {
    let mut spans = drawing().1.spans.iter();
    let draw = spans.find(|span| span.kind == SpanKind::Draw).unwrap();
    draw.first + 40
}

/// A sample in the middle of the longest way between strokes.
fn on_the_way() -> usize {
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
        leave(scene),
        &seen(scene.rest_rad, ClockInstant::ZERO),
        ClockInstant::ZERO,
        trajectory.clone(),
    );
    let checked = checked.unwrap();
    assert_eq!(checked.revision(), scene.revision);
    assert!(Arc::ptr_eq(checked.scene(), scene));
    assert!(checked.permit().covers(scene, ClockInstant::ZERO));
    assert_eq!(checked.trajectory().samples, trajectory.samples);
    let start = seen(scene.rest_rad, ClockInstant::ZERO);
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
fn a_leave_that_ends_is_no_longer_allowed_and_resumes_nothing() {
    let (scene, trajectory) = drawing();
    let permits = PermitRegistry::none();
    let lasts = std::time::Duration::from_secs(600);
    permits
        .enable(scene, ClockInstant::ZERO, Some(lasts))
        .unwrap();
    let permit = || permits.ask(scene, ClockInstant::ZERO).unwrap();
    let mut execution = begun(scene, trajectory);
    let mut now = ClockInstant::ZERO;
    let is = |execution: &Execution, now| seen(*execution.goal_rad(), now);
    let not_held = execution.resume(&is(&execution, now), permit(), now);
    assert_eq!(not_held, Err(ExecutionError::NotHeld));
    run_to(&mut execution, &mut now, 10);
    assert!(execution.hold(HoldAt::Once));
    // Goes on while the hold is still coming to its stand.
    execution
        .resume(&is(&execution, now), permit(), now)
        .unwrap();
    assert!(execution.is_allowed(now));
    assert!(!execution.is_allowed(ClockInstant::ZERO.after(lasts)));
    assert!(execution.hold(HoldAt::StrokeEnd));
    let late = now.after(lasts);
    let expired = execution.resume(&is(&execution, late), permit(), late);
    assert_eq!(expired, Err(ExecutionError::Expired));
}

#[test]
fn a_halt_stands_on_the_path_and_lifts_nothing() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begun(scene, trajectory), ClockInstant::ZERO);
    let at = in_a_stroke();
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

/// From the end of its brake to its end, and while it is brought down again, but not while it brakes.
#[test]
fn a_motion_lifts_where_it_has_left_its_path() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begun(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, in_a_stroke());
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
    let most = execution.lift_time();
    assert!(took >= most && took <= most + trajectory.period, "{took:?}");
}

#[test]
fn a_halt_on_the_way_up_stands_there() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begun(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, in_a_stroke());
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

/// Of an arm whose joints are pushed as gently as its file may say.
#[test]
fn a_lift_that_turns_round_asks_no_more_of_a_joint_than_a_brake() {
    let mut scene = Scene::clone(&drawing().0);
    let mut file = scene.arm.file.clone();
    for joint in &mut file.joints {
        joint.acceleration_max_rad_s2 = Finite::new(4.0).unwrap();
    }
    scene.arm = Arc::new(arm::ArmModel::new(file).unwrap());
    let scene = Arc::new(scene);
    let plan = plan::draw(&scene, &scene.rest_rad, &Wanted).unwrap();
    let (limits, trajectory) = (scene.arm.limits, plan.trajectory);
    let mut spans = trajectory.spans.iter();
    let draw = spans.find(|span| span.kind == SpanKind::Draw).unwrap();
    for (up, down) in [(10, 6), (20, 10), (30, 6), (40, 10)] {
        let (mut execution, mut now) = (begun(&scene, &trajectory), ClockInstant::ZERO);
        run_to(&mut execution, &mut now, draw.first + 40);
        execution.hold(HoldAt::Once);
        let (mut goals, mut ticks_up) = (Vec::new(), 0);
        while ticks_up < up + down {
            tick(&mut execution, &mut now).unwrap();
            goals.push(*execution.goal_rad());
            ticks_up += usize::from(execution.is_lifting());
            if ticks_up == up {
                let is = seen(*execution.goal_rad(), now);
                execution.resume(&is, leave(&scene), now).unwrap();
            }
        }
        execution.stop();
        while !matches!(
            tick(&mut execution, &mut now).unwrap(),
            ExecutionStep::Finished
        ) {
            goals.push(*execution.goal_rad());
        }
        for three in goals.windows(3) {
            let [a, b, c] = three else { continue };
            for (joint, most) in limits.acceleration_rad_s2.iter().enumerate() {
                let at = |q: &JointVector| q.get(joint).copied().unwrap();
                let push = (at(c) - 2.0 * at(b) + at(a)) / trajectory.period.as_secs_f64().powi(2);
                assert!(
                    push.abs() <= most * PUSH_SHARE,
                    "up {up}, down {down}: {push} rad/s²"
                );
            }
        }
    }
}

#[test]
fn after_stand_nothing_comes() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begun(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, in_a_stroke());
    assert!(execution.hold(HoldAt::Once));
    execution.stand();
    assert!(execution.was_stopped() && !execution.is_held());
    assert_eq!(run_out(&mut execution, &mut now), 0);
}

#[test]
fn a_motion_that_has_to_wait_stands_on_its_path_until_it_may_go_on() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begun(scene, trajectory), ClockInstant::ZERO);
    let at = in_a_stroke();
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
    // A stop waits for nothing.
    execution.wait(true);
    run_out(&mut execution, &mut now);
    assert!(execution.has_lifted());
    assert!(height_mm(execution.goal_rad()) > scene.heights.lift_mm - 1.0);
}

#[test]
fn a_reach_ends_with_the_motion() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begun(scene, trajectory), ClockInstant::ZERO);
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

/// Stuck on its way up, a joint is left where it is: there is no better way than up.
#[test]
fn a_stall_on_the_way_up_ends_there() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begun(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, in_a_stroke());
    execution.stop();
    while height_mm(execution.goal_rad()) < 1.0 {
        tick(&mut execution, &mut now).unwrap();
    }
    let stuck = *execution.goal_rad();
    let mut broken = None;
    for _ in 0..600 {
        now = later(now, trajectory);
        let is = seen(stuck.map(|_, q| q - 1.0), now);
        match execution.next(&is, now) {
            Ok(ExecutionStep::Finished) => break,
            Ok(_) => {}
            Err(why) => broken = Some(why),
        }
    }
    assert!(
        matches!(broken, Some(ExecutionError::Stalled { .. })),
        "{broken:?}"
    );
    assert!(!execution.has_lifted());
}

/// As deep as a pen may be pressed to draw, it slides nowhere without drawing.
#[test]
fn a_tip_that_is_pressed_into_the_sheet_does_not_travel() {
    let mut scene = Scene::clone(&drawing().0);
    scene.heights.press_mm = 0.6;
    let scene = Arc::new(scene);
    let plan = plan::draw(&scene, &scene.rest_rad, &Wanted).unwrap();
    let drawn = plan.trajectory;
    let mut spans = drawn.spans.iter();
    let draw = spans.find(|span| span.kind == SpanKind::Draw).unwrap();
    let middle = *drawn.samples.get(draw.first + 40).unwrap();
    let count = 200_usize;
    let slide = (0..count).map(|tick| {
        let share = tick as f64 / count as f64;
        let way = share.powi(3) * (10.0 + share * (6.0 * share - 15.0));
        middle.map(|joint, at| if joint == 0 { at + 0.12 * way } else { at })
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
