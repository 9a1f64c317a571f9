//! Distances of the tip, the pens and the body from the sheet.

use nalgebra::Point3;

use super::check::exceeds;
use base::units::JointVector;
use kin::LinkFrames;
use scene::{Scene, ScenePen, SurfaceProjection};

/// Border around a sheet that still counts as an obstacle.
const SHEET_BORDER_MM: f64 = 30.0;

/// A segment that moves less than this across the sheet stays where it begins.
const STILL_MM: f64 = 1e-9;

/// Pieces of a segment over a sheet are halved down to this.
const PIECE_M: f64 = 0.001;

/// Number of pieces of a segment that are examined to bound its lowest height.
const PIECES: u32 = 8;

/// The tip of a pen, in the base frame; `None` where there is no such pen.
pub(super) fn tip_m(scene: &Scene, pen: usize, q_rad: &JointVector) -> Option<Point3<f64>> {
    Some(scene.arm.chain.point(q_rad, &scene.pen(pen)?.tip_m))
}

/// Returns the height of a point over the sheet; `None` where the sheet is not below it.
pub(super) fn height_mm(scene: &Scene, point_m: &Point3<f64>) -> Option<f64> {
    let seen = scene.surface.project(point_m);
    (!exceeds(beyond_mm(scene, seen.at_mm), 0.0)).then_some(seen.height_mm)
}

/// Returns the angle between a pen and the surface's normal under its tip.
pub(super) fn tilt_rad(scene: &Scene, frames: &LinkFrames, pen: &ScenePen) -> f64 {
    let under = scene.surface.project(&(frames.tool * pen.tip_m));
    let normal = scene.surface.at(under.at_mm).normal;
    let axis = frames.tool * pen.axis;
    (-axis.dot(&normal)).clamp(-1.0, 1.0).acos()
}

/// Returns the distance of a place on the surface beyond the sheet and its border; negative on it.
fn beyond_mm(scene: &Scene, [x, y]: [f64; 2]) -> f64 {
    let [width, height] = scene.surface.size_mm();
    let beyond = |at: f64, side: f64| (-SHEET_BORDER_MM - at).max(at - side - SHEET_BORDER_MM);
    beyond(x, width).max(beyond(y, height))
}

/// The lowest point over the sheet of a whole segment, not only of its ends, in metres, to half a
/// millimetre, exactly over a flat one; `None` where it is nowhere over the sheet or not below
/// `most_m`.
pub(super) fn segment_over_sheet(
    scene: &Scene,
    (from, to): (&Point3<f64>, &Point3<f64>),
    most_m: f64,
) -> Option<f64> {
    if scene.surface.is_flat() {
        let ends = [from, to].map(|end| scene.surface.project(end));
        return lowest_over_flat_m(scene, &ends).filter(|lowest| exceeds(most_m, *lowest));
    }
    let ends = [from, to].map(|end| height_mm(scene, end).map_or(most_m, |mm| mm / 1e3));
    let mut lowest = ends.into_iter().fold(most_m, f64::min);
    lower(scene, (from, to), &mut lowest);
    exceeds(most_m, lowest).then_some(lowest)
}

/// Cut to the sheet and its border, the lower end of what is left; `None` where nothing is.
fn lowest_over_flat_m(scene: &Scene, [from, to]: &[SurfaceProjection; 2]) -> Option<f64> {
    let (mut begin, mut end) = (0.0_f64, 1.0_f64);
    let sides = from.at_mm.iter().zip(to.at_mm).zip(scene.surface.size_mm());
    for ((from, to), side) in sides {
        let (low, high) = (-SHEET_BORDER_MM - from, side + SHEET_BORDER_MM - from);
        let along = to - from;
        if exceeds(STILL_MM, along.abs()) {
            if exceeds(low, 0.0) || exceeds(0.0, high) {
                return None;
            }
            continue;
        }
        let (one, other) = (low / along, high / along);
        begin = begin.max(one.min(other));
        end = end.min(one.max(other));
    }
    let at = |share: f64| from.height_mm + (to.height_mm - from.height_mm) * share;
    (!exceeds(begin, end)).then(|| at(begin).min(at(end)) / 1e3)
}

/// A segment is nowhere lower over the endless shape than this, in metres; exactly so over a flat
/// one.
pub(super) fn at_least_over_shape_m(scene: &Scene, from: &Point3<f64>, to: &Point3<f64>) -> f64 {
    let height_m = |point: &Point3<f64>| scene.surface.project(point).height_mm / 1e3;
    if scene.surface.is_flat() {
        return height_m(from).min(height_m(to));
    }
    // No point of a piece is lower than its middle by more than half of its length.
    let half_m = (to - from).norm() / f64::from(2 * PIECES);
    let middle = |piece: u32| f64::from(2 * piece + 1) / f64::from(2 * PIECES);
    (0..PIECES)
        .map(|piece| height_m(&from.lerp(to, middle(piece))) - half_m)
        .fold(f64::INFINITY, f64::min)
}

/// Neither height nor place on the sheet change by more than what is walked, so that a half that
/// cannot be lower, or cannot be over the sheet, is left out. Below the surface of a cylinder
/// places lie closer: nothing is left out there.
fn lower(scene: &Scene, (from, to): (&Point3<f64>, &Point3<f64>), lowest: &mut f64) {
    let middle = nalgebra::center(from, to);
    let half_m = nalgebra::distance(&middle, to);
    let seen = scene.surface.project(&middle);
    let (height_m, beyond_mm) = (seen.height_mm / 1e3, beyond_mm(scene, seen.at_mm));
    if !exceeds(beyond_mm, 0.0) {
        *lowest = lowest.min(height_m);
    }
    // Alone this ends it, so that it stands apart from what is only left out to be quick.
    if !exceeds(half_m, PIECE_M / 2.0) {
        return;
    }
    let cannot_reach = height_m - half_m > 0.0 && beyond_mm > half_m * 1e3;
    if height_m - half_m >= *lowest || cannot_reach {
        return;
    }
    lower(scene, (from, &middle), lowest);
    lower(scene, (&middle, to), lowest);
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use std::sync::{Arc, LazyLock};

    use super::*;
    use base::units::Finite;
    use proptest::prelude::*;
    use scene::file::SheetFile;
    use scene::{SceneLibrary, Surface};

    #[test]
    fn what_stands_upright_is_over_the_sheet_or_beside_it() {
        let scene = over(None);
        let upright = |at_mm: [f64; 2]| {
            let foot = scene.surface.at(at_mm);
            let point = |height_m: f64| foot.point_m + foot.normal.scale(height_m);
            segment_over_sheet(&scene, (&point(0.02), &point(0.01)), 1.0)
        };
        let over = upright([50.0, 50.0]).unwrap();
        assert!((over - 0.01).abs() < 1e-9, "{over}");
        for beside in [[-31.0, 50.0], [50.0, -31.0], [131.0, 50.0], [50.0, 131.0]] {
            assert_eq!(upright(beside), None);
        }
    }

    /// The lower end of what stands upright is found to the last, rolled or not.
    #[test]
    fn the_lower_end_is_exact_on_a_roll_too() {
        for radius_mm in [None, Some(100.0)] {
            let scene = over(radius_mm);
            let foot = scene.surface.at([50.0, 50.0]);
            let point = |height_m: f64| foot.point_m + foot.normal.scale(height_m);
            for (one, other) in [(0.02, 0.01), (0.01, 0.02), (-0.003, 0.02)] {
                let ends = (&point(one), &point(other));
                let found = segment_over_sheet(&scene, ends, 1.0).unwrap();
                assert!((found - one.min(other)).abs() < 1e-9, "{found}");
                assert_eq!(
                    segment_over_sheet(&scene, ends, one.min(other) - 1e-6),
                    None
                );
                assert!(segment_over_sheet(&scene, ends, one.min(other) + 1e-6).is_some());
            }
        }
    }

    /// Over a roll the lowest is in between, and beyond its border nothing counts.
    #[test]
    fn a_way_over_a_roll_is_as_low_as_its_lowest_point() {
        let scene = over(Some(60.0));
        let point = |(x, y): (f64, f64), height_m: f64| {
            let foot = scene.surface.at([x, y]);
            foot.point_m + foot.normal.scale(height_m)
        };
        let sampled = |from: Point3<f64>, to: Point3<f64>| {
            let points = (0..=2000).map(|i| from.lerp(&to, f64::from(i) / 2000.0));
            let heights = points.filter_map(|point| height_mm(&scene, &point));
            heights.fold(f64::INFINITY, f64::min) / 1e3
        };
        let across = [((10.0, 50.0), (90.0, 50.0)), ((50.0, 5.0), (50.0, 95.0))];
        let aslant = [((20.0, 20.0), (80.0, 80.0)), ((90.0, 10.0), (5.0, 60.0))];
        let beyond = [((-60.0, 50.0), (60.0, 50.0)), ((50.0, 50.0), (50.0, 150.0))];
        for (one, other) in [across, aslant, beyond].concat() {
            for (low, high) in [(0.02, 0.02), (0.004, 0.03), (-0.01, 0.0)] {
                let (from, to) = (point(one, low), point(other, high));
                let due = sampled(from, to);
                for (from, to) in [(from, to), (to, from)] {
                    let found = segment_over_sheet(&scene, (&from, &to), 1.0).unwrap();
                    assert!(
                        (found - due).abs() < 6e-4,
                        "{one:?} {other:?}: {found} {due}"
                    );
                }
            }
        }
    }

    /// A segment that enters over the border of a roll, above or below its surface, is as low as at
    /// the point of entry.
    #[test]
    fn a_way_in_over_the_border_is_as_low_as_where_it_comes_in() {
        for radius_mm in [60.0, 300.0] {
            let scene = over(Some(radius_mm));
            let outer = [-35.0, -45.0, -60.0, -80.0, -100.0];
            let inner = [-20.0, 0.0, 30.0, 60.0];
            let heights_m = [-0.04, -0.02, 0.0, 0.01];
            for (outer, (inner, height_m)) in each_with_each(&outer, &inner, &heights_m) {
                for (side, steep) in [(0, 0.3), (1, 0.3), (2, 0.3), (3, 0.3), (0, 2.0), (3, 2.0)] {
                    let inner_m = height_m + steep * (inner - outer) / 1e3;
                    let at = |along: f64, height_m: f64| {
                        let along = if side % 2 == 0 { along } else { 100.0 - along };
                        let foot = scene.surface.at(if side < 2 {
                            [along, 50.0]
                        } else {
                            [50.0, along]
                        });
                        foot.point_m + foot.normal.scale(height_m)
                    };
                    let (from, to) = (at(outer, height_m), at(inner, inner_m));
                    let points = (0..=4000).map(|i| from.lerp(&to, f64::from(i) / 4000.0));
                    let over = points.filter_map(|point| height_mm(&scene, &point));
                    let due = over.fold(f64::INFINITY, f64::min) / 1e3;
                    let found = segment_over_sheet(&scene, (&from, &to), 1.0);
                    let found = found.unwrap_or(f64::INFINITY);
                    assert!(
                        (found - due).abs() < 6e-4,
                        "{radius_mm} {outer} {inner} {height_m} {side}: {found} {due}"
                    );
                }
            }
        }
    }

    /// Inside a roll places lie closer: what is far beyond the border in its middle, just over the surface, and dives
    /// through the roll from there comes over the sheet though it is shorter than that.
    #[test]
    fn a_way_through_a_roll_is_as_low_as_its_deepest_place_over_the_sheet() {
        let (radius_mm, depth_mm, half_mm): (f64, f64, f64) = (60.0, 40.0, 60.0);
        let scene = over(Some(radius_mm));
        let middle_mm = -0.5 - (radius_mm.powi(2) - depth_mm.powi(2)).sqrt();
        let turn = |along_mm: f64| radius_mm * along_mm.atan2(depth_mm);
        let begins_mm = -SHEET_BORDER_MM - half_mm - 0.5 - turn(middle_mm);
        for side in 0..2 {
            let at = |along_mm: f64| {
                let place = begins_mm + turn(along_mm);
                let foot = scene.surface.at(if side == 0 {
                    [place, 50.0]
                } else {
                    [50.0, place]
                });
                let height_mm = along_mm.hypot(depth_mm) - radius_mm;
                foot.point_m + foot.normal.scale(height_mm / 1e3)
            };
            let (from, to) = (at(middle_mm - half_mm), at(middle_mm + half_mm));
            let points = (0..=4000).map(|i| from.lerp(&to, f64::from(i) / 4000.0));
            let over = points.filter_map(|point| height_mm(&scene, &point));
            let due = over.fold(f64::INFINITY, f64::min) / 1e3;
            let found = segment_over_sheet(&scene, (&from, &to), 1.0).unwrap();
            assert!((found - due).abs() < 6e-4, "{side}: {found} {due}");
        }
    }

    /// Every one with every other.
    fn each_with_each<'a>(
        ones: &'a [f64],
        others: &'a [f64],
        thirds: &'a [f64],
    ) -> impl Iterator<Item = (f64, (f64, f64))> + 'a {
        ones.iter().flat_map(move |one| {
            let pairs = others
                .iter()
                .flat_map(move |other| thirds.iter().map(move |third| (*other, *third)));
            pairs.map(move |pair| (*one, pair))
        })
    }

    proptest! {
        #[test]
        fn no_point_of_a_segment_is_lower_than_the_least(
            a in prop::array::uniform3(-0.2..0.2_f64), b in prop::array::uniform3(-0.2..0.2_f64),
            radius in prop::option::of(60.0..300.0_f64), share in 0.0..1.0_f64,
        ) {
            let scene = over(radius);
            let (from, to) = (Point3::from(a), Point3::from(b));
            let height_m = scene.surface.project(&from.lerp(&to, share)).height_mm / 1e3;
            let least = at_least_over_shape_m(&scene, &from, &to);
            prop_assert!(least <= height_m + 1e-9);
            // And it says no less than it must: by half of a piece, and what samples are off.
            let sampled = (0..=400).map(|i| from.lerp(&to, f64::from(i) / 400.0));
            let lowest = sampled.map(|point| scene.surface.project(&point).height_mm / 1e3);
            let lowest = lowest.fold(f64::INFINITY, f64::min);
            prop_assert!(least <= lowest + 1e-9, "{least} {lowest}");
            let slack = (to - from).norm() * (1.0 / 16.0 + 1.0 / 400.0);
            prop_assert!(least >= lowest - slack - 1e-9, "{least} {lowest}");
        }

        #[test]
        fn heights_differ_by_no_more_than_what_is_between(
            a in prop::array::uniform3(-0.2..0.2_f64), b in prop::array::uniform3(-0.02..0.02_f64),
            radius in prop::option::of(60.0..300.0_f64),
        ) {
            let scene = over(radius);
            let height_m = |point: &Point3<f64>| scene.surface.project(point).height_mm / 1e3;
            let (from, by) = (Point3::from(a), nalgebra::Vector3::from(b));
            prop_assert!((height_m(&(from + by)) - height_m(&from)).abs() <= by.norm() + 1e-9);
        }

        #[test]
        fn a_segment_is_as_low_over_the_sheet_as_its_points(
            a in prop::array::uniform3(-0.2..0.2_f64), b in prop::array::uniform3(-0.2..0.2_f64),
            radius in prop::option::of(60.0..300.0_f64),
        ) {
            let scene = over(radius);
            let middle = scene.surface.at([50.0, 50.0]).point_m.coords;
            let (from, to) = (Point3::from(a) + middle, Point3::from(b) + middle);
            let points = (0..=2000).map(|i| from + (to - from).scale(f64::from(i) / 2000.0));
            let lowest = |inside_mm: f64| {
                let over = |point: &Point3<f64>| {
                    let seen = scene.surface.project(point);
                    (beyond_mm(&scene, seen.at_mm) <= -inside_mm).then_some(seen.height_mm / 1e3)
                };
                points.clone().filter_map(|point| over(&point)).fold(f64::INFINITY, f64::min)
            };
            // What only grazes the border, by less than a piece, may be left out.
            let (all, inside) = (lowest(0.0), lowest(PIECE_M * 1e3));
            let found = segment_over_sheet(&scene, (&from, &to), 1.0).unwrap_or(f64::INFINITY);
            prop_assert!(found >= all - 6e-4, "{found} {all}");
            prop_assert!(found < inside + 6e-4 || inside.is_infinite(), "{found} {inside}");
            // Over a flat sheet nothing is left out.
            prop_assert!(radius.is_some() || found <= all + 1e-9, "{found} {all}");
        }
    }

    /// The default scene, its sheet rolled.
    fn over(radius_mm: Option<f64>) -> Scene {
        static DEFAULT: LazyLock<(Arc<Scene>, SheetFile)> = LazyLock::new(|| {
            let text = include_str!("../../scenes/default.toml");
            let file: toml::Table = toml::from_str(text).unwrap();
            let sheet = file.get("sheet").unwrap().clone().try_into().unwrap();
            let scene = SceneLibrary::new(None).scene("default", None).unwrap();
            (scene, sheet)
        });
        let (mut scene, mut sheet) = (Scene::clone(&DEFAULT.0), DEFAULT.1.clone());
        sheet.cylinder_radius_mm = radius_mm.map(|radius| Finite::new(radius).unwrap());
        scene.surface = Surface::new(&sheet).unwrap();
        scene
    }
}
