//! Decides when the pen of a G-code file is lifted: by Z, by M3 and M5, or by G0 itself.

use super::super::DesignError;
use super::machine::{GcodeMotion, GcodeMove};
use super::tool_switch::PowerRange;
use super::undrawable;

/// One rule for a whole file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LiftRule {
    /// G0 travels, G1 to G3 draw.
    Rapid,
    /// The pen is down at this height and below.
    Height { down_max_mm: f64 },
    /// The pen is down while the tool has a power in this range.
    Tool { down: PowerRange },
}

impl LiftRule {
    /// Returns whether the pen is down after this move.
    pub(super) fn is_down(self, movement: &GcodeMove, was_down: bool) -> bool {
        match self {
            Self::Height { down_max_mm } => {
                movement.is_height_known && movement.to[2] <= down_max_mm
            }
            Self::Tool { down } => down.contains(movement.tool),
            Self::Rapid => match movement.motion {
                GcodeMotion::Straight | GcodeMotion::Arc { .. } => true,
                GcodeMotion::Rapid => false,
                GcodeMotion::None => was_down,
            },
        }
    }

    /// Returns whether the move leaves ink.
    pub(super) fn draws(self, movement: &GcodeMove, was_down: bool) -> Result<bool, DesignError> {
        if !movement.is_along_paper() {
            return Ok(false);
        }
        let is_down = self.is_down(movement, was_down);
        match self {
            Self::Rapid => Ok(movement.motion != GcodeMotion::Rapid),
            _ if movement.motion == GcodeMotion::Rapid && was_down && is_down => Err(undrawable(
                movement.line,
                "G0 with the pen down",
                "draw with G1, or lift the pen first",
            )),
            _ if movement.motion == GcodeMotion::Rapid => Ok(false),
            Self::Height { .. } if was_down != is_down => {
                let motion = movement.motion.name();
                let found =
                    format!("{motion} that moves along the paper and also lifts or lowers the pen");
                Err(undrawable(
                    movement.line,
                    found,
                    "move Z in a line of its own",
                ))
            }
            Self::Height { .. } | Self::Tool { .. } => Ok(is_down),
        }
    }
}
