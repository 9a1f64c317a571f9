//! Makes a map of a sheet's heights from touches of a grid, and says whether it is worth having.

use std::collections::BTreeMap;

use nalgebra::Vector2;

use super::assessment::{AssessmentInput, TouchAssessment, frame_values};
use super::calibration_record::{FileValues, TouchContact};
use super::stats::rms;
use super::{PlaneFit, SheetFrame, judge_mapped};
use scene::{HeightMap, MAP_PLACES, Scene};

/// Keys of a sheet's heights.
pub(super) const HEIGHTS_KEYS: [&str; 3] = ["heights.x_mm", "heights.y_mm", "heights.height_mm"];

/// Key of how far they may be off, and the number of standard deviations that it stands for.
pub(super) const UNCERTAINTY_KEY: &str = "heights.uncertainty_mm";
const SIGMAS: f64 = 3.0;

/// Smallest height over a plane for which a map is worth having: half a count of one joint moves the tip by a tenth of a
/// millimetre. And by how many standard deviations it must exceed what touches scatter.
const WORTH_MM: f64 = 0.3;
const SIGNIFICANT: f64 = 3.0;

/// A map of a sheet's heights over its plane.
#[derive(Clone, Debug)]
pub struct HeightMapFit {
    /// The map.
    pub map: HeightMap,
    /// Standard deviation of the height of a place.
    pub sigma_mm: f64,
}

impl HeightMapFit {
    /// Makes a map of touches: the number of each one's place, and its place on the sheet with its height over the plane. `None`
    /// for fewer places than a map needs.
    ///
    /// # Errors
    /// The reason why these touches make no map.
    pub(super) fn new(
        touches: impl Iterator<Item = (usize, [f64; 3])>,
    ) -> Option<Result<Self, String>> {
        let mut by_place: BTreeMap<usize, Vec<[f64; 3]>> = BTreeMap::new();
        for (place, touch) in touches {
            by_place.entry(place).or_default().push(touch);
        }
        if by_place.len() < *MAP_PLACES.start() {
            return None;
        }
        let mean = |touches: &Vec<[f64; 3]>| {
            let count = touches.len() as f64;
            let sum = touches
                .iter()
                .fold([0.0; 3], |[x, y, z], [a, b, c]| [x + a, y + b, z + c]);
            sum.map(|sum| (sum / count * 1e3).round() / 1e3)
        };
        let means: Vec<[f64; 3]> = by_place.values().map(mean).collect();
        let pairs = by_place.values().zip(&means);
        let scatter =
            pairs.flat_map(|(touches, mean)| touches.iter().map(|touch| touch[2] - mean[2]));
        let each = by_place.values().map(Vec::len).min().unwrap_or(1) as f64;
        let sigma_mm = rms(scatter) / each.sqrt();
        let places = means.iter().map(|[x, y, _]| Vector2::new(*x, *y)).collect();
        let heights = means.iter().map(|[.., z]| *z).collect();
        let map = HeightMap::new(places, heights).map_err(|fault| fault.to_string());
        let known = |map: HeightMap| {
            let uncertainty_mm = (SIGMAS * sigma_mm).hypot(map.between_mm());
            map.known_to((uncertainty_mm * 1e3).ceil() / 1e3)
        };
        Some(map.map(|map| Self {
            map: known(map),
            sigma_mm,
        }))
    }

    /// Returns whether the sheet is so far from flat that the map is worth having.
    #[must_use]
    pub fn is_worth_having(&self) -> bool {
        self.map.largest_mm() > WORTH_MM.max(SIGNIFICANT * self.sigma_mm)
    }

    /// Returns how well the height is known anywhere within the touched places.
    #[must_use]
    pub fn uncertainty_mm(&self) -> f64 {
        self.sigma_mm.hypot(self.map.between_mm())
    }

    /// Returns its figures.
    pub(super) fn figures(&self) -> Vec<(String, f64)> {
        vec![
            ("from_flat_mm".to_owned(), self.map.largest_mm()),
            ("between_touches_mm".to_owned(), self.uncertainty_mm()),
        ]
    }
}

/// Returns the values of a map, by the keys of a scene's sheet; empty lists without one.
pub(super) fn heights_values(map: Option<&HeightMap>) -> FileValues {
    let places = || map.into_iter().flat_map(HeightMap::places);
    let lists = [
        places().map(|([x, _], _)| x).collect(),
        places().map(|([_, y], _)| y).collect(),
        places().map(|(_, mm)| mm).collect::<Vec<f64>>(),
    ];
    let keys = HEIGHTS_KEYS.map(str::to_owned);
    let uncertainty_mm = map.map_or(0.0, HeightMap::uncertainty_mm);
    let uncertainty = (UNCERTAINTY_KEY.to_owned(), vec![uncertainty_mm]);
    keys.into_iter().zip(lists).chain([uncertainty]).collect()
}

/// Returns the heights that a scene's file has now.
pub(super) fn heights_now(scene: &Scene) -> FileValues {
    heights_values(scene.surface.heights())
}

impl AssessmentInput<'_> {
    /// Returns the map of the heights of a sheet that was felt in enough places.
    pub(super) fn height_map(
        &self,
        fit: &PlaneFit,
        frame: &SheetFrame,
    ) -> Option<Result<HeightMapFit, String>> {
        let touches = self.contacts(false).map(|contact| {
            let tip = self.tip(contact);
            let [x, y] = frame.place_mm(&tip);
            (contact.number, [x, y, fit.height_m(&tip) * 1e3])
        });
        let is_mesh = self.scene.surface.mesh_frame().is_some();
        HeightMapFit::new(touches).filter(|_| self.session.probed && !is_mesh)
    }

    /// Assesses a sheet that is not flat, on a plane with a map of its heights.
    pub(super) fn mapped_sheet(
        &self,
        (fit, frame): (&PlaneFit, &SheetFrame),
        map: &HeightMapFit,
        tilt_rad: Option<f64>,
    ) -> TouchAssessment {
        let off_m = |contact: &TouchContact| {
            let tip = self.tip(contact);
            fit.height_m(&tip) - map.map.height_mm(frame.place_mm(&tip)) / 1e3
        };
        let on_map = PlaneFit {
            residuals_m: self.contacts(false).map(off_m).collect(),
            outlier: None,
            ..fit.clone()
        };
        let (mut finding, mut figures) = self.judge_fit(
            &on_map,
            &self.pen.tip_m,
            |contact| off_m(contact).abs(),
            |tip_m| frame.place_mm(tip_m),
            |limits, verify_m, spread_m| judge_mapped(map, limits, verify_m, spread_m, tilt_rad),
        );
        finding.check_touch_counts(&self.places_touched_too_rarely());
        figures.extend(self.sheet_figures(fit, frame));
        figures.extend(map.figures());
        let corners = self.corners(&frame.origin_m, &frame.x, &frame.y);
        let (old, mut new) = self.touched_values(frame_values(&frame.origin_m, &frame.x, &frame.y));
        new.extend(heights_values(Some(&map.map)));
        TouchAssessment {
            finding,
            change: self.sheet_change(&corners),
            old: heights_now(self.scene).into_iter().chain(old).collect(),
            new,
            figures,
            points: self.residuals(|contact| (self.tip(contact), fit.normal.scale(off_m(contact)))),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    /// Touches of a grid of three by three, three at each place, `bump_mm` high in the middle.
    fn touches(bump_mm: f64) -> impl Iterator<Item = (usize, [f64; 3])> {
        (0..27).map(move |index| {
            let (place, again) = (index / 3, index % 3);
            let at = [place % 3, place / 3].map(|step| 10.0 + 40.0 * step as f64);
            let height = if place == 4 { bump_mm } else { 0.0 };
            (place, [at[0], at[1], height + 0.02 * (again as f64 - 1.0)])
        })
    }

    #[test]
    fn a_map_is_worth_having_where_the_sheet_is_far_from_flat() {
        let fit = |bump_mm: f64| HeightMapFit::new(touches(bump_mm)).unwrap().unwrap();
        assert!(fit(1.4).is_worth_having() && !fit(0.15).is_worth_having());
        assert!((fit(1.4).map.height_mm([50.0, 50.0]) - 1.4).abs() < 1e-6);
        assert!(
            fit(1.4).uncertainty_mm() > 0.1,
            "{}",
            fit(1.4).uncertainty_mm()
        );
        assert!(HeightMapFit::new(touches(1.4).take(24)).is_none());
        assert!(HeightMapFit::new(touches(30.0)).unwrap().is_err());
    }
}
