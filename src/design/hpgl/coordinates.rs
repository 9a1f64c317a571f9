//! Converts the units of a file to millimetres: plotter units, scaling points, user units,
//! rotation.

use base::plane::Point;

use super::super::DesignError;
use super::commands::HpglCommand;

/// Plotter units in a millimetre.
pub(super) const UNITS_PER_MM: f64 = 40.0;

/// Scaling points of an A4 sheet, unless IP sets others.
const SCALING_POINTS: [Point; 2] = [[603.0, 521.0], [10603.0, 7721.0]];

/// The current meaning of a file's coordinates.
#[derive(Clone, Debug)]
pub(super) struct PlotterCoordinates {
    scaling_points: [Point; 2],
    /// True if the file sets its scaling points.
    has_own_points: bool,
    /// User units of SC: where the coordinate of each axis is 0, in plotter units, and how many
    /// plotter units a user unit has.
    user: Option<[AxisScale; 2]>,
    /// The SC that set them: it applies again when the scaling points change.
    sc_command: Option<HpglCommand>,
    pub(super) quarter_turns: u8,
}

#[derive(Clone, Copy, Debug)]
struct AxisScale {
    zero: f64,
    units: f64,
}

impl AxisScale {
    /// Returns the scale of an axis whose coordinate `user` lies at `plotter`.
    fn through(user: f64, plotter: f64, units: f64) -> Self {
        let zero = plotter - user * units;
        Self { zero, units }
    }
}

impl Default for PlotterCoordinates {
    fn default() -> Self {
        Self {
            scaling_points: SCALING_POINTS,
            has_own_points: false,
            user: None,
            sc_command: None,
            quarter_turns: 0,
        }
    }
}

impl PlotterCoordinates {
    /// IP: sets the scaling points, in plotter units. User units move and scale with them.
    pub(super) fn set_scaling_points(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        let [[x1, y1], [x2, y2]] = self.scaling_points;
        let first = [command.number(0, x1), command.number(1, y1)];
        // The second moves with the first if it is not given.
        let moved = [x2 - x1 + first[0], y2 - y1 + first[1]];
        let mut second = [command.number(2, moved[0]), command.number(3, moved[1])];
        // If both are equal, a plotter uses the next unit.
        for (second, first) in second.iter_mut().zip(first) {
            *second += f64::from(u8::from((*second - first).abs() < 1.0));
        }
        (self.scaling_points, self.has_own_points) = match command.numbers.is_empty() {
            true => (SCALING_POINTS, false),
            false => ([first, second], true),
        };
        match self.sc_command.take() {
            Some(sc_command) => self.set_user_units(&sc_command),
            None => Ok(()),
        }
    }

    /// SC: sets user units between the scaling points, or none.
    pub(super) fn set_user_units(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        if command.numbers.is_empty() {
            (self.user, self.sc_command) = (None, None);
            return Ok(());
        }
        command.require_numbers(4)?;
        let kind = command.choice(4, 0);
        let [[x1, y1], [x2, y2]] = self.scaling_points;
        let numbers = |axis: usize| [2 * axis, 2 * axis + 1].map(|at| command.number(at, 0.0));
        let axes = [(numbers(0), [x1, x2]), (numbers(1), [y1, y2])];
        let mut user = axes.map(|([from, to], [low, high])| {
            // In type 2 the second number is the unit itself.
            let units = match kind {
                2 => to,
                _ => (high - low) / (to - from),
            };
            AxisScale::through(from, low, units)
        });
        if kind == 1 {
            // Type 1 has the same scale on both axes, with equal margins on both sides.
            let least = user[0].units.abs().min(user[1].units.abs());
            for (scale, ([from, to], [low, high])) in user.iter_mut().zip(axes) {
                let units = least * scale.units.signum();
                *scale = AxisScale::through((from + to) / 2.0, (low + high) / 2.0, units);
            }
        }
        let is_usable = |scale: &AxisScale| scale.units.is_finite() && scale.units != 0.0;
        if !user.iter().all(is_usable) {
            return Err(command.invalid(
                "SC with two equal coordinates",
                "the lowest and the highest x and y, such as SC0,100,0,80",
            ));
        }
        (self.user, self.sc_command) = (Some(user), Some(command.clone()));
        Ok(())
    }

    /// RO: rotates all that follows.
    pub(super) fn rotate(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        self.quarter_turns = match command.choice(0, 0) {
            0 => 0,
            90 => 1,
            180 => 2,
            270 => 3,
            other => {
                return Err(command.invalid(format!("RO{other}"), "0, 90, 180 or 270 degrees"));
            }
        };
        Ok(())
    }

    /// Returns whether the scale depends on a plotter's own scaling points.
    pub(super) fn has_unknown_size(&self) -> bool {
        self.user.is_some() && !self.has_own_points
    }

    pub(super) fn to_plotter(&self, [x, y]: Point) -> Point {
        match self.user {
            None => [x, y],
            Some([sx, sy]) => [sx.zero + x * sx.units, sy.zero + y * sy.units],
        }
    }

    pub(super) fn to_user(&self, [x, y]: Point) -> Point {
        match self.user {
            None => [x, y],
            Some([sx, sy]) => [(x - sx.zero) / sx.units, (y - sy.zero) / sy.units],
        }
    }

    /// Converts plotter units to millimetres, rotated by RO.
    pub(super) fn to_mm(&self, [x, y]: Point) -> Point {
        let [x, y] = [x / UNITS_PER_MM, y / UNITS_PER_MM];
        match self.quarter_turns {
            0 => [x, y],
            1 => [-y, x],
            2 => [-x, -y],
            _ => [y, -x],
        }
    }

    /// Returns the longer of a user unit's two lengths, in mm.
    pub(super) fn mm_per_user_unit(&self) -> f64 {
        let units = |[x, y]: [AxisScale; 2]| x.units.abs().max(y.units.abs());
        self.user.map_or(1.0, units) / UNITS_PER_MM
    }

    /// Returns the distances between the scaling points along both axes, in mm.
    pub(super) fn frame_mm(&self) -> Point {
        let [[x1, y1], [x2, y2]] = self.scaling_points;
        [x2 - x1, y2 - y1].map(|units| units.abs() / UNITS_PER_MM)
    }
}
