//! Sessions that are assessed, stored, written to files and go stale.

use nalgebra::{Isometry3, Point3, Translation3, UnitQuaternion, Vector3};

use super::Chance;
use crate::*;
use base::units::JointVector;
use kin::{IkGoal, ToolTip};
use scene::{Scene, SceneLibrary};

pub(super) fn scene() -> Scene {
    Scene::clone(&*SceneLibrary::default().scene("default", None).unwrap())
}

/// Returns the scene with its sheet moved along itself and turned.
pub(super) fn with_sheet(scene: &Scene, right_mm: f64, up_mm: f64, turn_deg: f64) -> Scene {
    let turn = UnitQuaternion::from_euler_angles(0.0, 0.0, turn_deg.to_radians());
    let shift = Translation3::new(right_mm / 1e3, up_mm / 1e3, 0.0);
    let flat = scene.surface.flat() * Isometry3::from_parts(shift, turn);
    let [x, y] = [Vector3::x(), Vector3::y()].map(|axis| flat.rotation * axis);
    let file = toml::from_str(&format!(
        "origin_m = {:?}\nx_axis = {:?}\ny_axis = {:?}\nsize_mm = {:?}",
        flat.translation.vector.as_slice(),
        x.as_slice(),
        y.as_slice(),
        scene.surface.size_mm()
    ));
    let surface = scene::Surface::new(&file.unwrap()).unwrap();
    Scene {
        surface,
        ..scene.clone()
    }
}

/// Returns the scene with its tip shifted.
fn with_tip(scene: &Scene, shift_mm: [f64; 3]) -> Scene {
    let mut other = scene.clone();
    other.pens[0].tip_m += Vector3::from(shift_mm) / 1e3;
    other
}

/// Returns the scene with pens of these names, of which all but the last draw.
fn with_pens(scene: &Scene, names: [&str; 3]) -> Scene {
    let (pen, stroke) = (&scene.pens[0], &scene.strokes[0]);
    let named = |name: &str| scene::ScenePen {
        name: name.to_owned(),
        ..pen.clone()
    };
    let drawn_with = |pen| scene::SheetStroke {
        pen,
        ..stroke.clone()
    };
    Scene {
        pens: names.map(named).into(),
        strokes: [0, 1].map(drawn_with).into(),
        ..scene.clone()
    }
}

/// A simulated person who touches points with the true arm.
pub(super) struct Hand<'a> {
    truth: &'a Scene,
    chance: Chance,
}

impl Hand<'_> {
    pub(super) fn touch(&mut self, at: Point3<f64>, role: TouchRole) -> TouchContact {
        let pen = self.truth.pen(0).unwrap();
        let tip = ToolTip {
            point_m: pen.tip_m,
            axis: pen.axis,
        };
        let chain = &self.truth.arm.chain;
        for _ in 0..200 {
            let angles: Vec<f64> = [0.1, 0.3, 0.3, 0.7, 1.6]
                .iter()
                .zip(self.truth.ready_rad.iter())
                .map(|(range, q)| q + self.chance.between(-range, *range))
                .collect();
            let start = JointVector::from_slice(&angles);
            let (_, axis) = chain.tip(&start, &tip);
            let goal = IkGoal::PointThenAxis {
                point_m: at + self.chance.noise(5e-5),
                axis,
            };
            if let Ok(found) = chain.solve(&tip, &goal, &start) {
                return TouchContact {
                    role,
                    arm: String::new(),
                    joints_rad: found.q_rad.to_vec(),
                    asked_mm: None,
                    number: 0,
                    place: 0,
                    at_ms: 1,
                    zeros: String::new(),
                };
            }
        }
        panic!("{at} cannot be touched");
    }

    pub(super) fn on_sheet(&mut self, at_mm: [f64; 2], role: TouchRole) -> TouchContact {
        self.touch(self.truth.surface.at(at_mm).point_m, role)
    }

    /// Touches eight places, each three times in a row.
    pub(super) fn sheet(&mut self) -> Vec<TouchContact> {
        let places = [
            ([0.0, 0.0], TouchRole::Origin),
            ([100.0, 0.0], TouchRole::X),
            ([0.0, 100.0], TouchRole::Y),
            ([100.0, 100.0], TouchRole::Sheet),
            ([50.0, 50.0], TouchRole::Sheet),
            ([50.0, 0.0], TouchRole::Sheet),
            ([0.0, 50.0], TouchRole::Sheet),
            ([70.0, 30.0], TouchRole::Verify),
        ];
        let thrice = |(at, role)| {
            let first = self.on_sheet(at, role);
            let mut repeat = || {
                let mut other = first.clone();
                let joints = other.joints_rad.iter_mut();
                joints.for_each(|q| *q += self.chance.within(1e-4));
                other
            };
            [repeat(), repeat(), repeat()]
        };
        places.into_iter().flat_map(thrice).collect()
    }

    fn tool(&mut self) -> Vec<TouchContact> {
        let at = self.truth.surface.at([50.0, 50.0]).point_m + Vector3::z() * 0.03;
        let mut touches: Vec<TouchContact> =
            (0..12).map(|_| self.touch(at, TouchRole::Point)).collect();
        touches.push(self.touch(at, TouchRole::Verify));
        touches
    }
}

pub(super) fn hand(truth: &Scene, seed: u64) -> Hand<'_> {
    Hand {
        truth,
        chance: Chance(seed),
    }
}

pub(super) fn practice() -> CalibrationOrigin {
    CalibrationOrigin {
        simulated: Some(true),
        ..CalibrationOrigin::default()
    }
}

pub(super) fn port_origin(servos: &str) -> CalibrationOrigin {
    CalibrationOrigin {
        simulated: Some(false),
        servos: servos.to_owned(),
        ..CalibrationOrigin::default()
    }
}

pub(super) fn session(
    kind: CalibrationKind,
    scene: &Scene,
    mut touches: Vec<TouchContact>,
) -> CalibrationSession {
    let zeros = zeros_of(&scene.arm.file);
    touches
        .iter_mut()
        .for_each(|touch| touch.zeros.clone_from(&zeros));
    CalibrationSession {
        kind,
        scene: scene.name.clone(),
        pen: scene.pens[0].name.clone(),
        arm: scene.arm.file.name.clone(),
        frame: scene.arm.file.frame,
        basis: basis_of(kind, scene, &scene.pens[0].name).unwrap(),
        drawn_on: String::new(),
        name: String::new(),
        probed: false,
        read_mm: None,
        seen: None,
        ink: None,
        origin: practice(),
        touches,
    }
}

pub(super) fn record(
    number: u64,
    session: CalibrationSession,
    assessed: &TouchAssessment,
) -> CalibrationRecord {
    CalibrationRecord {
        number,
        at_ms: 1_760_000_000_000,
        method: "touches".to_owned(),
        servos: String::new(),
        verdict: assessed.finding.verdict,
        reasons: assessed.finding.reasons.clone(),
        residuals_mm: assessed.points.iter().map(TouchResidual::mm).collect(),
        old: assessed.old.clone(),
        new: assessed.new.clone(),
        session,
    }
}

fn refusal(assessed: &TouchAssessment) -> String {
    check(&assessed.finding, &assessed.change, false).unwrap_err()
}

#[test]
fn a_bent_pen_is_found_on_five_joints() {
    let assumed = scene();
    let truth = with_tip(&assumed, [3.0, -2.0, 4.0]);
    let touches = hand(&truth, 21).tool();
    let session = session(CalibrationKind::Tool, &assumed, touches);
    let assessed = assess(&session, &assumed, None).unwrap();
    assert!(
        check(&assessed.finding, &assessed.change, false).is_ok(),
        "{}",
        report::assessment_text(&session, &assessed)
    );
    let tip = Vector3::from_row_slice(&assessed.new["tip_m"]);
    assert!(
        (tip - truth.pens[0].tip_m.coords).norm() < 4e-4,
        "{assessed:?}"
    );
    assert!(
        (assessed.change.mm - 5.39).abs() < 0.4,
        "{:?}",
        assessed.change
    );
    let text = report::assessment_text(&session, &assessed);
    assert!(
        text.contains("next: `steadyhand calibrate accept`"),
        "{text}"
    );
    let page = report::html(&session, &assessed);
    assert_eq!(page.matches("<line").count(), 13);
    assert!(
        page.contains("difference [") && !page.contains("http"),
        "{page}"
    );
}

/// A missing angle once counted as 0, and its touch was fitted with the others.
#[test]
fn refuses_a_touch_that_leaves_out_a_joint() {
    let assumed = scene();
    let good = hand(&assumed, 22).sheet();
    let (mut missing, mut not_finite) = (good.clone(), good);
    missing[2].joints_rad.pop();
    not_finite[2].joints_rad[1] = f64::NAN;
    for touches in [missing, not_finite] {
        let session = session(CalibrationKind::Sheet, &assumed, touches);
        let error = assess(&session, &assumed, None).unwrap_err().to_string();
        assert!(error.contains("touch 3 has"), "{error}");
        assert!(error.contains("needs 5 finite ones"), "{error}");
    }
}

#[test]
fn a_sheet_is_found_where_it_lies() {
    let assumed = scene();
    let touches = hand(&assumed, 22).sheet();
    let session = session(CalibrationKind::Sheet, &assumed, touches);
    let assessed = assess(&session, &assumed, None).unwrap();
    assert!(
        check(&assessed.finding, &assessed.change, false).is_ok(),
        "{}",
        report::assessment_text(&session, &assessed)
    );
    assert!(
        assessed.change.mm < 0.5 && assessed.change.deg < 0.5,
        "{:?}",
        assessed.change
    );
}

/// It was told in the frame of the sheet as its file had it, 19 mm from where it was, and as a touch of the sheet anywhere.
#[test]
fn a_slipped_touch_of_an_axis_is_told_on_the_sheet_that_was_found() {
    let assumed = scene();
    let truth = with_sheet(&assumed, 12.0, -8.0, 4.0);
    let mut touches = hand(&truth, 23).sheet();
    let slipped = truth.surface.at([100.0, 0.0]).point_m + Vector3::z() * 0.002;
    touches[5] = hand(&truth, 24).touch(slipped, TouchRole::X);
    let session = session(CalibrationKind::Sheet, &assumed, touches);
    let reasons = assess(&session, &assumed, None).unwrap().finding.reasons;
    let reasons = reasons.join("; ");
    let place = "touch 6 was `x` of the sheet, 100 mm to the right of its origin and 0 mm up";
    assert!(reasons.contains(place), "{reasons}");
}

/// Those of a week ago were fitted with those of today as if the sheet had lain still.
#[test]
fn touches_of_another_day_are_told() {
    let assumed = scene();
    let mut touches = hand(&assumed, 23).sheet();
    let (now_ms, hour_ms) = (1_796_000_000_000, 3_600_000);
    let reasons = |touches: &[TouchContact]| {
        let session = session(CalibrationKind::Sheet, &assumed, touches.to_vec());
        let assessed = assess(&session, &assumed, None).unwrap();
        check(&assessed.finding, &assessed.change, false).unwrap();
        assessed.finding.reasons.join("; ")
    };
    for (index, touch) in touches.iter_mut().enumerate() {
        touch.at_ms = now_ms - if index < 3 { hour_ms } else { 0 };
    }
    assert_eq!(reasons(&touches), "");
    for touch in &mut touches[..3] {
        touch.at_ms -= 215 * hour_ms;
    }
    let told = reasons(&touches);
    let expected = "made from 2026-11-21 00:53 UTC to 2026-11-30 00:53 UTC; 3 of 24 are more than an hour older than the last";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn sabotaged_sessions_are_refused_with_their_cause() {
    let assumed = scene();
    let assessed =
        |kind, touches| assess(&session(kind, &assumed, touches), &assumed, None).unwrap();
    let good = hand(&assumed, 23).sheet();
    let mut swapped = good.clone();
    for touch in &mut swapped {
        touch.role = match touch.role {
            TouchRole::X => TouchRole::Y,
            TouchRole::Y => TouchRole::X,
            other => other,
        };
    }
    let mut scaled = good.clone();
    scaled[3].asked_mm = Some(90.0);
    let no_origin = good[3..].to_vec();
    let unverified = good[..21].to_vec();
    let once: Vec<TouchContact> = good.iter().step_by(3).cloned().collect();
    let few = once[..4].to_vec();
    let mut spread = good.clone();
    spread[13] = hand(&assumed, 28).touch(
        assumed.surface.at([50.0, 50.0]).point_m + Vector3::z() * 0.003,
        TouchRole::Sheet,
    );
    // A touch that is left out does not count as scatter; two such touches are not left out.
    let text = report::assessment_text(
        &session(CalibrationKind::Sheet, &assumed, spread.clone()),
        &assessed(CalibrationKind::Sheet, spread.clone()),
    );
    assert!(text.contains("touch 14 "), "{text}");
    assert!(!text.contains("spread over"), "{text}");
    let place = "touch 14 was the sheet 50 mm to the right of its origin and 50 mm up. `steadyhand calibrate undo --touch 14` removes all touches of that place (3 touches)";
    assert!(text.contains(place), "{text}");
    spread[12] = hand(&assumed, 27).touch(
        assumed.surface.at([50.0, 50.0]).point_m - Vector3::z() * 0.003,
        TouchRole::Sheet,
    );
    let mut slipped = good.clone();
    slipped[12] = hand(&assumed, 24).touch(
        assumed.surface.at([50.0, 50.0]).point_m + Vector3::z() * 0.012,
        TouchRole::Sheet,
    );
    for (touches, cause) in [
        (swapped, "swapped"),
        (scaled, "+x is 100"),
        (no_origin, "the origin"),
        (unverified, "not verified"),
        (few, "at least 5)"),
        (slipped, "touch 13 is"),
        (
            once,
            "touched fewer than 3 times: origin (touch 1), x (touch 2)",
        ),
        (spread, "touches of the same place spread over"),
    ] {
        let reason = refusal(&assessed(CalibrationKind::Sheet, touches));
        assert!(reason.contains(cause), "{cause}: {reason}");
    }
    let mut tool = hand(&assumed, 25).tool();
    let first = tool[0].clone();
    for touch in tool.iter_mut().take(12) {
        *touch = first.clone();
    }
    let reason = refusal(&assessed(CalibrationKind::Tool, tool));
    assert!(reason.contains("tilt it"), "{reason}");
    // The tip was changed after the first touch of the sheet.
    let old = session(CalibrationKind::Sheet, &assumed, good.clone());
    let other = with_tip(&assumed, [0.0, 0.0, 1.0]);
    assert!(matches!(
        assess(&old, &other, None),
        Err(AssessError::Changed(_))
    ));
    // The sheet was moved by more than is accepted without an override.
    let mut far = good;
    far.iter_mut().for_each(|touch| touch.joints_rad[0] += 0.3);
    let reason = refusal(&assessed(CalibrationKind::Sheet, far));
    assert!(reason.contains("--override"), "{reason}");
}

#[test]
fn a_new_tool_makes_the_sheet_stale_and_a_hand_edit_does_not() {
    let assumed = scene();
    let session = session(CalibrationKind::Sheet, &assumed, hand(&assumed, 26).sheet());
    let mut assessed = assess(&session, &assumed, None).unwrap();
    // As if the touches agreed exactly with the file.
    assessed.new = assessed.old.clone();
    let history = [record(1, session, &assessed)];
    assert_eq!(stale(&history, &assumed, &practice()), None);
    let other = with_tip(&assumed, [0.0, 0.0, 1.0]);
    let reason = stale(&history, &other, &practice()).unwrap();
    assert!(
        reason.contains("steadyhand calibrate touch sheet --scene default"),
        "{reason}"
    );
    let mut moved = history;
    moved[0]
        .new
        .insert("origin_m".to_owned(), vec![0.0, 0.0, 0.0]);
    assert_eq!(stale(&moved, &other, &practice()), None);
    // A calibration of another arm cannot go stale on this one.
    moved[0].new.clone_from(&moved[0].old);
    assert!(stale(&moved, &other, &practice()).is_some());
    assert_eq!(stale(&moved, &other, &port_origin("12345678")), None);
}

/// The newest touch of any pen was looked at alone: one pen touched anew let another draw with its stale tip.
#[test]
fn every_pen_that_draws_needs_a_tip_that_is_not_stale() {
    let before = with_pens(&scene(), ["ink", "red", "spare"]);
    let mut zeros_changed = before.clone();
    std::sync::Arc::make_mut(&mut zeros_changed.arm).file.joints[4].servos[0].zero_tick += 100;
    let tool = |number, scene: &Scene, pen: usize| {
        let mut session = session(CalibrationKind::Tool, scene, Vec::new());
        session.pen.clone_from(&scene.pens[pen].name);
        let mut assessed = assess(&session, scene, None).unwrap();
        assessed.new = assessed.old.clone();
        record(number, session, &assessed)
    };
    let mut history: Vec<_> = (0..3)
        .map(|pen| tool(1 + pen as u64, &before, pen))
        .collect();
    assert_eq!(stale(&history, &before, &practice()), None);
    for (pen, name) in ["ink", "red"].into_iter().enumerate() {
        let reason = stale(&history, &zeros_changed, &practice()).unwrap();
        let command = format!("`steadyhand calibrate touch tool --scene default --pen {name}`");
        assert!(reason.contains(&command), "{reason}");
        history.push(tool(4 + pen as u64, &zeros_changed, pen));
    }
    // The third pen draws nothing.
    assert_eq!(stale(&history, &zeros_changed, &practice()), None);
}

#[test]
fn missing_calibrations_are_named_in_the_order_in_which_to_make_them() {
    let assumed = scene();
    let accepted = |kind, touches| {
        let session = session(kind, &assumed, touches);
        let mut assessed = assess(&session, &assumed, None).unwrap();
        assessed.new = assessed.old.clone();
        record(1, session, &assessed)
    };
    let mut zeros = accepted(CalibrationKind::Tool, Vec::new());
    zeros.session.kind = CalibrationKind::Zeros;
    let tool = accepted(CalibrationKind::Tool, Vec::new());
    let sheet = accepted(CalibrationKind::Sheet, Vec::new());
    let all = missing(&[], &assumed, &practice());
    let commands = [
        "calibrate joints --arm so101",
        "calibrate touch tool",
        "teach sheet",
    ];
    assert_eq!(all.len(), 3, "{all:?}");
    for (command, entry) in commands.iter().zip(&all) {
        assert!(entry.contains(command), "{entry}");
    }
    assert_eq!(missing(&[zeros.clone()], &assumed, &practice()), all[1..]);
    assert_eq!(
        missing(&[tool.clone(), zeros.clone()], &assumed, &practice()),
        all[2..]
    );
    let history = [zeros, tool, sheet];
    assert!(missing(&history, &assumed, &practice()).is_empty());
    // In a scene of another name they count while it has the same values and the same basis.
    let mut other = assumed.clone();
    other.name = "other".to_owned();
    assert!(missing(&history, &other, &practice()).is_empty());
    let changed = with_tip(&other, [0.0, 0.0, 1.0]);
    assert_eq!(missing(&history, &changed, &practice()).len(), 2);
    let mut others = history;
    others
        .iter_mut()
        .for_each(|record| record.session.arm = "another".to_owned());
    // Calibrations of another arm do not count, even in a scene of the same name.
    assert_eq!(missing(&others, &assumed, &practice()), all);
}

/// Returns records of zeros, tool and sheet with the files' values, accepted on an arm of this origin.
fn all_kinds(assumed: &Scene, first: u64, origin: &CalibrationOrigin) -> Vec<CalibrationRecord> {
    let kinds = [
        CalibrationKind::Zeros,
        CalibrationKind::Tool,
        CalibrationKind::Sheet,
    ];
    let records = (first..).zip(kinds).map(|(number, kind)| {
        let session_kind = if kind == CalibrationKind::Zeros {
            CalibrationKind::Tool
        } else {
            kind
        };
        let session = session(session_kind, assumed, Vec::new());
        let mut assessed = assess(&session, assumed, None).unwrap();
        assessed.new = assessed.old.clone();
        if kind == CalibrationKind::Zeros {
            assessed.new = [("zero_tick of servo 1".to_owned(), vec![2048.0])].into();
        }
        let mut record = record(number, session, &assessed);
        record.session.kind = kind;
        record.session.origin = origin.clone();
        record
    });
    records.collect()
}

#[test]
fn refuses_practice_other_servos_and_an_unknown_arm_on_a_port() {
    let assumed = scene();
    let port = port_origin("12345678");
    for (origin, reason) in [
        (practice(), "simulated arm"),
        (port_origin("87654321"), "different servos"),
        (port_origin(""), "its arm"),
        (
            CalibrationOrigin::default(),
            "`steadyhand calibrate restore 3`",
        ),
        (
            CalibrationOrigin {
                unmeasured: true,
                ..port.clone()
            },
            "values that were not measured on this arm",
        ),
    ] {
        let history = all_kinds(&assumed, 1, &origin);
        let lacks = missing(&history, &assumed, &port);
        assert_eq!(lacks.len(), 3, "{lacks:?}");
        assert!(lacks[2].contains(reason), "{lacks:?}");
        assert!(lacks[2].contains("steadyhand teach sheet"), "{lacks:?}");
    }
    let history = all_kinds(&assumed, 1, &port);
    assert!(missing(&history, &assumed, &port).is_empty());
    // A calibration on a port does not count for practice, and none counts for an unknown arm.
    assert_eq!(missing(&history, &assumed, &practice()).len(), 3);
    let unknown = CalibrationOrigin::default();
    assert_eq!(missing(&history, &assumed, &unknown).len(), 3);
}

/// Factory-new servos of two kits are alike: one arm drew on what was measured on the other.
#[test]
fn an_arm_does_not_draw_on_what_was_measured_on_another_of_its_model() {
    let assumed = scene();
    let arm = |name: &str, among_several| CalibrationOrigin {
        arm_name: name.to_owned(),
        among_several,
        ..port_origin("12345678")
    };
    let lacks = |made_on: &CalibrationOrigin, arm: &CalibrationOrigin| {
        missing(&all_kinds(&assumed, 1, made_on), &assumed, arm).join("; ")
    };
    let (left, right) = (arm("left", true), arm("right", true));
    assert_eq!(lacks(&left, &left), "");
    assert_eq!(lacks(&arm("left", false), &left), "");
    for made_on in [&left, &arm("left", false)] {
        let lacking = lacks(made_on, &right);
        assert!(lacking.contains("arm `left`"), "{lacking}");
        assert!(
            lacking.contains("`steadyhand calibrate restore 1 --arm right`"),
            "{lacking}"
        );
    }
    // The other arm is gone; and the only arm has another name by now.
    assert!(lacks(&left, &arm("right", false)).contains("arm `left`"));
    assert_eq!(lacks(&arm("arm", false), &arm("left", false)), "");
    // Older ones have no name.
    let unnamed = port_origin("12345678");
    assert_eq!(lacks(&unnamed, &arm("left", false)), "");
    let lacking = lacks(&unnamed, &right);
    assert!(
        lacking.contains("`steadyhand calibrate restore 3`"),
        "{lacking}"
    );
}

/// A simulated arm beside the arm on a port took that arm's calibrations from before names were kept.
#[test]
fn only_arms_that_are_simulated_alike_are_told_apart_by_name() {
    let arm = |name: &str, model: &str, simulated| KnownArm {
        name: name.to_owned(),
        model: model.to_owned(),
        simulated,
    };
    let arms = [
        arm("bench", "so101", false),
        arm("practice", "so101", true),
        arm("other", "koch", false),
        arm("left", "so101", false),
    ];
    let alike = |arms, simulated| names_alike(arms, "so101", simulated).collect::<Vec<_>>();
    assert_eq!(alike(&arms[..3], Some(false)), ["bench"]);
    assert_eq!(alike(&arms, Some(false)), ["bench", "left"]);
    assert_eq!(alike(&arms, Some(true)), ["practice"]);
    assert!(alike(&arms, None).is_empty());
}

#[test]
fn touches_on_two_arms_of_one_model_are_not_judged_together() {
    let folder = tempfile::tempdir().unwrap();
    let (store, library) = (
        CalibrationStore::of_state(folder.path(), &SceneLibrary::new(None)),
        SceneLibrary::new(None),
    );
    let desk = CalibrationDesk {
        store: &store,
        library: &library,
        at_ms: 0,
        arms: &|_| Vec::new(),
    };
    let assumed = scene();
    let touch = |name: &str, among_several| {
        let origin = CalibrationOrigin {
            arm_name: name.to_owned(),
            among_several,
            ..port_origin("12345678")
        };
        let fresh = begin_session(CalibrationKind::Sheet, &assumed, None, origin).unwrap();
        desk.add_touch(fresh, &HandTouch::default(), vec![0.0; assumed.arm.dof()])
    };
    touch("arm", false).unwrap();
    touch("arm", true).unwrap();
    let error = touch("right", true).unwrap_err().to_string();
    assert!(error.contains("arm `right`"), "{error}");
    assert_eq!(store.proposal().unwrap().unwrap().touches.len(), 2);
}

#[test]
fn practice_with_the_same_values_invalidates_no_calibration() {
    let assumed = scene();
    let port = port_origin("12345678");
    let mut history = all_kinds(&assumed, 1, &port);
    history.extend(all_kinds(&assumed, 4, &practice()));
    assert!(missing(&history, &assumed, &port).is_empty());
    // Practice has written other values into the files than those of the port.
    history[0]
        .new
        .insert("zero_tick of servo 1".to_owned(), vec![2051.0]);
    history[2]
        .new
        .insert("origin_m".to_owned(), vec![0.0, 0.0, 0.0]);
    let lacks = missing(&history, &assumed, &port);
    assert_eq!(lacks.len(), 2, "{lacks:?}");
    assert!(lacks[0].contains("calibration 4 was"), "{lacks:?}");
    assert!(lacks[1].contains("calibration 6 was"), "{lacks:?}");
}

#[test]
fn a_lock_that_another_command_holds_is_waited_for_and_then_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = CalibrationStore::of_state(folder.path(), &SceneLibrary::new(None));
    let held = store.lock().unwrap();
    let error = store.lock().unwrap_err().to_string();
    let holder = format!("(process {})", std::process::id());
    assert!(error.contains(&holder) && error.contains("5 s"), "{error}");
    drop(held);
    store.lock().unwrap();
}

#[test]
fn practice_does_not_replace_the_calibration_of_an_arm() {
    let folder = tempfile::tempdir().unwrap();
    let store = CalibrationStore::of_state(folder.path(), &SceneLibrary::new(None));
    let assumed = scene();
    let lock = store.lock().unwrap();
    let port = port_origin("12345678");
    let sheet = |origin: &CalibrationOrigin| all_kinds(&assumed, 1, origin).pop().unwrap();
    let practice = sheet(&practice());
    store.keep(&sheet(&port), &lock).unwrap();
    for number in 4..=KEPT_MAX as u64 + 10 {
        let record = CalibrationRecord {
            number,
            ..practice.clone()
        };
        store.keep(&record, &lock).unwrap();
    }
    let history = store.history().unwrap();
    assert_eq!(history[0].session.origin, port);
    assert!(history.len() <= KEPT_MAX + 1, "{}", history.len());
}

#[test]
fn refuses_touches_that_were_measured_with_different_zeros() {
    let assumed = scene();
    let good = session(CalibrationKind::Sheet, &assumed, hand(&assumed, 26).sheet());
    assert!(assess(&good, &assumed, None).is_ok());
    for zeros in ["", "12345678"] {
        let mut mixed = good.clone();
        mixed.touches[3].zeros = zeros.to_owned();
        let error = assess(&mixed, &assumed, None).unwrap_err().to_string();
        let parts = ["touch 4", "different zeros", "steadyhand calibrate discard"];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn a_joint_that_would_turn_the_other_way_is_named() {
    let assumed = scene();
    let signs = |sign: f64| FileValues::from([("sign of servo 3".to_owned(), vec![sign])]);
    assert!(flipped_joints(&assumed.arm, &signs(1.0)).is_empty());
    assert_eq!(flipped_joints(&assumed.arm, &signs(-1.0)), ["elbow_flex"]);
    assert!(flipped_joints(&assumed.arm, &FileValues::new()).is_empty());
}

#[test]
fn the_newest_calibration_of_an_object_outlives_fifty_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = CalibrationStore::of_state(folder.path(), &SceneLibrary::new(None));
    let assumed = scene();
    let sheet = session(CalibrationKind::Sheet, &assumed, Vec::new());
    let assessed = assess(&sheet, &assumed, None).unwrap();
    let lock = store.lock().unwrap();
    let tool = session(CalibrationKind::Tool, &assumed, Vec::new());
    store.keep(&record(1, tool, &assessed), &lock).unwrap();
    for number in 2..=KEPT_MAX as u64 + 5 {
        store
            .keep(&record(number, sheet.clone(), &assessed), &lock)
            .unwrap();
    }
    let history = store.history().unwrap();
    assert_eq!(history[0].session.kind, CalibrationKind::Tool);
    assert!(history.len() <= KEPT_MAX + 1, "{}", history.len());
}

#[test]
fn a_bent_sheet_is_reported_and_written_flat() {
    let assumed = scene();
    let mut touches = Vec::new();
    let places = [0.0, 50.0, 100.0].map(|y| [0.0, 50.0, 100.0].map(|x| [x, y]));
    for (index, at_mm) in places.into_iter().flatten().enumerate() {
        let off = (at_mm[0] - 50.0) / 1e3;
        let at = assumed.surface.at(at_mm).point_m - Vector3::z() * (off * off / (2.0 * 0.5));
        let role = match index {
            0 => TouchRole::Origin,
            2 => TouchRole::X,
            6 => TouchRole::Y,
            _ => TouchRole::Sheet,
        };
        let touch = hand(&assumed, 30 + index as u64).touch(at, role);
        touches.extend([touch.clone(), touch.clone(), touch]);
    }
    let session = session(CalibrationKind::Sheet, &assumed, touches);
    let assessed = assess(&session, &assumed, None).unwrap();
    let reasons = assessed.finding.reasons.join("; ");
    assert!(
        reasons.contains("bent along x") && reasons.contains("a plane"),
        "{reasons}"
    );
    assert!(!assessed.new.contains_key("cylinder_radius_mm"));
}

#[test]
fn a_store_keeps_the_last_ones_and_names_what_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let store = CalibrationStore::of_state(folder.path(), &SceneLibrary::new(None));
    let assumed = scene();
    let session = session(CalibrationKind::Sheet, &assumed, hand(&assumed, 27).sheet());
    let assessed = assess(&session, &assumed, None).unwrap();
    let lock = store.lock().unwrap();
    assert_eq!(store.proposal().unwrap(), None);
    store.propose(&session, &lock).unwrap();
    assert_eq!(store.proposal().unwrap().as_ref(), Some(&session));
    let last = KEPT_MAX as u64 + 5;
    for number in 1..=last {
        assert_eq!(store.next_number(), number);
        store
            .keep(&record(number, session.clone(), &assessed), &lock)
            .unwrap();
    }
    let history = store.history().unwrap();
    assert_eq!((history.len(), history[0].number), (KEPT_MAX, 6));
    assert_eq!(history.last(), Some(&record(last, session, &assessed)));
    assert!(matches!(
        store.record(1),
        Err(CalibrationStoreError::Unknown { number: 1 })
    ));
    store.discard(&lock).unwrap();
    store.discard(&lock).unwrap();
    assert_eq!(store.proposal().unwrap(), None);
    // A partial file that was never renamed is ignored; a damaged record is named.
    let inner = folder.path().join("calibration");
    std::fs::write(inner.join("000099.toml.new"), "num").unwrap();
    assert_eq!(store.next_number(), last + 1);
    std::fs::write(inner.join("000020.toml"), "number = ").unwrap();
    let error = store.history().unwrap_err().to_string();
    assert!(
        error.contains("000020.toml") && error.contains("Next: "),
        "{error}"
    );
}

#[test]
fn only_calibrated_values_are_written_and_comments_stay() {
    let library = SceneLibrary::default();
    let assumed = scene();
    let text = library.source("default.toml").unwrap().unwrap();
    let text = text.replace(
        "tip_m = [0.0, -0.038637, -0.010353]",
        "tip_m = [0.0, -0.038637, -0.010353] # by eye",
    );
    let tool = session(CalibrationKind::Tool, &assumed, Vec::new());
    let new: FileValues = [("tip_m".to_owned(), vec![0.001, -0.04, 0.5])].into();
    let written = write(&text, &tool, &new).unwrap();
    assert_eq!(
        written,
        text.replace("[0.0, -0.038637, -0.010353] #", "[0.001, -0.04, 0.5] #")
    );
    let sheet = CalibrationSession {
        kind: CalibrationKind::Sheet,
        ..tool.clone()
    };
    let new: FileValues = [("origin_m".to_owned(), vec![0.1, 0.2, 0.3])].into();
    let written = write(&text, &sheet, &new).unwrap();
    assert_eq!(
        written,
        text.replace("[0.05, -0.125, 0.005]", "[0.1, 0.2, 0.3]")
    );
    let zeros = CalibrationSession {
        kind: CalibrationKind::Zeros,
        ..tool.clone()
    };
    let arm = library.source("arms/so101.toml").unwrap().unwrap();
    let new: FileValues = [
        ("zero_tick of servo 3".to_owned(), vec![2051.0]),
        ("upper_rad of elbow_flex".to_owned(), vec![1.5]),
    ]
    .into();
    let written = write(&arm, &zeros, &new).unwrap();
    let expected = arm
        .replace(
            "{ id = 3, sign = 1, zero_tick = 2048",
            "{ id = 3, sign = 1, zero_tick = 2051",
        )
        .replace("upper_rad = 1.69\n", "upper_rad = 1.5\n");
    assert_eq!(written, expected);
    for (text, session, values) in [
        ("name = ", &tool, &new),
        ("pens = []", &tool, &new),
        ("sheet = 1", &sheet, &new),
        (
            arm.as_str(),
            &zeros,
            &[("zero_tick of servo 77".to_owned(), vec![1.0])].into(),
        ),
    ] {
        assert!(write(text, session, values).is_err(), "{text}");
    }
}
