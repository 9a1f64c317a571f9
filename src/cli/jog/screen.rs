//! The terminal while the jog's view fills it; it is itself again when this goes.

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

    /// Shows these lines in place of what was there; one that is too long goes on in the next row.
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

/// Breaks a text at its ends of lines, and where the terminal ends.
fn pieces(text: &str, columns: u16) -> Vec<String> {
    let columns = usize::from(columns.max(1));
    let text = harmless(text).replace('\t', " ");
    let of_line = |line: &str| {
        let shown: Vec<char> = line.chars().collect();
        let starts = (0..shown.len().max(1)).step_by(columns);
        let pieces = starts.map(|at| shown.iter().skip(at).take(columns).collect());
        pieces.collect::<Vec<String>>()
    };
    text.split('\n').flat_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_on_in_the_next_row_and_holds_nothing_that_a_terminal_obeys() {
        let of = |text: &str| pieces(text, 4);
        assert_eq!(of(""), [""]);
        assert_eq!(of("abcd"), ["abcd"]);
        assert_eq!(of("abcdef"), ["abcd", "ef"]);
        assert_eq!(of("ab\ncd\te"), ["ab", "cd e"]);
        assert_eq!(of("\u{1b}[2J"), ["\\u00", "1b[2", "J"]);
    }
}
