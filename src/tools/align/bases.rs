//! `align {"bases": true}`: the arms of a scene touch the same places of its sheet, one call for each arm, and what their joints say
//! there tells where their bases stand to each other.

use std::sync::Arc;

use super::super::motion_job::{JobContext, JobError};
use super::probe_places::{MissedTouch, ProbePlaces, ProbeTarget};
use super::touch;
use super::{change_json, reading, report};
use crate::calibration_check;
use crate::reply::Reply;
use base::units::JointVector;
use base::wording::count;
use calib::{
    self, AlignmentResult, CalibrationKind, CalibrationSession, CalibrationStore, FitFinding,
    TouchAssessment, TouchContact, TouchRole,
};
use call::{Refusal, refusal};
use scene::{PROBE_DEPTH_MM, Scene, SharedScene};

/// Columns and rows of places that are considered, and their distance from the sheet's edges.
const GRID: [u32; 2] = [4, 5];
const INSET_MM: f64 = 15.0;

/// Places that are touched, and the fewest with which it begins: one more than a fit needs, for one that is lost.
const PLACES: usize = 8;
const PLACES_MIN: usize = 5;

/// Touches the places that all arms of the scene reach, goes to rest, and adds the touches to the proposal. Nothing is saved.
pub(super) async fn align(ctx: JobContext, scene: Arc<Scene>) -> Result<Reply, JobError> {
    touch::check_can_probe(&scene)?;
    let shared = ctx.node.scenes.shared(scene.shared_name(), None);
    let shared = Arc::new(shared.map_err(Refusal::from)?);
    let own = session(&ctx, &scene)?;
    let store = CalibrationStore::of_state(&ctx.node.state, &ctx.node.scenes);
    let does = format!("touches for the bases of scene {}", shared.name);
    let _claim = store
        .claim(&format!("arm {} {does}", ctx.arm.name))
        .map_err(Refusal::from)?;
    open_session(&store, &own)?;
    let considered = Arc::clone(&shared);
    let places = tokio::task::spawn_blocking(move || common_places(&considered)).await;
    let places = places.map_err(|_| refusal!("the thread that looks for places failed"))??;
    let mut probes = ProbePlaces::possible(&ctx, &scene, places, PLACES_MIN).await?;
    let places = std::mem::take(&mut probes.kept);
    ctx.arm.keep_or_place_sheet(&scene, ctx.job.number());
    ctx.job.update(|card| {
        (card.done, card.of) = (0, places.len());
        card.has_later_motions = true;
    });
    let (mut touches, mut felt) = (Vec::new(), 0);
    for (index, place) in places.iter().enumerate() {
        ctx.job
            .update(|card| (card.done_before, card.done) = (index, index));
        match touch::touch_place(&ctx, &scene, place).await? {
            Ok(touched) => {
                let contact = |(joints_rad, _)| contact(&scene, place.number, &joints_rad);
                touches.extend(touched.into_iter().map(contact));
                felt += 1;
            }
            // A stretched arm feels less: a fit does without such a place.
            Err(missed) => {
                let places_left = (felt, places.len() - index - 1);
                if let Some(missed) = probes.leave_out(missed, places_left) {
                    return Ok(not_measured(&ctx, &scene, missed));
                }
            }
        }
    }
    // The next arm touches the same places.
    let permit = ctx.ask(&scene)?;
    let away = ctx.plan_to_rest(&scene).await?;
    ctx.job.update(|card| {
        card.done = card.of;
        card.has_later_motions = false;
    });
    ctx.run_uncounted(&scene, permit, &away).await?;
    let kept = (Arc::clone(&shared), own, touches);
    let keeping = tokio::task::spawn_blocking(move || keep(&store, &kept.0, kept.1, kept.2));
    let (session, assessed) = match keeping.await {
        Ok(result) => result.map_err(|error| JobError::NotKept(error.into()))?,
        Err(_) => return Err(JobError::NotKept("its thread failed".to_owned())),
    };
    Ok(answer(
        &ctx,
        &scene,
        (&shared, &session),
        (felt, &probes),
        &assessed,
    ))
}

/// Begins a session for the bases of the scene that an arm shares.
fn session(ctx: &JobContext, scene: &Scene) -> Result<CalibrationSession, Refusal> {
    let origin = calibration_check::origin(&ctx.node, &ctx.arm);
    let session = calib::begin_session(CalibrationKind::Bases, scene, None, origin)?;
    Ok(CalibrationSession {
        scene: scene.shared_name().to_owned(),
        ..session
    })
}

/// Returns the open proposal that an arm's touches go on with, if there is one.
///
/// # Errors
/// A proposal is open that an operator must decide first.
fn open_session(
    store: &CalibrationStore,
    own: &CalibrationSession,
) -> Result<Option<CalibrationSession>, Refusal> {
    store.check_not_interrupted()?;
    let goes_on = |open: &CalibrationSession| {
        open.is_of_same(own) && open.basis == own.basis && open.may_go_on_with(&own.origin)
    };
    match store.proposal()? {
        Some(open) if !goes_on(&open) => Err(reading::is_open(&open)),
        open => Ok(open),
    }
}

/// Puts an arm's touches in the place of its earlier ones; points that a person touched stay.
fn keep(
    store: &CalibrationStore,
    shared: &SharedScene,
    own: CalibrationSession,
    touches: Vec<TouchContact>,
) -> Result<(CalibrationSession, TouchAssessment), Refusal> {
    let lock = store.lock()?;
    let mut session = open_session(store, &own)?.unwrap_or(own);
    let is_replaced = |old: &TouchContact| {
        let mut new = touches.iter();
        old.role == TouchRole::Sheet && new.any(|new| new.arm == old.arm)
    };
    session.touches.retain(|touch| !is_replaced(touch));
    session.touches.extend(touches);
    let assessed = calib::assess_bases(&session, shared)?;
    store.propose(&session, &lock)?;
    Ok((session, assessed))
}

fn contact(scene: &Scene, number: usize, joints_rad: &JointVector) -> TouchContact {
    TouchContact {
        role: TouchRole::Sheet,
        arm: scene.arm_name.clone().unwrap_or_default(),
        joints_rad: joints_rad.to_vec(),
        asked_mm: None,
        number,
        place: 0,
        at_ms: base::clock::calendar_ms(),
        zeros: calib::zeros_of(&scene.arm.file),
    }
}

/// Returns places of the sheet that every arm of a scene can touch, far from each other: the same ones whichever arm asks.
fn common_places(shared: &SharedScene) -> Result<Vec<ProbeTarget>, Refusal> {
    let Some(first) = shared.parts.first() else {
        return Err(refusal!("the scene has no arm"));
    };
    let surface = &first.scene.surface;
    let heights_mm = [first.scene.heights.lift_mm, -PROBE_DEPTH_MM];
    let is_common = |at_mm: &[f64; 2]| {
        let mut parts = shared.parts.iter();
        surface.is_on(*at_mm) && parts.all(|part| plan::reaches(&part.scene, *at_mm, &heights_mm))
    };
    let mut left: Vec<[f64; 2]> = grid(surface.size_mm()).filter(is_common).collect();
    let mut chosen: Vec<[f64; 2]> = Vec::new();
    while chosen.len() < PLACES && !left.is_empty() {
        let gap_mm = |at: &[f64; 2]| {
            let gaps = chosen
                .iter()
                .map(|other| (at[0] - other[0]).hypot(at[1] - other[1]));
            gaps.fold(f64::INFINITY, f64::min)
        };
        let farthest = left.iter().enumerate();
        // The last of equals, so that the result depends on the places alone.
        let farthest = farthest.max_by(|(_, a), (_, b)| gap_mm(a).total_cmp(&gap_mm(b)));
        let index = farthest.map_or(0, |(index, _)| index);
        chosen.push(left.swap_remove(index));
    }
    if chosen.len() < PLACES_MIN {
        return Err(refusal!(
            "in scene {}, only {} of the sheet can be reached by every arm ({PLACES_MIN} are needed). Next: touch points by hand with each of them: `calibrate touch bases`",
            shared.name,
            count(chosen.len(), "place")
        ));
    }
    let target = |(at_mm, number): ([f64; 2], usize)| ProbeTarget {
        number,
        name: format!("place {number}"),
        at_mm,
    };
    Ok(chosen.into_iter().zip(1..).map(target).collect())
}

/// Returns evenly spread places of a sheet of this size.
fn grid(size_mm: [f64; 2]) -> impl Iterator<Item = [f64; 2]> {
    let [columns, rows] = GRID;
    let at = |side_mm: f64, index: u32, of: u32| {
        let inset_mm = INSET_MM.min(side_mm / 4.0);
        inset_mm + (side_mm - 2.0 * inset_mm) * f64::from(index) / f64::from(of - 1)
    };
    let [width, height] = size_mm;
    (0..rows).flat_map(move |row| {
        (0..columns).map(move |column| [at(width, column, columns), at(height, row, rows)])
    })
}

/// Answers what the touches tell so far, and whose turn it is.
fn answer(
    ctx: &JobContext,
    scene: &Scene,
    (shared, session): (&SharedScene, &CalibrationSession),
    (felt, probes): (usize, &ProbePlaces),
    assessed: &TouchAssessment,
) -> Reply {
    let has_touched = |arm: &str| session.touches.iter().any(|touch| touch.arm == arm);
    let next_arm = shared.arm_names().into_iter().find(|arm| !has_touched(arm));
    let touched = format!(
        "arm {} touched {felt} of {}",
        ctx.arm.name,
        count(felt + probes.left_out.len(), "place")
    );
    let left_out = probes.left_out_text();
    if let Some(arm) = next_arm {
        let next = format!(
            "call `align` with {{\"scene\": \"{}\", \"arm\": \"{arm}\", \"bases\": true}}",
            shared.name
        );
        let reply = Reply::done(format!(
            "{touched}. Nothing is proposed before every arm has touched them{left_out}"
        ));
        let result = AlignmentResult::without_points(scene, FitFinding::good(), next);
        return report(ctx, scene, &result, reply, &result.describe());
    }
    let reply = Reply::done(format!(
        "{touched}: bases were found up to {:.1} mm from where the scene has them. This is proposed; it is saved only if an operator accepts it{left_out}",
        assessed.change.mm
    ));
    let reply = reply.with("change", change_json(assessed.change));
    let next = reading::next_step(assessed, "then enables the scene again");
    let text = calib::report::assessment_text(session, assessed);
    let result = AlignmentResult::without_points(scene, assessed.finding.clone(), next);
    report(ctx, scene, &result, reply, &text)
}

/// Answers that a place was not felt where the scene has it, for this arm.
fn not_measured(
    ctx: &JobContext,
    scene: &Scene,
    MissedTouch { code, why, .. }: MissedTouch,
) -> Reply {
    let mut finding = FitFinding::good();
    finding.redo(why.clone());
    let next = format!(
        "measure `base_m` of `{}` in scene {} with a ruler, or touch points by hand: `steadyhand calibrate touch bases --scene {}`",
        ctx.arm.name,
        scene.shared_name(),
        scene.name
    );
    let result = AlignmentResult::without_points(scene, finding, next);
    let reply = Reply::failed(why).with("code", code);
    report(ctx, scene, &result, reply, &result.describe())
}
