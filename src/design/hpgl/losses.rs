//! Requests of an HP-GL file that are not granted, for its notes.

use std::collections::BTreeMap;

use super::commands::HpglCommand;

/// Things that a file asks for and does not get, for the notes.
#[derive(Default)]
pub(super) struct HpglLosses {
    /// Commands that draw nothing, and how often they stand there.
    unused: BTreeMap<String, usize>,
    pub(super) filled: usize,
    pub(super) without_pen: usize,
    pub(super) is_of_unknown_size: bool,
}

impl HpglLosses {
    /// Counts a command that draws nothing; false for one that is not known as such.
    pub(super) fn take(&mut self, command: &HpglCommand) -> bool {
        if draws_nothing(command.name) {
            *self.unused.entry(command.word()).or_default() += 1;
            return true;
        }
        is_silent(command.name)
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.unused.is_empty() {
            let counted = self.unused.iter().map(|(name, count)| match count {
                1 => name.clone(),
                count => format!("{name} ({count} times)"),
            });
            let counted: Vec<String> = counted.collect();
            notes.push(format!(
                "not used, for they draw nothing: {}",
                counted.join(", ")
            ));
        }
        if self.filled > 0 {
            notes.push(format!(
                "areas that the file fills are outlined: {}",
                self.filled
            ));
        }
        if self.without_pen > 0 {
            notes.push(format!(
                "lines after SP0, which puts the pen away, are not drawn: {}",
                self.without_pen
            ));
        }
        if self.is_of_unknown_size {
            notes.push("SC without IP: the drawing is as large as on a plotter for A4".to_owned());
        }
        notes
    }
}

/// Speed, force, fill patterns, paper and pens of a machine: they change no line.
fn draws_nothing(name: [u8; 2]) -> bool {
    const NAMES: [&[u8; 2]; 26] = [
        b"VS", b"FS", b"AS", b"AP", b"CM", b"CV", b"CS", b"CA", b"SS", b"SA", b"FT", b"PT", b"PW",
        b"WU", b"LA", b"PC", b"NP", b"CR", b"TR", b"SV", b"RF", b"AC", b"QL", b"VN", b"VA", b"EC",
    ];
    NAMES.contains(&&name)
}

/// Setting up and asking of a machine that nobody looks for in a drawing.
fn is_silent(name: [u8; 2]) -> bool {
    const NAMES: [&[u8; 2]; 22] = [
        b"DT", b"CO", b"PS", b"BP", b"IM", b"NR", b"MC", b"ST", b"RP", b"OA", b"OC", b"OD", b"OE",
        b"OF", b"OH", b"OI", b"OO", b"OP", b"OS", b"OT", b"OW", b"KY",
    ];
    NAMES.contains(&&name)
}
