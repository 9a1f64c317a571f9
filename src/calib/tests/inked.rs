//! Play fitted to ink of simulated joints: how far off it is, whether it knows that, and what it refuses.

use std::sync::Arc;

use super::chance::Chance;
use crate::{
    InkObservation, PatternPath, PatternReading, PatternStage, PlayEquations, PlayFit,
    PlayFitError, ink_pattern,
};
use base::units::JointVector;
use kin::ToolTip;
use plan::{SilentObserver, SpanKind};
use scene::{Order, Scene, SceneLibrary, SheetCorrection, SheetStroke};

/// Set-ups of a normal run; `just slow` runs [`SETUPS_SLOW`].
const SETUPS: usize = 60;
const SETUPS_SLOW: usize = 2_000;

/// What a place was read with.
const NOISE_MM: f64 = 0.05;

struct DrawnPattern {
    scene: Arc<Scene>,
    samples: Vec<JointVector>,
    observed: InkObservation,
    /// The sample of each reading.
    at: Vec<usize>,
    equations: PlayEquations,
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
        correction: None,
    }
}

/// Places a millimetre apart, off the corners.
fn places(strokes: &[SheetStroke]) -> Vec<PatternReading> {
    let mut read = Vec::new();
    for (stroke, line) in strokes.iter().enumerate() {
        let ends = line.points_mm.iter().zip(line.points_mm.iter().skip(1));
        for (piece, ([ax, ay], [bx, by])) in ends.enumerate() {
            let length = (bx - ax).hypot(by - ay);
            let along = [(bx - ax) / length, (by - ay) / length];
            let steps = (2..).map(f64::from).take_while(|far| *far <= length - 2.0);
            read.extend(steps.map(|far| PatternReading {
                stroke,
                piece,
                at_mm: [ax + along[0] * far, ay + along[1] * far],
                from: None,
                across: [-along[1], along[0]],
                off_mm: 0.0,
                sigma_mm: NOISE_MM,
            }));
        }
    }
    read
}

impl DrawnPattern {
    fn new(keep: impl Fn(&PatternReading) -> bool) -> Self {
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
        };
        let read: Vec<_> = places(&strokes).into_iter().filter(keep).collect();
        let observed = path.observe(&stage(&scene), &read);
        let sample = |deg: &Vec<f64>| {
            let is_it = |q: &JointVector| {
                let mut pairs = q.iter().zip(deg);
                pairs.all(|(q, deg)| (q.to_degrees() - deg).abs() < 1e-5)
            };
            plan.samples.iter().position(is_it).unwrap()
        };
        let at = observed
            .places
            .iter()
            .map(|of| sample(&observed.path_deg[of.node]))
            .collect();
        let equations = PlayEquations::new(&stage(&scene), &observed).unwrap();
        Self {
            scene,
            samples: plan.samples,
            observed,
            at,
            equations,
        }
    }

    /// Fits what this arm would draw.
    fn fit(&mut self, arm: &WornJoints, chance: &mut Chance) -> Result<PlayFit, PlayFitError> {
        let lies = arm.lies(&self.samples);
        let size_mm = self.scene.surface.size_mm();
        let mut offsets = Vec::new();
        for (reading, at) in self.observed.readings.iter().zip(&self.at) {
            let place = &self.observed.places[reading.place];
            let tip = |joints: &JointVector| {
                let tip = self
                    .scene
                    .arm
                    .chain
                    .point(joints, &stage(&self.scene).tip.point_m);
                self.scene.surface.project(&tip).at_mm
            };
            let (is, was) = (tip(&lies[*at]), tip(&self.samples[*at]));
            let terms = SheetCorrection::terms(size_mm, place.at_mm);
            let off = [0, 1].map(|axis| {
                let field = arm.field_mm[axis].iter().zip(terms);
                is[axis] - was[axis] + field.map(|(c, term)| c * term).sum::<f64>()
            });
            let [x, y] = reading.across;
            offsets.push(off[0] * x + off[1] * y + NOISE_MM * chance.normal());
        }
        self.equations.replace(&offsets);
        self.equations.fit()
    }
}

/// Joints with play that varies along their turn, and a sheet with an error of its own.
struct WornJoints {
    play_deg: Vec<f64>,
    variation: Vec<f64>,
    phase_rad: Vec<f64>,
    /// True where gravity keeps a joint on one side.
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

    /// Where the joints lie along a path of their servos.
    fn lies(&self, sent: &[JointVector]) -> Vec<JointVector> {
        let mut at = sent[0];
        let step = |servos: &JointVector| {
            at = at.map(|joint, lay| {
                let (servo, half) = (servos[joint], self.play_rad(joint, servos[joint]) / 2.0);
                match self.hangs[joint] {
                    true => servo + half,
                    false => lay.clamp(servo - half, servo + half),
                }
            });
            at
        };
        sent.iter().map(step).collect()
    }

    /// The mean play over the strokes; 0 where gravity keeps the joint on one side.
    fn truth_deg(&self, joint: usize, drawn: &DrawnPattern) -> f64 {
        if self.hangs[joint] {
            return 0.0;
        }
        let places = drawn.observed.places.iter().zip(&drawn.at);
        let mut of_station = std::collections::BTreeMap::<usize, Vec<f64>>::new();
        for (place, at) in places {
            let play = self.play_rad(joint, drawn.samples[*at][joint]).to_degrees();
            of_station.entry(place.station).or_default().push(play);
        }
        let mean = |all: &Vec<f64>| all.iter().sum::<f64>() / all.len() as f64;
        of_station.values().map(mean).sum::<f64>() / of_station.len() as f64
    }
}

fn check_bounds(setups: usize) {
    let seed = 20_261_124;
    let mut chance = Chance(seed);
    let mut drawn = DrawnPattern::new(|_| true);
    let (mut ratios, mut held) = (vec![Vec::new(); 5], vec![0_usize; 5]);
    for setup in 0..setups {
        let arm = WornJoints::draw(&mut chance);
        let fit = match drawn.fit(&arm, &mut chance) {
            Ok(f) => f,
            Err(why) => {
                println!("{setup}: {why} {:?} {:?}", arm.play_deg, arm.hangs);
                continue;
            }
        };
        for (joint, play) in fit.play.iter().enumerate() {
            let Some(play) = play else { continue };
            if (play.deg - arm.truth_deg(joint, &drawn)).abs() > 2.5 * play.sigma_deg
                || play.sigma_deg > 0.1
            {
                println!(
                    "{setup} j{joint} truth {:.3} found {:.3} +- {:.3} shows; hangs {} rms {:.3} out {}",
                    arm.truth_deg(joint, &drawn),
                    play.deg,
                    play.sigma_deg,
                    arm.hangs[joint],
                    fit.rms_mm,
                    fit.left_out
                );
            }
            let error = play.deg - arm.truth_deg(joint, &drawn);
            ratios[joint].push(error / play.sigma_deg);
            held[joint] += usize::from(error.abs() <= fit.quantile * play.sigma_deg);
        }
    }
    for (joint, ratios) in ratios.iter().enumerate().filter(|(_, all)| !all.is_empty()) {
        let count = ratios.len() as f64;
        let rms = (ratios.iter().map(|of| of * of).sum::<f64>() / count).sqrt();
        let share = held[joint] as f64 / count;
        println!(
            "seed {seed}, joint {joint}: {count} fits, error over sigma {rms:.2}, 95 % bound holds {:.1} %",
            100.0 * share
        );
        if setups >= SETUPS_SLOW {
            assert!((0.8..1.3).contains(&rms), "joint {joint}: {rms:.2}");
            assert!((0.93..=0.97).contains(&share), "joint {joint}: {share:.3}");
        } else {
            assert!((0.6..1.6).contains(&rms), "joint {joint}: {rms:.2}");
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
