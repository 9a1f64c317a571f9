//! A sheet that is not quite flat: its heights over its plane, smooth through the places that were touched.
//!
//! A thin plate that is bent as little as possible passes through all of them. Well beyond the touched places it goes on level.

use nalgebra::{DMatrix, DVector, Isometry3, Point3, Unit, Vector2, Vector3};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::SheetFile;
use super::scene_fault::SceneFault;
use super::surface::{LineBounds, SheetShape, SurfacePoint, SurfaceProjection};
use base::units::{Finite, OutOfRange};

/// Fewest and most places of a map.
pub const MAP_PLACES: std::ops::RangeInclusive<usize> = 9..=64;

/// Largest height of a place over the sheet's plane, up or down.
pub const MAP_MM_MAX: f64 = 10.0;

/// Largest uncertainty of a map's heights.
const UNCERTAINTY_MM_MAX: f64 = 5.0;

/// Least distance between two places.
const APART_MM: f64 = 5.0;

/// Distance beyond the outermost places up to which the plate is followed: touches keep off a sheet's edges.
const BEYOND_MM: f64 = 10.0;

/// Steepest map: beyond it a pen's tilt would have to follow it.
const SLOPE_MAX: f64 = 0.25;

/// Distance of the samples by which the steepest slope is found, and by how much one between them may be steeper.
const SLOPE_STEP_MM: f64 = 2.0;
const SLOPE_MARGIN: f64 = 1.05;

/// Heights of a sheet over its plane in its file, as touches found them: lists of the same length, one entry for each place.
/// Empty lists are a flat sheet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HeightMapFile {
    /// Places along the sheet's x, 9 to 64.
    pub x_mm: Vec<Finite>,
    /// The same along y.
    pub y_mm: Vec<Finite>,
    /// Height there over the plane of `origin_m`, `x_axis` and `y_axis`.
    pub height_mm: Vec<Finite>,
    /// How far the height between the places may be off, up to 5; at least the error that leaving out a place shows. The arm keeps
    /// that much farther away.
    pub uncertainty_mm: Finite,
}

/// Heights of a sheet over its plane.
#[derive(Clone, Debug)]
pub struct HeightMap {
    places_mm: Vec<Vector2<f64>>,
    heights_mm: Vec<f64>,
    low_mm: Vector2<f64>,
    high_mm: Vector2<f64>,
    weights: Vec<f64>,
    plane: Vector3<f64>,
    /// The steepest slope anywhere.
    slope: f64,
    /// A height over the plane that no place is above.
    top_mm: f64,
    between_mm: f64,
    uncertainty_mm: f64,
}

impl HeightMap {
    /// Creates the map of a sheet's file; `None` where it has none.
    pub(super) fn in_sheet(file: &SheetFile) -> Result<Option<Self>, SceneFault> {
        file.heights.as_ref().map_or(Ok(None), Self::of_file)
    }

    /// Creates a map; `None` for empty lists.
    ///
    /// # Errors
    /// Too few or too many places, two too near to each other, a height or a slope beyond its limit.
    fn of_file(file: &HeightMapFile) -> Result<Option<Self>, SceneFault> {
        let [x, y, height] = [&file.x_mm, &file.y_mm, &file.height_mm];
        if x.len() != y.len() || x.len() != height.len() {
            return Err(SceneFault::HeightMapLists([x.len(), y.len(), height.len()]));
        }
        if x.is_empty() {
            return Ok(None);
        }
        for mm in height {
            let range = -MAP_MM_MAX..=MAP_MM_MAX;
            OutOfRange::check(|| "sheet.heights.height_mm".to_owned(), *mm, &range)?;
        }
        let places = x.iter().zip(y).map(|(x, y)| Vector2::new(x.get(), y.get()));
        let heights = height.iter().map(|mm| mm.get()).collect();
        let range = 0.0..=UNCERTAINTY_MM_MAX;
        let stated = file.uncertainty_mm;
        OutOfRange::check(|| "sheet.heights.uncertainty_mm".to_owned(), stated, &range)?;
        let map = Self::new(places.collect(), heights)?;
        Ok(Some(map.known_to(stated.get())))
    }

    /// Creates a map through heights at places of a sheet.
    ///
    /// # Errors
    /// Too few or too many places, two too near to each other, all on a line, or a slope beyond its limit.
    pub fn new(places_mm: Vec<Vector2<f64>>, heights_mm: Vec<f64>) -> Result<Self, SceneFault> {
        let count = places_mm.len();
        if !MAP_PLACES.contains(&count) {
            return Err(SceneFault::HeightMapPlaces(count));
        }
        let pairs = places_mm.iter().enumerate();
        let mut gaps = pairs.flat_map(|(index, a)| {
            let later = places_mm.iter().skip(index + 1);
            later.map(move |b| (a, (a - b).norm()))
        });
        if let Some((at, gap_mm)) = gaps.find(|(_, gap_mm)| *gap_mm < APART_MM) {
            return Err(SceneFault::HeightMapApart {
                at_mm: [at.x, at.y],
                gap_mm,
                least_mm: APART_MM,
            });
        }
        let plate = ThinPlate::through(&places_mm, &heights_mm).ok_or(SceneFault::HeightMapLine)?;
        let bound = |pick: fn(f64, f64) -> f64, start: f64| {
            let from = Vector2::repeat(start);
            let places = places_mm.iter();
            places.fold(from, |all, at| all.zip_map(at, pick))
        };
        let mut map = Self {
            low_mm: bound(f64::min, f64::INFINITY).add_scalar(-BEYOND_MM),
            high_mm: bound(f64::max, f64::NEG_INFINITY).add_scalar(BEYOND_MM),
            places_mm,
            heights_mm,
            weights: plate.weights,
            plane: plate.plane,
            slope: 0.0,
            top_mm: 0.0,
            between_mm: 0.0,
            uncertainty_mm: 0.0,
        };
        map.between_mm = map.largest_within(&plate.left_out_mm) / 4.0;
        map.uncertainty_mm = map.between_mm;
        (map.slope, map.top_mm) = map.slope_and_top_mm();
        if map.slope > SLOPE_MAX {
            return Err(SceneFault::HeightMapSlope {
                slope: map.slope,
                most: SLOPE_MAX,
            });
        }
        Ok(map)
    }

    /// Returns the places and their heights.
    pub fn places(&self) -> impl Iterator<Item = ([f64; 2], f64)> {
        let places = self.places_mm.iter().map(|at| [at.x, at.y]);
        places.zip(self.heights_mm.iter().copied())
    }

    /// Returns the height at a place of the sheet.
    #[must_use]
    pub fn height_mm(&self, at_mm: [f64; 2]) -> f64 {
        self.at(&Vector2::from(at_mm)).0
    }

    /// Returns the largest height over the plane, up or down, among the places.
    #[must_use]
    pub fn largest_mm(&self) -> f64 {
        let heights = self.heights_mm.iter();
        heights.fold(0.0, |most, mm| mm.abs().max(most))
    }

    /// Returns how well the height between the places is known: a place within the others is left out, and the rest must tell its
    /// height. Between the places all are half as far away, where what a smooth surface hides is a quarter.
    #[must_use]
    pub const fn between_mm(&self) -> f64 {
        self.between_mm
    }

    /// Returns the map with a height that may be off by so much, or by more if the places themselves tell so.
    #[must_use]
    pub fn known_to(mut self, uncertainty_mm: f64) -> Self {
        self.uncertainty_mm = self.between_mm.max(uncertainty_mm);
        self
    }

    /// Returns how far the height may be off.
    #[must_use]
    pub const fn uncertainty_mm(&self) -> f64 {
        self.uncertainty_mm
    }

    /// Returns the largest value of the places within the others.
    fn largest_within(&self, values_mm: &[f64]) -> f64 {
        let is_inner = |at: &Vector2<f64>| {
            let ends = self.low_mm.iter().zip(self.high_mm.iter());
            let mut sides = at.iter().zip(ends);
            sides.all(|(at, (low, high))| (at - low).min(high - at) > BEYOND_MM + APART_MM)
        };
        let places = self.places_mm.iter().zip(values_mm);
        let inner = places.filter(|(at, _)| is_inner(at));
        inner.fold(0.0, |most, (_, mm)| mm.max(most))
    }

    /// Returns the height and the slope at a place.
    fn at(&self, at_mm: &Vector2<f64>) -> (f64, Vector2<f64>) {
        let inner = at_mm
            .zip_map(&self.low_mm, f64::max)
            .zip_map(&self.high_mm, f64::min);
        let mut height = self.plane.x + self.plane.y * inner.x + self.plane.z * inner.y;
        let mut slope = Vector2::new(self.plane.y, self.plane.z);
        for (place, weight) in self.places_mm.iter().zip(&self.weights) {
            let off = inner - place;
            let square = off.norm_squared();
            if square > 0.0 {
                let log = square.ln();
                height += weight * square * log;
                slope += off * (2.0 * weight * (log + 1.0));
            }
        }
        let is_beyond = |at: f64, inner: f64| (at - inner).abs() > 0.0;
        let level = |at: f64, inner: f64, slope: f64| match is_beyond(at, inner) {
            true => 0.0,
            false => slope,
        };
        let slope = Vector2::new(
            level(at_mm.x, inner.x, slope.x),
            level(at_mm.y, inner.y, slope.y),
        );
        (height, slope)
    }

    /// Returns a slope that no place exceeds, and a height that none is above.
    fn slope_and_top_mm(&self) -> (f64, f64) {
        let size = self.high_mm - self.low_mm;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a sheet is some thousand samples"
        )]
        let count = |side: f64| (side / SLOPE_STEP_MM).ceil().clamp(1.0, 1000.0) as u32;
        let (columns, rows) = (count(size.x), count(size.y));
        let fraction = |index: u32, count: u32| f64::from(index) / f64::from(count);
        let places = (0..=rows).flat_map(|row| (0..=columns).map(move |column| (column, row)));
        let samples = places.map(|(column, row)| {
            let by = Vector2::new(fraction(column, columns), fraction(row, rows));
            self.at(&(self.low_mm + size.component_mul(&by)))
        });
        let none = (0.0_f64, f64::NEG_INFINITY);
        let (steepest, highest_mm) =
            samples.fold(none, |(steepest, highest_mm), (height_mm, slope)| {
                (steepest.max(slope.norm()), highest_mm.max(height_mm))
            });
        let slope = steepest * SLOPE_MARGIN;
        // No place is farther from a sample than half of the way between two across.
        let apart_mm = (size.x / f64::from(columns)).hypot(size.y / f64::from(rows));
        (slope, highest_mm + slope * apart_mm / 2.0)
    }
}

/// A thin plate that is bent as little as possible.
struct ThinPlate {
    /// Weights of the places.
    weights: Vec<f64>,
    /// The plane below them: height, slope along x and along y.
    plane: Vector3<f64>,
    /// By how much a plate through all others would miss each place.
    left_out_mm: Vec<f64>,
}

impl ThinPlate {
    /// Bends a plate through heights at places; `None` for places on a line.
    fn through(places_mm: &[Vector2<f64>], heights_mm: &[f64]) -> Option<Self> {
        let count = places_mm.len();
        let mut matrix = DMatrix::zeros(count + 3, count + 3);
        let mut right = DVector::zeros(count + 3);
        for (row, (place, height)) in places_mm.iter().zip(heights_mm).enumerate() {
            for (column, other) in places_mm.iter().enumerate() {
                let square = (place - other).norm_squared();
                let bend = if square > 0.0 {
                    square * square.ln()
                } else {
                    0.0
                };
                *matrix.get_mut((row, column))? = bend;
            }
            for (term, value) in [1.0, place.x, place.y].into_iter().enumerate() {
                *matrix.get_mut((row, count + term))? = value;
                *matrix.get_mut((count + term, row))? = value;
            }
            *right.get_mut(row)? = *height;
        }
        let inverse = matrix.try_inverse()?;
        let solution: Vec<f64> = (&inverse * right).iter().copied().collect();
        let (weights, plane) = solution.split_at_checked(count)?;
        // The rows of all others, solved without this one, differ by its weight alone (Rippa 1999).
        let own = inverse.diagonal();
        let left_out = weights.iter().zip(own.iter());
        let plate = Self {
            weights: weights.to_vec(),
            plane: Vector3::from_column_slice(plane),
            left_out_mm: left_out.map(|(weight, own)| (weight / own).abs()).collect(),
        };
        let is_finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        (is_finite(&solution) && is_finite(&plate.left_out_mm)).then_some(plate)
    }
}

/// A sheet with a map of its heights.
#[derive(Clone, Debug)]
pub(super) struct MappedSheet {
    /// Pose of its plane in the arm's base frame.
    plane: Isometry3<f64>,
    map: HeightMap,
    /// Part of a height along the plane's normal that is surely distance from the sheet.
    shrink: f64,
}

impl MappedSheet {
    pub(super) fn new(plane: Isometry3<f64>, map: HeightMap) -> Self {
        Self {
            plane,
            shrink: 1.0 / map.slope.hypot(1.0),
            map,
        }
    }
}

impl SheetShape for MappedSheet {
    fn at(&self, at_mm: [f64; 2]) -> SurfacePoint {
        let (height_mm, slope) = self.map.at(&Vector2::from(at_mm));
        let turned = |axis: Vector3<f64>| Unit::new_normalize(self.plane.rotation * axis);
        let normal = turned(Vector3::new(-slope.x, -slope.y, 1.0));
        let point_mm = Point3::new(at_mm[0], at_mm[1], height_mm);
        SurfacePoint {
            point_m: self.plane * (point_mm / 1e3),
            normal,
            x: turned(Vector3::new(1.0, 0.0, slope.x)),
            hold: normal,
        }
    }

    /// Projects along the plane's normal. A height is shortened by the steepest slope, so it never exceeds the distance.
    fn project(&self, point_m: &Point3<f64>) -> SurfaceProjection {
        let at = self.plane.inverse_transform_point(point_m) * 1e3;
        let height_mm = at.z - self.map.at(&at.xy().coords).0;
        SurfaceProjection {
            at_mm: [at.x, at.y],
            height_mm: height_mm * self.shrink,
            obstacle_mm: None,
        }
    }

    /// Projects the ends alone: heights over the plane change evenly along the line, and the map is nowhere above its top.
    fn line_bounds(&self, ends_m: [&Point3<f64>; 2]) -> Option<LineBounds> {
        let [from, to] = ends_m.map(|end| self.plane.inverse_transform_point(end) * 1e3);
        Some(LineBounds {
            ends_at_mm: [from, to].map(|end| [end.x, end.y]),
            height_mm: (from.z.min(to.z) - self.map.top_mm) * self.shrink,
        })
    }

    fn uncertainty_mm(&self) -> f64 {
        self.map.uncertainty_mm
    }

    fn frame(&self) -> Option<&Isometry3<f64>> {
        Some(&self.plane)
    }

    fn heights(&self) -> Option<&HeightMap> {
        Some(&self.map)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    use super::super::surface::Surface;

    /// A sheet of 100 by 80 mm that is up to 2 mm high, and the plane under it.
    fn warped() -> (Surface, Isometry3<f64>) {
        let places = (0..9).map(|index| {
            let (column, row) = (f64::from(index % 3), f64::from(index / 3));
            Vector2::new(5.0 + 45.0 * column, 5.0 + 35.0 * row)
        });
        let places: Vec<Vector2<f64>> = places.collect();
        let heights = places
            .iter()
            .map(|at| 2.0 * (at.x / 32.0).sin() * (at.y / 50.0).cos());
        let map = HeightMap::new(places.clone(), heights.collect()).unwrap();
        let turn = nalgebra::UnitQuaternion::from_euler_angles(0.1, -0.2, 1.5);
        let plane = Isometry3::from_parts([0.2, 0.05, 0.02].into(), turn);
        let shape = MappedSheet::new(plane, map);
        (Surface::from_shape(Arc::new(shape), [100.0, 80.0]), plane)
    }

    proptest! {
        #[test]
        fn heights_never_exceed_distances(
            a in prop::array::uniform3(-0.15..0.15_f64), b in prop::array::uniform3(-0.01..0.01_f64),
        ) {
            let (sheet, plane) = warped();
            let one = plane * Point3::from(a);
            let other = one + Vector3::from(b);
            let heights = [one, other].map(|point| sheet.project(&point).height_mm);
            let apart_mm = (other - one).norm() * 1e3;
            prop_assert!((heights[0] - heights[1]).abs() <= apart_mm + 1e-9);
            let at = sheet.at(sheet.project(&other).at_mm).point_m;
            prop_assert!(heights[0].abs() <= (one - at).norm() * 1e3 + 1e-9);
        }

        #[test]
        fn no_point_of_a_line_is_lower_than_its_ends_say(
            a in prop::array::uniform3(-0.15..0.15_f64), b in prop::array::uniform3(-0.15..0.15_f64), share in 0.0..1.0_f64,
        ) {
            let (sheet, plane) = warped();
            let (from, to) = (plane * Point3::from(a), plane * Point3::from(b));
            let bounds = sheet.line_bounds([&from, &to]).unwrap();
            let between = sheet.project(&from.lerp(&to, share));
            prop_assert!(bounds.height_mm <= between.height_mm + 1e-9);
            let [from_mm, to_mm] = bounds.ends_at_mm;
            let at = base::plane::along(from_mm, to_mm, share);
            prop_assert!(base::plane::distance(at, between.at_mm) < 1e-9);
            // The plate is bent a little higher than the highest place, which is 2 mm over the plane.
            let least_mm = a[2].min(b[2]) * 1e3 - 3.0;
            prop_assert!(bounds.height_mm >= least_mm.min(least_mm * 0.95));
        }

        #[test]
        fn a_place_is_found_again_and_its_normal_is_that_of_its_neighbours(
            x in 6.0..94.0_f64, y in 6.0..74.0_f64,
        ) {
            let (sheet, _) = warped();
            let at = sheet.at([x, y]);
            let found = sheet.project(&at.point_m);
            prop_assert!(found.height_mm.abs() < 1e-9);
            prop_assert!((found.at_mm[0] - x).hypot(found.at_mm[1] - y) < 1e-9);
            let [right, above] = [[x + 1e-3, y], [x, y + 1e-3]].map(|at| sheet.at(at).point_m);
            let normal = (right - at.point_m).cross(&(above - at.point_m));
            prop_assert!(normal.angle(&at.normal) < 1e-4);
        }
    }

    #[test]
    fn a_map_passes_through_its_places_and_knows_its_plane() {
        let (sheet, plane) = warped();
        let map = sheet.heights().unwrap();
        for (at_mm, height_mm) in map.places() {
            let point = plane.inverse_transform_point(&sheet.at(at_mm).point_m);
            assert!((point.z * 1e3 - height_mm).abs() < 1e-9);
        }
        assert!((sheet.flat().translation.vector - plane.translation.vector).norm() < 1e-12);
        assert!(sheet.flat().rotation.angle_to(&plane.rotation) < 1e-9);
    }

    #[test]
    fn a_map_is_known_no_better_than_a_place_that_is_left_out_tells() {
        let (sheet, _) = warped();
        let map = sheet.heights().unwrap().clone();
        let all: Vec<(Vector2<f64>, f64)> = map
            .places()
            .map(|(at, mm)| (Vector2::from(at), mm))
            .collect();
        // Only the middle of nine places is within the others.
        let others = all.iter().enumerate().filter(|(index, _)| *index != 4);
        let (places, heights): (Vec<_>, Vec<_>) = others.map(|(_, place)| *place).unzip();
        let plate = ThinPlate::through(&places, &heights).unwrap();
        let eight = HeightMap {
            places_mm: places,
            heights_mm: heights,
            weights: plate.weights,
            plane: plate.plane,
            ..map
        };
        let (middle, height_mm) = *all.get(4).unwrap();
        let off_mm = (eight.at(&middle).0 - height_mm).abs();
        let between_mm = eight.between_mm();
        assert!((between_mm - off_mm / 4.0).abs() < 1e-9 && off_mm > 0.05);
        let stated = |mm: f64| eight.clone().known_to(mm).uncertainty_mm();
        assert!((stated(0.0) - between_mm).abs() < 1e-12);
        assert!((stated(1.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn maps_that_cannot_be_are_refused() {
        let lists = |x: Vec<f64>, y: Vec<f64>, height: Vec<f64>| {
            let finite = |all: Vec<f64>| all.into_iter().map(|v| Finite::new(v).unwrap()).collect();
            HeightMap::of_file(&HeightMapFile {
                x_mm: finite(x),
                y_mm: finite(y),
                height_mm: finite(height),
                uncertainty_mm: Finite::default(),
            })
        };
        let grid = |step: f64| {
            let at = |index: i32| (f64::from(index % 3) * step, f64::from(index / 3) * step);
            (0..9).map(at).unzip::<f64, f64, Vec<f64>, Vec<f64>>()
        };
        let flat = vec![0.0; 9];
        assert!(lists(vec![], vec![], vec![]).unwrap().is_none());
        let (x, y) = grid(30.0);
        assert!(lists(x.clone(), y.clone(), flat.clone()).unwrap().is_some());
        assert!(lists(x.clone(), y.clone(), vec![0.0; 8]).is_err());
        assert!(lists(x.clone(), x.clone(), flat.clone()).is_err());
        let line = (0..9)
            .map(|index| f64::from(index) * 10.0)
            .collect::<Vec<f64>>();
        assert!(lists(line.clone(), line, flat.clone()).is_err());
        let (near_x, near_y) = grid(4.0);
        assert!(lists(near_x, near_y, flat).is_err());
        let steep = (0..9)
            .map(|place| if place == 4 { 9.0 } else { 0.0 })
            .collect();
        assert!(lists(x.clone(), y.clone(), steep).is_err());
        assert!(lists(x, y, vec![11.0; 9]).is_err());
    }
}
