//! Takes pens from T words: T2 is pen 2, unless the file's name says its pen or a person changes the
//! tools at M6.

use super::super::DesignError;
use super::{invalid, line_name};

/// The T words that name a pen.
pub(super) const ACCEPTED: &str = "T1 for the first pen, T2 for the next: pens count from 1";

/// The pens of one file's strokes.
pub(super) struct ToolPens {
    /// The pen in the file's name.
    of_file: Option<u16>,
    /// A person puts the tools in, at M6.
    is_by_hand: bool,
    /// The T of the first stroke, if there is a stroke and if it has one.
    first: Option<Option<u16>>,
    /// Says that tools of several numbers are one pen.
    pub(super) note: Option<String>,
}

impl ToolPens {
    pub(super) fn new(of_file: Option<u16>, is_by_hand: bool) -> Self {
        Self {
            of_file,
            is_by_hand,
            first: None,
            note: None,
        }
    }

    /// Returns the pen of a stroke that begins on `line`.
    pub(super) fn pen_of(
        &mut self,
        tool: Option<u16>,
        line: usize,
    ) -> Result<Option<u16>, DesignError> {
        if self.of_file.is_none() && !self.is_by_hand {
            return match tool {
                Some(0) => Err(invalid(line, "a line with T0", ACCEPTED)),
                _ => Ok(tool),
            };
        }
        let is_other = *self.first.get_or_insert(tool) != tool;
        if let Some(number) = tool.filter(|_| is_other && self.note.is_none()) {
            self.note = Some(self.note_on(number, line));
        }
        Ok(self.of_file)
    }

    fn note_on(&self, number: u16, line: usize) -> String {
        let at = line_name(line);
        match self.of_file {
            Some(pen) => format!(
                "{at}: T{number} is drawn with pen {pen} as well, which the file's name says"
            ),
            None => format!(
                "{at}: T{number} is drawn with the same pen: a person puts in the tools at M6; without M6, T2 is pen 2"
            ),
        }
    }
}
