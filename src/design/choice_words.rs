//! Choices that a message offers, in the words of the face that asked for the drawing.

/// The face that asked for a drawing. Messages name a choice as that face spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChoiceWords {
    /// A command line: options.
    #[default]
    CommandLine,
    /// A scene's file: keys of `[design]`.
    SceneFile,
    /// A tool call: it brings the drawing and has no such choices.
    Call,
}

/// Something that could be chosen for a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DesignChoice {
    /// Leave out pictures made of pixels.
    SkipImages,
    /// Fill coloured areas with lines.
    HatchFill,
    /// Draw with one pen, or only with some pens.
    ChosenPens,
}

impl ChoiceWords {
    /// Returns the choice in this face's words; `None` if it has none.
    #[must_use]
    pub const fn offer(self, choice: DesignChoice) -> Option<&'static str> {
        match (self, choice) {
            (Self::CommandLine, DesignChoice::SkipImages) => {
                Some("`--skip-images` leaves out all pictures")
            }
            (Self::SceneFile, DesignChoice::SkipImages) => {
                Some("`skip_images = true` in `[design]` leaves out all pictures")
            }
            (Self::CommandLine, DesignChoice::HatchFill) => Some("`--fill hatch` fills"),
            (Self::SceneFile, DesignChoice::HatchFill) => {
                Some("`fill = \"hatch\"` in [design] fills")
            }
            (Self::Call, DesignChoice::HatchFill) => Some("to fill it, draw lines across it"),
            (Self::CommandLine, DesignChoice::ChosenPens) => Some(
                "add `--one-pen` to draw everything with pen 1, or `--pens` to draw only the strokes of some pens",
            ),
            (Self::Call, DesignChoice::SkipImages)
            | (Self::SceneFile | Self::Call, DesignChoice::ChosenPens) => None,
        }
    }
}
