//! Two simulated arms on one sheet, at the far end of their wires: what they draw together, how near their true bodies come, and what
//! a stop at any moment leaves of both.
//!
//! `STEADYHAND_CASES=1000000` runs a thousand designs and as many stops, twenty of each run always.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a failing test may panic, and says what it found; a share of a count is small and positive"
)]

use std::sync::{Arc, Mutex};

use nalgebra::Point3;
use steadyhand::clock::NodeClock;
use steadyhand::gate::{self, CheckedTrajectory, MotionPart};
use steadyhand::kin::capsule::{PlacedCapsule, place};
use steadyhand::motion::{BusThread, MotionHandle, MotionOutcome, MotionState};
use steadyhand::permit::{ActorRank, PermitRegistry};
use steadyhand::plan::{self, SharedPlan, SilentObserver};
use steadyhand::scene::{
    CLEARANCE_M, DesignReplacement, PEN_RADIUS_M, SceneLibrary, ScenePart, SharedScene, Surface,
};
use steadyhand::sim::{ArmSimulator, PaperSurface, SimPen};
use steadyhand::units::JointVector;

use crate::far_end::{Family, Rig, Wire};

/// Designs, and stops, of a normal run, and the most that `STEADYHAND_CASES` is taken for.
const ROUNDS: u64 = 20;
const ROUNDS_MAX: u64 = 1_000;

/// Longest time in which an arm brakes and is read to stand.
const BRAKED_MS: f64 = 1_000.0;

/// Frames of goals of one arm by which the other has begun too.
const BEGUN: usize = 5;

/// The planner joins lines whose ends are less than 0.1 mm apart.
const JOINED_MM: f64 = 0.15;

/// How far the ends of a line may be from where the design has them: the arms have play, sag and follow late.
const LINE_MM: f64 = 4.0;

fn rounds() -> std::ops::Range<u64> {
    let setting = std::env::var("STEADYHAND_CASES").ok();
    let cases = setting.and_then(|text| text.parse::<u64>().ok());
    0..cases.map_or(ROUNDS, |cases| (cases / 1_000).clamp(ROUNDS, ROUNDS_MAX))
}

/// SplitMix64, so that a failure comes again.
struct Chance(u64);

impl Chance {
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.share()
    }

    fn below(&mut self, count: usize) -> usize {
        (self.share() * count as f64) as usize
    }

    /// Returns a few lines where both arms reach, of one to three pieces; of every other design, all in one narrow place.
    fn lines(&mut self) -> Vec<Vec<[f64; 2]>> {
        let (count, is_crowded) = (2 + self.below(9), self.share() < 0.5);
        let middle = [self.within(85.0, 125.0), self.within(70.0, 225.0)];
        let area: [[f64; 2]; 2] = match is_crowded {
            true => middle.map(|at| [at - 25.0, at + 25.0]),
            false => [[55.0, 150.0], [45.0, 250.0]],
        };
        let mut lines: Vec<Vec<[f64; 2]>> = Vec::new();
        for line in (0..count).map(|_| self.line(&area)) {
            if !lines.iter().any(|other| meet(other, &line)) {
                lines.push(line);
            }
        }
        lines
    }

    fn line(&mut self, [across, up]: &[[f64; 2]; 2]) -> Vec<[f64; 2]> {
        let is_within =
            |[x, y]: &[f64; 2]| (across[0]..=across[1]).contains(x) && (up[0]..=up[1]).contains(y);
        let mut at = [self.within(across[0], across[1]), self.within(up[0], up[1])];
        let mut turn = self.within(0.0, std::f64::consts::TAU);
        let mut line = vec![at];
        for _ in 0..=self.below(3) {
            let length = self.within(6.0, 18.0);
            turn += self.within(-1.0, 1.0);
            let turns = (0..6).map(|sixth| turn + f64::from(sixth));
            let ends = turns.map(|turn| [at[0] + length * turn.cos(), at[1] + length * turn.sin()]);
            let Some(end) = ends.into_iter().find(is_within) else {
                break;
            };
            at = end;
            line.push(at);
        }
        match line.len() {
            1 => self.line(&[*across, *up]),
            _ => line,
        }
    }
}

/// Returns whether lines are drawn as one, because an end of one is where the other ends.
fn meet(one: &[[f64; 2]], other: &[[f64; 2]]) -> bool {
    let ends = |line: &[[f64; 2]]| [line[0], line[line.len() - 1]];
    let mut pairs = ends(one)
        .into_iter()
        .flat_map(|end| ends(other).map(|at| (end, at)));
    pairs.any(|(end, at)| apart_mm(end, at) < JOINED_MM)
}

/// Lines of the sheet as they lie on it.
fn drawing(lines: &[Vec<[f64; 2]>]) -> DesignReplacement {
    let strokes = lines
        .iter()
        .map(|points| format!("{{\"points\": {points:?}}}"));
    let strokes = strokes.collect::<Vec<_>>().join(", ");
    let text = format!(r#"{{"page_mm": [210, 297], "strokes": [{strokes}]}}"#);
    let files = vec![("list.json".to_owned(), text.into_bytes())];
    let mut drawing = DesignReplacement::from_files(files);
    drawing.placement.fits_page = true;
    drawing
}

struct Sheet(Surface);

impl PaperSurface for Sheet {
    fn touch(&self, tip_m: [f64; 3]) -> Option<([f64; 2], f64)> {
        let foot = self.0.project(&Point3::from(tip_m));
        self.0
            .holds(foot.at_mm)
            .then_some((foot.at_mm, foot.height_mm))
    }
}

/// Both arms of a scene, each at the far end of its own wire, with one clock, and the least distance of their bodies so far.
struct Duo {
    shared: SharedScene,
    rigs: [Rig; 2],
    motions: [Arc<MotionHandle>; 2],
    least_m: Arc<Mutex<f64>>,
}

impl Duo {
    fn new(lines: &[Vec<[f64; 2]>]) -> Self {
        let library = SceneLibrary::new(None).with_drawing(drawing(lines));
        let shared = library.shared("two_arms", None).unwrap();
        let clock = NodeClock::simulated();
        let rigs = [0, 1].map(|arm: usize| {
            let scene = Arc::clone(&shared.parts[arm].scene);
            let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
            let pens = scene.pens.iter().map(|pen| SimPen {
                tip_m: pen.tip_m.coords.into(),
                colour: "#000000".to_owned(),
                width_mm: pen.width_mm,
            });
            sim.place_sheet(Box::new(Sheet(scene.surface.clone())), pens.collect());
            Rig {
                family: Family::Sts,
                scene,
                sim,
                wire: Wire::default(),
                clock: clock.clone(),
                permits: Arc::new(PermitRegistry::everything()),
                folder: tempfile::tempdir().unwrap(),
            }
        });
        let thread = BusThread::start("pair").unwrap();
        let motions = rigs
            .each_ref()
            .map(|rig| Arc::new(rig.attach_on(&thread).unwrap()));
        let least_m = Arc::new(Mutex::new(f64::INFINITY));
        Self {
            shared,
            rigs,
            motions,
            least_m,
        }
    }

    fn plan(&self) -> SharedPlan {
        let measured =
            |motion: &Arc<MotionHandle>| motion.snapshot().measured.unwrap().position_rad;
        let starts = self.motions.each_ref().map(measured);
        plan::together(&self.shared, &starts, &SilentObserver).unwrap()
    }

    fn proofs(&self, plan: &SharedPlan) -> [CheckedTrajectory; 2] {
        let starts = self
            .motions
            .each_ref()
            .map(|motion| motion.snapshot().measured.unwrap());
        let parts = [0, 1].map(|arm: usize| MotionPart {
            scene: Arc::clone(&self.rigs[arm].scene),
            permit: self.rigs[arm].permit(),
            start: &starts[arm],
            now: self.rigs[arm].clock.now(),
            trajectory: plan.plans[arm].trajectory.clone(),
        });
        let proofs = gate::check_together(parts.into(), &[]).unwrap();
        proofs.try_into().unwrap()
    }

    /// Measures the true bodies whenever goals leave for either arm, and calls `then` with the number of such a frame of the left arm.
    fn watch(&self, then: impl Fn(usize) + Send + Sync + 'static) {
        let then = Arc::new(then);
        for arm in [0, 1] {
            let sims = self.rigs.each_ref().map(|rig| rig.sim.clone());
            let parts = self.shared.parts.clone();
            let (least_m, then) = (Arc::clone(&self.least_m), Arc::clone(&then));
            let watching = move |frame: usize, hands: &mut crate::far_end::Hands<'_>| {
                let now = hands.clock.now();
                sims.iter().for_each(|sim| sim.advance(now));
                let joints = sims.each_ref().map(ArmSimulator::true_joints);
                let apart_m = nearest_m([(&parts[0], &joints[0]), (&parts[1], &joints[1])]);
                let mut least_m = least_m.lock().unwrap();
                *least_m = least_m.min(apart_m);
                drop(least_m);
                if arm == 0 {
                    then(frame);
                }
            };
            self.rigs[arm].wire.script(0, Box::new(watching));
        }
    }

    async fn run(&self, proofs: [CheckedTrajectory; 2]) -> [MotionOutcome; 2] {
        let [left, right] = &self.motions;
        let [first, second] = proofs;
        let one = left.run(first, left.stops_requested());
        let other = right.run(second, right.stops_requested());
        let (one, other) = (one.await.unwrap(), other.await.unwrap());
        [one, other]
    }

    fn least_m(&self) -> f64 {
        *self.least_m.lock().unwrap()
    }

    /// A base may stand nearer to the other than the scene says, by as much as is stated; and even then the clearance is kept.
    fn allowed_m(&self) -> f64 {
        let uncertain_m = self.shared.parts.iter().map(|part| part.uncertainty_m);
        CLEARANCE_M + uncertain_m.sum::<f64>()
    }

    /// The ink of both arms, as ends of lines.
    fn ink(&self) -> Vec<[[f64; 2]; 2]> {
        let lines = self.rigs.iter().flat_map(|rig| rig.sim.ink());
        let ends = lines.filter_map(|line| {
            let ends = [*line.points_mm.first()?, *line.points_mm.last()?];
            // A dot where a pen came down is no line.
            (length_mm(&line.points_mm) > 1.0).then_some(ends)
        });
        ends.collect()
    }
}

fn length_mm(points: &[[f64; 2]]) -> f64 {
    points
        .windows(2)
        .map(|pair| apart_mm(pair[0], pair[1]))
        .sum()
}

fn apart_mm(one: [f64; 2], other: [f64; 2]) -> f64 {
    (one[0] - other[0]).hypot(one[1] - other[1])
}

fn bodies(part: &ScenePart, q: &JointVector) -> Vec<PlacedCapsule> {
    let (scene, frames) = (&part.scene, part.scene.arm.chain.frames(q));
    let links = scene.arm.capsules.iter().map(|capsule| {
        let frame = part.base * frames.get(capsule.joints_before).unwrap();
        place(&frame, &capsule.from_m, &capsule.to_m, capsule.radius_m)
    });
    let mount = part.base * frames.tool;
    let pens = scene
        .pens
        .iter()
        .map(|pen| place(&mount, &Point3::origin(), &pen.tip_m, PEN_RADIUS_M));
    links.chain(pens).collect()
}

fn nearest_m(arms: [(&ScenePart, &JointVector); 2]) -> f64 {
    let [ours, theirs] = arms.map(|(part, q)| bodies(part, q));
    let pairs = ours
        .iter()
        .flat_map(|our| theirs.iter().map(|their| our.clearance_m(their)));
    pairs.fold(f64::INFINITY, f64::min)
}

/// Asserts that each line of the design is drawn, and once: every line of ink is one of its lines, and none is left over.
fn each_is_drawn_once(lines: &[Vec<[f64; 2]>], ink: &[[[f64; 2]; 2]], round: u64) {
    let mut left: Vec<[[f64; 2]; 2]> = ink.to_vec();
    for line in lines {
        let (from, to) = (line[0], *line.last().unwrap());
        let off_mm = |[one, other]: &[[f64; 2]; 2]| {
            let ahead = apart_mm(*one, from).max(apart_mm(*other, to));
            ahead.min(apart_mm(*one, to).max(apart_mm(*other, from)))
        };
        let nearest =
            (0..left.len()).min_by(|a, b| off_mm(&left[*a]).total_cmp(&off_mm(&left[*b])));
        let nearest = nearest.filter(|at| off_mm(&left[*at]) < LINE_MM);
        let nearest =
            nearest.unwrap_or_else(|| panic!("round {round}: {line:?} is not among {left:?}"));
        left.remove(nearest);
    }
    assert!(left.is_empty(), "round {round}: drawn besides: {left:?}");
}

fn is_starved(outcomes: &[MotionOutcome; 2]) -> bool {
    let is_blamed = |outcome: &MotionOutcome| matches!(outcome, MotionOutcome::Faulted(text) if text.contains("machine"));
    outcomes.iter().any(is_blamed)
}

#[tokio::test]
async fn random_designs_are_drawn_once_with_the_bodies_apart() {
    let mut least = (f64::INFINITY, 0);
    for round in rounds() {
        let lines = Chance(round).lines();
        let duo = Duo::new(&lines);
        duo.watch(|_| {});
        let outcomes = duo.run(duo.proofs(&duo.plan())).await;
        let has_reached = outcomes
            .iter()
            .all(|outcome| matches!(outcome, MotionOutcome::Reached { .. }));
        assert!(
            has_reached || is_starved(&outcomes),
            "round {round}: {outcomes:?}"
        );
        assert!(
            duo.least_m() >= duo.allowed_m(),
            "round {round}: {} m",
            duo.least_m()
        );
        if has_reached {
            each_is_drawn_once(&lines, &duo.ink(), round);
        }
        if duo.least_m() < least.0 {
            least = (duo.least_m(), round);
        }
    }
    println!(
        "true bodies were {:.2} mm apart at the nearest, in design {}: {:.2} mm more than the clearance",
        least.0 * 1e3,
        least.1,
        (least.0 - CLEARANCE_M) * 1e3
    );
}

#[tokio::test]
async fn a_stop_of_one_at_any_moment_ends_both_apart_and_lifted() {
    let mut least_m = f64::INFINITY;
    let mut longest_ms: f64 = 0.0;
    for round in rounds() {
        let mut chance = Chance(round ^ 0x5709);
        let duo = Duo::new(&chance.lines());
        let plan = duo.plan();
        let frames = plan.plans[0].trajectory.samples.len();
        let (at, stopped) = (1 + chance.below(frames - 2), chance.below(2));
        let motion = Arc::clone(&duo.motions[stopped]);
        duo.watch(move |frame| {
            if frame == at {
                motion.stop(ActorRank::Operator, false);
            }
        });
        let outcomes = duo.run(duo.proofs(&plan)).await;
        let text = format!("round {round}, frame {at} of {frames}: {outcomes:?}");
        assert!(
            duo.least_m() >= duo.allowed_m(),
            "{} m, {text}",
            duo.least_m()
        );
        least_m = least_m.min(duo.least_m());
        if is_starved(&outcomes) {
            continue;
        }
        for (motion, outcome) in duo.motions.iter().zip(&outcomes) {
            let report = match outcome {
                MotionOutcome::Stopped(report) => report,
                // Stopped before it began: it stands where it stood.
                MotionOutcome::Refused(_) if at < BEGUN => continue,
                _ => panic!("{text}"),
            };
            assert!(
                report.verified && report.braked_ms() < Some(BRAKED_MS),
                "{text}"
            );
            assert_eq!(motion.snapshot().state, MotionState::Stopped, "{text}");
            longest_ms = longest_ms.max(report.braked_ms().unwrap());
        }
        for (rig, part) in duo.rigs.iter().zip(&duo.shared.parts) {
            let tip =
                part.scene.arm.chain.forward(&rig.sim.true_joints()) * part.scene.pens[0].tip_m;
            let height_mm = part.scene.surface.project(&tip).height_mm;
            assert!(height_mm > 1.0, "{height_mm} mm, {text}");
        }
    }
    println!(
        "stopped at random: bodies {:.2} mm apart at the nearest, braked within {longest_ms:.0} ms",
        least_m * 1e3
    );
}
