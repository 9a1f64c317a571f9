//! Traces the edges of a picture's dark areas.

use contour::ContourBuilder;

use super::ImageError;
use super::darkness::ToneSheet;
use base::plane::{self, Point};

/// Shortest edge, in widths of the pen: a speck's edge is a blot.
const EDGE_WIDTHS_MIN: f64 = 3.0;

/// Returns the closed edges between dark and light.
pub(crate) fn paths(sheet: &ToneSheet, pen_mm: f64) -> Result<Vec<Vec<Point>>, ImageError> {
    let Some(threshold) = sheet.map().threshold() else {
        return Ok(Vec::new());
    };
    let [width, height] = sheet.map().size();
    let [cell_x, cell_y] = sheet.cell_mm();
    let framed = framed(sheet.map().values(), width);
    let lines = ContourBuilder::new(width + 2, height + 2, true)
        .lines(&framed, &[threshold])
        .map_err(|error| ImageError::Outline(error.to_string()))?;
    let rings = lines.iter().flat_map(|line| &line.geometry().0);
    let paths = rings.map(|ring| {
        let places = ring.coords();
        let place = |at: f64, cell_mm: f64, count: usize| {
            ((at - 1.0) * cell_mm).clamp(0.0, count as f64 * cell_mm)
        };
        places
            .map(|at| [place(at.x, cell_x, width), place(at.y, cell_y, height)])
            .collect()
    });
    Ok(paths
        .filter(|path: &Vec<Point>| plane::length(path) >= EDGE_WIDTHS_MIN * pen_mm)
        .collect())
}

/// Returns the pixels with a frame of white, so that what is dark at the picture's edge has an edge there.
fn framed(values: &[f32], width: usize) -> Vec<f64> {
    let white = std::iter::repeat_n(0.0, width + 2);
    let rows = values.chunks(width).flat_map(|row| {
        let pixels = row.iter().map(|&darkness| f64::from(darkness));
        std::iter::once(0.0)
            .chain(pixels)
            .chain(std::iter::once(0.0))
    });
    white.clone().chain(rows).chain(white).collect()
}
