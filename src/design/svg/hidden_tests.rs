//! Lines behind filled shapes, judged point by point by another geometry: that of discs and boxes.

use std::fmt::Write as _;

use base::plane::Point;
use proptest::prelude::*;

use super::super::{Design, DesignCaps, ReadOptions, load_with};

const PAGE_MM: f64 = 60.0;

/// Nearer to an edge than this a point may be on either side: curves are polylines, and edges hide nothing.
const EDGE_MM: f64 = 0.3;

#[derive(Clone, Debug)]
struct Shape {
    is_disc: bool,
    middle: Point,
    /// Half its width and its height; a disc's radius is the first.
    half: Point,
    is_filled: bool,
}

impl Shape {
    /// Returns how deep inside a point lies; below 0 it is outside.
    fn depth_mm(&self, point: Point) -> f64 {
        let [x, y] = [point[0] - self.middle[0], point[1] - self.middle[1]];
        match self.is_disc {
            true => self.half[0] - x.hypot(y),
            false => (self.half[0] - x.abs()).min(self.half[1] - y.abs()),
        }
    }

    fn write(&self, number: usize, svg: &mut String) {
        let ([x, y], [wide, high]) = (self.middle, self.half);
        let fill = if self.is_filled { "white" } else { "none" };
        // Each has its own colour, by which its lines are found.
        let look = format!("fill='{fill}' stroke='#0000{number:02x}'");
        let up = PAGE_MM - y;
        let _ = match self.is_disc {
            true => write!(svg, "<circle cx='{x}' cy='{up}' r='{wide}' {look}/>"),
            false => write!(
                svg,
                "<rect x='{}' y='{}' width='{}' height='{}' {look}/>",
                x - wide,
                up - high,
                2.0 * wide,
                2.0 * high
            ),
        };
    }
}

fn shape() -> impl Strategy<Value = Shape> {
    let along = || 0.0..PAGE_MM;
    let half = || 2.0..20.0;
    (
        any::<bool>(),
        along(),
        along(),
        half(),
        half(),
        any::<bool>(),
    )
        .prop_map(|(is_disc, x, y, wide, high, is_filled)| Shape {
            is_disc,
            middle: [x, y],
            half: [wide, high],
            is_filled,
        })
}

fn read(shapes: &[Shape], hide: bool) -> Design {
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{PAGE_MM}mm' height='{PAGE_MM}mm' viewBox='0 0 {PAGE_MM} {PAGE_MM}'>"
    );
    for (number, shape) in shapes.iter().enumerate() {
        shape.write(number, &mut svg);
    }
    svg.push_str("</svg>");
    let options = ReadOptions {
        hide,
        ..ReadOptions::default()
    };
    load_with("a.svg", svg.as_bytes(), &DesignCaps::default(), options).unwrap()
}

/// Returns the lines of a shape.
fn lines(design: &Design, number: usize) -> Vec<&[Point]> {
    let colour = Some([0, 0, u8::try_from(number).unwrap()]);
    let of_it = design
        .strokes
        .iter()
        .filter(|stroke| stroke.colour == colour);
    of_it.map(|stroke| &*stroke.points_mm).collect()
}

fn distance_mm(point: Point, lines: &[&[Point]]) -> f64 {
    let pairs = lines.iter().flat_map(|line| line.windows(2));
    pairs.fold(f64::INFINITY, |least, pair| {
        let ([ax, ay], [bx, by]) = (pair[0], pair[1]);
        let (dx, dy) = (bx - ax, by - ay);
        let along = ((point[0] - ax) * dx + (point[1] - ay) * dy) / (dx * dx + dy * dy);
        let along = along.clamp(0.0, 1.0);
        least.min((point[0] - ax - along * dx).hypot(point[1] - ay - along * dy))
    })
}

/// Returns points along lines, a quarter of a millimetre from each other.
fn samples(lines: &[&[Point]]) -> Vec<Point> {
    let pairs = lines.iter().flat_map(|line| line.windows(2));
    pairs
        .flat_map(|pair| {
            let ([ax, ay], [bx, by]) = (pair[0], pair[1]);
            let steps = ((bx - ax).hypot(by - ay) / 0.25).ceil().max(1.0);
            let at =
                move |step: f64| [ax + (bx - ax) * step / steps, ay + (by - ay) * step / steps];
            (0..steps as u32).map(move |step| at(f64::from(step)))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// What is left was there before, and what went lay inside a filled shape that is further in front: all of that, and nothing else.
    #[test]
    fn only_what_lies_in_a_filled_shape_in_front_is_taken_away(shapes in prop::collection::vec(shape(), 2..7)) {
        let (whole, hidden) = (read(&shapes, false), read(&shapes, true));
        for (number, _) in shapes.iter().enumerate() {
            let (before, after) = (lines(&whole, number), lines(&hidden, number));
            for point in samples(&after) {
                prop_assert!(distance_mm(point, &before) < 0.01, "{point:?} of shape {number} is new");
            }
            for point in samples(&before) {
                let in_front = shapes[number + 1..].iter().filter(|shape| shape.is_filled);
                let depth_mm = in_front.map(|shape| shape.depth_mm(point)).fold(f64::NEG_INFINITY, f64::max);
                let distance_mm = distance_mm(point, &after);
                if depth_mm < -EDGE_MM {
                    prop_assert!(distance_mm < 0.01, "{point:?} of shape {number} is lost");
                } else if depth_mm > EDGE_MM {
                    prop_assert!(distance_mm > 0.01, "{point:?} of shape {number} is {depth_mm} mm deep and seen");
                }
            }
        }
    }
}
