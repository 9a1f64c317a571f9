//! HP-GL, the language of pen plotters, and what pen plotters draw of HP-GL/2 → strokes.
//!
//! What would draw and is not known here is refused by its name and byte. What sets speed, force or the machine draws
//! nothing and is noted.

mod commands;
mod coordinates;
mod draw_shapes;
mod encoded_polyline;
mod label;
mod line_type;
mod losses;
mod plotter;
mod polygon;
mod shapes;

use super::{Design, DesignCaps, DesignError};
use commands::HpglScanner;
use plotter::HpglPlotter;

const EMPTY: &str = "PD draws while a pen is selected";

/// Returns the name of a place for messages.
fn byte_name(at: usize) -> String {
    format!("byte {at}")
}

pub(super) fn read(bytes: &[u8], caps: &DesignCaps) -> Result<Design, DesignError> {
    let mut scanner = HpglScanner::new(bytes);
    let mut plotter = HpglPlotter::new(caps);
    while let Some(command) = scanner.command()? {
        plotter.take(&command)?;
    }
    plotter.finish_file()
}

#[cfg(test)]
mod tests;
