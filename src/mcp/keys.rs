//! What JSON readers drop in silence: all but the last of a key said twice, and the digits of a number that a double does not
//! keep. A caller who said two things has said nothing certain, and `4.9999999999999999999` is not 5.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The paths of keys that occur twice in one object, and of whole numbers `depth` keys deep or deeper, where one is
/// written with more digits than a double keeps; at most [`PATHS_MAX`] of them. `text` is valid JSON; otherwise none.
pub(super) fn doubtful(text: &[u8], depth: usize) -> Vec<Vec<String>> {
    let mut finder = Finder {
        depth,
        has_long_decimal: text.split(|b| !is_of_number(*b)).any(is_long_decimal),
        ..Finder::default()
    };
    let mut reader = serde_json::Deserializer::from_slice(text);
    match (Walk(&mut finder)).deserialize(&mut reader) {
        Ok(()) => finder.found,
        Err(_) => Vec::new(),
    }
}

/// More than these are not told apart.
const PATHS_MAX: usize = 16;

/// Fewest digits of a decimal that a double may not keep.
const LONG_DIGITS: usize = 16;

const fn is_of_number(b: u8) -> bool {
    b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-')
}

fn is_long_decimal(number: &[u8]) -> bool {
    let digits = number.iter().filter(|b| b.is_ascii_digit()).count();
    digits >= LONG_DIGITS && number.iter().any(|b| matches!(b, b'.' | b'e' | b'E'))
}

#[derive(Debug, Default)]
struct Finder {
    depth: usize,
    has_long_decimal: bool,
    path: Vec<String>,
    found: Vec<Vec<String>>,
}

impl Finder {
    fn note(&mut self) {
        if self.found.len() < PATHS_MAX {
            self.found.push(self.path.clone());
        }
    }
}

struct Walk<'a>(&'a mut Finder);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            self.0.path.push(key.clone());
            if !keys.insert(key) {
                self.0.note();
            }
            map.next_value_seed(Walk(self.0))?;
            self.0.path.pop();
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walk(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        let is_deep = self.0.path.len() >= self.0.depth;
        if self.0.has_long_decimal && is_deep && value.fract() == 0.0 {
            self.0.note();
        }
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Where the value of the last `key` of the object in `text` stands. `text` is valid JSON.
pub(super) fn value_of(text: &str, key: &str) -> Option<Range<usize>> {
    let mut at = text.find('{')? + 1;
    let mut found = None;
    loop {
        let name_at = at + skip(text.get(at..)?, " \t\r\n,");
        if text.get(name_at..)?.starts_with('}') {
            return found;
        }
        let (name, name_end) = one::<String>(text, name_at)?;
        let value_at = name_end + skip(text.get(name_end..)?, " \t\r\n:");
        let (_, value_end) = one::<IgnoredAny>(text, value_at)?;
        if name == key {
            found = Some(value_at..value_end);
        }
        at = value_end;
    }
}

fn skip(text: &str, set: &str) -> usize {
    text.len() - text.trim_start_matches(|c| set.contains(c)).len()
}

fn one<'a, T: serde::Deserialize<'a>>(text: &'a str, at: usize) -> Option<(T, usize)> {
    let mut stream = serde_json::Deserializer::from_str(text.get(at..)?).into_iter::<T>();
    let value = stream.next()?.ok()?;
    Some((value, at + stream.byte_offset()))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::{doubtful, value_of};

    #[test]
    fn finds_keys_said_twice_wherever_they_are() {
        let text = br#"{"a":1,"b":{"c":1,"d":[{"e":1,"e":2}],"c":2},"a":1}"#;
        let paths: Vec<String> = doubtful(text, 2).iter().map(|p| p.join(".")).collect();
        assert_eq!(paths, ["b.d.e", "b.c", "a"]);
    }

    #[test]
    fn finds_numbers_that_a_double_makes_whole() {
        let text = br#"{"params":{"arguments":{"a":4.9999999999999999999,"b":[0.30000000000000004,1.5],"c":7}}}"#;
        let paths: Vec<String> = doubtful(text, 2).iter().map(|p| p.join(".")).collect();
        assert_eq!(paths, ["params.arguments.a"]);
        assert!(
            doubtful(
                br#"{"params":{"a":5.0,"b":1e3,"c":12345678901234567890}}"#,
                1
            )
            .is_empty()
        );
    }

    #[test]
    fn the_text_of_a_value_is_exactly_what_was_sent() {
        let text = r#" {"n": 1 , "params" : {"x": "}\"", "x":2} ,"z":[1, 2]}"#;
        let range = value_of(text, "params").unwrap();
        assert_eq!(&text[range], r#"{"x": "}\"", "x":2}"#);
        assert_eq!(&text[value_of(text, "z").unwrap()], "[1, 2]");
        assert_eq!(value_of(text, "none"), None);
    }
}
