//! From the units of a file to millimetres: plotter units, scaling points, user units, rotation.

use base::plane::Point;

use super::super::DesignError;
use super::commands::HpglCommand;

/// Plotter units in a millimetre.
pub(super) const UNITS_PER_MM: f64 = 40.0;

/// The scaling points of a sheet A4, where no IP says others.
const SCALING_POINTS: [Point; 2] = [[603.0, 521.0], [10603.0, 7721.0]];

/// Meaning of a file's coordinates at a moment.
#[derive(Clone, Debug)]
pub(super) struct PlotterCoordinates {
    scaling_points: [Point; 2],
    /// The file said its scaling points.
    has_own_points: bool,
    /// User units of SC: where an axis' coordinate is 0, in plotter units, and how many of these a unit has.
    user: Option<[AxisScale; 2]>,
    /// The SC that they are of: it holds between whichever scaling points come.
    scaled_by: Option<HpglCommand>,
    pub(super) quarter_turns: u8,
}

#[derive(Clone, Copy, Debug)]
struct AxisScale {
    zero: f64,
    units: f64,
}

impl AxisScale {
    /// Of an axis whose coordinate `user` lies at `plotter`.
    fn between(user: f64, plotter: f64, units: f64) -> Self {
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
            scaled_by: None,
            quarter_turns: 0,
        }
    }
}

impl PlotterCoordinates {
    /// IP: the scaling points, in plotter units. User units move and grow with them.
    pub(super) fn set_scaling_points(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        let [[x1, y1], [x2, y2]] = self.scaling_points;
        let first = [command.number(0, x1), command.number(1, y1)];
        // The second follows the first where it is not said.
        let moved = [x2 - x1 + first[0], y2 - y1 + first[1]];
        let mut second = [command.number(2, moved[0]), command.number(3, moved[1])];
        // Where both are the same a plotter takes the next unit.
        for (second, first) in second.iter_mut().zip(first) {
            *second += f64::from(u8::from((*second - first).abs() < 1.0));
        }
        (self.scaling_points, self.has_own_points) = match command.numbers.is_empty() {
            true => (SCALING_POINTS, false),
            false => ([first, second], true),
        };
        match self.scaled_by.take() {
            Some(scaled_by) => self.set_user_units(&scaled_by),
            None => Ok(()),
        }
    }

    /// SC: user units between the scaling points, or none.
    pub(super) fn set_user_units(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        if command.numbers.is_empty() {
            (self.user, self.scaled_by) = (None, None);
            return Ok(());
        }
        command.needs(4)?;
        let kind = command.choice(4, 0);
        let [[x1, y1], [x2, y2]] = self.scaling_points;
        let numbers = |axis: usize| [2 * axis, 2 * axis + 1].map(|at| command.number(at, 0.0));
        let axes = [(numbers(0), [x1, x2]), (numbers(1), [y1, y2])];
        let mut user = axes.map(|([from, to], [low, high])| {
            // Of type 2 the second number is the units themselves.
            let units = match kind {
                2 => to,
                _ => (high - low) / (to - from),
            };
            AxisScale::between(from, low, units)
        });
        if kind == 1 {
            // The same scale both ways, with what is left over on both sides alike.
            let least = user[0].units.abs().min(user[1].units.abs());
            for (scale, ([from, to], [low, high])) in user.iter_mut().zip(axes) {
                let units = least * scale.units.signum();
                *scale = AxisScale::between((from + to) / 2.0, (low + high) / 2.0, units);
            }
        }
        let is_usable = |scale: &AxisScale| scale.units.is_finite() && scale.units != 0.0;
        if !user.iter().all(is_usable) {
            return Err(command.wrong(
                "SC with two equal coordinates",
                "the lowest and the highest x and y, such as SC0,100,0,80",
            ));
        }
        (self.user, self.scaled_by) = (Some(user), Some(command.clone()));
        Ok(())
    }

    /// RO: turns all that follows.
    pub(super) fn rotate(&mut self, command: &HpglCommand) -> Result<(), DesignError> {
        self.quarter_turns = match command.choice(0, 0) {
            0 => 0,
            90 => 1,
            180 => 2,
            270 => 3,
            other => {
                return Err(command.wrong(format!("RO{other}"), "0, 90, 180 or 270 degrees"));
            }
        };
        Ok(())
    }

    /// The scale depends on a plotter's own scaling points.
    pub(super) fn is_of_unknown_size(&self) -> bool {
        self.user.is_some() && !self.has_own_points
    }

    pub(super) fn to_plotter(&self, [x, y]: Point) -> Point {
        match self.user {
            None => [x, y],
            Some([of_x, of_y]) => [of_x.zero + x * of_x.units, of_y.zero + y * of_y.units],
        }
    }

    pub(super) fn to_user(&self, [x, y]: Point) -> Point {
        match self.user {
            None => [x, y],
            Some([of_x, of_y]) => [(x - of_x.zero) / of_x.units, (y - of_y.zero) / of_y.units],
        }
    }

    /// A plotter's place in millimetres, turned as RO says.
    pub(super) fn to_mm(&self, [x, y]: Point) -> Point {
        let [x, y] = [x / UNITS_PER_MM, y / UNITS_PER_MM];
        match self.quarter_turns {
            0 => [x, y],
            1 => [-y, x],
            2 => [-x, -y],
            _ => [y, -x],
        }
    }

    /// The larger of a user unit's two lengths, in mm.
    pub(super) fn mm_per_user_unit(&self) -> f64 {
        let units = |[x, y]: [AxisScale; 2]| x.units.abs().max(y.units.abs());
        self.user.map_or(1.0, units) / UNITS_PER_MM
    }

    /// Distances between the scaling points along both axes, in mm.
    pub(super) fn frame_mm(&self) -> Point {
        let [[x1, y1], [x2, y2]] = self.scaling_points;
        [x2 - x1, y2 - y1].map(|units| units.abs() / UNITS_PER_MM)
    }
}
