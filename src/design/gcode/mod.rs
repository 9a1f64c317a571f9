//! G-code → strokes: G0 to G3 in millimetres or inches, absolute or relative, with the pen lifted by Z, by M3 and M5,
//! or by G0 itself as DrawingBotV3 writes it: by the one that changes between cuts.
//!
//! What is not known here is refused by name and line: a plotter must not guess.

mod gcode_words;
mod lift_evidence;
mod machine;
mod pen_lift;
mod pen_sets;
mod tool_switch;

use base::plane::Point;

use super::collect_strokes::StrokeCollector;
use super::{Design, DesignCaps, DesignError, DesignStroke, flatten};
use lift_evidence::LiftEvidence;
use machine::{GcodeMotion, GcodeMove};
use pen_lift::LiftRule;
use pen_sets::PenNumbering;
pub use pen_sets::set_of;

const EMPTY: &str = "G1, G2 or G3 draw while the pen is down";

/// Reads files, each a name and its text, that share their coordinates and so their page.
pub(super) fn read(files: &[(&str, &str)], caps: &DesignCaps) -> Result<Design, DesignError> {
    let mut all = StrokeCollector::new(caps);
    let pens = PenNumbering::of(files.iter().map(|(name, _)| *name));
    for (name, text) in files {
        let pen = pens.pen_of(name);
        if files.len() > 1 {
            let of_file = format!("{name} ");
            read_one(text, pen, of_file, &mut all).map_err(|error| error.in_file(name))?;
        } else {
            read_one(text, pen, String::new(), &mut all)?;
        }
    }
    let mut design = all.on_page_about_origin(EMPTY)?;
    design.notes.extend(pens.note());
    Ok(design)
}

fn read_one(
    text: &str,
    pen: Option<u16>,
    of_file: String,
    all: &mut StrokeCollector<'_>,
) -> Result<(), DesignError> {
    let mut drawer = GcodePlotter {
        lift: LiftEvidence::of(text)?.judge(text)?,
        pen,
        of_file,
        all,
        path: Vec::new(),
        from_line: 0,
        was_down: false,
        has_drawn: false,
        pauses: false,
    };
    machine::run(text, |movement| drawer.take(movement))?;
    drawer.finish()
}

/// Returns the name of a line for messages.
fn line_name(line: usize) -> String {
    format!("line {line}")
}

/// Returns the error that a line is not as G-code is written.
fn wrong(line: usize, found: impl Into<String>, accepted: &str) -> DesignError {
    DesignError::syntax(line_name(line), found, accepted)
}

/// Returns the error that what a line asks for cannot be drawn.
fn undrawable(line: usize, found: impl Into<String>, fix: impl Into<String>) -> DesignError {
    DesignError::unsupported(line_name(line), found, fix)
}

struct GcodePlotter<'a, 'c> {
    lift: LiftRule,
    pen: Option<u16>,
    /// Comes before the line's number where there are several files.
    of_file: String,
    all: &'a mut StrokeCollector<'c>,
    /// Under the pen since it came down.
    path: Vec<Point>,
    from_line: usize,
    was_down: bool,
    has_drawn: bool,
    /// The machine stopped for its operator since the last stroke, which was not before the first.
    pauses: bool,
}

impl GcodePlotter<'_, '_> {
    fn take(&mut self, movement: &GcodeMove) -> Result<(), DesignError> {
        let draws = self.lift.draws(movement, self.was_down)?;
        let is_down = self.lift.is_down(movement, self.was_down);
        if draws {
            self.draw(movement)?;
        }
        if !is_down || movement.pauses {
            self.finish()?;
            self.pauses |= movement.pauses && self.has_drawn;
        }
        if !is_down {
            self.was_down = false;
            return Ok(());
        }
        if self.path.is_empty() && !movement.pauses {
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
                flatten::arc(&mut self.path, centre, sweep_rad, [x, y]);
            }
            GcodeMotion::Rapid | GcodeMotion::Straight | GcodeMotion::None => {
                self.path.push([x, y]);
            }
        }
        if self.path.len() > self.all.room() {
            return Err(self.all.full(&line_name(movement.line)));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), DesignError> {
        if self.path.is_empty() {
            return Ok(());
        }
        let mark = DesignStroke {
            pen: self.pen,
            pause_before: std::mem::take(&mut self.pauses),
            source: format!("{}{}", self.of_file, line_name(self.from_line)),
            ..DesignStroke::default()
        };
        self.has_drawn = true;
        self.all.push(std::mem::take(&mut self.path), &mark)
    }
}

#[cfg(test)]
mod tests;
