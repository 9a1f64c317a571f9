//! Strict JSON by `serde_json`, with a visitor that keeps both of two equal keys.

use super::{limits::NODES_MAX, node::Node};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::{cell::Cell, fmt};

/// Reads `text` if it is JSON to the letter; `None` where it is not, or holds too many values.
pub(super) fn parse(text: &str) -> Option<Node> {
    let left = Cell::new(NODES_MAX);
    let mut reader = serde_json::Deserializer::from_str(text);
    let node = Seed(&left).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(node)
}

/// Counts values down so that a long list cannot outgrow its text.
#[derive(Clone, Copy)]
struct Seed<'a>(&'a Cell<usize>);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        let left = self
            .0
            .get()
            .checked_sub(1)
            .ok_or_else(|| D::Error::custom("too many values"))?;
        self.0.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        serde_json::Number::from_f64(value)
            .map(Node::Number)
            .ok_or_else(|| E::custom("not finite"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut pairs = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            pairs.push((key, map.next_value_seed(self)?));
        }
        Ok(Node::Map(pairs))
    }
}

struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Key)
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    #[test]
    fn keeps_both_of_two_equal_keys() {
        let node = parse(r#"{"a":1,"a":2}"#).unwrap();
        assert!(node.contradicts_itself());
        assert!(!parse(r#"{"a":1,"a":1}"#).unwrap().contradicts_itself());
    }

    #[test]
    fn is_strict() {
        for text in ["{'a':1}", "{\"a\":1,}", "{} {}", "NaN", "", "{\"a\":1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn stops_at_too_many_values() {
        assert_eq!(parse(&format!("[{}1]", "1,".repeat(NODES_MAX))), None);
    }
}
