//! `align {"touch": true}`: feels for the sheet where the scene puts it, and proposes where it really lies.

use std::sync::Arc;

use super::super::motion_job::{JobContext, JobError, tip_m, tip_mm};
use super::super::stroke::rounded;
use super::probe_places::{MissedTouch, NO_CONTACT, ProbePlaces, ProbeTarget};
use super::touch_grid::{self, TouchGrid};
use super::{change_json, reading, report, rests, sheet_places, with_practice_hint};
use crate::reply::Reply;
use base::units::JointVector;
use base::wording::{count, millimetres};
use calib::{
    self, AlignedPoint, AlignmentResult, CalibrationKind, CalibrationSession, CalibrationStore,
    FitFinding, SagFit, TouchAssessment, TouchContact, TouchRole,
};
use call::{Refusal, refusal};
use motion::VisitKind;
use scene::{PROBE_DEPTH_MM, PROBE_FROM_MM, Scene, ToolKind};

/// Touches at each point.
pub(super) const TOUCHES: usize = 3;

/// Fewest places with which a sheet is fitted, and one more that is kept out of the fit: any three lie in a plane.
const PLACES_MIN: usize = 4 + 1;

/// Height above the first touch of a point from which each further one begins: free air in which friction is wound up and
/// learned, and another phase of everything that goes with the path and not with the sheet.
const AGAIN_FROM_MM: f64 = 5.0;
const AGAIN_STEP_MM: f64 = 3.0;

/// How far beside each other the touches of a place are: a servo that creeps tells no more than its counts, and beside it they
/// lie elsewhere.
const BESIDE_MM: [[f64; 2]; TOUCHES] = [[0.0, 0.0], [1.0, 0.7], [-1.0, -0.7]];

/// A touch whose height is farther from the first one's than this does not confirm it.
const CONFIRMED_MM: f64 = 1.0;

/// Touches each point, proposes the sheet that follows from the touches, and says what that is worth. Nothing is saved.
pub(super) async fn align(
    ctx: JobContext,
    scene: Arc<Scene>,
    grid: Option<TouchGrid>,
) -> Result<Reply, JobError> {
    check_can_probe(&scene)?;
    let _claim = reading::claim(&ctx, &scene, "feels for the sheet")?;
    let places = places(&scene, grid);
    check_on_surface(&scene, &places)?;
    let mut probes = ProbePlaces::possible(&ctx, &scene, places, PLACES_MIN).await?;
    let places = std::mem::take(&mut probes.kept);
    ctx.arm.keep_or_place_sheet(&scene, ctx.job.number());
    ctx.job.update(|card| {
        (card.done, card.of) = (0, places.len());
        card.has_later_motions = true;
    });
    if let Some(sag) = propose_sag(&ctx, &scene, &places).await? {
        return Ok(sag);
    }
    let mut session = CalibrationSession {
        probed: true,
        ..reading::session(&ctx.node, &ctx.arm, &scene)?
    };
    let (mut gives, mut touched) = (Vec::<f64>::new(), 0);
    for (index, place) in places.iter().enumerate() {
        ctx.job
            .update(|card| (card.done_before, card.done) = (index, index));
        let touches = match touch_place(&ctx, &scene, place).await? {
            Ok(touches) => touches,
            Err(missed) => {
                let places_left = (touched, places.len() - index - 1);
                let Some(missed) = probes.leave_out(missed, places_left) else {
                    continue;
                };
                return Ok(not_measured(&ctx, &scene, missed, &session, &places));
            }
        };
        touched += 1;
        gives.extend(touches.iter().filter_map(|(_, give)| *give));
        let contact = |(joints_rad, _): (JointVector, Option<f64>)| TouchContact {
            role: TouchRole::Sheet,
            arm: String::new(),
            joints_rad: joints_rad.to_vec(),
            asked_mm: None,
            number: place.number,
            place: 0,
            at_ms: base::clock::calendar_ms(),
            zeros: calib::zeros_of(&ctx.arm.motion.arm().file_as_written()),
        };
        session.touches.extend(touches.into_iter().map(contact));
    }
    keep_last_unseen(&mut session.touches);
    ctx.job.update(|card| card.done = card.of);
    let assessed = keep(&ctx, &session, &scene).await?;
    let next = reading::next_step(&assessed, reading::ALIGN_AGAIN);
    let result = AlignmentResult {
        points: points(&scene, &session, &places, Some(&assessed)),
        ..AlignmentResult::without_points(&scene, assessed.finding.clone(), next)
    };
    let left_out = probes.left_out_text();
    let reply = Reply::done(felt_text(touched, gives, &assessed) + &left_out)
        .with("change", change_json(assessed.change))
        .with("left_out", probes.left_out.len());
    let reply = with_practice_hint(&ctx, &scene, &session, reply);
    Ok(report(&ctx, &scene, &result, reply, &result.describe()))
}

/// Stands still over the places, and proposes the sag that shows there where the arm's file has another one.
async fn propose_sag(
    ctx: &JobContext,
    scene: &Arc<Scene>,
    places: &[ProbeTarget],
) -> Result<Option<Reply>, JobError> {
    let has_own_file = calib::check_own(CalibrationKind::Play, scene, "", "").is_ok();
    let store = CalibrationStore::of_state(&ctx.node.state, &ctx.node.scenes);
    // Sag is proposed only once: an operator who does not accept it still wants the sheet felt. That of an arm whose file describes
    // another one too cannot be accepted.
    if !has_own_file || is_sag_open(&store)? {
        return Ok(None);
    }
    // There and back, so that each place is visited at both heights and from both sides.
    let visits = places.iter().chain(places.iter().rev());
    let visits = visits.map(|place| (place.name.as_str(), place.at_mm));
    let rests = rests::measure_rests(ctx, scene, visits).await?;
    let sag = SagFit::new(&scene.arm, &rests);
    match sag.differs() {
        true => rests::propose(ctx, scene, &sag, rests).await.map(Some),
        false => Ok(None),
    }
}

/// Keeps the touches of the last place out of the fit, which they verify.
fn keep_last_unseen(touches: &mut [TouchContact]) {
    let last = touches.last().map(|touch| touch.number);
    let of_last = touches
        .iter_mut()
        .filter(|touch| Some(touch.number) == last);
    of_last.for_each(|touch| touch.role = TouchRole::Verify);
}

/// Joint angles at the touches of a place, each with the force for a millimetre by which its pen gave way; or why it was missed.
pub(super) type PlaceTouches = Result<Vec<(JointVector, Option<f64>)>, MissedTouch>;

/// Returns the point of the sheet that a touch of a place is made at, and the height from which its probe begins. `first_mm` is the
/// height of the first touch; the others begin above it.
pub(super) fn probe_at(
    scene: &Scene,
    place: &ProbeTarget,
    touch: usize,
    first_mm: Option<f64>,
) -> ([f64; 2], f64) {
    let [x, y] = place.at_mm;
    let [right, up] = BESIDE_MM.get(touch).copied().unwrap_or_default();
    let beside_mm = [x + right, y + up];
    let is_on = scene.surface.holds(beside_mm) && scene.surface.is_on(beside_mm);
    let at_mm = match is_on {
        true => beside_mm,
        false => place.at_mm,
    };
    let from_mm = first_mm.map_or(PROBE_FROM_MM, |first_mm| {
        first_mm + AGAIN_FROM_MM + AGAIN_STEP_MM * touch as f64
    });
    (at_mm, from_mm)
}

/// Touches a place several times, each time from another height.
pub(super) async fn touch_place(
    ctx: &JobContext,
    scene: &Arc<Scene>,
    place: &ProbeTarget,
) -> Result<PlaceTouches, JobError> {
    let (mut touches, mut first_mm) = (Vec::new(), None);
    for touch in 0..TOUCHES {
        let at = probe_at(scene, place, touch, first_mm);
        let (joints_rad, give) = match probe(ctx, scene, at).await {
            Ok(ProbeOutcome::Contact(joints_rad, give)) => (joints_rad, give),
            Ok(missed) => return Ok(Err(missed_reason(scene, place, &missed))),
            Err(error) => return MissedTouch::of_error(place, error).map(Err),
        };
        let height_mm = height_mm(scene, &joints_rad);
        let first_mm = *first_mm.get_or_insert(height_mm);
        if (height_mm - first_mm).abs() > CONFIRMED_MM {
            return Ok(Err(unconfirmed_reason(place, first_mm, height_mm)));
        }
        touches.push((joints_rad, give));
    }
    Ok(Ok(touches))
}

/// Returns whether sag is proposed and not decided on.
fn is_sag_open(store: &CalibrationStore) -> Result<bool, Refusal> {
    let ink = store.proposal()?.and_then(|proposal| proposal.ink);
    Ok(ink.is_some_and(|ink| ink.is_at_rest()))
}

/// Refuses tools and sheets that cannot be felt for.
pub(super) fn check_can_probe(scene: &Scene) -> Result<(), Refusal> {
    if scene.pen(0).is_some_and(|pen| pen.kind == ToolKind::Needle) {
        return Err(refusal!(
            "a needle cannot feel the sheet. Next: mount a blunt tip of the same length, and write a scene for that tip"
        ));
    }
    if scene.surface.radius_mm().is_some() {
        return Err(refusal!(
            "`touch` cannot feel a cylinder. Next: `steadyhand teach sheet` takes touches by hand"
        ));
    }
    Ok(())
}

/// Refuses places beside a mesh.
fn check_on_surface(scene: &Scene, places: &[ProbeTarget]) -> Result<(), Refusal> {
    let beside = places
        .iter()
        .find(|place| !scene.surface.is_on(place.at_mm));
    match beside {
        None => Ok(()),
        Some(ProbeTarget {
            name,
            at_mm: [x, y],
            ..
        }) => Err(refusal!(
            "the mesh has no single point at `{name}` ({x:.1}, {y:.1} mm on the sheet). Next: make `size_mm` in `[sheet]` smaller, or scan more of the surface"
        )),
    }
}

/// Returns the places of a grid, those of the scene's map of heights, or the corners and the centre; and one more that is kept
/// out of the fit.
fn places(scene: &Scene, grid: Option<TouchGrid>) -> Vec<ProbeTarget> {
    let [width, height] = scene.surface.size_mm();
    let unseen = ("verification".to_owned(), [width * 0.7, height * 0.3]);
    let fitted: Vec<(String, [f64; 2])> = match (grid, scene.surface.heights()) {
        (Some(grid), _) => grid.places(scene).collect(),
        (None, Some(map)) => touch_grid::places_of(map).collect(),
        (None, None) => sheet_places(scene)
            .map(|(name, at_mm)| (name.to_owned(), at_mm))
            .into(),
    };
    let named = fitted.into_iter().chain([unseen]).enumerate();
    let place = |(number, (name, at_mm))| ProbeTarget {
        number,
        name,
        at_mm,
    };
    named.map(place).collect()
}

/// Outcome of a probe.
enum ProbeOutcome {
    /// The tip touched after it had moved freely; the joint angles at that moment, and the force for each millimetre by
    /// which its pen gave way.
    Contact(JointVector, Option<f64>),
    /// The tip touched before it had moved freely; the joint angles when that was certain.
    EarlyContact(JointVector),
    /// The tip touched nothing down to the end of the probe; the least force that it would have felt, where that is known.
    Nothing { least_n: Option<f64> },
}

async fn probe(
    ctx: &JobContext,
    scene: &Arc<Scene>,
    at: ([f64; 2], f64),
) -> Result<ProbeOutcome, JobError> {
    let (_, done) = ctx
        .run_preparatory(scene, move |scene, start, watch| {
            plan::probe_from(scene, start, at, 0, watch)
        })
        .await?;
    let Some(visit) = done.visits.first() else {
        return Ok(ProbeOutcome::Nothing { least_n: None });
    };
    Ok(match visit.kind {
        VisitKind::Contact => ProbeOutcome::Contact(visit.position_rad, visit.give_n_per_mm),
        VisitKind::NoContact { least_n } => ProbeOutcome::Nothing {
            least_n: Some(least_n),
        },
        VisitKind::EarlyContact | VisitKind::Dwell => {
            ProbeOutcome::EarlyContact(visit.position_rad)
        }
    })
}

/// Returns the height of the tip over where the scene puts the sheet.
fn height_mm(scene: &Scene, joints_rad: &JointVector) -> f64 {
    let tip = tip_m(scene, 0, joints_rad);
    tip.map_or(0.0, |tip| scene.surface.project(&tip).height_mm)
}

/// Says what was felt: where the sheet lies, and how flat it is.
fn felt_text(places: usize, gives: Vec<f64>, assessed: &TouchAssessment) -> String {
    let notes = assessed.finding.notes.iter();
    let notes: String = notes.map(|note| format!(". Sideways: {note}")).collect();
    format!(
        "{} touched, {TOUCHES} times each{}: the sheet lies {} and {:.2}° from its place in the scene{}{notes}. This is proposed; it is saved only if an operator accepts it",
        count(places, "point"),
        give_text(gives),
        millimetres(assessed.change.mm, 2),
        assessed.change.deg,
        flatness_text(assessed)
    )
}

/// Says how far the sheet is from flat, if enough places were touched to tell.
fn flatness_text(assessed: &TouchAssessment) -> String {
    let figure = |name: &str| {
        let mut figures = assessed.figures.iter();
        Some(figures.find(|(figure, _)| figure == name)?.1)
    };
    let from_flat = figure("from_flat_mm").zip(figure("between_touches_mm"));
    let Some((from_flat_mm, between_mm)) = from_flat else {
        return String::new();
    };
    let is_mapped = assessed
        .new
        .get("heights.height_mm")
        .is_some_and(|mm| !mm.is_empty());
    let worth = match is_mapped {
        true => format!(
            "the proposal includes a map of the sheet's heights, accurate to {between_mm:.2} mm between the touches"
        ),
        false => "it needs no map of heights".to_owned(),
    };
    format!(". It is within {from_flat_mm:.2} mm of flat: {worth}")
}

/// Says how far the pen gives way, by the median of its touches; empty where the loads do not tell it.
fn give_text(mut gives: Vec<f64>) -> String {
    gives.sort_by(f64::total_cmp);
    let median = gives.get(gives.len() / 2);
    median.map_or_else(String::new, |give| {
        format!(", and the pen gives way by 1 mm for {give:.1} N")
    })
}

/// Returns the reason of two touches of one point that contradict each other.
fn unconfirmed_reason(place: &ProbeTarget, first_mm: f64, height_mm: f64) -> MissedTouch {
    let name = &place.name;
    let reason = format!(
        "at `{name}` two approaches felt something at {first_mm:.1} and at {height_mm:.1} mm over the scene's sheet; they may be at most {CONFIRMED_MM} mm apart. What the tip felt was not the sheet, or the sheet moves"
    );
    MissedTouch::new("not_confirmed", reason)
}

/// Keeps a session as the proposal, on a blocking thread because the disk may be slow.
pub(super) async fn keep(
    ctx: &JobContext,
    session: &CalibrationSession,
    scene: &Arc<Scene>,
) -> Result<TouchAssessment, JobError> {
    let store = CalibrationStore::of_state(&ctx.node.state, &ctx.node.scenes);
    let (session, scene) = (session.clone(), Arc::clone(scene));
    let keeping = tokio::task::spawn_blocking(move || reading::keep(&store, &session, &scene));
    match keeping.await {
        Ok(result) => result.map_err(|error| JobError::NotKept(error.into())),
        Err(_) => Err(JobError::NotKept("its thread failed".to_owned())),
    }
}

/// Returns the mean of the touches at each place, with their spread.
fn points(
    scene: &Scene,
    session: &CalibrationSession,
    places: &[ProbeTarget],
    assessed: Option<&TouchAssessment>,
) -> Vec<AlignedPoint> {
    let point = |place: &ProbeTarget| {
        let tips = session.touches.iter().enumerate();
        let tips: Vec<(usize, nalgebra::Point3<f64>)> = tips
            .filter(|(_, touch)| touch.number == place.number)
            .filter_map(|(number, touch)| {
                let joints = JointVector::from_slice(&touch.joints_rad);
                Some((number, tip_mm(scene, 0, &joints)?.into()))
            })
            .collect();
        let count = tips.len() as f64;
        let sum: nalgebra::Vector3<f64> = tips.iter().map(|(_, tip)| tip.coords).sum();
        let mean = nalgebra::Point3::from(sum / count);
        let heights = tips
            .iter()
            .map(|(_, tip)| scene.surface.project(&(tip / 1e3)).height_mm);
        let (lowest, highest) = heights.fold((f64::MAX, f64::MIN), |(low, high), mm| {
            (low.min(mm), high.max(mm))
        });
        let projected = scene.surface.project(&(mean / 1e3));
        let [x, y] = projected.at_mm;
        let residual = assessed.map_or(nalgebra::Vector3::zeros(), |assessed| {
            let residuals = tips
                .iter()
                .filter_map(|(number, _)| assessed.points.get(*number));
            let residuals = residuals.map(|residual| nalgebra::Vector3::from(residual.off_mm));
            residuals.sum::<nalgebra::Vector3<f64>>() / count
        });
        let target: [f64; 3] = (scene.surface.at(place.at_mm).point_m.coords * 1e3).into();
        (count > 0.0).then(|| AlignedPoint {
            name: place.name.clone(),
            target_mm: target.map(rounded),
            measured_mm: <[f64; 3]>::from(mean.coords).map(rounded),
            tracking_error_mm: rounded((x - place.at_mm[0]).hypot(y - place.at_mm[1])),
            contact_height_mm: Some(rounded(projected.height_mm)),
            spread_mm: Some(rounded(highest - lowest)),
            residual_mm: <[f64; 3]>::from(residual).map(rounded),
        })
    };
    places.iter().filter_map(point).collect()
}

/// Returns the reason of a probe that measured nothing.
fn missed_reason(scene: &Scene, place: &ProbeTarget, missed: &ProbeOutcome) -> MissedTouch {
    let name = &place.name;
    let joints_rad = match missed {
        ProbeOutcome::EarlyContact(joints_rad) | ProbeOutcome::Contact(joints_rad, _) => joints_rad,
        ProbeOutcome::Nothing { least_n } => {
            let least_text = least_n.map_or_else(String::new, |least_n| {
                format!(", or pushes with less than {least_n:.1} N, which this arm does not feel")
            });
            let reason = format!(
                "at `{name}` nothing was felt down to {PROBE_DEPTH_MM} mm below the scene's sheet: the sheet lies lower or is missing{least_text}. The tip is up again"
            );
            return MissedTouch::new(NO_CONTACT, reason);
        }
    };
    let height_text = tip_m(scene, 0, joints_rad).map(|tip| {
        let height_mm = scene.surface.project(&tip).height_mm;
        format!(", {height_mm:.1} mm above the scene's sheet")
    });
    let height_text = height_text.unwrap_or_default();
    let reason = format!(
        "at `{name}` the tip met resistance at once{height_text}: the sheet is higher than in the scene (limit: {PROBE_DEPTH_MM} mm), or play and friction hold the tip. The tip is {PROBE_FROM_MM} mm above the scene's sheet and may still touch something"
    );
    MissedTouch::new("early_contact", reason)
}

/// Answers that a probe came to its end and measured nothing.
fn not_measured(
    ctx: &JobContext,
    scene: &Scene,
    MissedTouch { code, why, .. }: MissedTouch,
    session: &CalibrationSession,
    places: &[ProbeTarget],
) -> Reply {
    let mut finding = FitFinding::good();
    finding.redo(why.clone());
    let next = format!(
        "touch the sheet by hand: `steadyhand calibrate touch sheet --scene {} --of origin`",
        scene.name
    );
    let result = AlignmentResult {
        points: points(scene, session, places, None),
        ..AlignmentResult::without_points(scene, finding, next)
    };
    let reply = Reply::failed(why).with("code", code);
    report(ctx, scene, &result, reply, &result.describe())
}
