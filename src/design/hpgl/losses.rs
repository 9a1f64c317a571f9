//! Collects what an HP-GL file requests but is not drawn, for its notes.

use std::collections::BTreeMap;

use super::commands::HpglCommand;

/// Instructions for speed, force, fill patterns, paper and pens: they change no line.
const DRAWING_NOTHING: [&[u8; 2]; 26] = [
    b"VS", b"FS", b"AS", b"AP", b"CM", b"CV", b"CS", b"CA", b"SS", b"SA", b"FT", b"PT", b"PW",
    b"WU", b"LA", b"PC", b"NP", b"CR", b"TR", b"SV", b"RF", b"AC", b"QL", b"VN", b"VA", b"EC",
];

/// Instructions that set up or query a machine and draw nothing.
const SILENT: [&[u8; 2]; 22] = [
    b"DT", b"CO", b"PS", b"BP", b"IM", b"NR", b"MC", b"ST", b"RP", b"OA", b"OC", b"OD", b"OE",
    b"OF", b"OH", b"OI", b"OO", b"OP", b"OS", b"OT", b"OW", b"KY",
];

/// Instructions of HP-GL that draw, or change what others draw, and are not read: symbols, characters of
/// a file's own, buffered and downward labels, fonts.
pub(super) const UNDRAWABLE: [[u8; 2]; 10] = [
    *b"SM", *b"DV", *b"UC", *b"DL", *b"BL", *b"PB", *b"SB", *b"SD", *b"AD", *b"FR",
];

/// Requests of a file that are not fulfilled, for the notes.
#[derive(Default)]
pub(super) struct HpglLosses {
    /// Commands that draw nothing, and how often they occur.
    unused: BTreeMap<String, usize>,
    /// The same of words that are not HP-GL, outside the drawing: a cutter's set-up.
    of_cutter: BTreeMap<String, usize>,
    pub(super) filled: usize,
    pub(super) without_pen: usize,
    pub(super) has_unknown_size: bool,
}

impl HpglLosses {
    /// Counts a command that draws nothing; returns false for any other command.
    pub(super) fn count(&mut self, command: &HpglCommand) -> bool {
        let draws_nothing = DRAWING_NOTHING.contains(&&command.name);
        if draws_nothing {
            *self.unused.entry(command.word()).or_default() += 1;
        }
        draws_nothing || SILENT.contains(&&command.name)
    }

    /// Counts a word of a cutter.
    pub(super) fn count_of_cutter(&mut self, word: String) {
        let is_listed = self.of_cutter.len() < LISTED_MAX || self.of_cutter.contains_key(&word);
        let word = if is_listed { word } else { "others".to_owned() };
        *self.of_cutter.entry(word).or_default() += 1;
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let (unused, of_cutter) = (listed(&self.unused), listed(&self.of_cutter));
        let (filled, without_pen) = (self.filled, self.without_pen);
        let notes = [
            (!unused.is_empty()).then(|| format!("ignored, because they draw nothing: {unused}")),
            (!of_cutter.is_empty())
                .then(|| format!("ignored set-up words of a cutter: {of_cutter}")),
            (filled > 0).then(|| format!("filled areas, drawn as outlines: {filled}")),
            (without_pen > 0).then(|| {
                format!("lines not drawn, because they follow SP0 (no pen): {without_pen}")
            }),
        ];
        notes.into_iter().flatten().collect()
    }
}

/// Most words that a note lists.
const LISTED_MAX: usize = 20;

/// Lists words with how often they occur.
fn listed(counts: &BTreeMap<String, usize>) -> String {
    let counted = counts.iter().map(|(name, count)| match count {
        1 => name.clone(),
        count => format!("{name} ({count} times)"),
    });
    counted.collect::<Vec<_>>().join(", ")
}
