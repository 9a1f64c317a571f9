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
        reason: "everything else goes through it",
        duration: "a second",
        result: "which device the arm hangs on",
    },
    GuideStepWords {
        step: GuideStep::Doctor,
        title: "the doctor",
        reason: "a loose cable or a wrong id is found now, and not with the pen on the paper",
        duration: "up to a minute",
        result: "who answers on the bus; nothing is written",
    },
    GuideStepWords {
        step: GuideStep::Serve,
        title: "the node",
        reason: "one program owns the port, judges every motion and stops the arm",
        duration: "a few seconds",
        result: "where the arm believes it is; nothing moves",
    },
    GuideStepWords {
        step: GuideStep::Joints,
        title: "the joints, by hand",
        reason: "where each joint's zero is, which way it counts and how far it may go",
        duration: "five minutes",
        result: "zeros as well as an eye sees the middle pose: about 2 degrees, 10 mm at the tip",
    },
    GuideStepWords {
        step: GuideStep::Zeros,
        title: "the zeros, by touches",
        reason: "the eye's 2 degrees are too coarse for a line: a point whose place is known, and points that are not, touched in many poses, say it to a tenth",
        duration: "fifteen minutes",
        result: "zeros to about 0.1 degree; the figures come with the touches",
    },
    GuideStepWords {
        step: GuideStep::Tool,
        title: "the pen's tip",
        reason: "one fixed point, touched with the pen turned and tilted, says where the tip is in the holder",
        duration: "five minutes",
        result: "the tip to a few tenths of a millimetre; the figures come with the touches",
    },
    GuideStepWords {
        step: GuideStep::Sheet,
        title: "the sheet, by hand",
        reason: "where the paper lies and how it is turned",
        duration: "five minutes",
        result: "the sheet as an arm reaches it that a hand holds: one that holds itself hangs in its gears, up to 2 mm lower",
    },
    GuideStepWords {
        step: GuideStep::Enable,
        title: "your leave",
        reason: "nothing moves before a person allows it; it ends by itself after 30 minutes",
        duration: "a moment, and a hand that stays at the supply's switch",
        result: "nothing new",
    },
    GuideStepWords {
        step: GuideStep::Feel,
        title: "the sheet, felt by the arm",
        reason: "how high the paper is for an arm that hangs in its gears as it will when it draws: a millimetre too high presses the pen in, one too low draws nothing",
        duration: "five minutes; the tip goes down at 2 mm/s, and up as soon as it touches",
        result: "the sheet's height to a few tenths of a millimetre; the figures come with it",
    },
    GuideStepWords {
        step: GuideStep::Align,
        title: "align",
        reason: "the arm visits the sheet's corners and draws a cross where the drawing is not: the first ink, small, and pressed up to 0.3 mm less than the scene says",
        duration: "a minute",
        result: "how well the servos come to their goals",
    },
    GuideStepWords {
        step: GuideStep::Cross,
        title: "the cross, by a ruler",
        reason: "ink says what no servo knows: where the gears' play and the arm's own weight bring the pen",
        duration: "a minute",
        result: "the ink's place as well as a ruler says it",
    },
    GuideStepWords {
        step: GuideStep::Line,
        title: "the first line",
        reason: "it is what all of this was for; the pen is pressed up to 0.3 mm less than the scene says",
        duration: "a minute or two",
        result: "how far the ink is from the design, where something can see it",
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
        let next = next.map_or("draw what you like: `steadyhand draw FILE`", |next| {
            next.title
        });
        format!(
            "\nstep {number} of {}: {}\n  why: {}\n  takes: {}\n  known afterwards: {}\n  next: {next}",
            STEPS.len(),
            self.title,
            self.reason,
            self.duration,
            self.result
        )
    }
}
