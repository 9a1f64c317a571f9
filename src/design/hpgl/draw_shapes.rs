//! Draws the shapes of HP-GL other than lines: arcs, curves, polygons, labels and ticks.

use super::super::design_error::quoted;
use super::super::{CHORD_ERROR_MM, DesignError, flatten};
use super::byte_name;
use super::commands::HpglCommand;
use super::coordinates::UNITS_PER_MM;
use super::encoded_polyline::{EncodedStep, decode_steps};
use super::plotter::{HpglPlotter, unknown};
use super::shapes::{UserArc, rectangle, wedge};

impl HpglPlotter<'_> {
    /// Returns the angle of an arc's chords if the file gives one; `None` to keep the chord error.
    fn chord_rad(&self, command: &HpglCommand, index: usize) -> Option<f64> {
        let chord_deg = command.numbers.get(index).map(|deg| deg.abs());
        let chord_deg = chord_deg.filter(|deg| !self.chord_is_distance && *deg > 0.0);
        chord_deg.map(|deg| deg.clamp(0.5, 180.0).to_radians())
    }

    pub(super) fn arc(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        let from = self.coords.to_user(self.at);
        let is_relative = matches!(&command.name, b"AR" | b"RT");
        let point = |index: usize| {
            let [x, y] = [command.number(index, 0.0), command.number(index + 1, 0.0)];
            match is_relative {
                true => [from[0] + x, from[1] + y],
                false => [x, y],
            }
        };
        let through_points = matches!(&command.name, b"AT" | b"RT");
        command.require_numbers(if through_points { 4 } else { 3 })?;
        let (arc, chord_index) = if through_points {
            let arc = UserArc::through(from, point(0), point(2)).ok_or_else(|| {
                let found = format!("{} through three points on a line", command.word());
                command.invalid(found, "three points that are not on a line")
            })?;
            (arc, 4)
        } else {
            let sweep_rad = command.number(2, 0.0).clamp(-360.0, 360.0).to_radians();
            let arc = UserArc {
                centre: point(0),
                from,
                sweep_rad,
            };
            (arc, 3)
        };
        let chord_rad = self.chord_rad(command, chord_index);
        for point in arc.points(chord_rad, self.coords.mm_per_user_unit()) {
            let to = self.coords.to_plotter(point);
            self.move_to(to, command.at)?;
        }
        Ok(())
    }

    pub(super) fn bezier(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        let is_relative = command.name == *b"BR";
        let (curves, []) = command.numbers.as_chunks() else {
            return Err(command.count_error("numbers", "six numbers for each curve"));
        };
        for [x1, y1, x2, y2, x3, y3] in curves {
            let controls = [[*x1, *y1], [*x2, *y2], [*x3, *y3]];
            let controls = controls.map(|point| self.resolve(point, is_relative));
            let mut line = vec![self.at];
            flatten::cubic(&mut line, controls, CHORD_ERROR_MM * UNITS_PER_MM);
            for to in line.into_iter().skip(1) {
                self.move_to(to, command.at)?;
            }
        }
        Ok(())
    }

    /// Draws an encoded polyline: its pen is down except for marked moves.
    pub(super) fn encoded(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        self.lift()?;
        for step in decode_steps(command)? {
            match step {
                EncodedStep::Pen(number) => {
                    self.lift()?;
                    self.select_pen(number, command)?;
                }
                EncodedStep::Move {
                    to,
                    is_absolute,
                    is_down,
                } => {
                    if !is_down {
                        self.lift()?;
                    }
                    self.is_down = is_down;
                    let to = self.resolve(to, !is_absolute);
                    self.move_to(to, command.at)?;
                }
            }
        }
        Ok(())
    }

    /// Draws circles, rectangles and wedges at the pen position, whether it is up or down; areas by
    /// their outline.
    pub(super) fn shape(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        let at = self.coords.to_user(self.at);
        let mm = self.coords.mm_per_user_unit();
        let number = |index: usize| command.number(index, 0.0);
        let (points, is_area) = match &command.name {
            b"CI" => {
                command.require_numbers(1)?;
                let chord_rad = self.chord_rad(command, 1);
                (UserArc::circle(at, number(0), chord_rad, mm), false)
            }
            b"EW" | b"WG" => {
                command.require_numbers(3)?;
                let chord_rad = self.chord_rad(command, 3);
                let sides = [number(0), number(1), number(2)];
                (wedge(at, sides, chord_rad, mm), command.name == *b"WG")
            }
            name => {
                command.require_numbers(2)?;
                let is_relative = matches!(name, b"ER" | b"RR");
                let to = match is_relative {
                    true => [at[0] + number(0), at[1] + number(1)],
                    false => [number(0), number(1)],
                };
                (rectangle(at, to), matches!(name, b"RA" | b"RR"))
            }
        };
        self.losses.filled += usize::from(is_area);
        self.outline(&points, command.at)
    }

    pub(super) fn polygon(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        self.lift()?;
        match (&command.name, command.choice(0, 0)) {
            (b"PM", 0) => self.polygon.begin(self.coords.to_mm(self.at)),
            (b"PM", 1) => self.polygon.close(),
            (b"PM", 2) => self.polygon.end(),
            (b"PM", _) => return Err(unknown(command)),
            (name, _) => {
                self.polygon.end();
                let lines = match name {
                    b"FP" => self.polygon.outlines(),
                    _ => self.polygon.edges(),
                };
                self.losses.filled += usize::from(*name == *b"FP" && !lines.is_empty());
                for line in lines {
                    self.add_line(line, command.at)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn draw_label(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        self.lift()?;
        let lines = self.label.draw(&command.text(), self.at);
        let (strokes, end) = lines.map_err(|letter| {
            DesignError::unsupported(
                byte_name(command.at),
                format!("{} in a label", quoted(letter.encode_utf8(&mut [0; 4]))),
                "use Latin letters, digits and common signs",
            )
        })?;
        // Letters have no dashes.
        self.strokes.note_capital(self.label.capital_mm());
        let line_type = std::mem::take(&mut self.line_type);
        for stroke in strokes {
            let line = stroke.into_iter().map(|point| self.coords.to_mm(point));
            self.add_line(line.collect(), command.at)?;
        }
        self.line_type = line_type;
        self.at = end;
        Ok(())
    }

    /// Draws a tick across the x axis (XT) or the y axis (YT).
    pub(super) fn tick(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        self.lift()?;
        let [width, height] = self.coords.frame_mm().map(|mm| mm * UNITS_PER_MM / 100.0);
        let ([x, y], [up, down]) = (self.at, self.tick_percent);
        let ends = if command.name == *b"XT" {
            [[x, y - down * height], [x, y + up * height]]
        } else {
            [[x - down * width, y], [x + up * width, y]]
        };
        self.add_line(ends.map(|end| self.coords.to_mm(end)).to_vec(), command.at)
    }
}
