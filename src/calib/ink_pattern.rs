//! Strokes that reveal play: each place is drawn after different reversals of the joints.
//!
//! Squares are drawn in both senses from each of two corners, so that each of their sides follows the reversal of a different
//! joint. Two long hooks carry the wrist through its play, and a short line next to them is drawn with it on its other side.

use base::plane::bounds;
use scene::{Scene, SheetStroke};

/// Side of a square. A joint that reverses crosses 2° of play within less.
const SIDE_MM: f64 = 10.0;

/// Places of the squares, as fractions of the sheet's width and height.
const STATIONS: [f64; 3] = [0.28, 0.5, 0.72];

/// The same for the sides of the middle row and the bottom of the middle column, which lie farther out between the tags: they
/// reveal the curvature of the sheet's error.
const OUTER: [f64; 3] = [0.15, 0.5, 0.85];

/// Margins to the sheet's edge and to its tags.
const EDGE_MM: f64 = 8.0;
const TAG_MM: f64 = 3.0;

/// Distance of a hook from neighbouring squares.
const HOOK_MM: f64 = 6.0;

/// Length of a hook's foot, and of the line with which it is compared.
const FOOT_MM: f64 = 9.0;

/// Smallest number of squares in a pattern.
const SQUARES_MIN: usize = 7;

/// Reason that a scene's sheet has no room for the pattern.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PatternError {
    /// The sheet is rolled or bent.
    #[error("the pattern needs a flat sheet")]
    NotFlat,
    /// Edges and tags leave too little.
    #[error(
        "the sheet of {width_mm:.0} × {height_mm:.0} mm has room for only {squares} squares of the pattern (at least {SQUARES_MIN}). Next: use a sheet of 100 × 100 mm or more"
    )]
    NoRoom {
        /// Width of the sheet.
        width_mm: f64,
        /// Height of the sheet.
        height_mm: f64,
        /// Squares that fit.
        squares: usize,
    },
}

/// Returns the pattern of a scene's sheet, in the order in which it is drawn with the first pen.
///
/// # Errors
/// The sheet is not flat, or has no room.
pub fn ink_pattern(scene: &Scene) -> Result<Vec<SheetStroke>, PatternError> {
    if !scene.surface.is_flat() {
        return Err(PatternError::NotFlat);
    }
    let [width_mm, height_mm] = scene.surface.size_mm();
    let fits = |(_, points): &NamedPoints| is_free(scene, points);
    let squares = squares([width_mm, height_mm]).into_iter();
    let fitting: Vec<_> = squares.filter(fits).collect();
    if fitting.len() < SQUARES_MIN {
        let squares = fitting.len();
        return Err(PatternError::NoRoom {
            width_mm,
            height_mm,
            squares,
        });
    }
    let hooks = hooks([width_mm, height_mm]).into_iter().filter(fits);
    Ok(fitting.into_iter().chain(hooks).map(stroke).collect())
}

type NamedPoints = (String, Vec<[f64; 2]>);

fn stroke((source, points_mm): NamedPoints) -> SheetStroke {
    SheetStroke {
        points_mm,
        pen: 0,
        source,
        pause: None,
    }
}

/// Orders of a square's corners, which alternate between squares.
const ROUNDS: [[usize; 5]; 4] = [
    [0, 1, 2, 3, 0],
    [2, 1, 0, 3, 2],
    [0, 3, 2, 1, 0],
    [2, 3, 0, 1, 2],
];

fn squares([width_mm, height_mm]: [f64; 2]) -> Vec<NamedPoints> {
    // Rows alternate between left and right, so the base turns both ways between squares.
    let places = (0..3).flat_map(|row| {
        let column = move |n| if row == 1 { 2 - n } else { n };
        (0..3).map(move |n| (column(n), row))
    });
    let rounds = ROUNDS.iter().cycle();
    let square = |(number, ((column, row), round)): (usize, ((usize, usize), &[usize; 5]))| {
        let fraction = |of: [f64; 3], index: usize| of.get(index).copied().unwrap_or(0.5);
        let across = if row == 1 { OUTER } else { STATIONS };
        let is_outer = column == 1 && row == 0;
        let up = if is_outer { OUTER } else { STATIONS };
        let x = fraction(across, column) * width_mm;
        let y = fraction(up, row) * height_mm;
        let half = SIDE_MM / 2.0;
        let corners = [[-half, -half], [half, -half], [half, half], [-half, half]];
        let corner = |index: &usize| {
            let [right, up] = corners.get(*index).copied().unwrap_or_default();
            [x + right, y + up]
        };
        let points = round.iter().map(corner).collect();
        (format!("square {}", number + 1), points)
    };
    places.zip(rounds).enumerate().map(square).collect()
}

fn hooks([width_mm, height_mm]: [f64; 2]) -> Vec<NamedPoints> {
    let [low, _, high] = STATIONS;
    let half = SIDE_MM / 2.0;
    let top = high * height_mm + half + HOOK_MM + 2.0;
    let bottom = low * height_mm - half;
    let left = low * width_mm + half + HOOK_MM;
    let right = high * width_mm - half - HOOK_MM;
    let [from, to] = [-0.5, 0.5].map(|fraction| width_mm / 2.0 + fraction * FOOT_MM);
    let hook = |x: f64, foot_mm: f64| vec![[x, bottom], [x, top], [x + foot_mm, top]];
    vec![
        ("plain line".to_owned(), vec![[from, top], [to, top]]),
        ("hook 1".to_owned(), hook(left, -FOOT_MM)),
        ("hook 2".to_owned(), hook(right, FOOT_MM)),
    ]
}

fn is_free(scene: &Scene, points_mm: &[[f64; 2]]) -> bool {
    let [width, height] = scene.surface.size_mm();
    let is_inside = |[x, y]: &[f64; 2]| {
        (EDGE_MM..=width - EDGE_MM).contains(x) && (EDGE_MM..=height - EDGE_MM).contains(y)
    };
    let layouts = scene.fiducials.iter().map(|fiducials| &fiducials.layout);
    let tags = layouts.flat_map(|layout| {
        let family = layout.family;
        layout.tags.iter().map(move |tag| tag.edge_mm(family))
    });
    let Some((lines_low, lines_high)) = bounds(points_mm) else {
        return true;
    };
    let is_clear = |edge: [[f64; 2]; 4]| {
        let is_separate = |from: f64, to: f64| from > to + TAG_MM;
        bounds(&edge).is_none_or(|(low, high)| {
            is_separate(lines_low[0], high[0])
                || is_separate(low[0], lines_high[0])
                || is_separate(lines_low[1], high[1])
                || is_separate(low[1], lines_high[1])
        })
    };
    points_mm.iter().all(is_inside) && tags.into_iter().all(is_clear)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use scene::SceneLibrary;

    #[test]
    fn the_pattern_fits_the_shipped_sheets_and_keeps_off_their_tags() {
        let library = SceneLibrary::new(None);
        for name in ["default", "tagged", "a5_sheet"] {
            let scene = library.scene(name, None).unwrap();
            let pattern = ink_pattern(&scene).unwrap();
            assert_eq!(pattern.len(), 12, "{name}");
        }
    }

    #[test]
    fn no_line_lies_within_the_search_range_of_a_parallel_one() {
        let scene = SceneLibrary::new(None).scene("tagged", None).unwrap();
        let pattern = ink_pattern(&scene).unwrap();
        let pieces: Vec<_> = pattern
            .iter()
            .flat_map(|line| line.points_mm.iter().zip(line.points_mm.iter().skip(1)))
            .collect();
        let is_same = |a: &f64, b: &f64| (a - b).abs() < 1e-9;
        for ([ax, ay], [bx, by]) in &pieces {
            for ([cx, cy], [dx, dy]) in &pieces {
                let overlap = |a: f64, b: f64, c: f64, d: f64| {
                    a.max(b).min(c.max(d)) - a.min(b).max(c.min(d))
                };
                let is_vertical =
                    is_same(ax, bx) && is_same(cx, dx) && overlap(*ay, *by, *cy, *dy) > 0.0;
                let is_horizontal =
                    is_same(ay, by) && is_same(cy, dy) && overlap(*ax, *bx, *cx, *dx) > 0.0;
                let distance_mm = if is_vertical {
                    (ax - cx).abs()
                } else {
                    (ay - cy).abs()
                };
                assert!(
                    !(is_vertical || is_horizontal) || !(1e-9..=5.5).contains(&distance_mm),
                    "{distance_mm}"
                );
            }
        }
    }

    #[test]
    fn a_sheet_without_room_is_refused() {
        let library = SceneLibrary::new(None);
        let mut scene = (*library.scene("default", None).unwrap()).clone();
        let file = toml::from_str(
            "origin_m = [0.07, -0.17, 0.0]\nx_axis = [-1.0, 0.0, 0.0]\ny_axis = [0.0, -1.0, 0.0]\nsize_mm = [40.0, 40.0]",
        );
        scene.surface = scene::Surface::new(&file.unwrap()).unwrap();
        assert!(matches!(
            ink_pattern(&scene),
            Err(PatternError::NoRoom { .. })
        ));
    }
}
