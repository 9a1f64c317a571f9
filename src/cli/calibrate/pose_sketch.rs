//! Sketches of an arm for the terminal: its zero pose, and the positive end of a joint.

use arm::ArmModel;
use base::units::JointVector;
use nalgebra::{Point3, Vector2, Vector3};

/// Size of a sketch in characters, each of 2 by 4 dots.
const COLUMNS: usize = 40;
const ROWS: usize = 12;
const DOT_COLUMNS: usize = COLUMNS * 2;
const DOT_ROWS: usize = ROWS * 4;

/// Half length of the mark across the tool, which shows a rotation about the tool's axis.
const MARK_M: f64 = 0.03;

/// Dot spacing of the zero pose when it is shown with another pose.
const DOT_SPACING: usize = 4;

/// Minimum horizontal reach; below it the arm counts as pointing straight up.
const HORIZONTAL_M: f64 = 0.01;

/// Viewing direction of a sketch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SketchView {
    Side,
    Above,
    Front,
}

impl SketchView {
    const ALL: [Self; 3] = [Self::Side, Self::Above, Self::Front];

    const fn description(self) -> &'static str {
        match self {
            Self::Side => "from its right side; its front points right",
            Self::Above => "from above; the arm's front is up",
            Self::Front => "from behind; the arm's front is away from you",
        }
    }

    /// Projects a point to right and up; `ahead` is the direction in which the arm reaches.
    fn project(self, point: &Point3<f64>, ahead: Vector2<f64>) -> [f64; 2] {
        let along = point.x * ahead.x + point.y * ahead.y;
        let right = point.x * ahead.y - point.y * ahead.x;
        match self {
            Self::Side => [along, point.z],
            Self::Above => [right, along],
            Self::Front => [right, point.z],
        }
    }
}

/// Draws the zero pose, or a joint at its positive end over the dotted zero pose, from the clearest side.
pub(super) fn sketch(arm: &ArmModel, joint: Option<usize>) -> String {
    let zero_rad = JointVector::zeros(arm.dof());
    let upper_rad = joint.and_then(|joint| arm.file.joints.get(joint));
    let upper_rad = upper_rad.map_or(0.0, |joint| joint.upper_rad.get());
    let moved_rad = zero_rad.map(|index, zero| match Some(index) == joint {
        true => upper_rad,
        false => zero,
    });
    let (zero, moved) = (points(arm, &zero_rad), points(arm, &moved_rad));
    let ahead = ahead(&zero);
    let view = joint.map_or(SketchView::Side, |_| best_view(&zero, &moved, ahead));
    let project = |points: &[Point3<f64>]| -> Vec<[f64; 2]> {
        let points = points.iter();
        points.map(|point| view.project(point, ahead)).collect()
    };
    let (zero, moved) = (project(&zero), project(&moved));
    let mut canvas = DotCanvas::fitting(&[zero.as_slice(), &moved].concat());
    canvas.polyline(&zero, joint.map_or(1, |_| DOT_SPACING));
    canvas.polyline(&moved, 1);
    let legend = joint.map_or("", |_| "; dotted: the zero pose");
    format!("{}\n{}{legend}\n", canvas.text(), view.description())
}

/// Returns the points of the arm's axes from its base to its tool, and a mark across the tool.
fn points(arm: &ArmModel, q_rad: &JointVector) -> Vec<Point3<f64>> {
    let frames = arm.chain.frames(q_rad);
    let origin_of = |frame: &nalgebra::IsometryMatrix3<f64>| Point3::from(frame.translation.vector);
    let tool = origin_of(&frames.tool);
    let half_mark = frames.tool.rotation * Vector3::new(MARK_M, 0.0, 0.0);
    let axes = frames.iter().map(origin_of);
    axes.chain([tool, tool + half_mark, tool - half_mark])
        .collect()
}

/// Returns the horizontal direction in which the zero pose reaches.
fn ahead(zero: &[Point3<f64>]) -> Vector2<f64> {
    let horizontal = zero.iter().map(|point| Vector2::new(point.x, point.y));
    let farthest = horizontal.max_by(|a, b| a.norm().total_cmp(&b.norm()));
    let farthest = farthest.filter(|horizontal| horizontal.norm() > HORIZONTAL_M);
    farthest.map_or_else(Vector2::x, |horizontal| horizontal.normalize())
}

/// Returns the side from which two poses differ most.
fn best_view(zero: &[Point3<f64>], moved: &[Point3<f64>], ahead: Vector2<f64>) -> SketchView {
    let difference = |view: SketchView| -> f64 {
        let pairs = zero.iter().zip(moved);
        let distances = pairs.map(|(a, b)| {
            let ([ax, ay], [bx, by]) = (view.project(a, ahead), view.project(b, ahead));
            (ax - bx).hypot(ay - by)
        });
        distances.sum()
    };
    let by_difference = |a: &SketchView, b: &SketchView| difference(*a).total_cmp(&difference(*b));
    let best = SketchView::ALL.into_iter().max_by(by_difference);
    best.unwrap_or(SketchView::Side)
}

/// Dots that are printed as Braille characters.
struct DotCanvas {
    dots: Vec<bool>,
    left_m: f64,
    top_m: f64,
    dots_per_m: f64,
}

impl DotCanvas {
    /// Creates an empty canvas that fits all of these points.
    fn fitting(points: &[[f64; 2]]) -> Self {
        let min = |axis: fn(&[f64; 2]) -> f64| points.iter().map(axis).fold(f64::MAX, f64::min);
        let max = |axis: fn(&[f64; 2]) -> f64| points.iter().map(axis).fold(f64::MIN, f64::max);
        let (left_m, right_m) = (min(|p| p[0]), max(|p| p[0]));
        let (low_m, top_m) = (min(|p| p[1]), max(|p| p[1]));
        let columns_per_m = (DOT_COLUMNS - 1) as f64 / (right_m - left_m).max(MARK_M);
        let rows_per_m = (DOT_ROWS - 1) as f64 / (top_m - low_m).max(MARK_M);
        Self {
            dots: vec![false; DOT_COLUMNS * DOT_ROWS],
            left_m,
            top_m,
            dots_per_m: columns_per_m.min(rows_per_m),
        }
    }

    /// Draws lines from point to point with one dot in `every`.
    fn polyline(&mut self, points: &[[f64; 2]], every: usize) {
        let ends = points.iter().zip(points.iter().skip(1));
        for (&[x, y], &[to_x, to_y]) in ends {
            let (dx, dy) = (to_x - x, to_y - y);
            let length = dx.hypot(dy) * self.dots_per_m;
            let steps = dot_count(length.ceil().max(1.0));
            for step in (0..=steps).step_by(every) {
                let fraction = step as f64 / steps as f64;
                self.dot([x + fraction * dx, y + fraction * dy]);
            }
        }
    }

    fn dot(&mut self, [x, y]: [f64; 2]) {
        let column = dot_count(((x - self.left_m) * self.dots_per_m).round());
        let row = dot_count(((self.top_m - y) * self.dots_per_m).round());
        let index = row * DOT_COLUMNS + column;
        if let Some(dot) = self.dots.get_mut(index) {
            *dot = true;
        }
    }

    fn text(&self) -> String {
        let rows = (0..ROWS).map(|row| {
            let cells = (0..COLUMNS).map(|column| self.cell(row, column));
            let cells: String = cells.collect();
            cells.trim_end_matches('\u{2800}').to_owned()
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    /// Returns the Braille character of 2 by 4 dots.
    fn cell(&self, row: usize, column: usize) -> char {
        // The bit of each dot in the character code, row by row.
        const BITS: [[u32; 2]; 4] = [[0, 3], [1, 4], [2, 5], [6, 7]];
        let mut code = 0x2800;
        for (down, bits) in BITS.iter().enumerate() {
            for (across, bit) in bits.iter().enumerate() {
                let index = (row * 4 + down) * DOT_COLUMNS + column * 2 + across;
                code |= u32::from(self.dots.get(index).is_some_and(|dot| *dot)) << bit;
            }
        }
        char::from_u32(code).unwrap_or(' ')
    }
}

/// Converts to a number of dots.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and a canvas has few dots"
)]
fn dot_count(value: f64) -> usize {
    value as usize
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use scene::SceneLibrary;

    #[test]
    fn every_joint_of_every_shipped_arm_is_seen_to_turn() {
        let library = SceneLibrary::new(None);
        for name in library.arms() {
            let arm = library.arm(&name).unwrap();
            let zero = sketch(&arm, None);
            for joint in 0..arm.dof() {
                let shown = sketch(&arm, Some(joint));
                assert_ne!(shown, zero, "{name}, joint {joint}");
                for line in shown.lines() {
                    assert!(line.chars().count() <= 70, "{name}: {line}");
                }
                assert_eq!(shown.lines().count(), ROWS + 1, "{name}: {shown}");
            }
        }
    }

    #[test]
    fn a_pan_joint_is_seen_from_above_and_a_lift_joint_from_the_side() {
        let arm = SceneLibrary::new(None).arm("widowx250s").unwrap();
        assert!(sketch(&arm, Some(0)).contains(SketchView::Above.description()));
        assert!(sketch(&arm, Some(1)).contains(SketchView::Side.description()));
    }
}
