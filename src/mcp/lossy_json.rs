//! Finds what JSON readers drop silently: all but the last value of a duplicate key, and the digits of a number that a double
//! does not keep. A duplicate key has no certain value, and `4.9999999999999999999` is not 5.

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The path of keys to a value, outermost first.
pub(super) type KeyPath = Vec<String>;

/// A parsed message.
#[derive(Debug)]
pub(super) struct ParsedMessage {
    pub(super) value: Value,
    /// Paths of keys that occur twice, and of numbers that lost digits.
    pub(super) lossy: Vec<KeyPath>,
    /// True if values were left out, because there are more than [`VALUES_MAX`].
    pub(super) is_cut: bool,
}

/// Most values of one message, including lists and objects. Each may take hundreds of bytes of memory.
pub(super) const VALUES_MAX: usize = 50_000;

/// Keys whose values are kept however many came before, because they name the call.
const KEPT_KEYS: [&str; 5] = ["id", "method", "name", "params", "tool"];

/// Most keys around a kept one.
const KEPT_DEPTH_MAX: usize = 2;

/// Parses JSON as `serde_json` does, and notes the paths of keys that occur twice in one object. If any decimal has more digits
/// than a double keeps, also notes those of whole floats `depth` keys deep or deeper. Notes at most [`PATHS_MAX`] paths.
///
/// # Errors
/// The text is not JSON.
pub(super) fn parse(text: &[u8], depth: usize) -> Result<ParsedMessage, serde_json::Error> {
    let mut finder = LossFinder {
        text,
        depth,
        has_long_decimal: None,
        at: 0,
        found: Vec::new(),
        values_left: VALUES_MAX,
        is_cut: false,
    };
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = LossVisitor(&mut finder).deserialize(&mut reader)?;
    reader.end()?;
    for path in &mut finder.found {
        path.reverse();
    }
    Ok(ParsedMessage {
        value,
        lossy: finder.found,
        is_cut: finder.is_cut,
    })
}

/// Parses JSON; `None` if values had to be left out.
pub(super) fn read(text: &str) -> Option<Value> {
    let parsed = parse(text.as_bytes(), usize::MAX).ok()?;
    (!parsed.is_cut).then_some(parsed.value)
}

/// Most paths that are noted.
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

#[derive(Debug)]
struct LossFinder<'t> {
    text: &'t [u8],
    depth: usize,
    /// Computed when first needed.
    has_long_decimal: Option<bool>,
    /// Keys around what is being read.
    at: usize,
    /// Paths with the innermost key first: each key is appended when its value ends.
    found: Vec<KeyPath>,
    values_left: usize,
    is_cut: bool,
}

impl LossFinder<'_> {
    fn note(&mut self, path: KeyPath) {
        if self.found.len() < PATHS_MAX {
            self.found.push(path);
        }
    }

    /// Returns whether the next value is left out.
    fn cuts(&mut self, key: Option<&str>) -> bool {
        let is_kept = self.at <= KEPT_DEPTH_MAX && key.is_some_and(|key| KEPT_KEYS.contains(&key));
        let cuts = self.values_left == 0 && !is_kept;
        self.is_cut |= cuts;
        cuts
    }

    fn has_long_decimal(&mut self) -> bool {
        let text = self.text;
        *self
            .has_long_decimal
            .get_or_insert_with(|| text.split(|b| !is_of_number(*b)).any(is_long_decimal))
    }
}

struct LossVisitor<'a, 't>(&'a mut LossFinder<'t>);

impl<'de> DeserializeSeed<'de> for LossVisitor<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        self.0.values_left = self.0.values_left.saturating_sub(1);
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LossVisitor<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let Self(finder) = self;
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if finder.cuts(Some(&key)) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if object.contains_key(&key) {
                finder.note(vec![key.clone()]);
            }
            let before = finder.found.len();
            finder.at += 1;
            let value = map.next_value_seed(LossVisitor(finder))?;
            finder.at -= 1;
            for path in finder.found.iter_mut().skip(before) {
                path.push(key.clone());
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while self.0.values_left > 0 {
            match list.next_element_seed(LossVisitor(self.0))? {
                Some(value) => all.push(value),
                None => return Ok(Value::Array(all)),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            self.0.is_cut = true;
        }
        Ok(Value::Array(all))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        let is_deep = self.0.at >= self.0.depth;
        if is_deep && value.fract() == 0.0 && self.0.has_long_decimal() {
            self.0.note(Vec::new());
        }
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// Returns the range of the value of the last `key` of the object in `text`, which must be valid JSON.
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
    use super::{VALUES_MAX, parse, value_of};

    fn lossy_paths(text: &[u8], depth: usize) -> Vec<Vec<String>> {
        let parsed = parse(text, depth).unwrap();
        assert_eq!(
            parsed.value,
            serde_json::from_slice::<serde_json::Value>(text).unwrap()
        );
        assert!(!parsed.is_cut);
        parsed.lossy
    }

    #[test]
    fn keys_of_the_call_are_kept_after_more_values_than_are_read() {
        let many = "{\"a\":{}},".repeat(VALUES_MAX);
        let text = format!(
            r#"{{"params":{{"arguments":[{many}0],"more":1,"name":"stop"}},"id":7,"n":1}}"#
        );
        let parsed = parse(text.as_bytes(), 2).unwrap();
        assert!(parsed.is_cut);
        let kept = parsed.value["params"]["arguments"].as_array().unwrap();
        assert!(kept.len() <= VALUES_MAX, "{}", kept.len());
        assert_eq!(parsed.value["params"]["name"], "stop");
        assert_eq!(
            (&parsed.value["id"], parsed.value.get("n")),
            (&7.into(), None)
        );
        assert_eq!(parsed.value["params"].get("more"), None);
    }

    #[test]
    fn finds_duplicate_keys_at_any_depth() {
        let text = br#"{"a":1,"b":{"c":1,"d":[{"e":1,"e":2}],"c":2},"a":1}"#;
        let paths: Vec<String> = lossy_paths(text, 2).iter().map(|p| p.join(".")).collect();
        assert_eq!(paths, ["b.d.e", "b.c", "a"]);
    }

    #[test]
    fn finds_numbers_that_a_double_makes_whole() {
        let text = br#"{"params":{"arguments":{"a":4.9999999999999999999,"b":[0.30000000000000004,1.5],"c":7}}}"#;
        let paths: Vec<String> = lossy_paths(text, 2).iter().map(|p| p.join(".")).collect();
        assert_eq!(paths, ["params.arguments.a"]);
        assert!(
            lossy_paths(
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
