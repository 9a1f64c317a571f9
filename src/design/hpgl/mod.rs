//! Reads HP-GL, the language of pen plotters, and the part of HP-GL/2 that pen plotters draw, as
//! strokes.
//!
//! Unknown commands that would draw are refused by name and byte. Commands for speed, force or the
//! machine draw nothing and are noted.

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

/// Returns the name of a byte position for messages.
fn byte_name(at: usize) -> String {
    format!("byte {at}")
}

pub(super) fn read(bytes: &[u8], caps: &DesignCaps) -> Result<Design, DesignError> {
    let mut scanner = HpglScanner::new(bytes);
    let mut plotter = HpglPlotter::new(caps);
    while let Some(command) = scanner.next_command()? {
        plotter.run(&command)?;
    }
    plotter.finish_file()
}

#[cfg(test)]
mod tests;
