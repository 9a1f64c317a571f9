//! Play fitted to ink of simulated joints: its errors, its uncertainty, and what is refused.

#![expect(clippy::print_stderr, reason = "a test prints its figures")]

use std::ops::Range;
use std::sync::Arc;

use super::chance::Chance;
use crate::{
    InkObservation, PatternPath, PatternReading, PatternStage, PlayEquations, PlayFit,
    PlayFitError, gap_sketch, gaps, ink_pattern,
};
use base::units::JointVector;
use kin::ToolTip;
use plan::{SilentObserver, SpanKind};
use scene::{Order, Scene, SceneLibrary, SheetCorrection, SheetStroke};

/// Number of set-ups in a normal run; `just slow` runs [`SETUPS_SLOW`].
const SETUPS: usize = 12;
const SETUPS_SLOW: usize = 2_000;

/// Standard deviation of a reading.
const NOISE_MM: f64 = 0.05;

struct DrawnPattern {
    scene: Arc<Scene>,
    samples: Vec<JointVector>,
    strokes: Vec<Range<usize>>,
    readings: Vec<PatternReading>,
    ink: InkObservation,
    /// Index of the sample of each place.
    indices: Vec<usize>,
    equations: PlayEquations,
    noise_mm: f64,
}

fn stage(scene: &Scene) -> PatternStage<'_> {
    let pen = scene.pen(0).unwrap();
    PatternStage {
        chain: &scene.arm.chain,
        tip: ToolTip {
            point_m: pen.tip_m,
            axis: pen.axis,
        },
        surface: &scene.surface,
        compensated_deg: vec![0.0; scene.arm.dof()],
    }
}

/// Returns readings a millimetre apart, away from the corners.
fn places(strokes: &[SheetStroke]) -> Vec<PatternReading> {
    let mut readings = Vec::new();
    for (stroke, line) in strokes.iter().enumerate() {
        let ends = line.points_mm.iter().zip(line.points_mm.iter().skip(1));
        for (piece, ([ax, ay], [bx, by])) in ends.enumerate() {
            let length = (bx - ax).hypot(by - ay);
            let along = [(bx - ax) / length, (by - ay) / length];
            let steps = (2..).map(f64::from).take_while(|mm| *mm <= length - 2.0);
            readings.extend(steps.map(|along_mm| PatternReading {
                stroke,
                piece,
                at_mm: [ax + along[0] * along_mm, ay + along[1] * along_mm],
                from: None,
                across: [-along[1], along[0]],
                off_mm: 0.0,
                sigma_mm: NOISE_MM,
            }));
        }
    }
    readings
}

impl DrawnPattern {
    fn new(keep: impl Fn(&PatternReading) -> bool) -> Self {
        Self::with_readings(|strokes| places(strokes).into_iter().filter(&keep).collect())
    }

    fn by_hand() -> Self {
        Self::with_readings(|strokes| {
            gaps(strokes)
                .iter()
                .map(|gap| gap.reading(gap.planned_mm))
                .collect()
        })
    }

    fn with_readings(readings: impl Fn(&[SheetStroke]) -> Vec<PatternReading>) -> Self {
        let scene = SceneLibrary::new(None).scene("tagged", None).unwrap();
        let strokes = ink_pattern(&scene).unwrap();
        let plan = plan::draw_strokes(
            &scene,
            &scene.rest_rad,
            &strokes,
            Order::AsDrawn,
            &SilentObserver,
        );
        let plan = plan.unwrap().trajectory;
        let drawn = |item| {
            let mut spans = plan.spans.iter();
            let span = spans.find(|span| span.kind == SpanKind::Draw && span.item == Some(item));
            span.map(|span| span.first..span.end).unwrap()
        };
        let path = PatternPath {
            sent: &plan.samples,
            reached: &plan.samples,
            strokes: (0..strokes.len()).map(drawn).collect(),
            read: Vec::new(),
        };
        let (readings, strokes) = (readings(&strokes), path.strokes.clone());
        let ink = path.observe(&stage(&scene), &readings);
        let sample = |deg: &Vec<f64>| {
            let is_same = |q: &JointVector| {
                let mut pairs = q.iter().zip(deg);
                pairs.all(|(q, deg)| (q.to_degrees() - deg).abs() < 1e-4)
            };
            plan.samples.iter().position(is_same).unwrap()
        };
        let indices = ink
            .places
            .iter()
            .map(|place| sample(&ink.path_deg[place.node]))
            .collect();
        let equations = PlayEquations::new(&stage(&scene), &ink).unwrap();
        Self {
            scene,
            samples: plan.samples,
            strokes,
            readings,
            ink,
            indices,
            equations,
            noise_mm: NOISE_MM,
        }
    }

    /// Fits the last ink again, now with joints as they were read along the path.
    fn fit_read(&self, joints: &[JointVector]) -> PlayFit {
        let path = PatternPath {
            sent: &self.samples,
            reached: &self.samples,
            strokes: self.strokes.clone(),
            read: joints.iter().copied().enumerate().collect(),
        };
        let mut ink = path.observe(&stage(&self.scene), &self.readings);
        let offsets = self.equations.offsets_mm();
        for (reading, off_mm) in ink.readings.iter_mut().zip(offsets) {
            reading.off_mm = off_mm;
        }
        let equations = PlayEquations::new(&stage(&self.scene), &ink).unwrap();
        equations.fit().unwrap()
    }

    /// Fits the ink that this arm would draw.
    fn fit(&mut self, arm: &WornJoints, chance: &mut Chance) -> Result<PlayFit, PlayFitError> {
        let joints = arm.joints_along(&self.samples);
        let size_mm = self.scene.surface.size_mm();
        let mut offsets = Vec::new();
        let offset = |place: usize, [x, y]: [f64; 2]| {
            let (sample, place) = (self.indices[place], &self.ink.places[place]);
            let tip = |joints: &JointVector| {
                let tip = self
                    .scene
                    .arm
                    .chain
                    .point(joints, &stage(&self.scene).tip.point_m);
                self.scene.surface.project(&tip).at_mm
            };
            let (actual, planned) = (tip(&joints[sample]), tip(&self.samples[sample]));
            let terms = SheetCorrection::terms(size_mm, place.at_mm);
            let offset = [0, 1].map(|axis| {
                let field = arm.field_mm[axis].iter().zip(terms);
                actual[axis] - planned[axis] + field.map(|(c, term)| c * term).sum::<f64>()
            });
            offset[0] * x + offset[1] * y
        };
        for reading in &self.ink.readings {
            let from = reading
                .from
                .map_or(0.0, |from| offset(from, reading.across));
            let noise = self.noise_mm * chance.normal();
            offsets.push(offset(reading.place, reading.across) - from + noise);
        }
        self.equations.replace(&offsets);
        self.equations.fit()
    }
}

/// Joints whose play varies over their rotation, and a sheet with an error of its own.
struct WornJoints {
    play_deg: Vec<f64>,
    variation: Vec<f64>,
    phase_rad: Vec<f64>,
    /// True if gravity keeps the joint on one side.
    hangs: Vec<bool>,
    field_mm: [[f64; 6]; 2],
}

impl WornJoints {
    fn draw(chance: &mut Chance) -> Self {
        let field = |chance: &mut Chance| {
            [4.0, 0.8, 0.8, 0.2, 0.2, 0.2].map(|largest| chance.within(largest))
        };
        let hangs = |chance: &mut Chance| chance.uniform() < 0.5;
        Self {
            play_deg: (0..5).map(|_| chance.between(0.2, 1.5)).collect(),
            variation: (0..5).map(|_| chance.within(0.3)).collect(),
            phase_rad: (0..5).map(|_| chance.within(3.0)).collect(),
            hangs: vec![false, hangs(chance), hangs(chance), false, false],
            field_mm: [field(chance), field(chance)],
        }
    }

    fn play_rad(&self, joint: usize, angle_rad: f64) -> f64 {
        let wave = (3.0 * angle_rad + self.phase_rad[joint]).sin();
        (self.play_deg[joint] * (1.0 + self.variation[joint] * wave)).to_radians()
    }

    /// Returns the joints along a path of their servos.
    fn joints_along(&self, sent: &[JointVector]) -> Vec<JointVector> {
        let mut joints = sent[0];
        let step = |servos: &JointVector| {
            joints = joints.map(|joint, angle| {
                let (servo, half) = (servos[joint], self.play_rad(joint, servos[joint]) / 2.0);
                match self.hangs[joint] {
                    true => servo + half,
                    false => angle.clamp(servo - half, servo + half),
                }
            });
            joints
        };
        sent.iter().map(step).collect()
    }

    /// Returns the mean play over the strokes; 0 if gravity keeps the joint on one side.
    fn truth_deg(&self, joint: usize, drawn: &DrawnPattern) -> f64 {
        if self.hangs[joint] {
            return 0.0;
        }
        let places = drawn.ink.places.iter().zip(&drawn.indices);
        let mut plays = std::collections::BTreeMap::<usize, Vec<f64>>::new();
        for (place, sample) in places {
            let play = self
                .play_rad(joint, drawn.samples[*sample][joint])
                .to_degrees();
            plays.entry(place.station).or_default().push(play);
        }
        let mean = |plays: &Vec<f64>| plays.iter().sum::<f64>() / plays.len() as f64;
        plays.values().map(mean).sum::<f64>() / plays.len() as f64
    }
}

fn check_bounds(setups: usize) {
    let seed = 20_261_124;
    let mut chance = Chance(seed);
    let mut drawn = DrawnPattern::new(|_| true);
    let (mut ratios, mut hits) = (vec![Vec::new(); 5], vec![0_usize; 5]);
    for setup in 0..setups {
        let arm = WornJoints::draw(&mut chance);
        let fit = drawn.fit(&arm, &mut chance);
        let fit = fit.unwrap_or_else(|error| panic!("seed {seed}, set-up {setup}: {error}"));
        for (joint, play) in fit.play.iter().enumerate() {
            let Some(play) = play else { continue };
            let error = play.deg - arm.truth_deg(joint, &drawn);
            ratios[joint].push(error / play.sigma_deg);
            hits[joint] += usize::from(error.abs() <= fit.quantile * play.sigma_deg);
        }
    }
    let observable = ratios
        .iter()
        .zip(&hits)
        .enumerate()
        .filter(|(_, (ratios, _))| !ratios.is_empty());
    let figures: Vec<(usize, f64, f64)> = observable
        .map(|(joint, (ratios, hits))| {
            let count = ratios.len() as f64;
            let rms = (ratios.iter().map(|ratio| ratio * ratio).sum::<f64>() / count).sqrt();
            let covered = *hits as f64 / count;
            eprintln!(
                "seed {seed}, joint {joint}: {count} fits, error over sigma {rms:.2}, 95 % bound holds {:.1} %",
                100.0 * covered
            );
            (joint, rms, covered)
        })
        .collect();
    if setups >= SETUPS_SLOW {
        let mean = figures.iter().map(|(_, _, hits)| hits).sum::<f64>() / figures.len() as f64;
        assert!((0.93..=0.97).contains(&mean), "{mean:.3}");
    }
    for (joint, rms, covered) in figures {
        if setups >= SETUPS_SLOW {
            assert!((0.8..1.3).contains(&rms), "joint {joint}: {rms:.2}");
            // Gravity keeps some joints on one side; their play is known better than the bound says.
            assert!(
                (0.91..=0.99).contains(&covered),
                "joint {joint}: {covered:.3}"
            );
        } else {
            assert!((0.5..1.7).contains(&rms), "joint {joint}: {rms:.2}");
        }
    }
    assert!(ratios[0].len() == setups, "the base shows in every set-up");
}

#[test]
fn play_is_found_with_its_uncertainty() {
    check_bounds(SETUPS);
}

#[test]
#[ignore = "two thousand set-ups"]
fn play_is_found_with_its_uncertainty_in_many_set_ups() {
    check_bounds(SETUPS_SLOW);
}

#[test]
fn a_pattern_with_lines_in_one_direction_leaves_joints_uncertain() {
    // Only vertical sides, which do not show the effect of shoulder and elbow on horizontal ones.
    let mut chance = Chance(5);
    let mut drawn = DrawnPattern::new(|reading| reading.across[0].abs() > 0.5);
    let arm = WornJoints::draw(&mut chance);
    let fit = drawn.fit(&arm, &mut chance).unwrap();
    let full = DrawnPattern::new(|_| true).fit(&arm, &mut chance).unwrap();
    assert!(
        fit.play[0].is_some_and(|play| play.is_significant()),
        "{:?}",
        fit.play
    );
    for joint in [2, 3] {
        let full_sigma_deg = full.play[joint].unwrap().sigma_deg;
        let uncertain = fit.play[joint].is_none_or(|play| play.sigma_deg > 1.8 * full_sigma_deg);
        assert!(uncertain, "joint {joint}: {:?} {:?}", fit.play, full.play);
    }
    let mut few = DrawnPattern::new(|reading| reading.stroke == 0 && reading.piece == 0);
    assert!(matches!(
        few.fit(&arm, &mut chance),
        Err(PlayFitError::TooFew { .. })
    ));
}

#[test]
fn other_play_moves_the_ink_as_far_as_drawing_with_it_does() {
    let mut drawn = DrawnPattern::new(|_| true);
    let mut arm = WornJoints::draw(&mut Chance(7));
    arm.variation.fill(0.0);
    let fit = drawn.fit(&arm, &mut Chance(8)).unwrap();
    let before = drawn.equations.offsets_mm();
    arm.play_deg[0] += 0.3;
    drawn.fit(&arm, &mut Chance(8)).unwrap();
    let after = drawn.equations.offsets_mm();
    let shifts = after
        .iter()
        .zip(&before)
        .map(|(after, before)| after - before);
    let rms_mm = (shifts.map(|shift| shift * shift).sum::<f64>() / after.len() as f64).sqrt();
    // The sheet's error compensates some of it.
    let shift_mm = fit.shift_mm(&[0.3, 0.0, 0.0, 0.0, 0.0]);
    assert!(rms_mm > 0.2, "{rms_mm}");
    assert!(
        (0.7..1.02).contains(&(shift_mm / rms_mm)),
        "{shift_mm} {rms_mm}"
    );
    let twice_mm = fit.shift_mm(&[0.6, 0.0, 0.0, 0.0, 0.0]);
    assert!((twice_mm - 2.0 * shift_mm).abs() < 1e-9);
    assert!(fit.shift_mm(&[0.0; 5]) < 1e-12);
    assert!(fit.shift_mm(&[0.0]).is_infinite(), "of other joints");
}

#[test]
fn readings_of_something_else_are_left_out() {
    let mut chance = Chance(6);
    let mut drawn = DrawnPattern::new(|_| true);
    let mut arm = WornJoints::draw(&mut chance);
    arm.hangs = vec![false, true, true, false, false];
    let clean = drawn.fit(&arm, &mut chance).unwrap();
    let blots: Vec<f64> = drawn
        .equations
        .offsets_mm()
        .iter()
        .enumerate()
        .map(
            |(index, off)| {
                if index % 11 == 0 { off + 1.5 } else { *off }
            },
        )
        .collect();
    drawn.equations.replace(&blots);
    let fit = drawn.equations.fit().unwrap();
    assert!(fit.left_out >= blots.len() / 12, "{}", fit.left_out);
    let (found, expected) = (fit.play[0].unwrap(), clean.play[0].unwrap());
    assert!(
        (found.deg - expected.deg).abs() < 0.03,
        "{found:?} {expected:?}"
    );
}

#[test]
fn what_the_joints_own_readings_show_is_not_play() {
    let mut chance = Chance(10);
    let mut arm = WornJoints::draw(&mut chance);
    arm.field_mm = [[0.0; 6]; 2];
    let mut drawn = DrawnPattern::new(|_| true);
    let beyond = drawn.fit(&arm, &mut chance).unwrap();
    assert!(beyond.play[0].unwrap().is_significant(), "{beyond:?}");
    // The same ink, of servos that friction holds back before their encoders.
    let friction = drawn.fit_read(&arm.joints_along(&drawn.samples));
    assert!(friction.rms_mm < 0.1, "{friction:?}");
    for play in friction.play.iter().flatten() {
        assert!(!play.is_significant(), "{friction:?}");
    }
}

#[test]
fn gaps_that_a_person_measures_agree_with_a_camera() {
    let mut chance = Chance(9);
    let mut arm = WornJoints::draw(&mut chance);
    arm.hangs = vec![false, true, true, false, false];
    let mut by_camera = DrawnPattern::new(|_| true);
    let seen = by_camera.fit(&arm, &mut chance).unwrap();
    let mut by_hand = DrawnPattern::by_hand();
    by_hand.noise_mm = crate::GAP_SIGMA_MM;
    let read = by_hand.fit(&arm, &mut chance).unwrap();
    for joint in 0..3 {
        let (a, b) = (seen.play[joint].unwrap(), read.play[joint].unwrap());
        let sigma = a.sigma_deg.hypot(b.sigma_deg);
        eprintln!(
            "joint {joint}: camera {:.2} ±{:.2}, hand {:.2} ±{:.2}",
            a.deg, a.sigma_deg, b.deg, b.sigma_deg
        );
        assert!(
            (a.deg - b.deg).abs() < 3.5 * sigma,
            "joint {joint}: {a:?} {b:?}"
        );
    }
    assert!(read.play[0].unwrap().is_significant());
}

/// The sides of a box once ended in different columns, and a square that has a row to itself was drawn at the left.
#[test]
fn a_sketch_of_gaps_has_boxes_that_close_and_stand_as_they_are_drawn() {
    let scene = SceneLibrary::new(None).scene("tagged", None).unwrap();
    let text = gap_sketch(&gaps(&ink_pattern(&scene).unwrap()));
    let lines: Vec<&str> = text.lines().collect();
    let columns = |line: &str, marks: [char; 2]| -> Vec<usize> {
        let matches = line.match_indices(|c| marks.contains(&c));
        matches.map(|(column, _)| column).collect()
    };
    let boxes: Vec<_> = lines.chunks(5).map(|rows| &rows[..4]).collect();
    for rows in &boxes {
        let corners = columns(rows[0], ['+', '+']);
        for row in *rows {
            assert_eq!(columns(row, ['+', '|']), corners, "{text}");
        }
    }
    let last = boxes.last().unwrap();
    let single = columns(last[0], ['+', '+']);
    let widest = boxes.iter().map(|rows| columns(rows[0], ['+', '+']));
    let widest = widest.max_by_key(Vec::len).unwrap();
    assert_eq!((single.len(), &single[..]), (2, &widest[2..4]), "{text}");
}
