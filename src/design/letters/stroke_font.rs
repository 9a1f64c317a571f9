//! Single-line fonts: the program's own, and those in files.

use std::collections::HashMap;
use std::sync::LazyLock;

use base::nearest::nearest;
use base::plane::Point;

use super::super::DesignError;
use super::super::design_error::quoted;
use super::glyphs::CAPITAL;
use super::{FLAT, SPACE, letter_strokes, trace};

/// Most fonts that a refusal names.
const NAMED_MAX: usize = 4;

/// Fonts in files, by name. A letter that a font lacks comes from the first that has it.
const FILES: [(&str, &str); 11] = [
    ("sans", include_str!("fonts/sans.font")),
    ("serif", include_str!("fonts/serif.font")),
    ("italic", include_str!("fonts/italic.font")),
    ("script", include_str!("fonts/script.font")),
    ("gothic", include_str!("fonts/gothic.font")),
    ("allure", include_str!("fonts/allure.font")),
    ("felix", include_str!("fonts/felix.font")),
    ("tech", include_str!("fonts/tech.font")),
    ("osmotron", include_str!("fonts/osmotron.font")),
    ("nixish", include_str!("fonts/nixish.font")),
    ("readability", include_str!("fonts/readability.font")),
];

static READ: LazyLock<Vec<FontFile>> =
    LazyLock::new(|| FILES.iter().map(|(_, text)| FontFile::read(text)).collect());

/// A font of single-line letters. The default is `plain`, the program's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StrokeFont(Option<usize>);

/// A letter in heights of a capital, its origin at the left of its baseline.
pub(super) struct StrokeLetter {
    pub(super) strokes: Vec<Vec<Point>>,
    /// Distance to the next letter's origin.
    pub(super) advance: f64,
    /// The part of it that is behind the letter.
    pub(super) space_after: f64,
}

impl StrokeFont {
    /// Returns all fonts, the default first.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self(None)).chain((0..FILES.len()).map(|index| Self(Some(index))))
    }

    /// Returns the font with this name, or with this name of its family.
    ///
    /// # Errors
    /// There is none; the message has the nearest names.
    pub fn named(name: &str) -> Result<Self, DesignError> {
        let own = |font: &Self| is_same(font.name(), name);
        let found = Self::all().find(own).or_else(|| Self::of_family(name));
        found.ok_or_else(|| {
            let mut names = nearest(name, Self::all().map(Self::name));
            names.truncate(NAMED_MAX);
            DesignError::Font {
                found: quoted(name),
                nearest: names.join(", "),
            }
        })
    }

    /// Returns the font of a family as its makers call it, such as `Hershey Serif`.
    pub(crate) fn of_family(family: &str) -> Option<Self> {
        Self::all().find(|font| is_same(font.family(), family))
    }

    /// Returns its name in files and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        let file = self.0.and_then(|index| FILES.get(index));
        file.map_or("plain", |(name, _)| name)
    }

    /// Returns its makers' name for it.
    #[must_use]
    pub fn family(self) -> &'static str {
        self.file().map_or("Steadyhand Plain", |file| file.family)
    }

    /// Returns what it looks like, in a few words.
    #[must_use]
    pub fn about(self) -> &'static str {
        self.file().map_or("one stroke, round", |file| file.about)
    }

    /// Returns its makers and its licence.
    #[must_use]
    pub fn credit(self) -> &'static str {
        self.file()
            .map_or("part of this program", |file| file.credit)
    }

    /// Returns whether it has this letter itself.
    #[must_use]
    pub fn has(self, letter: char) -> bool {
        self.letter(letter).is_some()
    }

    pub(super) fn is_plain(self) -> bool {
        self.0.is_none()
    }

    fn file(self) -> Option<&'static FontFile> {
        READ.get(self.0?)
    }

    /// Returns a letter, and the font that it comes from if this one lacks it.
    pub(super) fn letter_or_borrowed(self, letter: char) -> Option<(Self, StrokeLetter)> {
        let of = |font: Self| Some((font, font.letter(letter)?));
        of(self).or_else(|| Self::all().find_map(of))
    }

    fn letter(self, letter: char) -> Option<StrokeLetter> {
        match self.0 {
            Some(_) => self.file()?.letter(letter),
            None => {
                let (width, strokes) = letter_strokes(letter)?;
                Some(StrokeLetter {
                    strokes: scaled(strokes, CAPITAL),
                    advance: (width + SPACE) / CAPITAL,
                    space_after: SPACE / CAPITAL,
                })
            }
        }
    }
}

/// Returns whether two names differ only in case, blanks and hyphens.
fn is_same(left: &str, right: &str) -> bool {
    let letters = |name: &str| -> String {
        let kept = name.chars().filter(|c| c.is_alphanumeric());
        kept.flat_map(char::to_lowercase).collect()
    };
    letters(left) == letters(right)
}

fn scaled(mut strokes: Vec<Vec<Point>>, capital: f64) -> Vec<Vec<Point>> {
    for point in strokes.iter_mut().flatten() {
        *point = point.map(|v| v / capital);
    }
    strokes
}

/// A font's file, as `fonts/README.md` says.
struct FontFile {
    family: &'static str,
    about: &'static str,
    credit: &'static str,
    /// Height of a capital in the file's units.
    capital: f64,
    /// Advances and paths.
    glyphs: HashMap<char, (f64, &'static str)>,
}

impl FontFile {
    /// Reads a file of this program; its tests hold that each is whole.
    fn read(text: &'static str) -> Self {
        let mut lines = text.lines();
        let mut head = || lines.next().unwrap_or("");
        let (family, about, credit) = (head(), head(), head());
        let capital = head().parse().unwrap_or(1.0);
        let glyph = |line: &'static str| {
            let letter = line.chars().next()?;
            let rest = line.get(letter.len_utf8()..)?.trim_start_matches(' ');
            let (advance, path) = rest.split_once(' ').unwrap_or((rest, ""));
            Some((letter, (advance.parse().ok()?, path)))
        };
        Self {
            family,
            about,
            credit,
            capital,
            glyphs: lines.filter_map(glyph).collect(),
        }
    }

    fn letter(&self, letter: char) -> Option<StrokeLetter> {
        let (advance, path) = self.glyphs.get(&letter)?;
        let strokes = trace(path, [0.0, 0.0], FLAT * self.capital / CAPITAL);
        let strokes = scaled(strokes, self.capital);
        let advance = advance / self.capital;
        let right = strokes.iter().flatten().map(|[x, _]| *x);
        let right = right.reduce(f64::max).unwrap_or(advance);
        Some(StrokeLetter {
            strokes,
            advance,
            space_after: advance - right,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    /// Latin, and what two fonts have beyond it.
    const ASCII: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.,:;!?'\"-+=/\\|()[]{}<>*#%&@$^_~` ";
    const GREEK: &str = "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰΆΈΉΊΌΎΏ";
    const CYRILLIC: &str =
        "АБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдеёжзийклмнопрстуфхцчшщъыьэюяІіЇїЄєҐґЎў";

    #[test]
    fn every_font_has_the_common_letters_within_its_line() {
        for font in StrokeFont::all() {
            let name = font.name();
            assert!(
                !font.about().is_empty() && !font.credit().is_empty(),
                "{name}"
            );
            for c in ASCII.chars() {
                let letter = font.letter(c).unwrap_or_else(|| panic!("{name}: {c}"));
                assert!(
                    letter.strokes.iter().all(|path| path.len() >= 2),
                    "{name}: {c}"
                );
                assert_eq!(letter.strokes.is_empty(), c == ' ', "{name}: {c}");
                for [x, y] in letter.strokes.iter().flatten() {
                    assert!(
                        (-0.8..=letter.advance + 0.8).contains(x),
                        "{name}: {c} at {x}"
                    );
                    assert!((-0.75..=1.5).contains(y), "{name}: {c} at {y}");
                }
            }
            let height = |c| {
                let strokes = font.letter(c).unwrap().strokes;
                strokes
                    .into_iter()
                    .flatten()
                    .map(|[_, y]| y)
                    .fold(0.0, f64::max)
            };
            assert!((0.9..1.1).contains(&height('E')), "{name}: {}", height('E'));
        }
    }

    #[test]
    fn greek_and_cyrillic_are_whole() {
        let missing = |name: &str, letters: &str| -> String {
            let font = StrokeFont::named(name).unwrap();
            letters.chars().filter(|c| !font.has(*c)).collect()
        };
        assert_eq!(missing("sans", GREEK), "");
        assert_eq!(missing("serif", GREEK), "");
        assert_eq!(missing("serif", CYRILLIC), "");
    }

    #[test]
    fn a_font_answers_to_its_name_and_its_family() {
        for name in ["serif", "Serif", "hershey serif", "Hershey-Serif"] {
            assert_eq!(StrokeFont::named(name).unwrap().name(), "serif");
        }
        let error = StrokeFont::named("scrip").unwrap_err().to_string();
        assert!(
            error.contains("`scrip`") && error.contains("script"),
            "{error}"
        );
        assert_eq!(StrokeFont::default().name(), "plain");
    }
}
