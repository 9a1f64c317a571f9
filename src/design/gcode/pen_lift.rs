//! Pen lift of a G-code file: by Z, by M3 and M5, or by G0 itself.

use super::super::DesignError;
use super::lift_evidence::LiftEvidence;
use super::line_name;
use super::machine::{GcodeMotion, GcodeMove};
use super::tool_switch::ToolLevel;

/// One rule for a whole file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LiftRule {
    /// G0 travels, G1 to G3 draw.
    Rapid,
    /// The pen is down at this height and below.
    Height { down_max_mm: f64 },
    /// The pen is down while the tool is at this level.
    Tool { down: ToolLevel },
}

impl LiftRule {
    /// Reads the rule from the whole of a file: by Z where Z moves between cuts, by the tool's switch where only that
    /// does, by G0 where neither does.
    pub(super) fn from_text(text: &str) -> Result<Self, DesignError> {
        LiftEvidence::of(text)?.judge(text)
    }

    /// Returns whether the pen is down after this move.
    pub(super) fn is_down(self, movement: &GcodeMove, was_down: bool) -> bool {
        match self {
            Self::Height { down_max_mm } => {
                movement.height_is_known && movement.to[2] <= down_max_mm
            }
            Self::Tool { down } => movement.tool == down,
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
            _ if movement.motion == GcodeMotion::Rapid => {
                refuse_rapid_with_pen_down(movement, was_down && is_down)
            }
            Self::Height { .. } if was_down != is_down => Err(DesignError::unsupported(
                line_name(movement.line),
                format!(
                    "{} along the paper that also lifts or lowers the pen",
                    movement.motion.name()
                ),
                "move Z in a line of its own",
            )),
            Self::Height { .. } | Self::Tool { .. } => Ok(is_down),
        }
    }
}

fn refuse_rapid_with_pen_down(movement: &GcodeMove, is_down: bool) -> Result<bool, DesignError> {
    if !is_down {
        return Ok(false);
    }
    Err(DesignError::unsupported(
        line_name(movement.line),
        "G0 with the pen down",
        "draw with G1, or lift the pen first",
    ))
}
