//! Reads pens from the names of G-code files: `flower_pen3_red.gcode` is drawn with pen 3, and is a
//! part of `flower`.

use crate::GCODE_ENDINGS;

/// The pen numbering of the files of one drawing.
#[derive(Clone, Copy)]
pub(super) struct PenNumbering {
    /// Added to the number in a name: 1 if the set has a pen 0, as DrawingBotV3 counts.
    offset: u16,
}

impl PenNumbering {
    pub(super) fn of<'n>(mut names: impl Iterator<Item = &'n str>) -> Self {
        let counts_from_0 = names.any(|name| number_in(name) == Some(0));
        Self {
            offset: u16::from(counts_from_0),
        }
    }

    /// Returns the pen that draws a file, counted from 1.
    pub(super) fn pen_of(self, name: &str) -> Option<u16> {
        number_in(name)?.checked_add(self.offset)
    }

    /// Returns a note about pens that count from 0.
    pub(super) fn note(self) -> Option<String> {
        let note = "these file names count from 0: pen 1 draws the first file (`_pen0_`), pen 2 the next, and so on";
        (self.offset > 0).then(|| note.to_owned())
    }
}

/// Returns the pen number in a name, such as the 3 of `flower_pen3_red.gcode`.
fn number_in(name: &str) -> Option<u16> {
    let name = name.rsplit(['/', '\\']).next()?;
    name.split('_').find_map(|part| {
        let part = part.split('.').next()?;
        part.strip_prefix("pen")?.parse().ok()
    })
}

/// Returns the drawing of which a G-code file is one pen's part: `flower` for
/// `flower_pen3_red.gcode`; `None` for other files.
#[must_use]
pub fn set_of(name: &str) -> Option<&str> {
    let (_, extension) = name.rsplit_once('.')?;
    let is_gcode = GCODE_ENDINGS.contains(&extension.to_ascii_lowercase().as_str());
    number_in(name).filter(|_| is_gcode)?;
    let mut marks = name.match_indices("_pen");
    let (at, _) = marks.find(|(at, mark)| {
        let number = name.get(at + mark.len()..).unwrap_or("");
        let after_number = number.trim_start_matches(|c: char| c.is_ascii_digit());
        after_number.len() < number.len() && after_number.starts_with(['_', '.'])
    })?;
    name.get(..at).filter(|stem| !stem.is_empty())
}
