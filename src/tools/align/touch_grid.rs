//! The grid of places at which an operator wants a sheet felt, to see whether it is flat.

use serde_json::Value;

use super::{INSET_MM, INSET_SHARE};
use crate::dispatch::ToolContext;
use crate::reply::{Reply, refused};
use base::units::short;
use scene::{HeightMap, MAP_PLACES, Scene};

/// Fewest columns and rows, and most.
const EACH: std::ops::RangeInclusive<usize> = 3..=8;

/// Least distance between two places.
const APART_MM: f64 = 10.0;

/// Columns and rows of places.
#[derive(Clone, Copy, Debug)]
pub(super) struct TouchGrid([usize; 2]);

/// Returns the grid that a call asks for.
///
/// # Errors
/// Numbers that make no grid, places too near to each other, or a call that does not touch.
pub(super) fn asked_for(
    ctx: &ToolContext<'_>,
    scene: &Scene,
) -> Result<Option<TouchGrid>, Box<Reply>> {
    let Some(numbers) = ctx.reading.understood.get("grid").and_then(Value::as_array) else {
        return Ok(None);
    };
    let refuse = |why: String| Err(refused("arguments_refused", why));
    if !ctx.is("touch") {
        return refuse(
            r#"`grid` is only for `touch`. Next: `{"touch": true, "grid": [3, 3]}`"#.to_owned(),
        );
    }
    let numbers: Vec<f64> = numbers.iter().filter_map(Value::as_f64).collect();
    let counts = numbers
        .iter()
        .map(|number| EACH.clone().find(|n| (*n as f64 - number).abs() < 1e-9));
    let counts: Option<Vec<usize>> = counts.collect();
    let Some([columns, rows]) = counts.as_deref() else {
        let given: Vec<String> = numbers.iter().map(|number| short(*number)).collect();
        return refuse(format!(
            "`grid` is [{}]; {} to {} columns and rows are possible, at most {} places",
            given.join(", "),
            EACH.start(),
            EACH.end(),
            MAP_PLACES.end()
        ));
    };
    let grid = TouchGrid([*columns, *rows]);
    let apart_mm = grid.apart_mm(scene);
    if apart_mm < APART_MM {
        return refuse(format!(
            "on this sheet, `grid` puts places {apart_mm:.1} mm apart; {APART_MM} mm is the minimum. Next: use fewer columns or rows"
        ));
    }
    Ok(Some(grid))
}

impl TouchGrid {
    /// Returns the places by name, row by row from the lower left, inset so that the tip can reach them all.
    pub(super) fn places(self, scene: &Scene) -> impl Iterator<Item = (String, [f64; 2])> {
        let Self([columns, rows]) = self;
        let (low, step) = self.low_and_step(scene);
        (0..rows).flat_map(move |row| {
            (0..columns).map(move |column| {
                let at_mm = [
                    low[0] + step[0] * column as f64,
                    low[1] + step[1] * row as f64,
                ];
                (format!("column {}, row {}", column + 1, row + 1), at_mm)
            })
        })
    }

    fn low_and_step(self, scene: &Scene) -> ([f64; 2], [f64; 2]) {
        let Self([columns, rows]) = self;
        let [width, height] = scene.surface.size_mm();
        let inset = |side: f64| INSET_MM.min(side * INSET_SHARE);
        let step = |side: f64, count: usize| (side - 2.0 * inset(side)) / (count - 1) as f64;
        (
            [inset(width), inset(height)],
            [step(width, columns), step(height, rows)],
        )
    }

    fn apart_mm(self, scene: &Scene) -> f64 {
        let (_, [right, up]) = self.low_and_step(scene);
        right.min(up)
    }
}

/// Returns the places of a map, by name.
pub(super) fn places_of(map: &HeightMap) -> impl Iterator<Item = (String, [f64; 2])> {
    map.places()
        .zip(1..)
        .map(|((at_mm, _), number)| (format!("place {number}"), at_mm))
}
