//! Distances of the tip, the pens and the body from the sheet.

use nalgebra::Point3;

use super::check::exceeds;
use base::units::JointVector;
use kin::LinkFrames;
use scene::{LineBounds, Scene, ScenePen, SurfaceProjection};

/// Border around a sheet that still counts as an obstacle.
const SHEET_BORDER_MM: f64 = 30.0;

/// A segment that extends less than this along a side of the sheet counts as stationary there.
const STATIONARY_MM: f64 = 1e-9;

/// Distance from the border beyond which rounding brings no place back.
const SURELY_MM: f64 = 1e-6;

/// Length down to which the pieces of a segment over the sheet are halved.
const PIECE_MIN_M: f64 = 0.001;

/// Number of pieces of a segment that are examined to bound its lowest height.
const BOUND_PIECES: u32 = 8;

/// Returns the tip of a pen in the base frame; `None` where there is no such pen.
pub(super) fn tip_m(scene: &Scene, pen: usize, q_rad: &JointVector) -> Option<Point3<f64>> {
    Some(scene.arm.chain.point(q_rad, &scene.pen(pen)?.tip_m))
}

/// Returns the height of a point over the sheet; `None` where the sheet is not below it. A shape
/// that is an obstacle as a whole is below everything.
pub(super) fn height_mm(scene: &Scene, point_m: &Point3<f64>) -> Option<f64> {
    let foot = scene.surface.project(point_m);
    let over_sheet = || (!exceeds(outside_mm(scene, foot.at_mm), 0.0)).then_some(foot.height_mm);
    foot.obstacle_mm.or_else(over_sheet)
}

/// Returns the angle between a pen and the surface's normal under its tip.
pub(super) fn tilt_rad(scene: &Scene, frames: &LinkFrames, pen: &ScenePen) -> f64 {
    let foot = scene.surface.project(&(frames.tool * pen.tip_m));
    let normal = scene.surface.at(foot.at_mm).normal;
    let axis = frames.tool * pen.axis;
    (-axis.dot(&normal)).clamp(-1.0, 1.0).acos()
}

/// Returns how far a place on the surface is outside the sheet and its border; negative inside.
fn outside_mm(scene: &Scene, [x, y]: [f64; 2]) -> f64 {
    let [width, height] = scene.surface.size_mm();
    let outside = |at: f64, side: f64| (-SHEET_BORDER_MM - at).max(at - side - SHEET_BORDER_MM);
    outside(x, width).max(outside(y, height))
}

/// Returns how far all places of a line are outside the sheet and its border, at least; not positive if it may be over them.
fn line_outside_mm(scene: &Scene, bounds: &LineBounds) -> f64 {
    let [[from_x, from_y], [to_x, to_y]] = bounds.ends_at_mm;
    let [width, height] = scene.surface.size_mm();
    let outside = |from: f64, to: f64, side: f64| {
        (-SHEET_BORDER_MM - from.max(to)).max(from.min(to) - side - SHEET_BORDER_MM)
    };
    outside(from_x, to_x, width).max(outside(from_y, to_y, height))
}

/// Returns the height of the lowest point of a segment over the sheet: exact over a flat sheet,
/// otherwise to half a millimetre; `None` where the segment is not over the sheet or not below
/// `limit_m`.
pub(super) fn lowest_over_sheet_m(
    scene: &Scene,
    (from, to): (&Point3<f64>, &Point3<f64>),
    limit_m: f64,
) -> Option<f64> {
    if scene.surface.is_flat() {
        let ends = [from, to].map(|end| scene.surface.project(end));
        return lowest_over_flat_m(scene, &ends).filter(|lowest| exceeds(limit_m, *lowest));
    }
    if let Some(bounds) = scene.surface.line_bounds([from, to])
        && (bounds.height_mm / 1e3 >= limit_m || line_outside_mm(scene, &bounds) > SURELY_MM)
    {
        return None;
    }
    let ends = [from, to].map(|end| height_mm(scene, end).map_or(limit_m, |mm| mm / 1e3));
    let mut lowest = ends.into_iter().fold(limit_m, f64::min);
    search_lowest(scene, (from, to), &mut lowest);
    exceeds(limit_m, lowest).then_some(lowest)
}

/// Clips a segment to the sheet and its border and returns its lower end; `None` where nothing is
/// left.
fn lowest_over_flat_m(scene: &Scene, [from, to]: &[SurfaceProjection; 2]) -> Option<f64> {
    let (mut begin, mut end) = (0.0_f64, 1.0_f64);
    let sides = from.at_mm.iter().zip(to.at_mm).zip(scene.surface.size_mm());
    for ((from, to), side) in sides {
        let (low, high) = (-SHEET_BORDER_MM - from, side + SHEET_BORDER_MM - from);
        let along = to - from;
        if exceeds(STATIONARY_MM, along.abs()) {
            if exceeds(low, 0.0) || exceeds(0.0, high) {
                return None;
            }
            continue;
        }
        let (first, second) = (low / along, high / along);
        begin = begin.max(first.min(second));
        end = end.min(first.max(second));
    }
    let height_at = |fraction: f64| from.height_mm + (to.height_mm - from.height_mm) * fraction;
    (!exceeds(begin, end)).then(|| height_at(begin).min(height_at(end)) / 1e3)
}

/// Returns a lower bound of a segment's height over the unbounded surface; exact over a flat one.
pub(super) fn height_lower_bound_m(scene: &Scene, from: &Point3<f64>, to: &Point3<f64>) -> f64 {
    let height_m = |point: &Point3<f64>| {
        let foot = scene.surface.project(point);
        foot.obstacle_mm.unwrap_or(foot.height_mm) / 1e3
    };
    if scene.surface.is_flat() {
        return height_m(from).min(height_m(to));
    }
    // No point of a piece is lower than its middle by more than half of its length.
    let half_m = (to - from).norm() / f64::from(2 * BOUND_PIECES);
    let middle = |piece: u32| f64::from(2 * piece + 1) / f64::from(2 * BOUND_PIECES);
    (0..BOUND_PIECES)
        .map(|piece| height_m(&from.lerp(to, middle(piece))) - half_m)
        .fold(f64::INFINITY, f64::min)
}

/// Returns a distance that a segment has to move before anything of it is lower than `off_m` over the sheet or its border: no more
/// than it has to, and no less than needed for an answer of at least `enough_m`.
pub(super) fn way_to_sheet_m(
    scene: &Scene,
    (from, to): (&Point3<f64>, &Point3<f64>),
    off_m: f64,
    enough_m: f64,
) -> f64 {
    let by_ends = scene.surface.line_bounds([from, to]).map(|bounds| {
        let outside_m = line_outside_mm(scene, &bounds) / 1e3;
        outside_m.max(bounds.height_mm / 1e3 - off_m)
    });
    match by_ends {
        Some(way_m) if way_m >= enough_m => way_m,
        way_m => {
            let by_pieces_m = height_lower_bound_m(scene, from, to) - off_m;
            by_pieces_m.max(way_m.unwrap_or(by_pieces_m))
        }
    }
}

/// Searches a segment for its lowest point over the sheet by halving.
///
/// No height changes by more than the distance travelled, so a half that cannot be lower is skipped.
/// Above a cylinder places on the sheet change no faster either, so a half that cannot be over the
/// sheet is skipped as well. Below it places lie closer: nothing is skipped there.
fn search_lowest(scene: &Scene, (from, to): (&Point3<f64>, &Point3<f64>), lowest: &mut f64) {
    let middle = nalgebra::center(from, to);
    let half_m = nalgebra::distance(&middle, to);
    let foot = scene.surface.project(&middle);
    let (height_mm, outside_mm) = match foot.obstacle_mm {
        Some(height_mm) => (height_mm, f64::NEG_INFINITY),
        None => (foot.height_mm, outside_mm(scene, foot.at_mm)),
    };
    let height_m = height_mm / 1e3;
    if !exceeds(outside_mm, 0.0) {
        *lowest = lowest.min(height_m);
    }
    // Only this ends the recursion; the tests below merely skip what cannot matter.
    if !exceeds(half_m, PIECE_MIN_M / 2.0) {
        return;
    }
    let cannot_reach = height_m - half_m > 0.0 && outside_mm > half_m * 1e3;
    if height_m - half_m >= *lowest || cannot_reach {
        return;
    }
    search_lowest(scene, (from, &middle), lowest);
    search_lowest(scene, (&middle, to), lowest);
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
    fn an_upright_segment_is_over_the_sheet_or_outside_it() {
        let scene = rolled_scene(None);
        let upright = |at_mm: [f64; 2]| {
            let foot = scene.surface.at(at_mm);
            let point = |height_m: f64| foot.point_m + foot.normal.scale(height_m);
            lowest_over_sheet_m(&scene, (&point(0.02), &point(0.01)), 1.0)
        };
        let over = upright([50.0, 50.0]).unwrap();
        assert!((over - 0.01).abs() < 1e-9, "{over}");
        for outside in [[-31.0, 50.0], [50.0, -31.0], [131.0, 50.0], [50.0, 131.0]] {
            assert_eq!(upright(outside), None);
        }
    }

    /// The lower end of an upright segment is found exactly, rolled or not.
    #[test]
    fn the_lower_end_is_exact_on_a_roll_too() {
        for radius_mm in [None, Some(100.0)] {
            let scene = rolled_scene(radius_mm);
            let foot = scene.surface.at([50.0, 50.0]);
            let point = |height_m: f64| foot.point_m + foot.normal.scale(height_m);
            for (one, other) in [(0.02, 0.01), (0.01, 0.02), (-0.003, 0.02)] {
                let ends = (&point(one), &point(other));
                let found = lowest_over_sheet_m(&scene, ends, 1.0).unwrap();
                assert!((found - one.min(other)).abs() < 1e-9, "{found}");
                assert_eq!(
                    lowest_over_sheet_m(&scene, ends, one.min(other) - 1e-6),
                    None
                );
                assert!(lowest_over_sheet_m(&scene, ends, one.min(other) + 1e-6).is_some());
            }
        }
    }

    /// Over a roll the lowest point is between the ends, and nothing counts outside the border.
    #[test]
    fn a_segment_over_a_roll_is_as_low_as_its_lowest_point() {
        let scene = rolled_scene(Some(60.0));
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
                let expected = sampled(from, to);
                for (from, to) in [(from, to), (to, from)] {
                    let found = lowest_over_sheet_m(&scene, (&from, &to), 1.0).unwrap();
                    assert!(
                        (found - expected).abs() < 6e-4,
                        "{one:?} {other:?}: {found} {expected}"
                    );
                }
            }
        }
    }

    /// A segment that enters over the border of a roll, above or below its surface, is as low as at
    /// the point of entry.
    #[test]
    fn a_segment_over_the_border_is_as_low_as_its_point_of_entry() {
        for radius_mm in [60.0, 300.0] {
            let scene = rolled_scene(Some(radius_mm));
            let outer = [-35.0, -45.0, -60.0, -80.0, -100.0];
            let inner = [-20.0, 0.0, 30.0, 60.0];
            let heights_m = [-0.04, -0.02, 0.0, 0.01];
            for (outer, (inner, height_m)) in cartesian_product(&outer, &inner, &heights_m) {
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
                    let expected = over.fold(f64::INFINITY, f64::min) / 1e3;
                    let found = lowest_over_sheet_m(&scene, (&from, &to), 1.0);
                    let found = found.unwrap_or(f64::INFINITY);
                    assert!(
                        (found - expected).abs() < 6e-4,
                        "{radius_mm} {outer} {inner} {height_m} {side}: {found} {expected}"
                    );
                }
            }
        }
    }

    /// Inside a roll places lie closer: a segment whose middle is farther outside the border than the
    /// segment is long still comes over the sheet if it dives through the roll.
    #[test]
    fn a_segment_through_a_roll_is_as_low_as_its_deepest_point() {
        let (radius_mm, depth_mm, half_mm): (f64, f64, f64) = (60.0, 40.0, 60.0);
        let scene = rolled_scene(Some(radius_mm));
        let middle_mm = -0.5 - (radius_mm.powi(2) - depth_mm.powi(2)).sqrt();
        let arc_mm = |along_mm: f64| radius_mm * along_mm.atan2(depth_mm);
        let begins_mm = -SHEET_BORDER_MM - half_mm - 0.5 - arc_mm(middle_mm);
        for side in 0..2 {
            let at = |along_mm: f64| {
                let place = begins_mm + arc_mm(along_mm);
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
            let expected = over.fold(f64::INFINITY, f64::min) / 1e3;
            let found = lowest_over_sheet_m(&scene, (&from, &to), 1.0).unwrap();
            assert!((found - expected).abs() < 6e-4, "{side}: {found}");
        }
    }

    /// Returns every combination of one element of each.
    fn cartesian_product<'a>(
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
            radius in prop::option::of(60.0..300.0_f64), fraction in 0.0..1.0_f64,
        ) {
            let scene = rolled_scene(radius);
            let (from, to) = (Point3::from(a), Point3::from(b));
            let height_m = scene.surface.project(&from.lerp(&to, fraction)).height_mm / 1e3;
            let least = height_lower_bound_m(&scene, &from, &to);
            prop_assert!(least <= height_m + 1e-9);
            // The bound is tight: to half of a piece, and the error of sampling.
            let sampled = (0..=400).map(|i| from.lerp(&to, f64::from(i) / 400.0));
            let lowest = sampled.map(|point| scene.surface.project(&point).height_mm / 1e3);
            let lowest = lowest.fold(f64::INFINITY, f64::min);
            prop_assert!(least <= lowest + 1e-9, "{least} {lowest}");
            let slack = (to - from).norm() * (1.0 / 16.0 + 1.0 / 400.0);
            prop_assert!(least >= lowest - slack - 1e-9, "{least} {lowest}");
        }

        #[test]
        fn heights_differ_by_no_more_than_the_distance(
            a in prop::array::uniform3(-0.2..0.2_f64), b in prop::array::uniform3(-0.02..0.02_f64),
            radius in prop::option::of(60.0..300.0_f64),
        ) {
            let scene = rolled_scene(radius);
            let height_m = |point: &Point3<f64>| scene.surface.project(point).height_mm / 1e3;
            let (from, by) = (Point3::from(a), nalgebra::Vector3::from(b));
            prop_assert!((height_m(&(from + by)) - height_m(&from)).abs() <= by.norm() + 1e-9);
        }

        #[test]
        fn a_segment_is_as_low_over_the_sheet_as_its_points(
            a in prop::array::uniform3(-0.2..0.2_f64), b in prop::array::uniform3(-0.2..0.2_f64),
            radius in prop::option::of(60.0..300.0_f64),
        ) {
            let scene = rolled_scene(radius);
            let middle = scene.surface.at([50.0, 50.0]).point_m.coords;
            let (from, to) = (Point3::from(a) + middle, Point3::from(b) + middle);
            let points = (0..=2000).map(|i| from + (to - from).scale(f64::from(i) / 2000.0));
            let lowest = |inside_mm: f64| {
                let over = |point: &Point3<f64>| {
                    let foot = scene.surface.project(point);
                    (outside_mm(&scene, foot.at_mm) <= -inside_mm).then_some(foot.height_mm / 1e3)
                };
                points.clone().filter_map(|point| over(&point)).fold(f64::INFINITY, f64::min)
            };
            // A segment that grazes the border by less than a piece may be skipped.
            let (all, inside) = (lowest(0.0), lowest(PIECE_MIN_M * 1e3));
            let found = lowest_over_sheet_m(&scene, (&from, &to), 1.0).unwrap_or(f64::INFINITY);
            prop_assert!(found >= all - 6e-4, "{found} {all}");
            prop_assert!(found < inside + 6e-4 || inside.is_infinite(), "{found} {inside}");
            // Over a flat sheet nothing is skipped.
            prop_assert!(radius.is_some() || found <= all + 1e-9, "{found} {all}");
        }
    }

    /// The default scene with its sheet rolled.
    fn rolled_scene(radius_mm: Option<f64>) -> Scene {
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
