//! Pen lift of a G-code file: by Z, by M3 and M5, or by G0 itself.

use super::super::DesignError;
use super::line_name;
use super::machine::{self, GcodeMotion, GcodeMove};

/// Heights nearer than this to 0 are 0.
const ZERO_MM: f64 = 1e-6;

/// One rule for a whole file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LiftRule {
    /// G0 travels, G1 to G3 draw.
    Rapid,
    /// The pen is down at this height and below.
    Height { down_max_mm: f64 },
    /// The pen is down while M3 or M4 holds.
    Tool,
}

/// Statements of a file about heights and tools.
#[derive(Default)]
struct LiftEvidence {
    tool: bool,
    above: bool,
    level: bool,
    below: bool,
    /// Line of the lowest or highest point, for the refusal.
    line: usize,
    heights: Option<(f64, f64)>,
}

impl LiftRule {
    pub(super) fn from_text(text: &str) -> Result<Self, DesignError> {
        let mut signs = LiftEvidence::default();
        machine::run(text, |movement| {
            signs.see(movement);
            Ok(())
        })?;
        signs.judge()
    }

    /// Returns whether the pen is down after this move.
    pub(super) fn is_down(self, movement: &GcodeMove, was_down: bool) -> bool {
        match self {
            Self::Height { down_max_mm } => {
                movement.height_is_known && movement.to[2] <= down_max_mm
            }
            Self::Tool => movement.tool_is_on,
            Self::Rapid => match movement.motion {
                GcodeMotion::Straight | GcodeMotion::Arc { .. } => true,
                GcodeMotion::Rapid => false,
                GcodeMotion::None => was_down,
            },
        }
    }

    /// Returns whether the move leaves ink.
    pub(super) fn draws(self, movement: &GcodeMove, was_down: bool) -> Result<bool, DesignError> {
        let [from, to] = [movement.from, movement.to];
        let moves = (to[0] - from[0]).hypot(to[1] - from[1]) > 0.0;
        let is_down = self.is_down(movement, was_down);
        match (self, movement.motion) {
            (_, GcodeMotion::None) => Ok(false),
            (Self::Rapid, motion) => Ok(motion != GcodeMotion::Rapid),
            (_, GcodeMotion::Rapid) if moves && was_down && is_down => {
                Err(DesignError::unsupported(
                    line_name(movement.line),
                    "G0 with the pen down",
                    "draw with G1, or lift the pen first",
                ))
            }
            (_, GcodeMotion::Rapid) => Ok(false),
            (Self::Height { .. }, GcodeMotion::Straight) if moves && was_down != is_down => {
                Err(DesignError::unsupported(
                    line_name(movement.line),
                    "G1 along the paper that also lifts or lowers the pen",
                    "move Z in a line of its own",
                ))
            }
            (Self::Tool, _) => Ok(is_down),
            (Self::Height { .. }, GcodeMotion::Arc { .. }) => Ok(was_down && is_down),
            (Self::Height { .. }, GcodeMotion::Straight) => Ok(moves && was_down && is_down),
        }
    }
}

impl LiftEvidence {
    fn see(&mut self, movement: &GcodeMove) {
        self.tool |= movement.tool_is_on;
        let height = movement.to[2];
        if !movement.height_is_known {
            return;
        }
        let (low, high) = self.heights.unwrap_or((height, height));
        if self.heights.is_none() || height < low || height > high {
            self.line = movement.line;
        }
        self.heights = Some((low.min(height), high.max(height)));
        match height {
            h if h > ZERO_MM => self.above = true,
            h if h < -ZERO_MM => self.below = true,
            _ => self.level = true,
        }
    }

    fn judge(&self) -> Result<LiftRule, DesignError> {
        if self.tool {
            return Ok(LiftRule::Tool);
        }
        match (self.above, self.level, self.below) {
            (true, true, false) => Ok(LiftRule::Height {
                down_max_mm: ZERO_MM,
            }),
            (_, false, true) if self.above => Ok(LiftRule::Height { down_max_mm: 0.0 }),
            (false, true, true) => Ok(LiftRule::Height {
                down_max_mm: -ZERO_MM,
            }),
            (true, true, true) => Err(self.refusal("heights above, at and below 0")),
            _ if self.one_height() => Ok(LiftRule::Rapid),
            _ => Err(self.refusal("several heights, all on one side of 0")),
        }
    }

    fn one_height(&self) -> bool {
        self.heights
            .is_none_or(|(low, high)| (high - low).abs() <= ZERO_MM)
    }

    fn refusal(&self, found: &str) -> DesignError {
        let (low, high) = self.heights.unwrap_or((0.0, 0.0));
        DesignError::unsupported(
            line_name(self.line),
            format!("{found} (Z from {low} to {high} mm)"),
            "lift the pen to one Z above 0 and draw at one at or below 0",
        )
    }
}
