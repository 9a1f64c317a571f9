//! Scans the bytes of HP-GL into commands: two letters and their numbers, or a label and its text.

use base::plane::Point;

use super::super::DesignError;
use super::super::design_error::quoted;
use super::super::text_encoding::{self, DeclaredEncoding, END_OF_FILE};
use super::byte_name;

/// The byte that ends a label unless DT sets another.
const END_OF_TEXT: u8 = 3;
const ESCAPE: u8 = 0x1b;

/// A command of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HpglCommand {
    /// In capitals: `PD`; blank for a word that is not HP-GL.
    pub(super) name: [u8; 2],
    /// Index of its first byte.
    pub(super) at: usize,
    pub(super) numbers: Vec<f64>,
    /// Bytes of a label, of an encoded polyline, or the symbol of SM.
    pub(super) raw: Vec<u8>,
}

impl HpglCommand {
    /// Returns its two letters, or the word of a cutter.
    pub(super) fn word(&self) -> String {
        match self.name {
            [b' ', _] => String::from_utf8_lossy(&self.raw).trim().to_owned(),
            letters => letters.map(char::from).iter().collect(),
        }
    }

    /// Returns its bytes as text: old plotter programs write one byte per character.
    pub(super) fn text(&self) -> String {
        let decoded = text_encoding::decode(&self.raw, DeclaredEncoding::default());
        decoded.map_or_else(|_| String::new(), |decoded| decoded.text.into_owned())
    }

    /// Returns the number at an index, or the default of the plotter if it is missing.
    pub(super) fn number(&self, index: usize, default: f64) -> f64 {
        self.numbers.get(index).copied().unwrap_or(default)
    }

    /// Returns the number at an index, rounded to an integer choice.
    pub(super) fn choice(&self, index: usize, default: i32) -> i32 {
        let number = self.number(index, f64::from(default));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "saturates, and no choice is so large"
        )]
        let choice = number.round() as i32;
        choice
    }

    /// Returns its numbers as points.
    ///
    /// # Errors
    /// An odd number of them.
    pub(super) fn points(&self) -> Result<&[Point], DesignError> {
        match self.numbers.as_chunks() {
            (points, []) => Ok(points),
            _ => Err(self.count_error("coordinates", "coordinates in pairs")),
        }
    }

    /// Refuses fewer numbers than the command needs.
    pub(super) fn require_numbers(&self, count: usize) -> Result<(), DesignError> {
        if self.numbers.len() < count {
            Err(self.count_error("numbers", format!("{count} numbers")))
        } else {
            Ok(())
        }
    }

    /// Returns the error for too few or too many numbers.
    pub(super) fn count_error(&self, what: &str, accepted: impl Into<String>) -> DesignError {
        let found = format!("{} with {} {what}", self.word(), self.numbers.len());
        self.invalid(found, accepted)
    }

    /// Returns the error for a command that is not valid HP-GL.
    pub(super) fn invalid(
        &self,
        found: impl Into<String>,
        accepted: impl Into<String>,
    ) -> DesignError {
        DesignError::syntax(byte_name(self.at), found, accepted)
    }
}

/// Scans commands from the bytes of a file.
pub(super) struct HpglScanner<'b> {
    bytes: &'b [u8],
    at: usize,
    label_end: u8,
}

/// Ends of a printer's job, with the lines of PJL behind it.
const JOB_END: &[u8] = b"\x1b%-12345X";

/// Switches from and to HP-GL, and the printer's reset.
const SWITCHES: [&[u8]; 7] = [
    b"\x1b%0B",
    b"\x1b%1B",
    b"\x1b%-1B",
    b"\x1b%0A",
    b"\x1b%1A",
    b"\x1bE",
    b"\x1b%A",
];

/// Begin and end of the settings of a Summa cutter.
const SUMMA: [&[u8]; 2] = [b"\x1b;@:", b"END."];

/// Returns the length of what programs put around HP-GL for printers and cutters at the beginning of these bytes.
fn envelope_length(bytes: &[u8]) -> usize {
    if let Some(settings) = bytes.strip_prefix(SUMMA[0]) {
        let mut ends = settings.windows(SUMMA[1].len());
        let end = ends.position(|window| window == SUMMA[1]);
        return end.map_or(0, |end| SUMMA[0].len() + end + SUMMA[1].len());
    }
    if let Some(after) = bytes.strip_prefix(JOB_END) {
        return JOB_END.len() + pjl_length(after);
    }
    let switch = SWITCHES.iter().find(|switch| bytes.starts_with(switch));
    switch.map_or(0, |switch| switch.len())
}

/// Returns the length of the lines of PJL at the beginning of these bytes.
fn pjl_length(bytes: &[u8]) -> usize {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let is_pjl =
        |line: &&[u8]| line.trim_ascii_start().starts_with(b"@PJL") || line.trim_ascii().is_empty();
    lines.take_while(is_pjl).map(<[u8]>::len).sum()
}

impl<'b> HpglScanner<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            label_end: END_OF_TEXT,
        }
    }

    /// Returns the next command; `None` at the end of the file.
    pub(super) fn next_command(&mut self) -> Result<Option<HpglCommand>, DesignError> {
        self.skip_separators()?;
        let at = self.at;
        let Some(first) = self.next_byte() else {
            return Ok(None);
        };
        let second = self.peek().filter(u8::is_ascii_alphabetic);
        let Some(second) = second.filter(|_| first.is_ascii_alphabetic()) else {
            return Ok(Some(self.word_of_a_cutter(at)));
        };
        self.at += 1;
        let mut command = HpglCommand {
            name: [first, second].map(|letter| letter.to_ascii_uppercase()),
            at,
            numbers: Vec::new(),
            raw: Vec::new(),
        };
        match &command.name {
            b"LB" => command.raw = self.bytes_until(self.label_end),
            b"CO" => _ = self.bytes_until(b';'),
            b"PE" | b"SM" => command.raw = self.bytes_until(b';'),
            b"DT" => self.define_label_end(),
            b"IN" | b"DF" => {
                self.label_end = END_OF_TEXT;
                command.numbers = self.read_numbers()?;
            }
            _ => command.numbers = self.read_numbers()?,
        }
        Ok(Some(command))
    }

    /// Reads a word that is not HP-GL, such as `@`, `^` or the `!` of `!PG`: up to the next letters or
    /// the end of the command.
    fn word_of_a_cutter(&mut self, at: usize) -> HpglCommand {
        let is_part = |byte: &&u8| {
            !byte.is_ascii_alphabetic() && !matches!(**byte, b';' | ESCAPE | END_OF_FILE)
        };
        self.at += self.rest(self.at).iter().take_while(is_part).count();
        let raw = self.bytes.get(at..self.at).unwrap_or_default().to_vec();
        HpglCommand {
            name: [b' '; 2],
            at,
            numbers: Vec::new(),
            raw,
        }
    }

    fn rest(&self, at: usize) -> &'b [u8] {
        self.bytes.get(at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next_byte(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// Skips blanks, command ends and the plotter's own escape sequences.
    fn skip_separators(&mut self) -> Result<(), DesignError> {
        while let Some(byte) = self.peek() {
            match byte {
                ESCAPE => self.skip_escape()?,
                END_OF_FILE => self.at = self.bytes.len(),
                b';' | b',' | 0 | END_OF_TEXT => self.at += 1,
                byte if byte.is_ascii_whitespace() => self.at += 1,
                _ => break,
            }
        }
        Ok(())
    }

    /// Skips an escape sequence that sets up the connection to a plotter, or switches its language to HP-GL and back.
    fn skip_escape(&mut self) -> Result<(), DesignError> {
        let length = envelope_length(self.rest(self.at));
        if length > 0 {
            self.at += length;
            return Ok(());
        }
        let after = self.bytes.get(self.at + 1).copied();
        if after != Some(b'.') {
            let found = match after {
                Some(byte) => format!("the escape sequence ESC {}", char::from(byte)),
                None => "an escape at the end".to_owned(),
            };
            return Err(DesignError::unsupported(
                byte_name(self.at),
                format!("{found} (PCL, RTL or PJL)"),
                "write the file as plain HP-GL for a pen plotter",
            ));
        }
        self.at = self.bytes.len().min(self.at + 3);
        let rest = self.rest(self.at);
        let is_number = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
        let length = rest.iter().take_while(is_number).count();
        if rest.get(length) == Some(&b':') {
            self.at += length + 1;
        }
        Ok(())
    }

    fn bytes_until(&mut self, end: u8) -> Vec<u8> {
        let rest = self.rest(self.at);
        let raw = rest.split(|byte| *byte == end).next().unwrap_or_default();
        self.at = self.bytes.len().min(self.at + raw.len() + 1);
        raw.to_vec()
    }

    /// Reads the byte after DT, which ends labels; without one the default applies again.
    fn define_label_end(&mut self) {
        self.label_end = match self.next_byte() {
            None | Some(b';') => END_OF_TEXT,
            Some(byte) => byte,
        };
        // The mode says whether the byte is drawn; here it never is.
        while self.peek().is_some_and(|b| b == b',' || b.is_ascii_digit()) {
            self.at += 1;
        }
    }

    /// Reads the numbers up to the next command.
    fn read_numbers(&mut self) -> Result<Vec<f64>, DesignError> {
        let mut numbers = Vec::new();
        while let Some(byte) = self.peek() {
            match byte {
                b',' => self.at += 1,
                byte if byte.is_ascii_whitespace() => self.at += 1,
                b'+' | b'-' | b'.' | b'0'..=b'9' => numbers.push(self.read_number()?),
                _ => break,
            }
        }
        Ok(numbers)
    }

    /// Reads the number at the current position.
    fn read_number(&mut self) -> Result<f64, DesignError> {
        let at = self.at;
        let rest = self.rest(at);
        let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
        let length = 1 + rest.iter().skip(1).take_while(is_part).count();
        self.at += length;
        let text = rest.get(..length).map(std::str::from_utf8);
        let number = text.and_then(Result::ok).and_then(|text| text.parse().ok());
        number.ok_or_else(|| self.unexpected_bytes(at))
    }

    fn unexpected_bytes(&self, at: usize) -> DesignError {
        let rest = self.rest(at).iter().take(12);
        let found: String = rest.map(|byte| char::from(*byte)).collect();
        DesignError::syntax(
            byte_name(at),
            quoted(&found),
            "two letters and their numbers, such as PD100,-20;",
        )
    }
}
