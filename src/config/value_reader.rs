//! Reads a type from a value of a TOML file. Fields have names: a list of values in order is not taken for a table, as
//! serde's own readers would.

use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::Value;
use toml::de::Error;

/// Reads a `T`.
///
/// # Errors
/// The first thing that the type refuses.
pub(super) fn read<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    T::deserialize(ValueReader(value))
}

struct ValueReader(Value);

impl ValueReader {
    fn refused<T>(&self, visitor: &dyn serde::de::Expected) -> Result<T, Error> {
        let found = match &self.0 {
            Value::String(text) => Unexpected::Str(text),
            Value::Integer(number) => Unexpected::Signed(*number),
            Value::Float(number) => Unexpected::Float(*number),
            Value::Boolean(yes) => Unexpected::Bool(*yes),
            Value::Datetime(_) => Unexpected::Other("date"),
            Value::Array(_) => Unexpected::Seq,
            Value::Table(_) => Unexpected::Map,
        };
        Err(Error::invalid_type(found, visitor))
    }
}

impl<'de> Deserializer<'de> for ValueReader {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            Value::Integer(number) => visitor.visit_i64(number),
            Value::Float(number) => visitor.visit_f64(number),
            Value::Boolean(yes) => visitor.visit_bool(yes),
            Value::Datetime(date) => visitor.visit_string(date.to_string()),
            Value::Array(items) => visitor.visit_seq(ListReader(items.into_iter())),
            Value::Table(table) => visitor.visit_map(TableReader::of(table)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Table(table) => visitor.visit_map(TableReader::of(table)),
            _ => self.refused(&visitor),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => visitor.visit_seq(ListReader(items.into_iter())),
            _ => self.refused(&visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            _ => self.refused(&visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_string(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Float(number) => visitor.visit_f64(number),
            Value::Integer(number) => visitor.visit_i64(number),
            _ => self.refused(&visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Boolean(yes) => visitor.visit_bool(yes),
            _ => self.refused(&visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(text.into_deserializer()),
            Value::Table(table) => MapAccessDeserializer::new(TableReader::of(table))
                .deserialize_enum(name, variants, visitor),
            _ => self.refused(&visitor),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
        ignored_any
    }
}

struct ListReader(std::vec::IntoIter<Value>);

impl<'de> SeqAccess<'de> for ListReader {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let next = self.0.next();
        next.map(|item| seed.deserialize(ValueReader(item)))
            .transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct TableReader {
    entries: toml::map::IntoIter<String, Value>,
    value: Option<Value>,
}

impl TableReader {
    fn of(table: toml::Table) -> Self {
        Self {
            entries: table.into_iter(),
            value: None,
        }
    }
}

impl<'de> MapAccess<'de> for TableReader {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some((key, value)) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        let key: StringDeserializer<Error> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let value = self.value.take();
        let value = value.ok_or_else(|| Error::custom("a value was asked for before its key"))?;
        seed.deserialize(ValueReader(value))
    }
}
