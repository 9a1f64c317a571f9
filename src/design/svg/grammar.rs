//! Checks the small languages inside SVG attributes and finds where one is broken: usvg silently
//! draws up to a mistake, or ignores a transform.

/// Returns the byte at which path data is broken; `None` if it is valid.
pub(super) fn path_error(text: &str) -> Option<usize> {
    let mut cursor = PathCursor::new(text);
    cursor.skip_space();
    if cursor.is_done() || text.trim() == "none" {
        return None;
    }
    let mut is_first = true;
    while let Some(command) = cursor.peek() {
        let Some(arguments) = PathArguments::of(command).filter(|_| !is_first || is_move(command))
        else {
            return Some(cursor.at);
        };
        is_first = false;
        cursor.at += 1;
        cursor.skip_space();
        if !arguments.read_all(&mut cursor) {
            return Some(cursor.at);
        }
    }
    None
}

fn is_move(command: u8) -> bool {
    command.eq_ignore_ascii_case(&b'm')
}

/// Arguments after a command's letter, which may repeat.
#[derive(Clone, Copy)]
enum PathArguments {
    None,
    Numbers(usize),
    Arc,
}

impl PathArguments {
    fn of(command: u8) -> Option<Self> {
        match command.to_ascii_lowercase() {
            b'z' => Some(Self::None),
            b'h' | b'v' => Some(Self::Numbers(1)),
            b'm' | b'l' | b't' => Some(Self::Numbers(2)),
            b's' | b'q' => Some(Self::Numbers(4)),
            b'c' => Some(Self::Numbers(6)),
            b'a' => Some(Self::Arc),
            _ => None,
        }
    }

    /// Reads all of them; returns false at anything else.
    fn read_all(self, cursor: &mut PathCursor<'_>) -> bool {
        while self.read_once(cursor) {
            if matches!(self, Self::None) || !cursor.is_at_number() {
                return true;
            }
        }
        false
    }

    fn read_once(self, cursor: &mut PathCursor<'_>) -> bool {
        match self {
            Self::None => true,
            Self::Numbers(count) => (0..count).all(|_| cursor.number()),
            Self::Arc => {
                (0..3).all(|_| cursor.number())
                    && (0..2).all(|_| cursor.flag())
                    && (0..2).all(|_| cursor.number())
            }
        }
    }
}

/// Returns the byte at which a list of points is broken; `None` for pairs of numbers.
pub(super) fn points_error(text: &str) -> Option<usize> {
    let mut cursor = PathCursor::new(text);
    cursor.skip_space();
    let mut count = 0;
    while !cursor.is_done() {
        if !cursor.number() {
            return Some(cursor.at);
        }
        count += 1;
    }
    (count % 2 == 1).then_some(text.len())
}

/// Returns the byte at which a list of transforms is broken; `None` if it is valid.
pub(super) fn transform_error(text: &str) -> Option<usize> {
    let mut cursor = PathCursor::new(text);
    cursor.skip_separator();
    if text.trim() == "none" {
        return None;
    }
    while !cursor.is_done() {
        if !cursor.transform() {
            return Some(cursor.at);
        }
        cursor.skip_separator();
    }
    None
}

/// Returns a length's number and unit; `None` if it is not a length.
pub(super) fn length(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let mut cursor = PathCursor::new(text);
    if !cursor.number_only() {
        return None;
    }
    let (number, unit) = text.split_at_checked(cursor.at)?;
    let is_unit = matches!(
        unit,
        "" | "px" | "mm" | "cm" | "in" | "pt" | "pc" | "Q" | "q" | "em" | "ex" | "%"
    );
    number.parse().ok().filter(|_| is_unit).zip(Some(unit))
}

/// Returns the length in bytes of the number that a text begins with.
pub(super) fn number_length(text: &str) -> usize {
    let mut cursor = PathCursor::new(text);
    cursor.number_only();
    cursor.at
}

struct PathCursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> PathCursor<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or(&[])
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    fn is_done(&self) -> bool {
        self.rest().is_empty()
    }

    fn skip_while(&mut self, is_skipped: impl Fn(u8) -> bool) -> usize {
        let count = self.rest().iter().take_while(|b| is_skipped(**b)).count();
        self.at += count;
        count
    }

    fn skip_space(&mut self) {
        self.skip_while(|byte| byte.is_ascii_whitespace());
    }

    /// Skips white space with at most one comma in it.
    fn skip_separator(&mut self) {
        self.skip_space();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.skip_space();
        }
    }

    fn is_at_number(&self) -> bool {
        let is_start = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.');
        self.peek().is_some_and(is_start)
    }

    /// Reads a number and what separates it from the next.
    fn number(&mut self) -> bool {
        let is_read = self.number_only();
        if is_read {
            self.skip_separator();
        }
        is_read
    }

    /// Reads a number; stays in place at anything else.
    fn number_only(&mut self) -> bool {
        let start = self.at;
        if matches!(self.peek(), Some(b'+' | b'-')) {
            self.at += 1;
        }
        let mut digits = self.skip_while(|byte| byte.is_ascii_digit());
        if self.peek() == Some(b'.') {
            self.at += 1;
            digits += self.skip_while(|byte| byte.is_ascii_digit());
        }
        if digits == 0 {
            self.at = start;
            return false;
        }
        self.exponent();
        true
    }

    /// Reads an exponent; `em` and `ex` are units, not exponents.
    fn exponent(&mut self) {
        let start = self.at;
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.skip_while(|byte| byte.is_ascii_digit()) == 0 {
                self.at = start;
            }
        }
    }

    fn flag(&mut self) -> bool {
        let is_read = matches!(self.peek(), Some(b'0' | b'1'));
        if is_read {
            self.at += 1;
            self.skip_separator();
        }
        is_read
    }

    fn transform(&mut self) -> bool {
        let from = self.at;
        self.skip_while(|byte| byte.is_ascii_alphabetic());
        let counts: &[usize] = match self.text.get(from..self.at).unwrap_or("") {
            "matrix" => &[6],
            "translate" | "scale" => &[1, 2],
            "rotate" => &[1, 3],
            "skewX" | "skewY" => &[1],
            _ => {
                self.at = from;
                return false;
            }
        };
        self.skip_space();
        if self.peek() != Some(b'(') {
            return false;
        }
        self.at += 1;
        self.skip_space();
        let mut count = 0;
        while self.number() {
            count += 1;
        }
        let is_closed = self.peek() == Some(b')') && counts.contains(&count);
        self.at += usize::from(is_closed);
        is_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_path_data_has_no_error() {
        for text in [
            "",
            " ",
            "none",
            "M0 0",
            "m.5.5-1-1z",
            "M0,0,L10,10",
            "M 10 20 30 40 L1e1-2E-1+3. 4",
            "M0 0a1 1 0 01.5.5 2 2 0 1 0-3 4",
            "M12 2C6.5 2 2 6.5 2 12s4.5 10 10 10zm0 0h5v-5H0V0Q1 1 2 2t3 3T1 1S1 1 2 2",
            "M0 0z m1 1\n\tz",
        ] {
            assert_eq!(path_error(text), None, "{text}");
        }
    }

    #[test]
    fn broken_path_data_has_a_place() {
        for (text, at) in [
            ("10 10", 0),
            ("L10 10", 0),
            ("M0", 2),
            ("M0 0 L10", 8),
            ("M0 0 L10 10 x", 12),
            ("M0 0 L10 10 z 5", 14),
            ("M0 0 A1 1 0 2 0 3 3", 12),
            ("M0 0 L10,,10", 9),
            ("M0 0 L NaN 5", 7),
            ("M0 0 Lé", 6),
        ] {
            assert_eq!(path_error(text), Some(at), "{text}");
        }
    }

    #[test]
    fn transforms_are_valid_or_have_a_place() {
        for text in [
            "",
            "none",
            "translate(10 20)",
            "translate(10,20) , rotate( 45 )",
            "rotate(45 1 2)scale(2)",
            "matrix(1 0 0 1 0 0) skewX(3)skewY (-.5)",
        ] {
            assert_eq!(transform_error(text), None, "{text}");
        }
        for (text, at) in [
            ("rotate(45", 9),
            ("rotate(45deg)", 9),
            ("turn(45)", 0),
            ("translate(1 2 3)", 15),
            ("scale(2) rotate", 15),
        ] {
            assert_eq!(transform_error(text), Some(at), "{text}");
        }
    }

    #[test]
    fn points_and_lengths_are_read() {
        assert_eq!(points_error("0,0 1,1\n2 2"), None);
        assert_eq!(points_error("0,0 1"), Some(5));
        assert_eq!(points_error("0,0 a,1"), Some(4));
        assert_eq!(length(" 2em"), Some((2.0, "em")));
        assert_eq!(length("-1.5e1mm"), Some((-15.0, "mm")));
        assert_eq!(length("200Q"), Some((200.0, "Q")));
        for text in ["", "mm", "5 mm", "5furlongs", "auto", "NaN"] {
            assert_eq!(length(text), None, "{text}");
        }
    }
}
