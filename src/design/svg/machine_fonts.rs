//! Letters of an SVG's text as the outlines of fonts that are on this machine, laid out by usvg.
//!
//! Without the feature `fonts` there are none, and who asks for them is refused.

use usvg::{Group, Node};

use super::super::DesignError;
#[cfg(feature = "fonts")]
pub(super) use with_fonts::{MachineFonts, letters_of};
#[cfg(not(feature = "fonts"))]
pub(super) use without_fonts::{MachineFonts, letters_of};

/// Returns the number of pictures made of pixels among letters: usvg's readers of pictures give none, but fonts do.
pub(super) fn pictures_in(letters: &Group) -> usize {
    let of = |node: &Node| match node {
        Node::Group(group) => pictures_in(group),
        Node::Image(_) => 1,
        Node::Path(_) | Node::Text(_) => 0,
    };
    letters.children().iter().map(of).sum()
}

#[cfg(not(feature = "fonts"))]
mod without_fonts {
    use super::{DesignError, Group, Node};

    /// No fonts.
    pub(in super::super) enum MachineFonts {}

    impl MachineFonts {
        pub(in super::super) fn load() -> Result<Self, DesignError> {
            Err(DesignError::unsupported(
                "text",
                "text in this machine's fonts (this program was built without fonts)",
                "install Steadyhand from a package, build with `cargo build --features fonts`, or use single-line letters (`--text-as lines`)",
            ))
        }

        pub(in super::super) fn give_to<'f>(&'f self, _: &mut usvg::Options<'f>) {
            match *self {}
        }

        pub(in super::super) fn notes(&self) -> Result<Vec<String>, DesignError> {
            match *self {}
        }
    }

    pub(in super::super) fn letters_of(_: &Node) -> Option<(&Group, f32)> {
        None
    }
}

#[cfg(feature = "fonts")]
mod with_fonts {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use base::lock::MutexExt;
    use usvg::fontdb::{Database, Family, ID, Query, Stretch, Style, Weight};
    use usvg::{FontFamily, FontResolver, FontStretch, FontStyle};

    use super::super::super::design_error::quoted;
    use super::{DesignError, Group, Node};

    /// Most letters and families that a message names.
    const NAMED_MAX: usize = 8;

    /// Family that a text has whose author names none.
    const NO_FAMILY: &str = "";

    /// The fonts of this machine, and what of them was not as a file says.
    pub(in super::super) struct MachineFonts {
        database: Arc<Database>,
        found: Mutex<Found>,
    }

    #[derive(Default)]
    struct Found {
        /// Families that are not on the machine, and those in their place.
        replaced: Vec<(String, String)>,
        /// Families with letters in place of another one's, and the letters.
        lent: Vec<(String, char)>,
        /// Letters that no font has.
        missing: Vec<char>,
    }

    fn push_new<T: PartialEq>(all: &mut Vec<T>, one: T) {
        if !all.contains(&one) {
            all.push(one);
        }
    }

    impl MachineFonts {
        /// Reads the names of all fonts.
        pub(in super::super) fn load() -> Result<Self, DesignError> {
            let mut database = Database::new();
            database.load_system_fonts();
            Self::of(database)
        }

        pub(in super::super) fn of(database: Database) -> Result<Self, DesignError> {
            if database.is_empty() {
                return Err(DesignError::unsupported(
                    "text",
                    "text in this machine's fonts (it has none)",
                    "install a font, such as Debian's fonts-dejavu, or use single-line letters (`--text-as lines`)",
                ));
            }
            Ok(Self {
                database: Arc::new(database),
                found: Mutex::default(),
            })
        }

        /// Lets usvg lay out text in these fonts.
        pub(in super::super) fn give_to<'f>(&'f self, options: &mut usvg::Options<'f>) {
            options.fontdb = Arc::clone(&self.database);
            NO_FAMILY.clone_into(&mut options.font_family);
            options.font_resolver = FontResolver {
                select_font: Box::new(move |font, _| self.chosen(font)),
                select_fallback: Box::new(move |letter, used, database| {
                    let default = FontResolver::default_fallback_selector();
                    let lender = default(letter, used, database);
                    self.note_lender(letter, lender);
                    lender
                }),
            };
        }

        /// Returns the first family of a font that is on the machine, or another one, which is noted.
        fn chosen(&self, font: &usvg::Font) -> Option<ID> {
            let query = |family: Family<'_>| {
                self.database.query(&Query {
                    families: &[family],
                    weight: Weight(font.weight()),
                    stretch: stretch(font.stretch()),
                    style: style(font.style()),
                })
            };
            let named = font.families().iter().map(family);
            let first = font.families().first();
            let wanted = first.map_or_else(String::new, FontFamily::to_string);
            let is_wanted = |family: &FontFamily| *family == FontFamily::Named(NO_FAMILY.into());
            let own = named
                .clone()
                .enumerate()
                .find_map(|(index, family)| Some((index, query(family)?)));
            if let Some((0, id)) = own {
                return Some(id);
            }
            let any = || {
                let plain = [Family::SansSerif, Family::Serif]
                    .into_iter()
                    .find_map(query);
                plain.or_else(|| query(Family::Name(&self.largest_family()?)))
            };
            let id = own.map(|(_, id)| id).or_else(any)?;
            if !first.is_some_and(is_wanted) {
                let mut found = self.found.locked();
                push_new(
                    &mut found.replaced,
                    (quoted(wanted.trim_matches('"')), self.name(id)),
                );
            }
            Some(id)
        }

        /// Returns the family with the most faces, which is one for text.
        fn largest_family(&self) -> Option<String> {
            let mut faces: BTreeMap<&str, usize> = BTreeMap::new();
            for (family, _) in self
                .database
                .faces()
                .filter_map(|face| face.families.first())
            {
                *faces.entry(family).or_default() += 1;
            }
            let largest = faces.into_iter().rev().max_by_key(|(_, count)| *count);
            largest.map(|(family, _)| family.to_owned())
        }

        fn name(&self, id: ID) -> String {
            let face = self.database.face(id);
            let family = face.and_then(|face| face.families.first());
            family.map_or_else(String::new, |(name, _)| quoted(name))
        }

        fn note_lender(&self, letter: char, lender: Option<ID>) {
            let mut found = self.found.locked();
            match lender {
                Some(id) => push_new(&mut found.lent, (self.name(id), letter)),
                None if letter.is_whitespace() || letter.is_control() => {}
                None => push_new(&mut found.missing, letter),
            }
        }

        /// Returns what was not as the file says.
        ///
        /// # Errors
        /// Letters that no font has.
        pub(in super::super) fn notes(&self) -> Result<Vec<String>, DesignError> {
            let found = self.found.locked();
            if !found.missing.is_empty() {
                let letters: String = found.missing.iter().take(NAMED_MAX).collect();
                return Err(DesignError::unsupported(
                    "text",
                    format!("{} (no font of this machine has it)", quoted(&letters)),
                    "install a font with this character, or turn the text into paths",
                ));
            }
            let replaced = found.replaced.iter().take(NAMED_MAX);
            let mut notes: Vec<String> = replaced
                .map(|(wanted, used)| {
                    format!("font {wanted} is not on this machine: {used} is used")
                })
                .collect();
            let lenders = found.lent.iter().fold(Vec::new(), |mut all, (name, _)| {
                push_new(&mut all, name);
                all
            });
            notes.extend(lenders.into_iter().take(NAMED_MAX).map(|name| {
                let of_it = found.lent.iter().filter(|(lender, _)| lender == name);
                let letters: String = of_it.map(|(_, letter)| letter).take(NAMED_MAX).collect();
                format!("{} comes from font {name}", quoted(&letters))
            }));
            Ok(notes)
        }
    }

    /// Returns a text's letters as paths, and the height of its smallest font.
    pub(in super::super) fn letters_of(node: &Node) -> Option<(&Group, f32)> {
        let Node::Text(text) = node else { return None };
        let spans = text.chunks().iter().flat_map(usvg::TextChunk::spans);
        let sizes = spans.map(|span| span.font_size().get());
        Some((text.flattened(), sizes.fold(f32::INFINITY, f32::min)))
    }

    fn family(family: &FontFamily) -> Family<'_> {
        match family {
            FontFamily::Serif => Family::Serif,
            FontFamily::SansSerif => Family::SansSerif,
            FontFamily::Cursive => Family::Cursive,
            FontFamily::Fantasy => Family::Fantasy,
            FontFamily::Monospace => Family::Monospace,
            FontFamily::Named(name) => Family::Name(name),
        }
    }

    fn style(style: FontStyle) -> Style {
        match style {
            FontStyle::Normal => Style::Normal,
            FontStyle::Italic => Style::Italic,
            FontStyle::Oblique => Style::Oblique,
        }
    }

    fn stretch(stretch: FontStretch) -> Stretch {
        match stretch {
            FontStretch::UltraCondensed => Stretch::UltraCondensed,
            FontStretch::ExtraCondensed => Stretch::ExtraCondensed,
            FontStretch::Condensed => Stretch::Condensed,
            FontStretch::SemiCondensed => Stretch::SemiCondensed,
            FontStretch::Normal => Stretch::Normal,
            FontStretch::SemiExpanded => Stretch::SemiExpanded,
            FontStretch::Expanded => Stretch::Expanded,
            FontStretch::ExtraExpanded => Stretch::ExtraExpanded,
            FontStretch::UltraExpanded => Stretch::UltraExpanded,
        }
    }
}
