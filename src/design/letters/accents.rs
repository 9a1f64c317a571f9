//! Composes letters with accents from a letter and a mark.

use super::glyphs::{CAPITAL, SMALL, glyph};

/// A letter, its mark, and where the mark's origin lies on the letter's grid.
pub(super) struct AccentedLetter {
    pub(super) width: f64,
    pub(super) base: &'static str,
    pub(super) mark: &'static str,
    pub(super) mark_at: [f64; 2],
}

/// Gap between a letter and the mark above it.
const GAP: f64 = 1.6;

/// Marks with the accented letters and their base letters: `letters[i]` is `bases[i]` with the
/// mark.
const TABLE: &[(AccentMark, &str, &str)] = &[
    (AccentMark::Grave, "ÀÈÌÒÙàèìòùǸǹ", "AEIOUaeiouNn"),
    (
        AccentMark::Acute,
        "ÁÉÍÓÚÝáéíóúýĆćŃńŚśŹźĹĺŔŕ",
        "AEIOUYaeiouyCcNnSsZzLlRr",
    ),
    (
        AccentMark::Circumflex,
        "ÂÊÎÔÛâêîôûĈĉĜĝĤĥĴĵŜŝŴŵŶŷ",
        "AEIOUaeiouCcGgHhJjSsWwYy",
    ),
    (AccentMark::Tilde, "ÃÑÕãñõĨĩŨũ", "ANOanoIiUu"),
    (AccentMark::Diaeresis, "ÄËÏÖÜŸäëïöüÿ", "AEIOUYaeiouy"),
    (AccentMark::Ring, "ÅåŮů", "AaUu"),
    (AccentMark::Caron, "ČčĎĚěŇňŘřŠšŤŽž", "CcDEeNnRrSsTZz"),
    (AccentMark::Breve, "ĂăĞğŬŭ", "AaGgUu"),
    (AccentMark::Macron, "ĀāĒēĪīŌōŪū", "AaEeIiOoUu"),
    (AccentMark::Dot, "ĊċĖėĠġİŻż", "CcEeGgIZz"),
    (AccentMark::DoubleAcute, "ŐőŰű", "OoUu"),
    (AccentMark::Cedilla, "ÇçŞşŢţ", "CcSsTt"),
    (AccentMark::CommaBelow, "ȘșȚțĢĶķĻļŅņ", "SsTtGKkLlNn"),
    (AccentMark::Ogonek, "ĄąĘęĮįŲų", "AaEeIiUu"),
    (AccentMark::Apostrophe, "ďľť", "dlt"),
];

#[derive(Clone, Copy, PartialEq)]
enum AccentMark {
    Grave,
    Acute,
    Circumflex,
    Tilde,
    Diaeresis,
    Ring,
    Caron,
    Breve,
    Macron,
    Dot,
    DoubleAcute,
    Cedilla,
    CommaBelow,
    Ogonek,
    Apostrophe,
}

impl AccentMark {
    /// Returns the path around x = 0, from the height where marks begin.
    fn path(self) -> &'static str {
        match self {
            Self::Grave => "M-1.4,2.8L1.2,0.2",
            Self::Acute => "M-1.2,0.2L1.4,2.8",
            Self::Circumflex => "M-2.4,0.2L0,2.6L2.4,0.2",
            Self::Tilde => "M-3,0.5C-2,2.7 -0.9,2.4 0,1.5C0.9,0.6 2,0.3 3,2.5",
            Self::Diaeresis => "M-2.1,0.9L-2.1,1.4M2.1,0.9L2.1,1.4",
            Self::Ring => "M0,3.4E-1.7,1.7N0,0E1.7,1.7N0,3.4",
            Self::Caron => "M-2.4,2.6L0,0.2L2.4,2.6",
            Self::Breve => "M-2.5,2.6N0,0.4E2.5,2.6",
            Self::Macron => "M-2.7,1.2L2.7,1.2",
            Self::Dot => "M0,0.9L0,1.4",
            Self::DoubleAcute => "M-2.2,0.2L-0.4,2.8M0.8,0.2L2.6,2.8",
            Self::Cedilla => "M0,0L-0.4,-1.4C1.4,-1.3 2.1,-2 1.9,-2.9C1.7,-3.9 0.2,-4.2 -1.4,-3.5",
            Self::CommaBelow => "M0.4,-1.4L-0.6,-4",
            Self::Ogonek => "M0,0C-1.9,-1.3 -2.1,-3.8 0.9,-3.5",
            Self::Apostrophe => "M0,4.6L-0.8,1.6",
        }
    }

    fn at(self, base: char, width: f64) -> [f64; 2] {
        match self {
            Self::Cedilla | Self::CommaBelow => [width / 2.0, 0.0],
            Self::Ogonek => [width, 0.0],
            Self::Apostrophe => [width + 2.2, SMALL],
            _ if base.is_uppercase() || "hlk".contains(base) => [width / 2.0, CAPITAL + GAP],
            _ => [width / 2.0, SMALL + GAP],
        }
    }
}

/// Returns the parts of an accented letter; `None` for other letters.
pub(super) fn compose(letter: char) -> Option<AccentedLetter> {
    let (mark, base) = TABLE.iter().find_map(|(mark, letters, bases)| {
        let index = letters.chars().position(|c| c == letter)?;
        Some((*mark, bases.chars().nth(index)?))
    })?;
    // The accent takes the place of the dot.
    let dotless = match base {
        _ if mark == AccentMark::Ogonek => base,
        'i' => 'ı',
        'j' => 'ȷ',
        other => other,
    };
    let (width, path) = glyph(dotless)?;
    let extra_width = if mark == AccentMark::Apostrophe {
        2.4
    } else {
        0.0
    };
    Some(AccentedLetter {
        width: width + extra_width,
        base: path,
        mark: mark.path(),
        mark_at: mark.at(base, width),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_pairs_each_letter_with_its_base() {
        for (mark, letters, bases) in TABLE {
            assert_eq!(letters.chars().count(), bases.chars().count(), "{letters}");
            assert!(mark.path().starts_with('M'));
            for letter in letters.chars() {
                assert!(compose(letter).is_some(), "{letter}");
                assert!(glyph(letter).is_none(), "{letter} is drawn twice");
            }
        }
    }
}
