//! Shapes of HP-GL beside lines: arcs, curves, polygons, labels and ticks.

use base::plane::Point;

use super::super::design_error::quoted;
use super::super::{CHORD_ERROR_MM, DesignError, flatten};
use super::byte_name;
use super::commands::HpglCommand;
use super::coordinates::UNITS_PER_MM;
use super::encoded_polyline::{EncodedStep, steps};
use super::plotter::{HpglPlotter, unknown};
use super::shapes::{UserArc, rectangle, wedge};

impl HpglPlotter<'_> {
    /// The angle of a chord, which the arc has as many of as its file says; none to be as round as can be.
    fn chord_rad(&self, command: &HpglCommand, index: usize) -> Option<f64> {
        let chord_deg = command.numbers.get(index).copied().map(f64::abs);
        chord_deg
            .filter(|deg| !self.chord_is_distance && *deg > 0.0)
            .map(|deg| deg.clamp(0.5, 180.0).to_radians())
    }

    pub(super) fn arc(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        let from = self.place.to_user(self.at);
        let is_relative = matches!(&command.name, b"AR" | b"RT");
        let point = |index: usize| {
            let [x, y] = [command.number(index, 0.0), command.number(index + 1, 0.0)];
            match is_relative {
                true => [from[0] + x, from[1] + y],
                false => [x, y],
            }
        };
        let through_points = matches!(&command.name, b"AT" | b"RT");
        command.needs(if through_points { 4 } else { 3 })?;
        let (arc, chord_index) = if through_points {
            let arc = UserArc::through(from, point(0), point(2)).ok_or_else(|| {
                let found = format!("{} through points on a line", command.word());
                DesignError::syntax(byte_name(command.at), found, "three points of an arc")
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
        for point in arc.points(chord_rad, self.place.mm_per_user_unit()) {
            let to = self.place.to_plotter(point);
            self.go(to, command.at)?;
        }
        Ok(())
    }

    pub(super) fn bezier(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        let is_relative = command.name == *b"BR";
        if !command.numbers.len().is_multiple_of(6) {
            let found = format!("{} with {} numbers", command.word(), command.numbers.len());
            return Err(DesignError::syntax(
                byte_name(command.at),
                found,
                "six for each curve",
            ));
        }
        let points: Vec<Point> = command.points()?.collect();
        for curve in points.chunks_exact(3) {
            let to: Vec<Point> = curve.iter().map(|p| self.named(*p, is_relative)).collect();
            let [first, second, end] = to.as_slice() else {
                continue;
            };
            let mut line = vec![self.at];
            let error = CHORD_ERROR_MM * UNITS_PER_MM;
            flatten::cubic(&mut line, [*first, *second, *end], error);
            for to in line.into_iter().skip(1) {
                self.go(to, command.at)?;
            }
        }
        Ok(())
    }

    /// An encoded polyline, whose pen is down but for the moves that it marks.
    pub(super) fn encoded(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        self.lift()?;
        for step in steps(command)? {
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
                    let to = self.named(to, !is_absolute);
                    self.go(to, command.at)?;
                }
            }
        }
        Ok(())
    }

    /// Circles, rectangles and wedges, drawn wherever the pen is; areas by their outline.
    pub(super) fn shape(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        let at = self.place.to_user(self.at);
        let mm = self.place.mm_per_user_unit();
        let number = |index: usize| command.number(index, 0.0);
        let (points, is_area) = match &command.name {
            b"CI" => {
                command.needs(1)?;
                let chord_rad = self.chord_rad(command, 1);
                (UserArc::circle(at, number(0), chord_rad, mm), false)
            }
            b"EW" | b"WG" => {
                command.needs(3)?;
                let chord_rad = self.chord_rad(command, 3);
                let sides = [number(0), number(1), number(2)];
                (wedge(at, sides, chord_rad, mm), command.name == *b"WG")
            }
            name => {
                command.needs(2)?;
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
            (b"PM", 0) => self.polygon.begin(self.place.to_mm(self.at)),
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
                    self.leave(line, command.at)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn write(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        self.lift()?;
        let label = self
            .label
            .laid(&command.text(), self.at)
            .map_err(|letter| {
                DesignError::unsupported(
                    byte_name(command.at),
                    format!("{} in a label", quoted(letter.encode_utf8(&mut [0; 4]))),
                    "use Latin letters, digits and common signs",
                )
            })?;
        for stroke in label.strokes {
            let line = stroke.into_iter().map(|point| self.place.to_mm(point));
            let line = line.collect();
            // Letters have no dashes.
            let line_type = std::mem::take(&mut self.line_type);
            let left = self.leave(line, command.at);
            self.line_type = line_type;
            left?;
        }
        self.at = label.end;
        Ok(())
    }

    pub(super) fn tick(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        self.lift()?;
        let tick = self
            .ticks
            .tick(self.at, &self.place, command.name == *b"XT");
        let line = tick
            .into_iter()
            .map(|point| self.place.to_mm(point))
            .collect();
        self.leave(line, command.at)
    }
}
