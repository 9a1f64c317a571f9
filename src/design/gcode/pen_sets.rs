//! Pens in the names of G-code files: `flower_pen3_red.gcode` is drawn with pen 3, and is a part of `flower`.

/// Pens of files that are one drawing.
#[derive(Clone, Copy)]
pub(super) struct PenNumbering {
    /// Added to the number in a name: 1 where the set has a pen 0, as DrawingBotV3 counts.
    added: u16,
}

impl PenNumbering {
    pub(super) fn of<'n>(mut names: impl Iterator<Item = &'n str>) -> Self {
        let counts_from_0 = names.any(|name| number_in(name) == Some(0));
        Self {
            added: u16::from(counts_from_0),
        }
    }

    /// The pen that draws a file, counted from 1.
    pub(super) fn pen_of(self, name: &str) -> Option<u16> {
        number_in(name)?.checked_add(self.added)
    }

    /// Returns what people should know of the counting.
    pub(super) fn note(self) -> Option<String> {
        let note = "the files' names count pens from 0: `_pen0_` is drawn with pen 1, `_pen1_` with pen 2, and so on";
        (self.added > 0).then(|| note.to_owned())
    }
}

/// The 3 of `flower_pen3_red.gcode`.
fn number_in(name: &str) -> Option<u16> {
    let name = name.rsplit(['/', '\\']).next()?;
    name.split('_').find_map(|part| {
        let part = part.split('.').next()?;
        part.strip_prefix("pen")?.parse().ok()
    })
}

/// The drawing that a G-code file is a pen's part of: `flower` of `flower_pen3_red.gcode`; none for other files.
#[must_use]
pub fn set_of(name: &str) -> Option<&str> {
    let (_, ending) = name.rsplit_once('.')?;
    let is_gcode = matches!(
        ending.to_ascii_lowercase().as_str(),
        "gcode" | "gco" | "nc" | "ngc"
    );
    number_in(name).filter(|_| is_gcode)?;
    let mut marks = name.match_indices("_pen");
    let (at, _) = marks.find(|(at, mark)| {
        let number = name.get(at + mark.len()..).unwrap_or("");
        let behind = number.trim_start_matches(|c: char| c.is_ascii_digit());
        behind.len() < number.len() && behind.starts_with(['_', '.'])
    })?;
    name.get(..at).filter(|stem| !stem.is_empty())
}
