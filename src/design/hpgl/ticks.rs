//! Ticks of HP-GL's axes.

use base::plane::Point;

use super::commands::HpglCommand;
use super::coordinates::{PlotterCoordinates, UNITS_PER_MM};

/// Half-lengths of ticks: TL, in hundredths of the distance between the scaling points.
#[derive(Clone, Copy, Debug)]
pub(super) struct TickLengths {
    pub(super) up_percent: f64,
    pub(super) down_percent: f64,
}

impl TickLengths {
    pub(super) const DEFAULT: Self = Self {
        up_percent: 0.5,
        down_percent: 0.5,
    };

    pub(super) fn of(command: &HpglCommand) -> Self {
        if command.numbers.is_empty() {
            return Self::DEFAULT;
        }
        Self {
            up_percent: command.number(0, 0.0),
            down_percent: command.number(1, 0.0),
        }
    }

    /// A tick across the x axis (XT) or across the y axis, in plotter units.
    pub(super) fn tick(self, at: Point, place: &PlotterCoordinates, across_x: bool) -> Vec<Point> {
        let [width, height] = place.frame_mm().map(|mm| mm * UNITS_PER_MM / 100.0);
        let ends = [-self.down_percent, self.up_percent];
        let end = |percent: f64| match across_x {
            true => [at[0], at[1] + percent * height],
            false => [at[0] + percent * width, at[1]],
        };
        ends.map(end).to_vec()
    }
}
