//! The steps from the box to the first line, with the words for each.

use serde::{Deserialize, Serialize};

/// A step of the guide, in the order in which they are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
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

/// Words for a step.
pub(super) struct GuideStepWords {
    pub(super) title: &'static str,
    pub(super) why: &'static str,
    pub(super) takes: &'static str,
    /// Accuracy that the step leaves behind.
    pub(super) known: &'static str,
}

const PORT: GuideStepWords = GuideStepWords {
    title: "the port",
    why: "everything else goes through it",
    takes: "a second",
    known: "which device the arm hangs on",
};

const DOCTOR: GuideStepWords = GuideStepWords {
    title: "the doctor",
    why: "a loose cable or a wrong id is found now, and not with the pen on the paper",
    takes: "up to a minute",
    known: "who answers on the bus; nothing is written",
};

const SERVE: GuideStepWords = GuideStepWords {
    title: "the node",
    why: "one program owns the port, judges every motion and stops the arm",
    takes: "a few seconds",
    known: "where the arm believes it is; nothing moves",
};

const JOINTS: GuideStepWords = GuideStepWords {
    title: "the joints, by hand",
    why: "where each joint's zero is, which way it counts and how far it may go",
    takes: "five minutes",
    known: "zeros as well as an eye sees the middle pose: about 2 degrees, 10 mm at the tip",
};

const ZEROS: GuideStepWords = GuideStepWords {
    title: "the zeros, by touches",
    why: "the eye's 2 degrees are too coarse for a line: a point whose place is known, and points that are not, touched in many poses, say it to a tenth",
    takes: "fifteen minutes",
    known: "zeros to about 0.1 degree; the figures come with the touches",
};

const TOOL: GuideStepWords = GuideStepWords {
    title: "the pen's tip",
    why: "one fixed point, touched with the pen turned and tilted, says where the tip is in the holder",
    takes: "five minutes",
    known: "the tip to a few tenths of a millimetre; the figures come with the touches",
};

const SHEET: GuideStepWords = GuideStepWords {
    title: "the sheet, by hand",
    why: "where the paper lies and how it is turned",
    takes: "five minutes",
    known: "the sheet as an arm reaches it that a hand holds: one that holds itself hangs in its gears, up to 2 mm lower",
};

const ENABLE: GuideStepWords = GuideStepWords {
    title: "your leave",
    why: "nothing moves before a person allows it; it ends by itself after 30 minutes",
    takes: "a moment, and a hand that stays at the supply's switch",
    known: "nothing new",
};

const FEEL: GuideStepWords = GuideStepWords {
    title: "the sheet, felt by the arm",
    why: "how high the paper is for an arm that hangs in its gears as it will when it draws: a millimetre too high presses the pen in, one too low draws nothing",
    takes: "five minutes; the tip goes down at 2 mm/s, and up as soon as it touches",
    known: "the sheet's height to a few tenths of a millimetre; the figures come with it",
};

const ALIGN: GuideStepWords = GuideStepWords {
    title: "align",
    why: "the arm visits the sheet's corners and draws a cross in its middle: the first ink, small, and pressed up to 0.3 mm less than the scene says",
    takes: "a minute",
    known: "how well the servos come to their goals",
};

const CROSS: GuideStepWords = GuideStepWords {
    title: "the cross, by a ruler",
    why: "ink says what no servo knows: where the gears' play and the arm's own weight bring the pen",
    takes: "a minute",
    known: "the ink's place as well as a ruler says it",
};

const LINE: GuideStepWords = GuideStepWords {
    title: "the first line",
    why: "it is what all of this was for; the pen is pressed up to 0.3 mm less than the scene says",
    takes: "a minute or two",
    known: "how far the ink is from the design, where something can see it",
};

impl GuideStep {
    pub(super) const ALL: [Self; 12] = [
        Self::Port,
        Self::Doctor,
        Self::Serve,
        Self::Joints,
        Self::Zeros,
        Self::Tool,
        Self::Sheet,
        Self::Enable,
        Self::Feel,
        Self::Align,
        Self::Cross,
        Self::Line,
    ];

    /// Returns whether the arm is moved by hand in it, which no simulated arm of the node's own is.
    pub(super) const fn is_by_hand(self) -> bool {
        matches!(self, Self::Joints | Self::Zeros | Self::Tool | Self::Sheet)
    }

    /// Returns whether a person may do without it: not every arm can feel.
    pub(super) const fn may_be_left_out(self) -> bool {
        matches!(self, Self::Feel)
    }

    /// Returns whether a step that was done before this one is of no worth any more: it rests on what this one measured.
    pub(super) fn outdates(self, done: Self) -> bool {
        let place = |step: Self| Self::ALL.iter().position(|of| *of == step);
        let measures = self.is_by_hand() || matches!(self, Self::Feel);
        let is_ink = matches!(done, Self::Align | Self::Cross | Self::Line);
        measures && (is_ink || done == Self::Feel) && place(self) < place(done)
    }

    /// Returns whether it is done once, and not anew each time that the guide is taken up.
    pub(super) const fn is_kept(self) -> bool {
        !matches!(self, Self::Port | Self::Doctor | Self::Serve | Self::Enable)
    }

    pub(super) const fn words(self) -> &'static GuideStepWords {
        match self {
            Self::Port => &PORT,
            Self::Doctor => &DOCTOR,
            Self::Serve => &SERVE,
            Self::Joints => &JOINTS,
            Self::Zeros => &ZEROS,
            Self::Tool => &TOOL,
            Self::Sheet => &SHEET,
            Self::Enable => &ENABLE,
            Self::Feel => &FEEL,
            Self::Align => &ALIGN,
            Self::Cross => &CROSS,
            Self::Line => &LINE,
        }
    }

    /// Returns the heading that a person sees.
    pub(super) fn heading(self) -> String {
        let number = Self::ALL.iter().position(|step| *step == self);
        let number = number.map_or(0, |index| index + 1);
        let words = self.words();
        let next = Self::ALL.get(number);
        let next = next.map_or("draw what you like: `steadyhand draw FILE`", |next| {
            next.words().title
        });
        format!(
            "\nstep {number} of {}: {}\n  why: {}\n  takes: {}\n  known afterwards: {}\n  next: {next}",
            Self::ALL.len(),
            words.title,
            words.why,
            words.takes,
            words.known
        )
    }
}
