//! Fits where an arm's base stands beside another's, from places that the tips of both have touched.
//!
//! A point that both tips were brought to by hand tells all of it. A touch of a sheet tells where the tip stands across the sheet
//! and nothing along it: such places give the height and the lean of the base.

use nalgebra::{DMatrix, DVector, Isometry3, Point3, Translation3, UnitQuaternion, Vector3};

use super::fit::{FitModel, least_squares, slopes};
use super::stats::{except, f3_95, rms};
use scene::Surface;

/// Fewest places for height and lean, and fewest points for all six: one more than determine them, so that an error shows.
pub(super) const PLACES_MIN: usize = 4;

/// Lever by which rotations are counted as distances: half of a sheet.
const LEVER_M: f64 = 0.1;

/// Steps of the difference quotients.
const STEP_M: f64 = 1e-5;

/// Unknowns in the sheet's axes, rotations about its middle as distances at [`LEVER_M`]: up, about x, about y; then along x, along
/// y, about z.
const ACROSS: usize = 3;
const ALL: usize = 6;

/// A place that the tips of both arms have touched.
#[derive(Clone, Debug)]
pub(super) struct TouchedTwice {
    /// The first arm's tip in its own base frame, the mean of its touches.
    pub(super) ours_m: Point3<f64>,
    /// The other arm's tip in its own base frame.
    pub(super) theirs_m: Point3<f64>,
    /// True for a point, which both tips touched; false for a place of the sheet.
    pub(super) is_point: bool,
}

/// Where the other base stands.
#[derive(Clone, Debug)]
pub(super) struct BasesFit {
    /// Its pose in the first arm's base frame.
    pub(super) base: Isometry3<f64>,
    /// True if its place along the sheet and its turn were fitted too.
    pub(super) is_whole: bool,
    /// From each place as the other arm has it to where the first arm has it.
    pub(super) residuals_m: Vec<Vector3<f64>>,
    /// Largest distance of a place from the fit of the others.
    pub(super) held_out_m: f64,
    /// Largest over smallest singular value.
    pub(super) condition: f64,
    /// Point about which the rotations are counted, in the first arm's base frame.
    pub(super) pivot_m: Point3<f64>,
    covariance: DMatrix<f64>,
    freedom: usize,
}

/// The places, and the sheet that they lie on as the first arm's scene has it.
pub(super) struct BasesProblem<'a> {
    pub(super) places: &'a [TouchedTwice],
    pub(super) surface: &'a Surface,
    /// Where the scene has the other base.
    pub(super) scene_base: Isometry3<f64>,
}

impl BasesProblem<'_> {
    /// Returns whether enough points were touched to find all six.
    pub(super) fn is_whole(&self) -> bool {
        self.places.iter().filter(|place| place.is_point).count() >= PLACES_MIN
    }

    /// Fits all places; `None` if they do not determine the base.
    pub(super) fn fit(&self) -> Option<BasesFit> {
        let is_whole = self.is_whole();
        let all: Vec<&TouchedTwice> = self.places.iter().collect();
        let (base, slopes) = self.solve(&all, is_whole)?;
        let residuals_m: Vec<Vector3<f64>> = self
            .places
            .iter()
            .map(|place| self.residual(place, &base, is_whole))
            .collect();
        let held_out = (0..self.places.len()).map(|index| {
            let others: Vec<&TouchedTwice> = except(self.places, Some(index)).collect();
            let (base, _) = self.solve(&others, is_whole)?;
            let place = self.places.get(index)?;
            Some(self.residual(place, &base, is_whole).norm())
        });
        let held_out: Vec<f64> = held_out.collect::<Option<_>>()?;
        let singular = slopes.singular_values();
        let (rows, unknowns) = slopes.shape();
        let freedom = rows.checked_sub(unknowns).filter(|n| *n > 0)?;
        let rows_m = rms(residuals_m.iter().map(Vector3::norm));
        let sum = rows_m * rows_m * residuals_m.len() as f64;
        Some(BasesFit {
            base,
            is_whole,
            residuals_m,
            held_out_m: held_out.into_iter().fold(0.0, f64::max),
            condition: singular.max() / singular.min().max(f64::MIN_POSITIVE),
            pivot_m: self.pivot_m(),
            covariance: slopes.tr_mul(&slopes).try_inverse()? * (sum / freedom as f64),
            freedom,
        })
    }

    fn pivot_m(&self) -> Point3<f64> {
        let middle_mm = self.surface.size_mm().map(|side| side / 2.0);
        self.surface.at(middle_mm).point_m
    }

    /// Returns the base that fits some of the places best, and how their residuals change with it.
    fn solve(
        &self,
        places: &[&TouchedTwice],
        is_whole: bool,
    ) -> Option<(Isometry3<f64>, DMatrix<f64>)> {
        let residuals = |base: &Isometry3<f64>| {
            let rows = places.iter().flat_map(|place| {
                let off = self.residual(place, base, is_whole);
                match place.is_point && is_whole {
                    true => off.iter().copied().collect::<Vec<_>>(),
                    false => vec![self.up().dot(&off)],
                }
            });
            Some(DVector::from_vec(rows.collect()))
        };
        let step_from = |base: &Isometry3<f64>, step: &DVector<f64>| self.moved(base, step);
        let steps = [STEP_M; ALL];
        let unknowns = if is_whole { ALL } else { ACROSS };
        let model = FitModel {
            residuals: &residuals,
            step_from: &step_from,
            steps: steps.get(..unknowns)?,
        };
        let (base, _) = least_squares(&model, self.scene_base)?;
        let slopes = slopes(&model, &base)?;
        Some((base, slopes))
    }

    fn up(&self) -> Vector3<f64> {
        self.surface.flat().rotation * Vector3::z()
    }

    /// Returns the vector from a place as the other arm has it to where the first arm has it; of a place of the sheet only the part
    /// across it, by their heights over the sheet.
    fn residual(
        &self,
        place: &TouchedTwice,
        base: &Isometry3<f64>,
        is_whole: bool,
    ) -> Vector3<f64> {
        let theirs_m = base * place.theirs_m;
        if place.is_point && is_whole {
            return place.ours_m - theirs_m;
        }
        let [ours, theirs] =
            [&place.ours_m, &theirs_m].map(|at_m| self.surface.project(at_m).height_mm / 1e3);
        // Points beside the sheet stand over its plane, whatever lies there.
        match place.is_point {
            true => self.up() * self.up().dot(&(place.ours_m - theirs_m)),
            false => self.up() * (ours - theirs),
        }
    }

    /// Returns the base moved and turned about the middle of the sheet.
    fn moved(&self, base: &Isometry3<f64>, step: &DVector<f64>) -> Isometry3<f64> {
        let part = |index: usize| step.get(index).copied().unwrap_or(0.0);
        let axes = self.surface.flat().rotation;
        let shift = axes * Vector3::new(part(3), part(4), part(0));
        let turn = axes * Vector3::new(part(1), part(2), part(5)) / LEVER_M;
        let pivot = Translation3::from(self.pivot_m().coords);
        let turn = pivot * UnitQuaternion::from_scaled_axis(turn) * pivot.inverse();
        Translation3::from(shift) * turn * base
    }
}

impl BasesFit {
    /// Returns how far any point within `reach_m` of the middle of the sheet may be from where the fit puts it, in 19 cases of 20;
    /// of a fit that is not whole only across the sheet.
    pub(super) fn bound_m(&self, reach_m: f64) -> f64 {
        let (along, about): (&[usize], &[usize]) = match self.is_whole {
            true => (&[0, 3, 4], &[1, 2, 5]),
            false => (&[0], &[1, 2]),
        };
        let sigma = |unknowns: &[usize]| {
            let part = self
                .covariance
                .select_rows(unknowns)
                .select_columns(unknowns);
            part.symmetric_eigenvalues().max().max(0.0).sqrt()
        };
        let factor = (3.0 * f3_95(self.freedom as f64)).sqrt();
        factor * (sigma(along) + sigma(about) * reach_m / LEVER_M)
    }

    /// Returns how far any point within `reach_m` of the middle of the sheet is from where `other` has it.
    pub(super) fn off_m(&self, other: &Isometry3<f64>, reach_m: f64) -> f64 {
        let between = self.base * other.inverse();
        let shift_m = (between * self.pivot_m - self.pivot_m).norm();
        shift_m + between.rotation.angle() * reach_m
    }

    /// Returns the root mean square of the residuals.
    pub(super) fn rms_m(&self) -> f64 {
        rms(self.residuals_m.iter().map(Vector3::norm))
    }
}
