//! Reads G-code as strokes: G0 to G3 in millimetres or inches, absolute or relative. The pen is
//! lifted by Z, by M3 and M5, or by G0 itself as DrawingBotV3 writes it, whichever changes between
//! cuts. T names the pen where strokes have several.
//!
//! Unknown words are refused by name and line: a plotter must not guess.

mod gcode_words;
mod lift_evidence;
mod machine;
mod pen_lift;
mod pen_sets;
mod tool_pens;
mod tool_switch;

use std::borrow::Cow;

use base::plane::Point;

use super::collect_strokes::StrokeCollector;
use super::text_encoding::{self, DeclaredEncoding};
use super::{Design, DesignCaps, DesignError, DesignStroke, flatten};
use lift_evidence::LiftEvidence;
use machine::{GcodeMotion, GcodeMove};
use pen_lift::LiftRule;
use pen_sets::PenNumbering;
pub use pen_sets::set_of;
use tool_pens::ToolPens;

const EMPTY: &str = "G1, G2 or G3 draw while the pen is down";

/// Reads files, each a name and its bytes, that share coordinates and so a page.
pub(super) fn read(files: &[(&str, &[u8])], caps: &DesignCaps) -> Result<Design, DesignError> {
    let mut texts = Vec::with_capacity(files.len());
    for (name, bytes) in files {
        let text = text_encoding::decode(bytes, DeclaredEncoding::default())?.text;
        texts.push((*name, text));
    }
    let (mut design, sides) = read_texts(&texts, StrokeCollector::new(caps))?;
    if !design.states_lengths {
        // Arcs and dots are in proportion to the drawing.
        (design, _) = read_texts(&texts, StrokeCollector::for_sides(caps, sides))?;
    }
    Ok(design)
}

fn read_texts(
    files: &[(&str, Cow<'_, str>)],
    mut strokes: StrokeCollector<'_>,
) -> Result<(Design, Point), DesignError> {
    let pens = PenNumbering::of(files.iter().map(|(name, _)| *name));
    let (mut notes, mut states_lengths) = (Vec::new(), true);
    for (name, text) in files {
        let pen = pens.pen_of(name);
        let is_alone = files.len() == 1;
        let prefix = if is_alone {
            String::new()
        } else {
            format!("{name} ")
        };
        let read = read_file(text, pen, prefix.clone(), &mut strokes);
        let (of_file, has_unit) = match is_alone {
            true => read?,
            false => read.map_err(|error| error.in_file(name))?,
        };
        states_lengths &= has_unit;
        notes.extend(of_file.iter().map(|note| format!("{prefix}{note}")));
    }
    notes.extend(pens.note());
    let sides = strokes.sides();
    let design = Design {
        notes,
        states_lengths,
        ..strokes.on_fitted_page(EMPTY)?
    };
    Ok((design, sides))
}

/// Adds the strokes of a file. Returns notes about their pens and powers, and whether the file names its unit.
fn read_file(
    text: &str,
    pen: Option<u16>,
    prefix: String,
    strokes: &mut StrokeCollector<'_>,
) -> Result<(Vec<String>, bool), DesignError> {
    let evidence = LiftEvidence::of(text)?;
    let strokes_before = strokes.len();
    let lift = evidence.judge(text)?;
    let mut plotter = GcodePlotter {
        lift,
        pens: ToolPens::new(pen, evidence.has_tool_changes),
        tool_number: None,
        prefix,
        strokes,
        path: Vec::new(),
        from_line: 0,
        was_down: false,
        has_drawn: false,
        pauses: false,
    };
    let has_unit = machine::run(text, |movement| plotter.apply_move(movement))?;
    plotter.finish()?;
    let pens = plotter.pens;
    if pen.is_none() && !pens.choose() {
        strokes.drop_pens(strokes_before);
    }
    let notes = pens.note().into_iter().chain(evidence.note(lift));
    Ok((notes.collect(), has_unit))
}

/// Returns the name of a line for messages.
fn line_name(line: usize) -> String {
    format!("line {line}")
}

/// Returns the error for a line that is not valid G-code.
fn invalid(line: usize, found: impl Into<String>, accepted: &str) -> DesignError {
    DesignError::syntax(line_name(line), found, accepted)
}

/// Returns the error for a line whose content cannot be drawn.
fn undrawable(line: usize, found: impl Into<String>, fix: impl Into<String>) -> DesignError {
    DesignError::unsupported(line_name(line), found, fix)
}

struct GcodePlotter<'a, 'c> {
    lift: LiftRule,
    pens: ToolPens,
    tool_number: Option<u16>,
    /// Comes before the line number if there are several files.
    prefix: String,
    strokes: &'a mut StrokeCollector<'c>,
    /// The path of the pen since it came down.
    path: Vec<Point>,
    from_line: usize,
    was_down: bool,
    has_drawn: bool,
    /// True if the machine stopped for its operator since the last stroke.
    pauses: bool,
}

impl GcodePlotter<'_, '_> {
    fn apply_move(&mut self, movement: &GcodeMove) -> Result<(), DesignError> {
        let draws = self.lift.draws(movement, self.was_down)?;
        let is_down = self.lift.is_down(movement, self.was_down);
        let changes_tool = movement.tool_number != self.tool_number;
        if changes_tool {
            self.finish()?;
            self.tool_number = movement.tool_number;
        }
        if draws {
            self.draw(movement)?;
        }
        let is_interrupted = movement.pauses || changes_tool;
        if !is_down || movement.pauses {
            self.finish()?;
            self.pauses |= movement.pauses && self.has_drawn;
        }
        if !is_down {
            self.was_down = false;
            return Ok(());
        }
        if self.path.is_empty() && !is_interrupted {
            // The pen came down here, and may go up again without moving: a dot.
            self.start(movement.to, movement.line);
        }
        self.was_down = is_down;
        Ok(())
    }

    fn start(&mut self, [x, y, _]: [f64; 3], line: usize) {
        self.path.push([x, y]);
        self.from_line = line;
    }

    fn draw(&mut self, movement: &GcodeMove) -> Result<(), DesignError> {
        if self.path.is_empty() {
            self.start(movement.from, movement.line);
        }
        let [x, y, _] = movement.to;
        match movement.motion {
            GcodeMotion::Arc { centre, sweep_rad } => {
                let error_mm = self.strokes.chord_error_mm;
                flatten::arc(&mut self.path, centre, sweep_rad, [x, y], error_mm);
            }
            GcodeMotion::Rapid | GcodeMotion::Straight | GcodeMotion::None => {
                self.path.push([x, y]);
            }
        }
        if self.path.len() > self.strokes.points_left() {
            return Err(self.strokes.too_many_points(&line_name(movement.line)));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), DesignError> {
        if self.path.is_empty() {
            return Ok(());
        }
        let template = DesignStroke {
            pen: self.pens.pen_of(self.tool_number, self.from_line)?,
            pause_before: std::mem::take(&mut self.pauses),
            source: format!("{}{}", self.prefix, line_name(self.from_line)),
            ..DesignStroke::default()
        };
        self.has_drawn = true;
        self.strokes.push(std::mem::take(&mut self.path), &template)
    }
}

#[cfg(test)]
mod tests;
