//! Reads a type from a value of a TOML file. Unlike serde's own readers, it does not accept a list of values in order as a table,
//! because fields have names.

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{
    DeserializeOwned, Deserializer, Error as _, IntoDeserializer, MapAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::Value;
use toml::de::Error;

/// Reads a `T`.
///
/// # Errors
/// The first value that the type rejects.
pub(super) fn read<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    T::deserialize(ValueReader(value))
}

struct ValueReader(Value);

impl ValueReader {
    fn invalid_type<T>(&self, visitor: &dyn serde::de::Expected) -> Result<T, Error> {
        let found = match &self.0 {
            Value::String(text) => Unexpected::Str(text),
            Value::Integer(number) => Unexpected::Signed(*number),
            Value::Float(number) => Unexpected::Float(*number),
            Value::Boolean(value) => Unexpected::Bool(*value),
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
            Value::Boolean(value) => visitor.visit_bool(value),
            Value::Datetime(date) => visitor.visit_string(date.to_string()),
            Value::Array(items) => read_list(items, visitor),
            Value::Table(entries) => visitor.visit_map(table(entries)),
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
            Value::Table(entries) => visitor.visit_map(table(entries)),
            _ => self.invalid_type(&visitor),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => read_list(items, visitor),
            _ => self.invalid_type(&visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            _ => self.invalid_type(&visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_string(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Float(number) => visitor.visit_f64(number),
            Value::Integer(number) => visitor.visit_i64(number),
            _ => self.invalid_type(&visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Boolean(value) => visitor.visit_bool(value),
            _ => self.invalid_type(&visitor),
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
            Value::Table(entries) => {
                MapAccessDeserializer::new(table(entries)).deserialize_enum(name, variants, visitor)
            }
            _ => self.invalid_type(&visitor),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
        ignored_any
    }
}

impl IntoDeserializer<'_, Error> for ValueReader {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Reads a list, and rejects items that are left over: a visitor of a fixed length looks at no more.
fn read_list<'de, V: Visitor<'de>>(items: Vec<Value>, visitor: V) -> Result<V::Value, Error> {
    let mut items = SeqDeserializer::new(items.into_iter().map(ValueReader));
    let read = visitor.visit_seq(&mut items)?;
    items.end()?;
    Ok(read)
}

fn table<'de>(table: toml::Table) -> impl MapAccess<'de, Error = Error> {
    let entries = table.into_iter();
    MapDeserializer::new(entries.map(|(key, value)| (key, ValueReader(value))))
}
