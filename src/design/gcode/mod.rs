//! G-code → strokes: G0 to G3 in millimetres or inches, absolute or relative, with the pen lifted
//! by Z, by M3 and M5, or by G0 itself as DrawingBotV3 writes it.
//!
//! What is not known here is refused by name and line: a plotter must not guess.

mod gcode_words;
mod machine;
mod pen_lift;

use super::collect_strokes::{StrokeAttributes, StrokeCollector};
use super::{Design, DesignCaps, DesignError, flatten};
use machine::{GcodeMotion, GcodeMove};
use pen_lift::LiftRule;

const EMPTY: &str = "G1, G2 or G3 draw while the pen is down";

type Point = [f64; 2];

/// Reads files, each a name and its text, that share their coordinates and so their page.
pub(super) fn read(files: &[(&str, &str)], caps: &DesignCaps) -> Result<Design, DesignError> {
    let mut all = StrokeCollector::new(caps);
    for (name, text) in files {
        let file = (files.len() > 1).then_some(*name);
        all = read_one(name, text, file, all).map_err(|error| match file {
            Some(file) => error.in_file(file),
            None => error,
        })?;
    }
    all.on_own_page(EMPTY)
}

fn read_one<'c>(
    name: &str,
    text: &str,
    file: Option<&str>,
    all: StrokeCollector<'c>,
) -> Result<StrokeCollector<'c>, DesignError> {
    let mut drawer = GcodePlotter {
        lift: LiftRule::from_text(text)?,
        pen: pen_of(name),
        of_file: file.map_or_else(String::new, |file| format!("{file} ")),
        all,
        path: Vec::new(),
        from_line: 0,
        was_down: false,
    };
    machine::run(text, |movement| drawer.take(movement))?;
    drawer.finish()?;
    Ok(drawer.all)
}

/// The 3 of `flower_pen3_red.gcode`.
fn pen_of(name: &str) -> Option<u16> {
    let name = name.rsplit(['/', '\\']).next()?;
    name.split('_').find_map(|part| {
        let part = part.split('.').next()?;
        part.strip_prefix("pen")?.parse().ok()
    })
}

/// The `flower` of `flower_pen3_red.gcode`; none of other files.
pub(super) fn set_of(name: &str) -> Option<&str> {
    let (_, ending) = name.rsplit_once('.')?;
    let is_gcode = matches!(
        ending.to_ascii_lowercase().as_str(),
        "gcode" | "gco" | "nc" | "ngc"
    );
    pen_of(name).filter(|_| is_gcode)?;
    let mut marks = name.match_indices("_pen");
    let (at, _) = marks.find(|(at, mark)| {
        let number = name.get(at + mark.len()..).unwrap_or("");
        let behind = number.trim_start_matches(|c: char| c.is_ascii_digit());
        behind.len() < number.len() && behind.starts_with(['_', '.'])
    })?;
    name.get(..at).filter(|stem| !stem.is_empty())
}

/// Returns the name of a line for messages.
fn line_name(line: usize) -> String {
    format!("line {line}")
}

struct GcodePlotter<'c> {
    lift: LiftRule,
    pen: Option<u16>,
    /// Comes before the line's number where there are several files.
    of_file: String,
    all: StrokeCollector<'c>,
    /// Under the pen since it came down.
    path: Vec<Point>,
    from_line: usize,
    was_down: bool,
}

impl GcodePlotter<'_> {
    fn take(&mut self, movement: &GcodeMove) -> Result<(), DesignError> {
        let draws = self.lift.draws(movement, self.was_down)?;
        let is_down = self.lift.is_down(movement, self.was_down);
        if draws {
            self.draw(movement)?;
        }
        if !is_down {
            self.finish()?;
        } else if self.path.is_empty() {
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
        let mark = StrokeAttributes {
            colour: None,
            pen: self.pen,
            source: format!("{}{}", self.of_file, line_name(self.from_line)),
        };
        self.all.push(std::mem::take(&mut self.path), &mark)
    }
}

#[cfg(test)]
mod tests;
