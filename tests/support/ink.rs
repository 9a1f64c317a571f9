//! Compares lines on a sheet: the total length, and the part of a design that is missing.

/// Points in sheet millimetres.
pub(crate) type Line = Vec<[f64; 2]>;

pub(crate) fn length_mm(lines: &[Line]) -> f64 {
    lines
        .iter()
        .flat_map(steps)
        .map(|(a, b)| distance(a, b))
        .sum()
}

/// Returns the length of the design that has no ink within `near_mm`.
pub(crate) fn missing_mm(design: &[Line], ink: &[Line], near_mm: f64) -> f64 {
    const STEP_MM: f64 = 0.25;
    let mut missing = 0.0;
    for (a, b) in design.iter().flat_map(steps) {
        let mut along = 0.0;
        while along < distance(a, b) {
            let fraction = along / distance(a, b);
            let at = [
                a[0] + (b[0] - a[0]) * fraction,
                a[1] + (b[1] - a[1]) * fraction,
            ];
            let nearest = ink
                .iter()
                .flat_map(steps)
                .map(|(p, q)| distance_to_segment(at, p, q))
                .fold(f64::INFINITY, f64::min);
            if nearest > near_mm {
                missing += STEP_MM.min(distance(a, b) - along);
            }
            along += STEP_MM;
        }
    }
    missing
}

fn steps(line: &Line) -> impl Iterator<Item = ([f64; 2], [f64; 2])> + '_ {
    line.iter().copied().zip(line.iter().copied().skip(1))
}

fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// Returns the distance from a point to a segment.
fn distance_to_segment(at: [f64; 2], p: [f64; 2], q: [f64; 2]) -> f64 {
    let along = [q[0] - p[0], q[1] - p[1]];
    let length_squared = along[0] * along[0] + along[1] * along[1];
    let fraction = if length_squared > 0.0 {
        (((at[0] - p[0]) * along[0] + (at[1] - p[1]) * along[1]) / length_squared).clamp(0.0, 1.0)
    } else {
        0.0
    };
    distance(at, [p[0] + along[0] * fraction, p[1] + along[1] * fraction])
}
