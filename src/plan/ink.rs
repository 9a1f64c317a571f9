//! Strokes longer than one dip lasts are divided, so that the pen can be dipped in between.

use super::cartesian_path::whole;
use super::prepare_strokes::PreparedStroke;
use base::plane::{Point, along, distance, length, pieces};
use scene::Scene;

/// Parts of one stroke.
const PARTS_MAX: usize = 10_000;
/// Shorter lengths of line are not dipped for.
const DIP_EVERY_MM_MIN: f64 = 1.0;

/// Divides what pens with ink cannot draw with one dip into even parts, each beginning where the
/// one before ended. A pen that the scene has not is refused when it is to be taken.
#[expect(clippy::indexing_slicing, reason = "a pen's ink is one of the scene's")]
pub(super) fn divide(scene: &Scene, strokes: &mut Vec<PreparedStroke>) {
    let lasts_mm = |pen: usize| {
        let ink = scene.pens.get(pen)?.ink?;
        Some(scene.inks[ink].dip_every_mm.max(DIP_EVERY_MM_MIN))
    };
    let mut divided = Vec::with_capacity(strokes.len());
    for tidied in strokes.drain(..) {
        match lasts_mm(tidied.stroke.pen) {
            Some(most_mm) => parts(tidied, most_mm, &mut divided),
            None => divided.push(tidied),
        }
    }
    *strokes = divided;
}

fn parts(tidied: PreparedStroke, most_mm: f64, into: &mut Vec<PreparedStroke>) {
    let length_mm = length(&tidied.stroke.points_mm);
    let count = whole((length_mm / most_mm).ceil()).clamp(1, PARTS_MAX);
    if count == 1 {
        into.push(tidied);
        return;
    }
    let part_mm = length_mm / count as f64;
    for points_mm in cut(&tidied.stroke.points_mm, part_mm, count) {
        let mut part = tidied.clone();
        part.stroke.points_mm = points_mm;
        into.push(part);
    }
}

/// A polyline in `count` parts of a length; the last has what is left.
fn cut(points_mm: &[Point], part_mm: f64, count: usize) -> Vec<Vec<Point>> {
    let mut parts = Vec::with_capacity(count);
    let mut part: Vec<Point> = points_mm.first().copied().into_iter().collect();
    let mut left_mm = part_mm;
    for [mut from, to] in pieces(points_mm) {
        let mut ahead_mm = distance(from, to);
        while ahead_mm > left_mm && parts.len() + 1 < count {
            from = along(from, to, left_mm / ahead_mm);
            part.push(from);
            parts.push(std::mem::replace(&mut part, vec![from]));
            ahead_mm -= left_mm;
            left_mm = part_mm;
        }
        left_mm -= ahead_mm;
        part.push(to);
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_even_and_together_the_whole(
            points in proptest::collection::vec([0.0..100.0_f64, 0.0..100.0_f64], 2..40),
            count in 1..12_usize,
        ) {
            let whole_mm = length(&points);
            let part_mm = whole_mm / count as f64;
            let parts = cut(&points, part_mm, count);
            prop_assert_eq!(parts.len(), count);
            for (one, next) in parts.iter().zip(parts.iter().skip(1)) {
                prop_assert_eq!(one.last(), next.first());
            }
            for part in &parts {
                prop_assert!((length(part) - part_mm).abs() < 1e-6);
            }
        }
    }
}
