//! The terminal while the jog's view fills it; dropping the screen restores the terminal.

use std::io::Write;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};

use super::view::ViewLine;
use base::terminal::harmless;

pub(super) struct JogScreen(());

impl JogScreen {
    pub(super) fn open() -> std::io::Result<Self> {
        enable_raw_mode()?;
        let screen = Self(());
        execute!(std::io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    /// Replaces the screen's content with these lines; a long line continues in the next row.
    pub(super) fn show(&self, lines: &[ViewLine]) -> std::io::Result<()> {
        let (columns, rows) = size()?;
        let mut out = std::io::stdout().lock();
        let pieces = lines.iter().flat_map(|line| {
            pieces(&line.text, columns)
                .into_iter()
                .map(|piece| (line.is_bold, piece))
        });
        let nothing = std::iter::repeat_with(|| (false, String::new()));
        for (row, (is_bold, piece)) in (0..rows).zip(pieces.chain(nothing)) {
            let weight = match is_bold {
                true => Attribute::Bold,
                false => Attribute::Reset,
            };
            queue!(out, MoveTo(0, row), Clear(ClearType::CurrentLine))?;
            queue!(out, SetAttribute(weight), Print(piece))?;
        }
        queue!(out, SetAttribute(Attribute::Reset))?;
        out.flush()
    }
}

impl Drop for JogScreen {
    fn drop(&mut self) {
        // A terminal that is gone needs no settings.
        let _ = execute!(std::io::stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// Breaks a text at line ends and at the terminal's width.
fn pieces(text: &str, columns: u16) -> Vec<String> {
    let columns = usize::from(columns.max(1));
    let text = harmless(text).replace('\t', " ");
    let split_line = |line: &str| {
        let chars: Vec<char> = line.chars().collect();
        let starts = (0..chars.len().max(1)).step_by(columns);
        let pieces = starts.map(|start| chars.iter().skip(start).take(columns).collect());
        pieces.collect::<Vec<String>>()
    };
    text.split('\n').flat_map(split_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_continues_in_the_next_row_and_holds_no_control_characters() {
        let split = |text: &str| pieces(text, 4);
        assert_eq!(split(""), [""]);
        assert_eq!(split("abcd"), ["abcd"]);
        assert_eq!(split("abcdef"), ["abcd", "ef"]);
        assert_eq!(split("ab\ncd\te"), ["ab", "cd e"]);
        assert_eq!(split("\u{1b}[2J"), ["\\u00", "1b[2", "J"]);
    }
}
