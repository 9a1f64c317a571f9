//! Takes pens from T words where strokes have several: T2 is pen 2, unless the file's name says its
//! pen or a person changes the tools at M6.

use super::super::DesignError;
use super::{invalid, line_name};

/// The T words that name a pen.
pub(super) const ACCEPTED: &str = "T1 for the first pen and T2 for the next: pens count from 1";

/// A stroke's T, and the line on which the stroke begins.
#[derive(Clone, Copy)]
struct ToolUse {
    number: u16,
    line: usize,
}

/// The pens of one file's strokes.
pub(super) struct ToolPens {
    /// The pen in the file's name.
    of_file: Option<u16>,
    /// A person puts the tools in, at M6.
    is_by_hand: bool,
    /// The tool of the first stroke: 0 before any T, as firmware starts.
    first: Option<u16>,
    /// The first use of a T.
    named: Option<ToolUse>,
    /// The first use of T0.
    zero: Option<ToolUse>,
    /// The first use of a tool that is not the first stroke's.
    other: Option<ToolUse>,
}

impl ToolPens {
    pub(super) fn new(of_file: Option<u16>, is_by_hand: bool) -> Self {
        Self {
            of_file,
            is_by_hand,
            first: None,
            named: None,
            zero: None,
            other: None,
        }
    }

    /// Returns the pen of a stroke that begins on `line`; it holds if the tools choose the pens.
    pub(super) fn pen_of(
        &mut self,
        tool: Option<u16>,
        line: usize,
    ) -> Result<Option<u16>, DesignError> {
        let is_other = *self.first.get_or_insert(tool.unwrap_or(0)) != tool.unwrap_or(0);
        if let Some(number) = tool {
            let used = ToolUse { number, line };
            self.named.get_or_insert(used);
            if number == 0 {
                self.zero.get_or_insert(used);
            }
            if is_other {
                self.other.get_or_insert(used);
            }
        }
        if self.of_file.is_some() || self.is_by_hand {
            return Ok(self.of_file);
        }
        match self.zero.filter(|_| self.choose()) {
            Some(zero) => Err(invalid(zero.line, "a line with T0", ACCEPTED)),
            None => Ok(tool),
        }
    }

    /// Returns whether the tools choose the pens: one tool alone leaves nothing to choose.
    pub(super) fn choose(&self) -> bool {
        self.of_file.is_none() && !self.is_by_hand && self.other.is_some()
    }

    /// Says which tools choose no pen.
    pub(super) fn note(&self) -> Option<String> {
        if self.choose() {
            return None;
        }
        let is_alone = self.of_file.is_none() && !self.is_by_hand;
        let used = match is_alone {
            true => self.named.filter(|used| used.number != 1),
            false => self.other,
        }?;
        let at = line_name(used.line);
        let number = used.number;
        Some(match self.of_file {
            Some(pen) => {
                format!("{at}: T{number} is also drawn with pen {pen}, the pen in the file's name")
            }
            None if is_alone => format!(
                "{at}: T{number} is the file's only tool, so it chooses no pen and the first pen draws it. For pen 2, name the file NAME_pen2.gcode"
            ),
            None => format!(
                "{at}: T{number} is drawn with the same pen as the other tools, because M6 means that a person changes the tools. Without M6, T2 is pen 2"
            ),
        })
    }
}
