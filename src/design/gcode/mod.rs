//! G-code → strokes: G0 to G3 in millimetres or inches, absolute or relative, with the pen lifted
//! by Z, by M3 and M5, or by G0 itself as DrawingBotV3 writes it.
//!
//! What is not known here is refused by name and line: a plotter must not guess.

mod lift;
mod machine;
mod words;

use super::collect::{Collector, Mark};
use super::{Caps, Design, DesignError, flatten};
use lift::Lift;
use machine::{Motion, Move};

const EMPTY: &str = "G1, G2 or G3 draw while the pen is down";

type Point = [f64; 2];

pub(super) fn read(name: &str, text: &str, caps: &Caps) -> Result<Design, DesignError> {
    let lift = Lift::of(text)?;
    let mut drawer = Drawer {
        lift,
        pen: pen_of(name),
        all: Collector::new(caps),
        path: Vec::new(),
        from_line: 0,
        was_down: false,
    };
    machine::run(text, |movement| drawer.take(movement))?;
    drawer.finish()?;
    drawer.all.on_own_page(EMPTY)
}

/// The 3 of `flower_pen3_red.gcode`.
fn pen_of(name: &str) -> Option<u16> {
    let name = name.rsplit(['/', '\\']).next()?;
    name.split('_').find_map(|part| {
        let part = part.split('.').next()?;
        part.strip_prefix("pen")?.parse().ok()
    })
}

/// How a message calls a line.
fn at(line: usize) -> String {
    format!("line {line}")
}

struct Drawer<'c> {
    lift: Lift,
    pen: Option<u16>,
    all: Collector<'c>,
    /// Under the pen since it came down.
    path: Vec<Point>,
    from_line: usize,
    was_down: bool,
}

impl Drawer<'_> {
    fn take(&mut self, movement: &Move) -> Result<(), DesignError> {
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

    fn draw(&mut self, movement: &Move) -> Result<(), DesignError> {
        if self.path.is_empty() {
            self.start(movement.from, movement.line);
        }
        let [x, y, _] = movement.to;
        match movement.motion {
            Motion::Arc { centre, sweep_rad } => {
                flatten::arc(&mut self.path, centre, sweep_rad, [x, y]);
            }
            Motion::Rapid | Motion::Straight | Motion::None => self.path.push([x, y]),
        }
        if self.path.len() > self.all.room() {
            return Err(self.all.full(&at(movement.line)));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), DesignError> {
        if self.path.is_empty() {
            return Ok(());
        }
        let mark = Mark {
            colour: None,
            pen: self.pen,
            source: at(self.from_line),
        };
        self.all.push(std::mem::take(&mut self.path), &mark)
    }
}

#[cfg(test)]
mod tests;
