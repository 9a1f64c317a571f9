//! Ink of the pattern compared with its plan, in the form that a calibration keeps.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::play_fit::PatternStage;
use super::read_tips::ReadTips;
use base::units::JointVector;

/// A pattern that was drawn and read, and the readings of the joints at rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InkObservation {
    /// Camera that read it; `None` if a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera: Option<String>,
    /// Time of the drawing, in milliseconds since 1970.
    pub at_ms: u64,
    /// Play of each joint that was compensated for while it was drawn, in degrees.
    #[serde(rename = "made_good_deg")]
    pub compensated_deg: Vec<f64>,
    /// Commanded joints in degrees: where one of them reversed, and at every place.
    pub path_deg: Vec<Vec<f64>>,
    /// Places of the pattern that were read.
    pub places: Vec<InkPlace>,
    /// Readings of those places.
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
    /// How far beside it the joints' readings put the tip, across the line: the joints show this error themselves, so play and
    /// the sheet do not explain it.
    #[serde(default)]
    pub read_off_mm: [f64; 2],
    /// Index of the posture in the path.
    pub node: usize,
    /// Index of the stroke in the pattern.
    pub station: usize,
    /// Number of the line in the whole pattern: readings of the same line share errors.
    pub leg: usize,
}

/// Offset of the ink from its plan, across its line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaceReading {
    /// Index of the place.
    pub place: usize,
    /// Place from which the distance was measured; `None` if it was measured from the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<usize>,
    /// Unit vector along which it was measured.
    pub across: [f64; 2],
    /// Excess over the planned distance along that vector.
    pub off_mm: f64,
    /// Standard deviation.
    pub sigma_mm: f64,
}

/// Joints where the arm stood still, in degrees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestReading {
    /// As commanded.
    pub sent_deg: Vec<f64>,
    /// As measured.
    pub measured_deg: Vec<f64>,
}

/// Joints during the drawing of a pattern.
#[derive(Clone, Debug)]
pub struct PatternPath<'a> {
    /// Commanded joints.
    pub sent: &'a [JointVector],
    /// Joints that the plan expects to be reached, one for each commanded.
    pub reached: &'a [JointVector],
    /// Samples at which each stroke was drawn, in the order of the pattern.
    pub strokes: Vec<Range<usize>>,
    /// Joints as they were read after some of the samples were sent, in order.
    pub read: Vec<(usize, JointVector)>,
}

/// A reading of the pattern at one place of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatternReading {
    /// Index of the stroke in the pattern.
    pub stroke: usize,
    /// Index of the line among those between the stroke's corners.
    pub piece: usize,
    /// Its planned place.
    pub at_mm: [f64; 2],
    /// Piece and place on the same stroke from which it was measured.
    pub from: Option<(usize, [f64; 2])>,
    /// Unit vector along which it was measured.
    pub across: [f64; 2],
    /// Excess over the planned distance along that vector.
    pub off_mm: f64,
    /// Standard deviation.
    pub sigma_mm: f64,
}

/// Largest number of lines in a stroke.
const PIECES_MAX: usize = 16;

impl PatternPath<'_> {
    /// Returns the readings of a pattern with the joints that drew each place, without those of strokes that were not drawn.
    #[must_use]
    pub fn observe(&self, stage: &PatternStage<'_>, pattern: &[PatternReading]) -> InkObservation {
        let tips = |samples: &Range<usize>| self.tips(stage, samples);
        let tips: Vec<Vec<[f64; 2]>> = self.strokes.iter().map(tips).collect();
        let read_tips = ReadTips::new(stage, self);
        let mut samples = Vec::new();
        let (mut places, mut readings) = (Vec::new(), Vec::new());
        for reading in pattern {
            let mut add = |piece: usize, at_mm: [f64; 2]| {
                let sample = self.nearest(&tips, reading.stroke, at_mm)?;
                samples.push(sample);
                places.push(InkPlace {
                    at_mm: at_mm.map(rounded),
                    read_off_mm: read_tips
                        .off_mm(reading.stroke, at_mm, reading.across)
                        .map(rounded),
                    node: 0,
                    station: reading.stroke,
                    leg: reading.stroke * PIECES_MAX + piece,
                });
                Some(places.len() - 1)
            };
            let from = reading.from.map(|(piece, at_mm)| add(piece, at_mm));
            let Some(place) = add(reading.piece, reading.at_mm).filter(|_| from != Some(None))
            else {
                continue;
            };
            readings.push(PlaceReading {
                place,
                from: from.flatten(),
                across: reading.across.map(rounded),
                off_mm: rounded(reading.off_mm),
                sigma_mm: rounded(reading.sigma_mm),
            });
        }
        let (path_deg, nodes) = self.thinned(&samples);
        for (place, node) in places.iter_mut().zip(nodes) {
            place.node = node;
        }
        InkObservation {
            compensated_deg: stage.compensated_deg.clone(),
            path_deg,
            places,
            readings,
            ..InkObservation::default()
        }
    }

    /// Returns the expected places of the tip on the sheet while a stroke is drawn.
    fn tips(&self, stage: &PatternStage<'_>, samples: &Range<usize>) -> Vec<[f64; 2]> {
        let drawn = self.reached.get(samples.clone()).unwrap_or_default();
        drawn.iter().map(|joints| tip_mm(stage, joints)).collect()
    }

    /// Returns the sample at which a place of a stroke is drawn.
    fn nearest(&self, tips: &[Vec<[f64; 2]>], stroke: usize, at_mm: [f64; 2]) -> Option<usize> {
        let mm = |[x, y]: &[f64; 2]| (x - at_mm[0]).hypot(y - at_mm[1]);
        let drawn = tips.get(stroke)?.iter().enumerate();
        let (index, _) = drawn.min_by(|(_, a), (_, b)| mm(a).total_cmp(&mm(b)))?;
        Some(self.strokes.get(stroke)?.start + index)
    }

    /// Returns the path reduced to its reversals and to these samples, and the index in it of each of these.
    fn thinned(&self, samples: &[usize]) -> (Vec<Vec<f64>>, Vec<usize>) {
        let mut kept: Vec<usize> = self.reversals();
        kept.extend(samples);
        kept.extend([0, self.sent.len().saturating_sub(1)]);
        kept.sort_unstable();
        kept.dedup();
        let sent = kept.iter().filter_map(|index| self.sent.get(*index));
        let node = |sample: &usize| kept.partition_point(|index| index < sample);
        (
            sent.map(degrees).collect(),
            samples.iter().map(node).collect(),
        )
    }

    /// Returns the samples at which a joint reverses.
    fn reversals(&self) -> Vec<usize> {
        let joints = self.sent.first().map_or(0, |first| first.len());
        let angle = |sample: usize, joint: usize| {
            let joints = self.sent.get(sample);
            joints.and_then(|q| q.get(joint)).copied().unwrap_or(0.0)
        };
        let mut reversals = Vec::new();
        for joint in 0..joints {
            let mut was_up = None;
            for sample in 1..self.sent.len() {
                let (new, old) = (angle(sample, joint), angle(sample - 1, joint));
                let Some(is_up) = new.partial_cmp(&old).filter(|order| order.is_ne()) else {
                    continue;
                };
                if was_up != Some(is_up) {
                    reversals.push(sample - 1);
                }
                was_up = Some(is_up);
            }
        }
        reversals
    }
}

/// Returns where the tip is on the sheet.
pub(super) fn tip_mm(stage: &PatternStage<'_>, joints: &JointVector) -> [f64; 2] {
    let tip = stage.chain.point(joints, &stage.tip.point_m);
    stage.surface.project(&tip).at_mm
}

/// Rounds a number for storage: a record is read again with every drawing.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4 + 0.0
}

fn degrees(joints_rad: &JointVector) -> Vec<f64> {
    joints_rad.iter().map(|q| rounded(q.to_degrees())).collect()
}

/// Converts one angle for each joint from degrees.
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
