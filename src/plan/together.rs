//! Plans a drawing for all arms that share a scene: who draws what, and who waits when.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is one of the two arms"
)]

use super::arm_schedule::{ArmPath, ArmSchedule, ScheduleSearch};
use super::cartesian_path::ToolPose;
use super::draw::{PartialPlan, attempt_in_order, draw, strokes_of};
use super::error::{PlanError, PlanRefusal, RefusalCause};
use super::order::{StrokeTurn, order, pens};
use super::plan_report::{self, StrokeReport};
use super::posture;
use super::prepare_strokes::PreparedStroke;
use super::stroke_sharing::{SheetDivision, StrokeToGive, middle_mm};
use super::stroke_turns::{ClearSquares, SLACKS_M, StrokeToTurn, TurnChooser, TurnStyle};
use super::swept_body::{ArmBody, least_apart_m};
use super::tool_ik::ToolIk;
use super::trajectory::SpanKind;
use super::visit::go_to;
use super::waiting_place::{Wait, WaitingPlace, index_with_waits, waiting_places, with_waits};
use super::{PERIOD_S, Plan, PlanObserver};
use base::plane::{Point, length};
use base::units::JointVector;
use scene::{Order, Scene, SharedScene, SharedStroke, SheetStroke};

/// The plan of all arms that share a scene, on one time base.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedPlan {
    /// From the first sample to the last, of every arm.
    pub duration_s: f64,
    /// Hash of all plans, in 32 hexadecimal digits.
    pub hash: String,
    /// The plan of each arm, all with the same number of samples. Their reports name strokes by their index in the shared scene.
    pub plans: Vec<Plan>,
}

/// Time of one stroke besides its line, before it is known.
const STROKE_S: f64 = 0.6;
/// Rounds in which strokes that an arm cannot draw go to another one.
const ROUNDS_MAX: usize = 6;
/// A difference of the arms' times from which strokes are given anew, as a share of the longer one.
const UNEVEN: f64 = 0.06;
/// A schedule that is longer than half of both arms' motions by this factor is compared with others.
const WAITS_MUCH: f64 = 1.1;
/// Ways for which a stroke is worth that is seldom clear of the other arm, and most orders of strokes by turns that are planned.
const TURNS_WORTH_S: [f64; 6] = [0.0, 0.5, 1.0, 2.0, 4.0, 8.0];
const PLANNED_MAX: usize = 12;
/// Most strokes that are looked at for turns, in all orders: about a second.
const TURNS_WORK: usize = 8_000_000;
/// Every so many points of a stroke are tried for reach.
const TRIED_EVERY: usize = 4;

/// Plans everything that the arms of a scene are to draw, from where each of them is.
///
/// No arm has a plan for itself in it: each is right only together with the others. An arm
/// ends in its ready pose, or over its last line where that is sooner and one of them can go away from there.
///
/// # Errors
/// As [`draw`]; also strokes that no arm can draw, and arms that cannot keep apart.
pub fn together(
    shared: &SharedScene,
    starts: &[JointVector],
    observer: &dyn PlanObserver,
) -> Result<SharedPlan, PlanError> {
    match (&shared.parts[..], starts) {
        ([only], [start]) => {
            let plan = draw(&only.scene, start, observer)?;
            Ok(SharedPlan::new(vec![plan]))
        }
        ([one, other], [start, other_start]) => {
            refuse_attended(shared)?;
            let scenes = [&*one.scene, &*other.scene];
            let pair = ArmPair {
                shared,
                scenes,
                bodies: [ArmBody::new(one), ArmBody::new(other)],
                starts: [start, other_start],
                observer: &Quiet(observer),
            };
            let count = shared.strokes.len();
            observer.progress(0, count);
            let plan = pair.plan()?;
            observer.progress(count, count);
            Ok(plan)
        }
        (parts, starts) => {
            let why = format!(
                "is shared by {} arms ({} of them can be read); only one or two arms can draw",
                parts.len(),
                starts.len()
            );
            Err(PlanError::unfit(None, "the scene", why))
        }
    }
}

/// An observer that may cancel and hears no progress: every stroke is planned several times.
struct Quiet<'a>(&'a dyn PlanObserver);

impl PlanObserver for Quiet<'_> {
    fn progress(&self, _done: usize, _of: usize) {}

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

/// Refuses pauses, which a person ends for all arms.
fn refuse_attended(shared: &SharedScene) -> Result<(), PlanError> {
    if shared.strokes.is_empty() {
        return Err(PlanError::Nothing);
    }
    let paused = shared
        .strokes
        .iter()
        .position(|one| one.stroke.pause.is_some());
    paused.map_or(Ok(()), |index| {
        let why =
            "follows a pause, and several arms cannot pause: remove the pause, or draw with one arm"
                .to_owned();
        Err(PlanError::unfit(Some(index), "the drawing", why))
    })
}

impl SharedPlan {
    fn new(plans: Vec<Plan>) -> Self {
        let durations = plans.iter().map(|plan| plan.report.duration_s);
        Self {
            duration_s: durations.fold(0.0, f64::max),
            hash: hash_of(&plans),
            plans,
        }
    }
}

/// Returns the hash of all plans: of a single one its own, by which a person may have seen it.
fn hash_of(plans: &[Plan]) -> String {
    if let [only] = plans {
        return only.hash.clone();
    }
    let mut hasher = blake3::Hasher::new();
    for plan in plans {
        hasher.update(plan.hash.as_bytes());
    }
    let mut hash = hasher.finalize().to_hex().to_string();
    hash.truncate(plan_report::HASH_DIGITS);
    hash
}

/// Two arms and what they are to draw.
struct ArmPair<'a> {
    shared: &'a SharedScene,
    scenes: [&'a Scene; 2],
    bodies: [ArmBody<'a>; 2],
    starts: [&'a JointVector; 2],
    observer: &'a dyn PlanObserver,
}

/// The motion of one arm before it waits.
struct ArmMotion {
    planned: PartialPlan,
    hover_from: usize,
    places: Vec<WaitingPlace>,
}

/// Which arm can draw which stroke, and in what time.
type StrokeTimes = Vec<[Option<f64>; 2]>;

/// What each arm is to do.
#[derive(Clone, PartialEq)]
struct Sharing {
    /// The arm of each stroke.
    arms: Vec<usize>,
    /// Division of the sheet, by which strokes are ordered; `None` where they have turns, or one arm draws everything.
    division: Option<SheetDivision>,
    /// The turn of each stroke among those of its arm; empty where the division orders them.
    turns: Vec<usize>,
    /// For each arm whether it goes to its ready pose at the end; otherwise it stays over its last line.
    retreats: [bool; 2],
}

/// A sharing that was planned.
struct PlannedPair {
    sharing: Sharing,
    motions: [ArmMotion; 2],
    schedule: ArmSchedule,
}

/// Outcome of planning one division of the strokes.
enum Attempt {
    Planned(Box<PlannedPair>),
    /// Some strokes cannot be drawn by the arm that they were given to.
    Unable(Vec<(usize, PlanRefusal)>),
    /// The arms cannot keep apart.
    NotApart,
}

impl PlannedPair {
    fn samples(&self) -> usize {
        self.schedule.samples
    }

    /// Returns the sample at which an arm's last line ends.
    fn line_end(&self, arm: usize) -> usize {
        let spans = self.motions[arm].planned.plan.trajectory.spans.iter();
        let line = spans.rev().find(|span| span.kind == SpanKind::Draw);
        line.map_or(0, |line| {
            index_with_waits(line.end, &self.schedule.waits[arm])
        })
    }

    /// Returns whether both arms work nearly all the time.
    fn is_good(&self) -> bool {
        let samples = self
            .motions
            .iter()
            .map(|motion| motion.planned.plan.trajectory.samples.len());
        (self.samples() as f64) < samples.sum::<usize>() as f64 / 2.0 * WAITS_MUCH
    }
}

impl Sharing {
    /// Gives each arm strokes in an order.
    fn take(&mut self, orders: [Vec<usize>; 2]) {
        self.turns = vec![0; self.arms.len()];
        for (arm, order) in orders.into_iter().enumerate() {
            for (turn, stroke) in order.into_iter().enumerate() {
                let of_stroke = self.arms.get_mut(stroke).zip(self.turns.get_mut(stroke));
                if let Some((of, at)) = of_stroke {
                    (*of, *at) = (arm, turn);
                }
            }
        }
    }
}

impl ArmPair<'_> {
    fn plan(&self) -> Result<SharedPlan, PlanError> {
        let mut times = self.expected_times();
        self.refuse_impossible(&times, &[])?;
        let mut best: Option<PlannedPair> = None;
        let mut refusals = Vec::new();
        if self
            .scenes
            .iter()
            .all(|scene| scene.order == Order::Fastest)
        {
            best = self.in_turns(&times)?;
        }
        for division in SheetDivision::all(self.between_bases()) {
            if best.as_ref().is_some_and(PlannedPair::is_good) {
                break;
            }
            let planned = self.plan_division(&division, &mut times, &mut refusals)?;
            let is_better = |new: &PlannedPair| {
                best.as_ref()
                    .is_none_or(|best| new.samples() < best.samples())
            };
            if let Some(new) = planned.filter(is_better) {
                best = Some(new);
            }
        }
        let best = match best {
            Some(best) => Some(self.or_staying(best)?),
            None => None,
        };
        let best = self.or_alone(best)?.ok_or_else(|| {
            let why = "cannot be drawn without the arms coming too near each other: start from their rest poses, move their bases apart, or draw with one arm".to_owned();
            PlanError::unfit(None, "the drawing", why)
        })?;
        Ok(self.finished(best))
    }

    /// Lets the arms take strokes in turns, in several ways, and plans those that are expected to end first.
    fn in_turns(&self, times: &StrokeTimes) -> Result<Option<PlannedPair>, PlanError> {
        let least_m = least_apart_m(self.scenes[0], self.scenes[1]);
        let strokes = self.shared.strokes.iter();
        let points_mm = strokes.flat_map(|shared| &shared.stroke.points_mm);
        let points_mm: Vec<Point> = points_mm.copied().collect();
        // Estimates of one division are all wrong alike: the best of each comes before the second ones.
        let mut found: Vec<(usize, f64, Sharing)> = Vec::new();
        for slack_m in SLACKS_M {
            let bodies = [&self.bodies[0], &self.bodies[1]];
            let clear = ClearSquares::new(bodies, &points_mm, least_m + slack_m);
            for division in SheetDivision::all(self.between_bases()) {
                let mut of_it = self.turns_of(&division, &clear, times);
                of_it.sort_by(|one, other| one.0.total_cmp(&other.0));
                of_it.retain(|(_, new)| found.iter().all(|(.., known)| known != new));
                of_it.dedup_by(|one, other| one.1 == other.1);
                let ranked = of_it.into_iter().enumerate();
                found.extend(ranked.map(|(rank, (ends_s, sharing))| (rank, ends_s, sharing)));
            }
        }
        found.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let mut best: Option<PlannedPair> = None;
        for (.., sharing) in found.into_iter().take(PLANNED_MAX) {
            if let Attempt::Planned(pair) = self.attempt(sharing)?
                && best
                    .as_ref()
                    .is_none_or(|best| pair.samples() < best.samples())
            {
                best = Some(*pair);
            }
            if best.as_ref().is_some_and(PlannedPair::is_good) {
                break;
            }
        }
        Ok(best)
    }

    /// Returns ways to take strokes in turns, each with the time at which it is expected to end.
    fn turns_of(
        &self,
        division: &SheetDivision,
        clear: &ClearSquares<'_>,
        times: &StrokeTimes,
    ) -> Vec<(f64, Sharing)> {
        let owners = division.give(&self.to_give(times));
        let compared = owners.len().saturating_mul(owners.len());
        let styles_max = TURNS_WORK / compared.max(1);
        if styles_max == 0 {
            return Vec::new();
        }
        let strokes = self.shared.strokes.iter().zip(times).zip(&owners);
        let strokes = strokes.map(|((shared, times_s), owner)| {
            StrokeToTurn::new(&shared.stroke.points_mm, *times_s, *owner)
        });
        let Some(strokes) = strokes.collect::<Option<Vec<StrokeToTurn>>>() else {
            return Vec::new();
        };
        let travel_mm_s = self.scenes[0].limits.travel_mm_s;
        let chooser = TurnChooser::new(clear, &strokes, travel_mm_s);
        let styles = TURNS_WORTH_S.into_iter().flat_map(|worth_s| {
            [false, true].map(|looks_back| TurnStyle {
                worth_s,
                looks_back,
            })
        });
        let is_wanted = |_: &TurnStyle| !self.observer.cancelled();
        let sharings = styles.take(styles_max).take_while(is_wanted).map(|style| {
            let turns = chooser.choose(style);
            let mut sharing = Sharing {
                arms: owners.clone(),
                turns: Vec::new(),
                division: None,
                retreats: [true; 2],
            };
            sharing.take(turns.orders);
            (turns.ends_s, sharing)
        });
        sharings.collect()
    }

    /// Returns the direction from the first base to the second one on the sheet.
    fn between_bases(&self) -> Point {
        let [one, _] = self.scenes;
        let base = |to_ours: nalgebra::Point3<f64>| one.surface.project(&to_ours).at_mm;
        let theirs = one
            .beside
            .first()
            .map_or_else(nalgebra::Point3::origin, |beside| {
                beside.base_in_ours * nalgebra::Point3::origin()
            });
        let (from, to) = (base(nalgebra::Point3::origin()), base(theirs));
        let [x, y] = [to[0] - from[0], to[1] - from[1]];
        let far = x.hypot(y);
        if far > 1.0 {
            [x / far, y / far]
        } else {
            [1.0, 0.0]
        }
    }

    /// Estimates how long each arm needs for each stroke that it reaches.
    fn expected_times(&self) -> StrokeTimes {
        let mut seeds = self.scenes.map(|scene| scene.ready_rad);
        let times = self.shared.strokes.iter().map(|shared| {
            let mut times = [None; 2];
            for (arm, time) in times.iter_mut().enumerate() {
                let pen = shared.pens.get(arm).copied().flatten();
                *time = pen.and_then(|pen| self.expected_time(arm, pen, shared, &mut seeds[arm]));
            }
            times
        });
        times.collect()
    }

    fn expected_time(
        &self,
        arm: usize,
        pen: usize,
        shared: &SharedStroke,
        seed: &mut JointVector,
    ) -> Option<f64> {
        let scene = self.scenes[arm];
        let ik = ToolIk::new(scene, scene.pens.get(pen)?);
        let points = posture::sample_evenly(&shared.stroke.points_mm);
        let last = points.len().saturating_sub(1);
        let tried = points
            .iter()
            .enumerate()
            .filter(|(index, _)| index % TRIED_EVERY == 0 || *index == last);
        for (_, at_mm) in tried {
            let pose = ToolPose::over(&scene.surface, *at_mm, -scene.press_mm(ik.pen));
            let solved = ik
                .solve(&pose, seed)
                .ok()
                .filter(|found| found.off_rad <= ik.cone_rad);
            let solved = solved.or_else(|| {
                let best = ik.best_solution(&pose, &[scene.ready_rad]).ok();
                best.filter(|found| found.off_rad <= ik.cone_rad)
            })?;
            *seed = solved.q_rad;
        }
        Some(length(&shared.stroke.points_mm) / scene.draw_mm_s(ik.pen) + STROKE_S)
    }

    /// Refuses strokes that no arm can draw, each with the reason that a planner gave if one did.
    fn refuse_impossible(
        &self,
        times: &StrokeTimes,
        known: &[PlanRefusal],
    ) -> Result<(), PlanError> {
        let impossible = times
            .iter()
            .enumerate()
            .filter(|(_, times)| times.iter().all(Option::is_none));
        let refusals = impossible.map(|(index, _)| {
            let reason = known.iter().find(|refusal| refusal.stroke == Some(index));
            reason.cloned().unwrap_or_else(|| self.out_of_reach(index))
        });
        let refusals: Vec<PlanRefusal> = refusals.collect();
        match refusals.is_empty() {
            true => Ok(()),
            false => Err(PlanError::Refused(refusals)),
        }
    }

    fn out_of_reach(&self, index: usize) -> PlanRefusal {
        let stroke = self.shared.strokes.get(index).map(|shared| &shared.stroke);
        let names = self.shared.arm_names().join(" nor ");
        PlanRefusal {
            stroke: Some(index),
            source: stroke
                .map(|stroke| stroke.source.clone())
                .unwrap_or_default(),
            at_mm: stroke.and_then(|stroke| stroke.points_mm.first().copied()),
            cause: RefusalCause::Unfit {
                why: format!(
                    "cannot be drawn by {names}: no pen of either reaches all of it; move the sheet or make the design smaller"
                ),
            },
        }
    }

    /// Plans a division, gives strokes that an arm cannot draw to the other one, and evens out the times once.
    fn plan_division(
        &self,
        division: &SheetDivision,
        times: &mut StrokeTimes,
        refusals: &mut Vec<PlanRefusal>,
    ) -> Result<Option<PlannedPair>, PlanError> {
        let mut best: Option<PlannedPair> = None;
        let mut evened = 0;
        for _ in 0..ROUNDS_MAX {
            let arms = division.give(&self.to_give(times));
            let sharing = Sharing {
                arms,
                division: Some(*division),
                turns: Vec::new(),
                retreats: [true; 2],
            };
            match self.attempt(sharing)? {
                Attempt::NotApart => break,
                Attempt::Unable(unable) => {
                    let is_of_stroke =
                        |(_, refusal): &(usize, PlanRefusal)| refusal.stroke.is_some();
                    if !unable.iter().any(is_of_stroke) {
                        let refusals = unable.into_iter().map(|(_, refusal)| refusal);
                        return Err(PlanError::Refused(refusals.collect()));
                    }
                    for (arm, refusal) in unable {
                        let time = refusal.stroke.and_then(|stroke| times.get_mut(stroke));
                        if let Some(time) = time.and_then(|times| times.get_mut(arm)) {
                            *time = None;
                        }
                        refusals.push(refusal);
                    }
                    self.refuse_impossible(times, refusals)?;
                }
                Attempt::Planned(pair) => {
                    let uneven = note_times(&pair, times);
                    let is_better = best
                        .as_ref()
                        .is_none_or(|best| pair.samples() < best.samples());
                    if is_better {
                        best = Some(*pair);
                    }
                    evened += 1;
                    if uneven < UNEVEN || evened > 1 {
                        break;
                    }
                }
            }
        }
        Ok(best)
    }

    fn to_give(&self, times: &StrokeTimes) -> Vec<StrokeToGive> {
        let strokes = self.shared.strokes.iter().zip(times);
        let to_give = strokes.map(|(shared, times_s)| StrokeToGive {
            middle_mm: middle_mm(&shared.stroke.points_mm),
            times_s: *times_s,
        });
        to_give.collect()
    }

    /// Compares with what each arm would need alone, if one can draw everything.
    fn or_alone(&self, best: Option<PlannedPair>) -> Result<Option<PlannedPair>, PlanError> {
        // No arm draws all lines faster than at full speed.
        let lines_s: f64 = self
            .shared
            .strokes
            .iter()
            .map(|shared| self.least_s(shared))
            .sum();
        let is_faster = |best: &PlannedPair| best.samples() as f64 * PERIOD_S < lines_s;
        if best.as_ref().is_some_and(is_faster) {
            return Ok(best);
        }
        let mut best = best;
        for arm in [0, 1] {
            let mut pens = self
                .shared
                .strokes
                .iter()
                .map(|shared| shared.pens.get(arm));
            if !pens.all(|pen| pen.is_some_and(Option::is_some)) {
                continue;
            }
            if let Some(alone) = self.alone(arm)?
                && best
                    .as_ref()
                    .is_none_or(|best| alone.samples() < best.samples())
            {
                best = Some(alone);
            }
        }
        Ok(best)
    }

    /// Lets one arm draw everything, while the other stands where it is or, if it is in the way there, goes to its ready pose.
    fn alone(&self, arm: usize) -> Result<Option<PlannedPair>, PlanError> {
        for moves_away in [false, true] {
            let mut retreats = [moves_away; 2];
            retreats[arm] = false;
            let sharing = Sharing {
                arms: vec![arm; self.shared.strokes.len()],
                division: None,
                turns: Vec::new(),
                retreats,
            };
            if let Attempt::Planned(alone) = self.attempt(sharing)? {
                return Ok(Some(*alone));
            }
        }
        Ok(None)
    }

    /// Leaves both arms, or the one that draws last, over their last lines, if that is sooner.
    fn or_staying(&self, mut best: PlannedPair) -> Result<PlannedPair, PlanError> {
        let last = usize::from(best.line_end(1) > best.line_end(0));
        for retreats in [[false; 2], [last == 1, last == 0]] {
            let mut sharing = best.sharing.clone();
            sharing.retreats = retreats;
            if let Attempt::Planned(staying) = self.attempt(sharing)?
                && staying.samples() < best.samples()
                && self.can_leave(&staying)?
            {
                best = *staying;
            }
        }
        Ok(best)
    }

    /// Returns whether an arm can go to its ready pose from where both end: the other can follow it.
    fn can_leave(&self, pair: &PlannedPair) -> Result<bool, PlanError> {
        let [one, other] = &pair.motions;
        let end = |motion: &'_ ArmMotion| motion.planned.plan.trajectory.reached().last().copied();
        let Some((one, other)) = end(one).zip(end(other)) else {
            return Ok(false);
        };
        let from_there = ArmPair {
            starts: [&one, &other],
            ..*self
        };
        for retreats in [[true, false], [false, true]] {
            let sharing = Sharing {
                arms: Vec::new(),
                division: None,
                turns: Vec::new(),
                retreats,
            };
            if let Attempt::Planned(_) = from_there.attempt(sharing)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns a time that no arm can draw a stroke in less than.
    fn least_s(&self, shared: &SharedStroke) -> f64 {
        let speeds = self
            .scenes
            .iter()
            .zip(&shared.pens)
            .filter_map(|(scene, pen)| {
                let pen = scene.pens.get((*pen)?)?;
                Some(scene.draw_mm_s(pen))
            });
        length(&shared.stroke.points_mm) / speeds.fold(f64::MIN_POSITIVE, f64::max)
    }

    /// Plans each arm's strokes, and when they wait.
    fn attempt(&self, sharing: Sharing) -> Result<Attempt, PlanError> {
        let mut unable = Vec::new();
        let mut motions = Vec::with_capacity(2);
        for arm in [0, 1] {
            let mut motion = self.motion(arm, &sharing)?;
            let refused = std::mem::take(&mut motion.planned.refusals);
            unable.extend(refused.into_iter().map(|refusal| (arm, refusal)));
            motions.push(motion);
        }
        let motions: [ArmMotion; 2] = match motions.try_into() {
            Ok(motions) if unable.is_empty() => motions,
            _ => return Ok(Attempt::Unable(unable)),
        };
        let least_m = least_apart_m(self.scenes[0], self.scenes[1]);
        let swept = [0, 1].map(|arm| {
            let borders: Vec<usize> = motions[arm].places.iter().map(|place| place.at).collect();
            self.bodies[arm].sweep(&motions[arm].planned.plan.trajectory, &borders)
        });
        for arm in [0, 1] {
            let near = swept[arm].samples_at_base(&swept[1 - arm], least_m);
            unable.extend(self.at_base(arm, &motions[arm], &near));
        }
        if !unable.is_empty() {
            return Ok(Attempt::Unable(unable));
        }
        let path = |arm: usize| ArmPath {
            swept: &swept[arm],
            places: &motions[arm].places,
        };
        let schedule = ScheduleSearch::new([path(0), path(1)], least_m).run();
        Ok(schedule.map_or(Attempt::NotApart, |schedule| {
            Attempt::Planned(Box::new(PlannedPair {
                sharing,
                motions,
                schedule,
            }))
        }))
    }

    /// Plans what one arm draws, and its way to its ready pose. Its reports name strokes of the shared scene.
    fn motion(&self, arm: usize, sharing: &Sharing) -> Result<ArmMotion, PlanError> {
        let (scene, start) = (self.scenes[arm], self.starts[arm]);
        let end_rad = Some(&scene.ready_rad).filter(|_| sharing.retreats[arm]);
        let of_arm = sharing
            .arms
            .iter()
            .enumerate()
            .filter(|(_, of)| **of == arm);
        let given: Vec<usize> = of_arm.map(|(stroke, _)| stroke).collect();
        let (planned, hover_from) = if given.is_empty() {
            let poses: Vec<JointVector> = end_rad.into_iter().copied().collect();
            let plan = go_to(scene, start, &poses, self.observer)?;
            let hover_from = plan.trajectory.samples.len();
            let (refusals, refused) = (Vec::new(), Vec::new());
            let planned = PartialPlan {
                plan,
                refusals,
                refused,
            };
            (planned, hover_from)
        } else {
            let own = given.iter().filter_map(|index| {
                let shared = self.shared.strokes.get(*index)?;
                let pen = shared.pens.get(arm).copied().flatten()?;
                let stroke = shared.stroke.clone();
                Some(SheetStroke { pen, ..stroke })
            });
            let own: Vec<SheetStroke> = own.collect();
            let in_order = |prepared: &[PreparedStroke]| match (scene.order, &sharing.division) {
                (Order::Fastest, _) if !sharing.turns.is_empty() => in_turns(prepared, |part| {
                    let turn = given
                        .get(part)
                        .and_then(|stroke| sharing.turns.get(*stroke));
                    turn.copied()
                }),
                (Order::Fastest, Some(division)) => division.order(arm, &strokes_of(prepared)),
                (stroke_order, _) => order(&strokes_of(prepared), stroke_order),
            };
            let ends = (start, end_rad);
            let (mut planned, hover_from) =
                attempt_in_order(scene, ends, &own, scene.order, &in_order, self.observer)?;
            name_by_shared(&mut planned, &given);
            (planned, hover_from)
        };
        let places = waiting_places(&scene.arm, &planned.plan.trajectory);
        Ok(ArmMotion {
            planned,
            hover_from,
            places,
        })
    }

    /// Returns the strokes around some samples, as too near to what stands of the other arm.
    fn at_base(
        &self,
        arm: usize,
        motion: &ArmMotion,
        samples: &[usize],
    ) -> Vec<(usize, PlanRefusal)> {
        let plan = &motion.planned.plan;
        let spans = samples
            .iter()
            .filter_map(|sample| plan.trajectory.span_at(*sample));
        let mut near: Vec<usize> = spans.filter_map(|span| span.item).collect();
        near.dedup();
        let near = near.into_iter();
        let reports = near.filter_map(|item| plan.report.strokes.get(item));
        let names = self.shared.arm_names();
        let other = names.get(1 - arm).copied().unwrap_or_default();
        let refusals = reports.flat_map(|report| &report.parts).map(|part| {
            let refusal = PlanRefusal {
                cause: RefusalCause::Unfit {
                    why: format!("is too near the base of arm `{other}`; move the bases apart, or the sheet away"),
                },
                ..self.out_of_reach(*part)
            };
            (arm, refusal)
        });
        refusals.collect()
    }

    fn finished(&self, pair: PlannedPair) -> SharedPlan {
        let PlannedPair {
            motions, schedule, ..
        } = pair;
        let waited = motions
            .into_iter()
            .zip(schedule.waits)
            .map(|(motion, waits)| {
                let trajectory = with_waits(&motion.planned.plan.trajectory, &waits);
                (motion, waits, trajectory)
            });
        let waited: Vec<_> = waited.collect();
        let longest = waited
            .iter()
            .map(|(.., trajectory)| trajectory.samples.len())
            .max()
            .unwrap_or(0);
        let plans =
            waited
                .into_iter()
                .zip(self.scenes)
                .map(|((motion, waits, trajectory), scene)| {
                    let last = trajectory.samples.len().saturating_sub(1);
                    let end = Wait {
                        place: WaitingPlace { at: last, ramp: 0 },
                        still: longest - trajectory.samples.len(),
                    };
                    let trajectory = with_waits(&trajectory, &[end]);
                    let hover_from = index_with_waits(motion.hover_from, &waits);
                    let Plan {
                        strokes, report, ..
                    } = motion.planned.plan;
                    let drawn = (untimed(report.strokes), strokes);
                    plan_report::plan(scene, trajectory, hover_from, drawn, report.dips)
                });
        SharedPlan::new(plans.collect())
    }
}

/// Returns prepared strokes pen by pen in the order of their turns, each from the end that is nearer to the one before.
fn in_turns(prepared: &[PreparedStroke], turn: impl Fn(usize) -> Option<usize>) -> Vec<StrokeTurn> {
    let pens = pens(&strokes_of(prepared));
    let mut ordered: Vec<_> = prepared
        .iter()
        .enumerate()
        .map(|(stroke, one)| {
            let pen = pens.iter().position(|pen| *pen == one.stroke.pen);
            let first = one.parts.iter().filter_map(|part| turn(*part)).min();
            (pen, first, stroke)
        })
        .collect();
    ordered.sort_unstable();
    let mut from: Option<Point> = None;
    let turns = ordered.into_iter().filter_map(|(_, _, stroke)| {
        let points = &prepared.get(stroke)?.stroke.points_mm;
        let [begin, end] = [*points.first()?, *points.last()?];
        let way = |to: Point| from.map_or(0.0, |from| base::plane::distance(from, to));
        let reversed = way(end) < way(begin);
        from = Some(if reversed { begin } else { end });
        Some(StrokeTurn { stroke, reversed })
    });
    turns.collect()
}

/// Returns reports without the times that depend on when an arm waits.
fn untimed(reports: Vec<StrokeReport>) -> Vec<StrokeReport> {
    let untimed = reports.into_iter().map(|report| StrokeReport {
        begins_s: 0.0,
        duration_s: 0.0,
        ..report
    });
    untimed.collect()
}

/// Names strokes by their index in the shared scene; `given` has it for each stroke that was given.
fn name_by_shared(planned: &mut PartialPlan, given: &[usize]) {
    let shared = |stroke: usize| given.get(stroke).copied().unwrap_or(stroke);
    for report in &mut planned.plan.report.strokes {
        report.stroke = shared(report.stroke);
        report
            .parts
            .iter_mut()
            .for_each(|part| *part = shared(*part));
    }
    for refusal in &mut planned.refusals {
        refusal.stroke = refusal.stroke.map(shared);
    }
}

/// Notes how long each stroke took, and returns by how much one arm's time is less than the other's.
fn note_times(pair: &PlannedPair, times: &mut StrokeTimes) -> f64 {
    let mut totals = [0.0, 0.0];
    for (arm, motion) in pair.motions.iter().enumerate() {
        let report = &motion.planned.plan.report;
        totals[arm] = report.duration_s;
        let ends = report
            .strokes
            .iter()
            .map(|stroke| stroke.begins_s + stroke.duration_s);
        let mut before_s = report.approach_s;
        for (stroke, end_s) in report.strokes.iter().zip(ends) {
            let took_s = (end_s - before_s).max(0.0);
            before_s = end_s;
            for part in &stroke.parts {
                if let Some(Some(time)) = times.get_mut(*part).and_then(|times| times.get_mut(arm))
                {
                    *time = took_s / stroke.parts.len() as f64;
                }
            }
        }
    }
    let longest = totals[0].max(totals[1]).max(1e-9);
    (totals[0] - totals[1]).abs() / longest
}
