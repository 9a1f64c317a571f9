//! Strokes by which play shows: each place is drawn after different turns of the joints.
//!
//! A square goes round once in each sense from each of two corners, so that each of its sides comes after another joint
//! has turned round. Two long hooks carry the wrist through its play, and a short line beside them has it on its other side.

use base::plane::bounds;
use scene::{Scene, SheetStroke};

/// Side of a square. A joint that has turned round crosses 2° of play on less.
const SIDE_MM: f64 = 10.0;

/// Places of the squares, as shares of the sheet's width and height.
const STATIONS: [f64; 3] = [0.28, 0.5, 0.72];

/// Those of the middle row at the sides and of the middle column at the bottom lie farther out, between the tags: how the sheet's error
/// bends shows there.
const OUTER: [f64; 3] = [0.15, 0.5, 0.85];

/// Nearer than this to the sheet's edge or to a tag nothing is drawn.
const EDGE_MM: f64 = 8.0;
const TAG_MM: f64 = 3.0;

/// Distance of a hook from the squares beside it and above it.
const HOOK_MM: f64 = 6.0;

/// Length of a hook's foot, and of the line that it is compared with.
const FOOT_MM: f64 = 9.0;

/// Squares without which nothing is drawn.
const SQUARES_MIN: usize = 7;

/// Reason that a scene's sheet has no room for the pattern.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PatternError {
    /// It is rolled or bent.
    #[error("the pattern is for a flat sheet alone")]
    NotFlat,
    /// Edges and tags leave too little.
    #[error(
        "the sheet of {width_mm:.0} by {height_mm:.0} mm has room for {squares} squares of the pattern beside its tags; {SQUARES_MIN} are needed: take a sheet of 100 by 100 mm or more"
    )]
    NoRoom {
        /// Of the sheet.
        width_mm: f64,
        /// Of the sheet.
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

/// The senses and first corners of squares, one after the other.
const ROUNDS: [[usize; 5]; 4] = [
    [0, 1, 2, 3, 0],
    [2, 1, 0, 3, 2],
    [0, 3, 2, 1, 0],
    [2, 3, 0, 1, 2],
];

fn squares([width_mm, height_mm]: [f64; 2]) -> Vec<NamedPoints> {
    // Rows in turns from the left and from the right: the base turns both ways between them.
    let places = (0..3).flat_map(|row| {
        let column = move |n| if row == 1 { 2 - n } else { n };
        (0..3).map(move |n| (column(n), row))
    });
    let rounds = ROUNDS.iter().cycle();
    let square = |(number, ((column, row), round)): (usize, ((usize, usize), &[usize; 5]))| {
        let share = |of: [f64; 3], index: usize| of.get(index).copied().unwrap_or(0.5);
        let across = if row == 1 { OUTER } else { STATIONS };
        let is_outer = column == 1 && row == 0;
        let up = if is_outer { OUTER } else { STATIONS };
        let (x, y) = (share(across, column) * width_mm, share(up, row) * height_mm);
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
    let [from, to] = [-0.5, 0.5].map(|share| width_mm / 2.0 + share * FOOT_MM);
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
    let tags = scene.fiducials.iter().flat_map(|all| {
        let family = all.layout.family;
        all.layout.tags.iter().map(move |tag| tag.edge_mm(family))
    });
    let Some((lines_low, lines_high)) = bounds(points_mm) else {
        return true;
    };
    let is_clear = |edge: [[f64; 2]; 4]| {
        let apart = |from: f64, to: f64| from > to + TAG_MM;
        bounds(&edge).is_none_or(|(low, high)| {
            apart(lines_low[0], high[0])
                || apart(low[0], lines_high[0])
                || apart(lines_low[1], high[1])
                || apart(low[1], lines_high[1])
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
    fn no_line_lies_within_the_search_of_another_that_runs_beside_it() {
        let scene = SceneLibrary::new(None).scene("tagged", None).unwrap();
        let pattern = ink_pattern(&scene).unwrap();
        let pieces: Vec<_> = pattern
            .iter()
            .flat_map(|line| line.points_mm.iter().zip(line.points_mm.iter().skip(1)))
            .collect();
        let same = |a: &f64, b: &f64| (a - b).abs() < 1e-9;
        for ([ax, ay], [bx, by]) in &pieces {
            for ([cx, cy], [dx, dy]) in &pieces {
                let overlap = |a: f64, b: f64, c: f64, d: f64| {
                    a.max(b).min(c.max(d)) - a.min(b).max(c.min(d))
                };
                let both_up = same(ax, bx) && same(cx, dx) && overlap(*ay, *by, *cy, *dy) > 0.0;
                let both_across = same(ay, by) && same(cy, dy) && overlap(*ax, *bx, *cx, *dx) > 0.0;
                let apart = if both_up {
                    (ax - cx).abs()
                } else {
                    (ay - cy).abs()
                };
                assert!(
                    !(both_up || both_across) || !(1e-9..=5.5).contains(&apart),
                    "{apart}"
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
