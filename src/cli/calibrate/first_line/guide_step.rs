//! The steps from the box to the first line, with their texts.

use serde::{Deserialize, Serialize};

/// A step of the guide, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GuideStep {
    Port,
    Doctor,
    Serve,
    Joints,
    Zeros,
    Tool,
    Sheet,
    Enable,
    Feel,
    Align,
    Cross,
    Line,
}

/// A step with its texts.
pub(super) struct GuideStepWords {
    pub(super) step: GuideStep,
    pub(super) title: &'static str,
    reason: &'static str,
    duration: &'static str,
    /// Accuracy that the step leaves behind.
    result: &'static str,
}

/// The steps with their texts, in order.
pub(super) const STEPS: [GuideStepWords; 12] = [
    GuideStepWords {
        step: GuideStep::Port,
        title: "the port",
        reason: "the whole guide talks to the arm through it",
        duration: "a second",
        result: "the device to which the arm is connected",
    },
    GuideStepWords {
        step: GuideStep::Doctor,
        title: "the doctor",
        reason: "it finds a loose cable or a wrong id before the pen touches the paper",
        duration: "up to a minute",
        result: "which servos answer on the bus; nothing is written",
    },
    GuideStepWords {
        step: GuideStep::Serve,
        title: "the node",
        reason: "one program owns the port, checks every motion and stops the arm",
        duration: "a few seconds",
        result: "the position that the arm reports; nothing moves",
    },
    GuideStepWords {
        step: GuideStep::Joints,
        title: "the joints, by hand",
        reason: "each joint needs a zero, a direction and limits",
        duration: "five minutes",
        result: "zeros as good as your eye: about 2 degrees, 10 mm at the tip",
    },
    GuideStepWords {
        step: GuideStep::Zeros,
        title: "the zeros, by touches",
        reason: "2 degrees is too coarse for a line. Touching points in many poses, one of them at a measured place, gives a tenth of a degree",
        duration: "fifteen minutes",
        result: "zeros to about 0.1 degree; the result shows the exact figures",
    },
    GuideStepWords {
        step: GuideStep::Tool,
        title: "the pen's tip",
        reason: "touching one fixed point with the pen turned and tilted shows where the tip is in the holder",
        duration: "five minutes",
        result: "the tip to a few tenths of a millimetre; the result shows the exact figures",
    },
    GuideStepWords {
        step: GuideStep::Sheet,
        title: "the sheet, by hand",
        reason: "the arm must know where the paper lies and how it is turned",
        duration: "five minutes",
        result: "the sheet's place for an arm held by your hand. An arm that holds itself hangs up to 2 mm lower",
    },
    GuideStepWords {
        step: GuideStep::Enable,
        title: "enable motion",
        reason: "first lift the pen off the paper by hand. Nothing moves before you enable motion, and that ends by itself after 30 minutes",
        duration: "a moment; keep one hand at the supply's switch",
        result: "nothing new",
    },
    GuideStepWords {
        step: GuideStep::Feel,
        title: "the sheet, felt by the arm",
        reason: "play lets the arm hang lower while it draws. With the sheet 1 mm higher than in the scene, the pen is pressed in; 1 mm lower, it draws nothing",
        duration: "five minutes; the tip goes down at 2 mm/s and up as soon as it touches",
        result: "the sheet's height to a few tenths of a millimetre, with the exact figures",
    },
    GuideStepWords {
        step: GuideStep::Align,
        title: "align",
        reason: "the arm visits the sheet's corners and draws a small cross beside the drawing. The pen presses up to 0.3 mm less than in the scene",
        duration: "a minute",
        result: "how closely the servos reach their goals",
    },
    GuideStepWords {
        step: GuideStep::Cross,
        title: "the cross, with a ruler",
        reason: "ink shows what no servo measures: the effect of gear play and of the arm's weight",
        duration: "a minute",
        result: "the ink's place, as exactly as a ruler shows it",
    },
    GuideStepWords {
        step: GuideStep::Line,
        title: "the first line",
        reason: "this is the goal of the guide. The pen presses up to 0.3 mm less than in the scene",
        duration: "a minute or two",
        result: "how far the ink is from the design, if a camera or the simulator sees it",
    },
];

impl GuideStep {
    /// Returns whether the step moves the arm by hand, which is impossible with a simulated arm.
    pub(super) const fn is_by_hand(self) -> bool {
        matches!(self, Self::Joints | Self::Zeros | Self::Tool | Self::Sheet)
    }

    /// Returns whether the step is optional: not every arm can feel.
    pub(super) const fn is_optional(self) -> bool {
        matches!(self, Self::Feel)
    }

    /// Returns whether an earlier result of `done` is outdated by this step, because it depends on what this one measures.
    pub(super) fn outdates(self, done: Self) -> bool {
        let measures = self.is_by_hand() || matches!(self, Self::Feel);
        let is_ink = matches!(done, Self::Align | Self::Cross | Self::Line);
        measures && (is_ink || done == Self::Feel) && self < done
    }

    /// Returns whether it is done only once, rather than each time that the guide is resumed.
    pub(super) const fn is_kept(self) -> bool {
        !matches!(self, Self::Port | Self::Doctor | Self::Serve | Self::Enable)
    }
}

impl GuideStepWords {
    /// Returns the heading that a person sees.
    pub(super) fn heading(&self) -> String {
        let number = self.step as usize + 1;
        let next = STEPS.get(number);
        let next = next.map_or("draw any file: `steadyhand draw FILE`", |next| next.title);
        format!(
            "\nstep {number} of {}: {}\n  why: {}\n  takes: {}\n  result: {}\n  next: {next}",
            STEPS.len(),
            self.title,
            self.reason,
            self.duration,
            self.result
        )
    }
}
