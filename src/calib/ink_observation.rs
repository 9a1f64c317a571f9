//! Ink of the pattern beside its plan, in the form that a calibration keeps.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::play_fit::PatternStage;
use base::units::JointVector;

/// A pattern that was drawn and read, and the readings of the joints at rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InkObservation {
    /// Camera that read it; none where a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera: Option<String>,
    /// Time of the drawing, in milliseconds since 1970.
    pub at_ms: u64,
    /// Play of each joint that was made good while it was drawn, in degrees.
    pub made_good_deg: Vec<f64>,
    /// Joints as they were sent, in degrees: where one of them turned round, and at every place.
    pub path_deg: Vec<Vec<f64>>,
    /// Places of the pattern that were read.
    pub places: Vec<InkPlace>,
    /// Readings of those.
    pub readings: Vec<PlaceReading>,
    /// Joints at rest.
    #[serde(default)]
    pub rests: Vec<RestReading>,
}

/// A place on a line of the pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InkPlace {
    /// On the sheet, as planned.
    pub at_mm: [f64; 2],
    /// Index of the posture in the path.
    pub node: usize,
    /// Index of the stroke in the pattern.
    pub station: usize,
    /// Number of the line in the whole pattern: readings of one have their errors in common.
    pub leg: usize,
}

/// Offset of the ink from its plan, across its line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaceReading {
    /// Index of the place.
    pub place: usize,
    /// Place that the distance was measured from; none where it was measured from the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<usize>,
    /// Unit vector along which it was measured.
    pub across: [f64; 2],
    /// By how much more along that than planned.
    pub off_mm: f64,
    /// Standard deviation.
    pub sigma_mm: f64,
}

/// Joints where the arm stood still, in degrees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestReading {
    /// As they were sent.
    pub sent_deg: Vec<f64>,
    /// As they were measured.
    pub measured_deg: Vec<f64>,
}

/// Joints of a pattern that was drawn.
#[derive(Clone, Debug)]
pub struct PatternPath<'a> {
    /// Joints that were sent.
    pub sent: &'a [JointVector],
    /// Joints that the plan expects to be reached, as many.
    pub reached: &'a [JointVector],
    /// Samples at which each stroke was drawn, in the order of the pattern.
    pub strokes: Vec<Range<usize>>,
}

/// A line of the pattern at one place, read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatternReading {
    /// Index of the stroke in the pattern.
    pub stroke: usize,
    /// Index of the line among those between the stroke's corners.
    pub piece: usize,
    /// Its planned place.
    pub at_mm: [f64; 2],
    /// Place of another line of the same stroke that it was measured from.
    pub from: Option<(usize, [f64; 2])>,
    /// Unit vector along which it was measured.
    pub across: [f64; 2],
    /// By how much more than planned along that.
    pub off_mm: f64,
    /// Standard deviation.
    pub sigma_mm: f64,
}

/// Lines of a stroke have their numbers within so many.
const PIECES_MAX: usize = 16;

impl PatternPath<'_> {
    /// Returns the readings of a pattern with the joints that drew each place. Readings of strokes that were not drawn are left
    /// out.
    #[must_use]
    pub fn observe(&self, stage: &PatternStage<'_>, read: &[PatternReading]) -> InkObservation {
        let tips: Vec<Vec<[f64; 2]>> = self.strokes.iter().map(|of| self.tips(stage, of)).collect();
        let mut samples = Vec::new();
        let (mut places, mut readings) = (Vec::new(), Vec::new());
        for one in read {
            let mut add = |piece: usize, at_mm: [f64; 2]| {
                let sample = self.nearest(&tips, one.stroke, at_mm)?;
                samples.push(sample);
                places.push(InkPlace {
                    at_mm: at_mm.map(short),
                    node: 0,
                    station: one.stroke,
                    leg: one.stroke * PIECES_MAX + piece,
                });
                Some(places.len() - 1)
            };
            let from = one.from.map(|(piece, at_mm)| add(piece, at_mm));
            let Some(place) = add(one.piece, one.at_mm).filter(|_| from != Some(None)) else {
                continue;
            };
            readings.push(PlaceReading {
                place,
                from: from.flatten(),
                across: one.across.map(short),
                off_mm: short(one.off_mm),
                sigma_mm: short(one.sigma_mm),
            });
        }
        let (path_deg, nodes) = self.thinned(&samples);
        for (place, node) in places.iter_mut().zip(nodes) {
            place.node = node;
        }
        InkObservation {
            made_good_deg: stage.made_good_deg.clone(),
            path_deg,
            places,
            readings,
            ..InkObservation::default()
        }
    }

    /// Places of the tip on the sheet while a stroke is drawn, as expected.
    fn tips(&self, stage: &PatternStage<'_>, of: &Range<usize>) -> Vec<[f64; 2]> {
        let drawn = self.reached.get(of.clone()).unwrap_or_default();
        let place = |joints: &JointVector| {
            let tip = stage.chain.point(joints, &stage.tip.point_m);
            stage.surface.project(&tip).at_mm
        };
        drawn.iter().map(place).collect()
    }

    /// Returns the sample at which a place of a stroke is drawn.
    fn nearest(&self, tips: &[Vec<[f64; 2]>], stroke: usize, at_mm: [f64; 2]) -> Option<usize> {
        let far = |[x, y]: &[f64; 2]| (x - at_mm[0]).hypot(y - at_mm[1]);
        let drawn = tips.get(stroke)?.iter().enumerate();
        let (index, _) = drawn.min_by(|(_, a), (_, b)| far(a).total_cmp(&far(b)))?;
        Some(self.strokes.get(stroke)?.start + index)
    }

    /// Returns the path thinned to its turns and to these samples, and the index that each of these has in it.
    fn thinned(&self, samples: &[usize]) -> (Vec<Vec<f64>>, Vec<usize>) {
        let mut kept: Vec<usize> = self.turns();
        kept.extend(samples);
        kept.extend([0, self.sent.len().saturating_sub(1)]);
        kept.sort_unstable();
        kept.dedup();
        let nodes = kept.iter().filter_map(|index| self.sent.get(*index));
        let nodes = nodes.map(degrees).collect();
        let of = |sample: &usize| kept.partition_point(|index| index < sample);
        (nodes, samples.iter().map(of).collect())
    }

    /// Samples at which a joint turns round.
    fn turns(&self) -> Vec<usize> {
        let joints = self.sent.first().map_or(0, |first| first.len());
        let angle = |sample: usize, joint: usize| {
            let joints = self.sent.get(sample);
            joints.and_then(|q| q.get(joint)).copied().unwrap_or(0.0)
        };
        let mut turns = Vec::new();
        for joint in 0..joints {
            let mut was_up = None;
            for sample in 1..self.sent.len() {
                let (now, before) = (angle(sample, joint), angle(sample - 1, joint));
                let Some(is_up) = now.partial_cmp(&before).filter(|order| order.is_ne()) else {
                    continue;
                };
                if was_up != Some(is_up) {
                    turns.push(sample - 1);
                }
                was_up = Some(is_up);
            }
        }
        turns
    }
}

/// Returns a number as it is kept: a record is read again with every drawing.
fn short(value: f64) -> f64 {
    (value * 1e4).round() / 1e4 + 0.0
}

fn degrees(joints_rad: &JointVector) -> Vec<f64> {
    joints_rad.iter().map(|q| short(q.to_degrees())).collect()
}

/// Returns the joints of an angle each, in degrees.
pub(super) fn joints_of(deg: &[f64]) -> JointVector {
    JointVector::from_slice(&deg.iter().map(|deg| deg.to_radians()).collect::<Vec<_>>())
}

impl RestReading {
    /// Creates the reading of an arm that stood still.
    #[must_use]
    pub fn new(sent_rad: &JointVector, measured_rad: &JointVector) -> Self {
        Self {
            sent_deg: degrees(sent_rad),
            measured_deg: degrees(measured_rad),
        }
    }
}
