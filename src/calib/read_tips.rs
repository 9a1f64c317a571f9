//! Where the joints' own readings put the tip while a pattern was drawn, beside where it was expected.
//!
//! Friction and lag lie before a joint's encoder: what they do to the ink, the readings show, and it is neither play nor the
//! sheet's place. Play lies beyond the encoder. Goals lead by it, so the joints of goals and of readings are compared as they are
//! once they have crossed the play that the arm's file has: while a servo crosses it, its joint stands.

use std::ops::Range;

use super::ink_observation::{PatternPath, tip_mm};
use super::play_fit::PatternStage;
use super::play_operator::PlayOperator;
use base::units::JointVector;

/// Largest lag of readings that is looked for: half a second.
const LAG_SAMPLES_MAX: usize = 50;

/// Readings that belong to samples this near to a place are those of it: each alone is wrong by up to half a count.
const NEAR_MM: f64 = 1.0;

/// Where the tip was expected on the sheet, and how far beside it a reading put it.
struct ReadTip {
    expected_mm: [f64; 2],
    off_mm: [f64; 2],
}

/// The readings of each stroke of a pattern.
pub(super) struct ReadTips(Vec<Vec<ReadTip>>);

impl ReadTips {
    pub(super) fn new(stage: &PatternStage<'_>, path: &PatternPath<'_>) -> Self {
        let lag = reading_lag(path);
        let expected = crossed(path.sent.iter(), &stage.compensated_deg);
        let read = crossed(
            path.read.iter().map(|(_, read)| read),
            &stage.compensated_deg,
        );
        let tip = |(at, read): (usize, &JointVector)| {
            let sample = at.checked_sub(lag)?;
            let reached = path.reached.get(sample)?;
            let off = read.zip(expected.get(sample)?, |read, expected| read - expected);
            let expected_mm = tip_mm(stage, reached);
            let [x, y] = tip_mm(stage, &reached.zip(&off, |reached, off| reached + off));
            let off_mm = [x - expected_mm[0], y - expected_mm[1]];
            Some((
                sample,
                ReadTip {
                    expected_mm,
                    off_mm,
                },
            ))
        };
        let samples = path.read.iter().map(|(at, _)| *at);
        let mut tips: Vec<_> = samples.zip(&read).filter_map(tip).collect();
        let of_stroke = |samples: &Range<usize>| {
            let is_of_it = |(sample, _): &mut (usize, ReadTip)| samples.contains(sample);
            tips.extract_if(.., is_of_it).map(|(_, tip)| tip).collect()
        };
        Self(path.strokes.iter().map(of_stroke).collect())
    }

    /// Returns how far beside a place of a stroke the tip was read, across its line; nothing where it was not read.
    pub(super) fn off_mm(&self, stroke: usize, [x, y]: [f64; 2], across: [f64; 2]) -> [f64; 2] {
        let is_near = |tip: &&ReadTip| {
            let [tip_x, tip_y] = tip.expected_mm;
            (tip_x - x).hypot(tip_y - y) <= NEAR_MM
        };
        let off_mm = |tip: &ReadTip| tip.off_mm[0] * across[0] + tip.off_mm[1] * across[1];
        let near = self.0.get(stroke).into_iter().flatten().filter(is_near);
        let offs_mm: Vec<f64> = near.map(off_mm).collect();
        let mean_mm = offs_mm.iter().sum::<f64>() / offs_mm.len().max(1) as f64;
        across.map(|part| part * mean_mm)
    }
}

/// Returns the joints along a path of their servos, with this play.
fn crossed<'a>(
    servos: impl Iterator<Item = &'a JointVector>,
    play_deg: &[f64],
) -> Vec<JointVector> {
    let mut operators: Vec<PlayOperator> = Vec::new();
    let joints = |servos: &JointVector| {
        if operators.is_empty() {
            let pairs = servos.iter().zip(play_deg);
            operators = pairs
                .map(|(servo, play)| PlayOperator::new(play / 2.0, servo.to_degrees()))
                .collect();
        }
        let pairs = operators.iter_mut().zip(servos.iter());
        let joint = |(operator, servo): (&mut PlayOperator, &f64)| {
            servo + operator.turn_to(servo.to_degrees()).off_deg.to_radians()
        };
        JointVector::from_slice(&pairs.map(joint).collect::<Vec<_>>())
    };
    servos.map(joints).collect()
}

/// Returns by how many samples the joints' readings follow what was sent: the lag with which they agree best.
fn reading_lag(path: &PatternPath<'_>) -> usize {
    let is_drawn = |(at, _): &&(usize, JointVector)| path.strokes.iter().any(|of| of.contains(at));
    let drawn: Vec<_> = path.read.iter().filter(is_drawn).collect();
    let square = |lag: usize| -> f64 {
        let sent = |at: usize| path.sent.get(at.saturating_sub(lag));
        let pairs = drawn
            .iter()
            .filter_map(|(at, read)| Some((read, sent(*at)?)));
        let squares = pairs.map(|(read, sent)| read.zip(sent, |read, sent| (read - sent).powi(2)));
        squares.map(|joints| joints.iter().sum::<f64>()).sum()
    };
    let lags = (0..=LAG_SAMPLES_MAX).map(|lag| (lag, square(lag)));
    let best = lags.min_by(|(_, a), (_, b)| a.total_cmp(b));
    best.map_or(0, |(lag, _)| lag)
}
