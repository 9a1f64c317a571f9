//! Touches at one place, and its description for a person.

use nalgebra::Point3;

use super::assessment::AssessmentInput;
use super::{
    AcceptanceLimits, CalibrationKind, CalibrationSession, FitFinding, TOUCHES_EACH, TouchContact,
    TouchOutlier, TouchRole,
};
use base::units::JointVector;
use base::wording::count;
use scene::Scene;

/// Largest difference between poses of a tool that count as the same place.
const SAME_POSE_RAD: f64 = 0.03;

/// Largest distance between tips that count as the same place.
const SAME_PLACE_M: f64 = 0.005;

/// Distance between touches at one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct TouchScatter {
    /// The largest distance.
    pub(super) spread_m: f64,
    /// Index of one of the two touches.
    index: usize,
}

/// Returns the indices of all touches at the place of touch `index`; empty if there is no such touch.
#[must_use]
pub fn touches_of_place(session: &CalibrationSession, scene: &Scene, index: usize) -> Vec<usize> {
    if session.kind == CalibrationKind::Bases {
        let touched = |touch: &TouchContact| (touch.arm.clone(), touch.role, touch.number);
        let place = session.touches.get(index).map(touched);
        let touches = session.touches.iter().enumerate();
        let same = touches.filter(|(_, touch)| place == Some(touched(touch)));
        return same.map(|(index, _)| index).collect();
    }
    let input = AssessmentInput::new(session, scene);
    input.map_or_else(|_| Vec::new(), |input| input.touches_at_place_of(index))
}

impl AssessmentInput<'_> {
    /// Returns whether two touches were made at one place: for a tool and for zeros the same pose, otherwise the same place of the tip.
    fn is_same_place(&self, one: &TouchContact, other: &TouchContact) -> bool {
        if matches!(
            self.session.kind,
            CalibrationKind::Tool | CalibrationKind::Zeros
        ) {
            let [one, other] = [one, other].map(|c| JointVector::from_slice(&c.joints_rad));
            return one.distance_max(&other) < SAME_POSE_RAD;
        }
        let is_near = || (self.tip(one) - self.tip(other)).norm() < SAME_PLACE_M;
        one.role == other.role && one.number == other.number && is_near()
    }

    fn touches_at_place_of(&self, index: usize) -> Vec<usize> {
        let Some(touch) = self.session.touches.get(index) else {
            return Vec::new();
        };
        let touches = self.session.touches.iter().enumerate();
        touches
            .filter(|(_, other)| self.is_same_place(touch, other))
            .map(|(other, _)| other)
            .collect()
    }

    /// Returns the index in the session of a fitted touch, as fits do not count verifying ones.
    fn session_index(&self, fitted: usize) -> Option<usize> {
        let contact = self.contacts(false).nth(fitted)?;
        let mut touches = self.session.touches.iter();
        touches.position(|touch| std::ptr::eq(touch, contact))
    }

    /// Returns the largest distance between touches at one place, if a place was touched repeatedly.
    pub(super) fn scatter(
        &self,
        tip_m: &Point3<f64>,
        left_out: Option<&TouchOutlier>,
    ) -> Option<TouchScatter> {
        let left_out = left_out.and_then(|outlier| self.session_index(outlier.index));
        let touches = self.session.touches.iter().enumerate();
        let used: Vec<(usize, &TouchContact)> = touches
            .filter(|(index, _)| left_out != Some(*index))
            .collect();
        let pairs = used
            .iter()
            .enumerate()
            .flat_map(|(after, one)| used.iter().skip(after + 1).map(move |other| (*one, *other)));
        pairs
            .filter(|((_, one), (_, other))| self.is_same_place(one, other))
            .map(|((_, one), (index, other))| TouchScatter {
                spread_m: self.apart_m(&(self.mount(one) * tip_m), &(self.mount(other) * tip_m)),
                index,
            })
            .max_by(|one, other| one.spread_m.total_cmp(&other.spread_m))
    }

    /// Returns how far touches of one place are apart. Those of an arm lie beside each other on purpose: their heights tell.
    fn apart_m(&self, one: &Point3<f64>, other: &Point3<f64>) -> f64 {
        let height_mm = |tip| self.scene.surface.project(tip).height_mm;
        match self.session.probed {
            true => (height_mm(one) - height_mm(other)).abs() / 1e3,
            false => (one - other).norm(),
        }
    }

    /// Adds reasons that name the place of a touch that was left out, or of touches that are far apart, and how to touch it again.
    /// `place_mm` is where a tip was on the sheet, to the right of its origin and above it.
    pub(super) fn name_places(
        &self,
        finding: &mut FitFinding,
        limits: &AcceptanceLimits,
        left_out: Option<&TouchOutlier>,
        scatter: Option<TouchScatter>,
        place_mm: impl Fn(&Point3<f64>) -> [f64; 2],
    ) {
        let wide = scatter.filter(|scatter| scatter.spread_m * 1e3 > limits.spread_mm);
        let left_out = left_out.and_then(|outlier| self.session_index(outlier.index));
        for index in [left_out, wide.map(|wide| wide.index)]
            .into_iter()
            .flatten()
        {
            let number = index + 1;
            finding.reasons.push(format!(
                "{}. `steadyhand calibrate undo --touch {number}` removes all touches of that place ({}); then touch it again",
                self.describe_place(index, &place_mm),
                count(self.touches_at_place_of(index).len(), "touch")
            ));
        }
    }

    /// Describes a touch's place, such as the sheet 34 mm to the right and 20 mm up.
    fn describe_place(&self, index: usize, place_mm: impl Fn(&Point3<f64>) -> [f64; 2]) -> String {
        let number = index + 1;
        let Some(touch) = self.session.touches.get(index) else {
            return format!("touch {number}");
        };
        let place = match (self.session.kind, touch.role) {
            (CalibrationKind::Tool, _) => {
                let joints = touch.joints_rad.iter();
                let deg: Vec<String> = joints.map(|q| format!("{:.0}", q.to_degrees())).collect();
                let deg = deg.join(", ");
                format!("made with the joints at {deg}°")
            }
            (_, TouchRole::Calibrator) => "the calibrator".to_owned(),
            (_, TouchRole::Point) => format!("point {}", touch.number),
            (_, role) => {
                let what = match role {
                    TouchRole::Origin => "`origin` of the sheet,",
                    TouchRole::X => "`x` of the sheet,",
                    TouchRole::Y => "`y` of the sheet,",
                    _ => "the sheet",
                };
                let [right_mm, up_mm] = place_mm(&self.tip(touch)).map(|mm| mm.round() + 0.0);
                format!("{what} {right_mm} mm to the right of its origin and {up_mm} mm up")
            }
        };
        format!("touch {number} was {place}")
    }

    /// Returns the places with too few touches to show their repeatability, each by its first touch.
    pub(super) fn places_touched_too_rarely(&self) -> Vec<String> {
        let mut places: Vec<(usize, &TouchContact, usize)> = Vec::new();
        for (index, touch) in self.session.touches.iter().enumerate() {
            let is_same = |first: &TouchContact| match self.session.kind {
                CalibrationKind::Zeros => first.role == touch.role && first.number == touch.number,
                _ => self.is_same_place(first, touch),
            };
            match places.iter_mut().find(|(_, first, _)| is_same(first)) {
                Some((_, _, times)) => *times += 1,
                None => places.push((index, touch, 1)),
            }
        }
        let rare = places.iter().filter(|(_, _, times)| *times < TOUCHES_EACH);
        rare.map(|(index, first, _)| {
            let role = format!("{:?}", first.role).to_lowercase();
            match first.number {
                0 => format!("{role} (touch {})", index + 1),
                number => format!("{role} {number} (touch {})", index + 1),
            }
        })
        .collect()
    }
}
