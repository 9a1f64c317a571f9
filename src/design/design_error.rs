//! Errors in a drawing, worded so that its author can fix them.

/// Most characters of the file's text that a message quotes.
const QUOTED_MAX: usize = 40;

/// The reason why a drawing was not read. Every message names the place, the text found there, and
/// a fix.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DesignError {
    /// The file's name has no known extension.
    #[error(
        "`{name}` has no known extension. Valid: .svg, .gcode (.gco, .gc, .nc, .ngc, .cnc, .tap), .hpgl (.hpg, .plt), .dxf, .json"
    )]
    Kind {
        /// The name as given.
        name: String,
    },
    /// More bytes than allowed.
    #[error("the file has {bytes} bytes (at most {bytes_max}). Next: simplify the drawing")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The cap.
        bytes_max: usize,
    },
    /// More of something than allowed.
    #[error("{at}: more than {max} {what}. Next: simplify the drawing")]
    TooMany {
        /// The place at which the cap was exceeded.
        at: String,
        /// The counted objects.
        what: &'static str,
        /// The cap.
        max: usize,
    },
    /// A picture made of pixels that is not drawn.
    #[error(transparent)]
    Picture(#[from] image::ImageError),
    /// A file of a format without readable lines.
    #[error("the file is {what} and cannot be read. Next: {way}")]
    ForeignFormat {
        /// The format.
        what: &'static str,
        /// The way to a format that is read.
        way: &'static str,
    },
    /// Text in an encoding that is not read.
    #[error("the file has the encoding {label} and cannot be read. Next: {setting}")]
    Encoding {
        /// The encoding as declared.
        label: String,
        /// How a person saves it as UTF-8.
        setting: &'static str,
    },
    /// Something that cannot be read.
    #[error("{at}: found {found}; accepted: {accepted}")]
    Syntax {
        /// A line, a byte, an element.
        at: String,
        /// Text found there.
        found: String,
        /// Accepted text.
        accepted: String,
    },
    /// Something that can be read but not drawn.
    #[error("{at}: {found} cannot be drawn. Next: {fix}")]
    Unsupported {
        /// A line or an element.
        at: String,
        /// Text found there.
        found: String,
        /// Fix for the author.
        fix: String,
    },
    /// A point that is not finite or absurdly far away.
    #[error(
        "{at}: a point is at {}, {} mm; at most ±{max_mm} mm is possible. Next: check the file's unit",
        number(*x), number(*y)
    )]
    FarAway {
        /// The stroke.
        at: String,
        /// As read, perhaps NaN.
        x: f64,
        /// As read, perhaps NaN.
        y: f64,
        /// The cap.
        max_mm: f64,
    },
    /// There is no such font.
    #[error("there is no font {found}; nearest: {nearest}. Next: `steadyhand fonts` shows all")]
    Font {
        /// The name, escaped.
        found: String,
        /// The nearest names.
        nearest: String,
    },
    /// A character that no single-line font has.
    #[error(
        "character {position} is {found}, which no single-line font has. Next: use Latin, Greek or Cyrillic letters, digits and common signs"
    )]
    Letter {
        /// Counted from 1 in the text.
        position: usize,
        /// Escaped.
        found: String,
    },
    /// Letters of an impossible height.
    #[error(
        "letters of {height_mm} mm were requested; capital letters of {min_mm} to {max_mm} mm are possible"
    )]
    LetterHeight {
        /// The requested height.
        height_mm: f64,
        /// The smallest.
        min_mm: f64,
        /// The largest.
        max_mm: f64,
    },
    /// A drawing without lines.
    #[error("the drawing has no line to draw: {hint}")]
    Empty {
        /// Possible cause.
        hint: &'static str,
    },
    /// An error in one of a drawing's files.
    #[error("{file}: {source}")]
    OfFile {
        /// Its name.
        file: String,
        /// Cause.
        source: Box<DesignError>,
    },
    /// The SVG reader failed unexpectedly.
    #[error(
        "the SVG reader failed on this file. Next: save it as plain SVG from a drawing program"
    )]
    Reader,
}

/// Quotes a file's text safely in a message: escaped, in quotes, and truncated.
pub(crate) fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(QUOTED_MAX).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("`{}{dots}`", cut.escape_debug())
}

/// Largest number that messages write out: others would fill a screen with digits.
const WRITTEN_OUT_MAX: f64 = 1e9;

/// Writes a number of a file in a message.
pub(crate) fn number(value: f64) -> String {
    match value.abs() > WRITTEN_OUT_MAX {
        true => format!("{value:e}"),
        false => value.to_string(),
    }
}

impl DesignError {
    /// Adds the name of the file, one of several.
    pub(crate) fn in_file(self, file: &str) -> Self {
        Self::OfFile {
            file: quoted(file),
            source: Box::new(self),
        }
    }

    pub(crate) fn syntax(
        at: impl Into<String>,
        found: impl Into<String>,
        accepted: impl Into<String>,
    ) -> Self {
        Self::Syntax {
            at: at.into(),
            found: found.into(),
            accepted: accepted.into(),
        }
    }

    pub(crate) fn unsupported(
        at: impl Into<String>,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::Unsupported {
            at: at.into(),
            found: found.into(),
            fix: fix.into(),
        }
    }
}
