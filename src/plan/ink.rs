//! Divides strokes longer than one dip lasts, so that the pen can be dipped in between.

use super::cartesian_path::to_count;
use super::prepare_strokes::PreparedStroke;
use base::plane::{Point, along, distance, length, pieces};
use scene::Scene;

/// Most parts of one stroke.
const PARTS_MAX: usize = 10_000;
/// Shortest length of line that a dip lasts for.
const DIP_EVERY_MM_MIN: f64 = 1.0;

/// Divides each stroke that its pen cannot draw with one dip into even parts, each beginning where
/// the previous one ended. A pen that the scene lacks is refused later, when it is to be used.
#[expect(clippy::indexing_slicing, reason = "a pen's ink is one of the scene's")]
pub(super) fn divide(scene: &Scene, strokes: &mut Vec<PreparedStroke>) {
    let dip_every_mm = |pen: usize| {
        let ink = scene.pens.get(pen)?.ink?;
        Some(scene.inks[ink].dip_every_mm.max(DIP_EVERY_MM_MIN))
    };
    let mut divided = Vec::with_capacity(strokes.len());
    for prepared in strokes.drain(..) {
        match dip_every_mm(prepared.stroke.pen) {
            Some(max_mm) => push_parts(prepared, max_mm, &mut divided),
            None => divided.push(prepared),
        }
    }
    *strokes = divided;
}

fn push_parts(prepared: PreparedStroke, max_mm: f64, divided: &mut Vec<PreparedStroke>) {
    let length_mm = length(&prepared.stroke.points_mm);
    let count = to_count((length_mm / max_mm).ceil()).clamp(1, PARTS_MAX);
    if count == 1 {
        divided.push(prepared);
        return;
    }
    let part_mm = length_mm / count as f64;
    for points_mm in cut_evenly(&prepared.stroke.points_mm, part_mm, count) {
        let mut part = prepared.clone();
        part.stroke.points_mm = points_mm;
        divided.push(part);
    }
}

/// Cuts a polyline into `count` parts of one length; the last takes what is left.
fn cut_evenly(points_mm: &[Point], part_mm: f64, count: usize) -> Vec<Vec<Point>> {
    let mut parts = Vec::with_capacity(count);
    let mut part: Vec<Point> = points_mm.first().copied().into_iter().collect();
    let mut to_cut_mm = part_mm;
    for [mut from, to] in pieces(points_mm) {
        let mut remaining_mm = distance(from, to);
        while remaining_mm > to_cut_mm && parts.len() + 1 < count {
            from = along(from, to, to_cut_mm / remaining_mm);
            part.push(from);
            parts.push(std::mem::replace(&mut part, vec![from]));
            remaining_mm -= to_cut_mm;
            to_cut_mm = part_mm;
        }
        to_cut_mm -= remaining_mm;
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
            let total_mm = length(&points);
            let part_mm = total_mm / count as f64;
            let parts = cut_evenly(&points, part_mm, count);
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
