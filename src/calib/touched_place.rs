//! Touches of one place, and the words by which a person finds it again.

use nalgebra::Point3;

use super::assessment::AssessmentInput;
use super::{
    AcceptanceLimits, CalibrationKind, CalibrationSession, FitFinding, TOUCHES_EACH, TouchContact,
    TouchOutlier, TouchRole,
};
use base::units::JointVector;
use base::wording::count;
use scene::Scene;

/// Touches of a tool in poses nearer than this are one place, touched again.
const AGAIN_RAD: f64 = 0.03;

/// Of a sheet, those whose tips are nearer than this.
const AGAIN_M: f64 = 0.005;

/// Distance between touches of one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct TouchScatter {
    /// The widest.
    pub(super) spread_m: f64,
    /// One of the two touches, from 0.
    index: usize,
}

/// Returns the touches of a place, from 0: all that were made where touch `index` was. None if there is no such touch.
#[must_use]
pub fn touches_of_place(session: &CalibrationSession, scene: &Scene, index: usize) -> Vec<usize> {
    let input = AssessmentInput::new(session, scene);
    input.map_or_else(|_| Vec::new(), |input| input.beside(index))
}

impl AssessmentInput<'_> {
    /// Returns whether two touches are of one place: for a tool and for zeros the same pose, otherwise the same place of the tip.
    fn is_same_place(&self, one: &TouchContact, other: &TouchContact) -> bool {
        if matches!(
            self.session.kind,
            CalibrationKind::Tool | CalibrationKind::Zeros
        ) {
            let [one, other] = [one, other].map(|c| JointVector::from_slice(&c.joints_rad));
            return one.distance_max(&other) < AGAIN_RAD;
        }
        let near = || (self.tip(one) - self.tip(other)).norm() < AGAIN_M;
        one.role == other.role && one.number == other.number && near()
    }

    fn beside(&self, index: usize) -> Vec<usize> {
        let Some(touch) = self.session.touches.get(index) else {
            return Vec::new();
        };
        let all = self.session.touches.iter().enumerate();
        all.filter(|(_, other)| self.is_same_place(touch, other))
            .map(|(other, _)| other)
            .collect()
    }

    /// The place in the session of a touch that a fit counts, which sees no verifying ones.
    fn in_session(&self, fitted: usize) -> Option<usize> {
        let contact = self.contacts(false).nth(fitted)?;
        let mut all = self.session.touches.iter();
        all.position(|touch| std::ptr::eq(touch, contact))
    }

    /// The widest that touches of one place are apart, where any was touched again.
    pub(super) fn scatter(
        &self,
        tip_m: &Point3<f64>,
        left_out: Option<&TouchOutlier>,
    ) -> Option<TouchScatter> {
        let left_out = left_out.and_then(|outlier| self.in_session(outlier.index));
        let all = self.session.touches.iter().enumerate();
        let used: Vec<(usize, &TouchContact)> =
            all.filter(|(index, _)| left_out != Some(*index)).collect();
        let pairs = used
            .iter()
            .enumerate()
            .flat_map(|(after, one)| used.iter().skip(after + 1).map(move |other| (*one, *other)));
        pairs
            .filter(|((_, one), (_, other))| self.is_same_place(one, other))
            .map(|((_, one), (index, other))| TouchScatter {
                spread_m: (self.mount(one) * tip_m - self.mount(other) * tip_m).norm(),
                index,
            })
            .max_by(|one, other| one.spread_m.total_cmp(&other.spread_m))
    }

    /// Says where a touch that was left out, or touches that are far apart, were made and how that place is taken again.
    pub(super) fn name_places(
        &self,
        finding: &mut FitFinding,
        accept: &AcceptanceLimits,
        left_out: Option<&TouchOutlier>,
        scatter: Option<TouchScatter>,
    ) {
        let wide = scatter.filter(|scatter| scatter.spread_m * 1e3 > accept.spread_mm);
        let left_out = left_out.and_then(|outlier| self.in_session(outlier.index));
        for index in [left_out, wide.map(|wide| wide.index)]
            .into_iter()
            .flatten()
        {
            let number = index + 1;
            finding.reasons.push(format!(
                "{}: `steadyhand calibrate undo --touch {number}` takes that place back ({}), to be touched again",
                self.place_words(index),
                count(self.beside(index).len(), "touch")
            ));
        }
    }

    /// Touch 8 was the sheet 34 mm to the right and 20 mm up.
    fn place_words(&self, index: usize) -> String {
        let number = index + 1;
        let Some(touch) = self.session.touches.get(index) else {
            return format!("touch {number}");
        };
        let at_mm = self.scene.surface.project(&self.tip(touch)).at_mm;
        let of = match (self.session.kind, touch.role) {
            (CalibrationKind::Tool, _) => {
                let joints = touch.joints_rad.iter();
                let deg = joints.map(|q| format!("{:.0}", q.to_degrees()));
                let deg = deg.collect::<Vec<_>>().join(", ");
                format!("the pose of joints at {deg}°")
            }
            (_, TouchRole::Calibrator) => "the calibrator".to_owned(),
            (_, TouchRole::Point) => format!("point {}", touch.number),
            _ => format!(
                "the sheet {:.0} mm to the right of its origin and {:.0} mm up",
                at_mm[0], at_mm[1]
            ),
        };
        format!("touch {number} was {of}")
    }

    /// Places that were touched too seldom to say how well their touches repeat, each by its first touch.
    pub(super) fn seldom(&self) -> Vec<String> {
        let mut places: Vec<(usize, &TouchContact, usize)> = Vec::new();
        for (index, touch) in self.session.touches.iter().enumerate() {
            let is_here = |first: &TouchContact| match self.session.kind {
                CalibrationKind::Zeros => first.role == touch.role && first.number == touch.number,
                _ => self.is_same_place(first, touch),
            };
            match places.iter_mut().find(|(_, first, _)| is_here(first)) {
                Some((_, _, times)) => *times += 1,
                None => places.push((index, touch, 1)),
            }
        }
        let seldom = places.iter().filter(|(_, _, times)| *times < TOUCHES_EACH);
        seldom
            .map(|(index, first, _)| {
                let role = format!("{:?}", first.role).to_lowercase();
                match first.number {
                    0 => format!("{role} (touch {})", index + 1),
                    number => format!("{role} {number} (touch {})", index + 1),
                }
            })
            .collect()
    }
}
