//! A shape made from any JSON Schema, the dialects of tool lists included (`dict`, `float`, `tuple`, `any`).

use super::{
    limits::DEPTH_MAX,
    shape::{ArgumentShape, ItemCount, NumberRange, ParameterShape, ValueKind},
    unit::DeclaredUnit,
};
use serde_json::{Map, Value};
use thiserror::Error;

/// Reason why a JSON Schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// It is not an object.
    #[error("a schema must be a JSON object, this is {0}")]
    NotAnObject(&'static str),
    /// Its parameters are not an object.
    #[error("'properties' must be an object at {0}")]
    Properties(String),
    /// The type is unknown.
    #[error(
        "unknown type '{name}' at {path}; use string, integer, number, boolean, array, object or null"
    )]
    UnknownType {
        /// The type as written.
        name: String,
        /// Path in the schema.
        path: String,
    },
    /// Nested deeper than can be read.
    #[error("nested deeper than {DEPTH_MAX} levels at {0}")]
    TooDeep(String),
}

impl ArgumentShape {
    /// Builds the shape that a JSON Schema of a tool's arguments describes. Also accepts a whole tool with `parameters` or
    /// `inputSchema`.
    ///
    /// # Errors
    /// The schema is not an object, is nested too deeply, or names an unknown type.
    pub fn from_json_schema(schema: &Value) -> Result<Self, SchemaError> {
        let Value::Object(object) = schema else {
            return Err(SchemaError::NotAnObject(type_word(schema)));
        };
        let object = inner_schema(object);
        let fields = fields(object, "", 0)?;
        Ok(Self {
            open: false,
            ..Self::new(fields)
        })
    }
}

/// A tool definition carries its schema in a field.
fn inner_schema(object: &Map<String, Value>) -> &Map<String, Value> {
    if object.contains_key("properties") {
        return object;
    }
    if let Some(Value::Object(function)) = object.get("function") {
        return inner_schema(function);
    }
    let carried = ["inputSchema", "input_schema", "parameters", "schema"]
        .iter()
        .find_map(|key| object.get(*key)?.as_object());
    carried
        .filter(|inner| {
            inner.contains_key("properties") || inner.get("type").is_some_and(Value::is_string)
        })
        .unwrap_or(object)
}

const fn type_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn fields(
    object: &Map<String, Value>,
    path: &str,
    depth: usize,
) -> Result<Vec<ParameterShape>, SchemaError> {
    let properties = match object.get("properties") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err(SchemaError::Properties(path.to_owned())),
    };
    let required = texts(object.get("required"));
    properties
        .iter()
        .map(|(name, schema)| param(name, schema, &required, path, depth))
        .collect()
}

fn param(
    name: &str,
    schema: &Value,
    required: &[String],
    path: &str,
    depth: usize,
) -> Result<ParameterShape, SchemaError> {
    let path = if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    };
    let kind = kind(name, schema, &path, depth + 1)?;
    let optional = schema
        .get("optional")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let says_required = schema
        .get("required")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let default = schema
        .get("default")
        .filter(|value| !value.is_null())
        .cloned();
    let empty_is_default = default
        .as_ref()
        .map_or_else(|| describes_empty_default(schema), is_empty);
    Ok(ParameterShape {
        aliases: texts(schema.get("x-aliases").or_else(|| schema.get("aliases"))),
        required: (required.iter().any(|r| r == name) || says_required) && !optional,
        default: default.or_else(|| schema.get("const").cloned()),
        empty_is_default,
        nullable: is_nullable(schema),
        ..ParameterShape::new(name, kind)
    })
}

/// Returns whether null is declared to be a value.
fn is_nullable(schema: &Value) -> bool {
    let is_null = |word: &Value| word == "null" || word == "none";
    let types = schema.get("type").and_then(Value::as_array);
    let members = ["anyOf", "oneOf"].iter();
    let mut members = members
        .filter_map(|key| schema.get(*key)?.as_array())
        .flatten();
    schema.get("nullable") == Some(&Value::Bool(true))
        || types.is_some_and(|types| types.iter().any(is_null))
        || members.any(|member| member.get("type").is_some_and(is_null))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// A default is often given in words only: "Default is empty array".
fn describes_empty_default(schema: &Value) -> bool {
    let words = schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_lowercase();
    let Some((_, after)) = words.split_once("default") else {
        return false;
    };
    let after =
        after.trim_start_matches(|c: char| c == 's' || c.is_whitespace() || matches!(c, ':' | '='));
    let after = ["is ", "to ", "an ", "a ", "is an ", "to an ", "is a "]
        .iter()
        .filter_map(|word| after.strip_prefix(word))
        .min_by_key(|rest| rest.len())
        .unwrap_or(after);
    [
        "empty array",
        "empty list",
        "empty object",
        "empty dict",
        "[]",
        "{}",
    ]
    .iter()
    .any(|empty| after.starts_with(empty))
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    items
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn kind(name: &str, schema: &Value, path: &str, depth: usize) -> Result<ValueKind, SchemaError> {
    if depth > DEPTH_MAX {
        return Err(SchemaError::TooDeep(path.to_owned()));
    }
    let Value::Object(object) = schema else {
        return Ok(ValueKind::Any);
    };
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(members)) = object.get(key) {
            return union(name, members, path, depth);
        }
    }
    match object.get("type") {
        Some(Value::Array(types)) => {
            let kinds: Result<Vec<_>, _> = types
                .iter()
                .filter_map(Value::as_str)
                .map(|word| typed(name, word, object, path, depth))
                .collect();
            Ok(one_or_any(kinds?))
        }
        Some(Value::String(word)) => typed(name, word, object, path, depth),
        _ => untyped(name, object, path, depth),
    }
}

/// `oneOf` with constants is an enumeration with titles; any other union is tried in order.
fn union(
    name: &str,
    members: &[Value],
    path: &str,
    depth: usize,
) -> Result<ValueKind, SchemaError> {
    let constants: Vec<_> = members
        .iter()
        .filter_map(|member| member.get("const"))
        .cloned()
        .collect();
    if constants.len() == members.len() && !constants.is_empty() {
        let titled = members.iter().filter_map(|member| {
            Some((
                member.get("title")?.as_str()?.to_owned(),
                member.get("const")?.clone(),
            ))
        });
        return Ok(ValueKind::Choice {
            synonyms: titled.collect(),
            values: constants,
        });
    }
    let kinds: Result<Vec<_>, _> = members
        .iter()
        .map(|member| kind(name, member, path, depth + 1))
        .collect();
    Ok(one_or_any(kinds?))
}

fn one_or_any(mut kinds: Vec<ValueKind>) -> ValueKind {
    if kinds.len() > 1 {
        kinds.retain(|kind| *kind != ValueKind::Nothing);
    }
    match kinds.len() {
        0 => ValueKind::Any,
        1 => kinds.pop().unwrap_or(ValueKind::Any),
        _ => ValueKind::AnyOf(kinds),
    }
}

fn untyped(
    name: &str,
    object: &Map<String, Value>,
    path: &str,
    depth: usize,
) -> Result<ValueKind, SchemaError> {
    if object.contains_key("enum") || object.contains_key("const") {
        return Ok(choice(object));
    }
    if object.contains_key("properties") {
        return typed(name, "object", object, path, depth);
    }
    if object.contains_key("items") {
        typed(name, "array", object, path, depth)
    } else {
        Ok(ValueKind::Any)
    }
}

fn typed(
    name: &str,
    word: &str,
    object: &Map<String, Value>,
    path: &str,
    depth: usize,
) -> Result<ValueKind, SchemaError> {
    let lower = word.to_ascii_lowercase();
    let is_list = matches!(lower.as_str(), "array" | "list" | "tuple" | "set");
    if !is_list && (object.contains_key("enum") || object.contains_key("const")) && lower != "null"
    {
        return Ok(choice(object));
    }
    Ok(match lower.as_str() {
        "string" | "str" | "text" | "char" => ValueKind::Text,
        "integer" | "int" | "long" => ValueKind::Integer {
            range: range(object),
            unit: unit(name, object),
        },
        "number" | "float" | "double" => ValueKind::Number {
            range: range(object),
            unit: unit(name, object),
        },
        "boolean" | "bool" => ValueKind::Bool,
        "null" | "none" => ValueKind::Nothing,
        "object" | "dict" | "map" | "hashmap" => nested(object, path, depth)?,
        "any" => ValueKind::Any,
        _ if is_list => ValueKind::List {
            item: Box::new(items(name, object, path, depth)?),
            count: count(object),
        },
        _ => {
            return Err(SchemaError::UnknownType {
                name: word.to_owned(),
                path: path.to_owned(),
            });
        }
    })
}

fn nested(object: &Map<String, Value>, path: &str, depth: usize) -> Result<ValueKind, SchemaError> {
    let fields = fields(object, path, depth)?;
    let closed =
        object.get("additionalProperties") == Some(&Value::Bool(false)) && !fields.is_empty();
    Ok(ValueKind::Object {
        fields,
        open: !closed,
    })
}

/// Returns the bounds on a list's length.
fn count(object: &Map<String, Value>) -> ItemCount {
    let bound = |key: &str| usize::try_from(object.get(key)?.as_u64()?).ok();
    ItemCount {
        min: bound("minItems").unwrap_or(ItemCount::ANY.min),
        max: bound("maxItems").unwrap_or(ItemCount::ANY.max),
    }
}

/// The kind of a list's items; an `enum` beside `items` is meant for each item.
fn items(
    name: &str,
    object: &Map<String, Value>,
    path: &str,
    depth: usize,
) -> Result<ValueKind, SchemaError> {
    let own_enum = object
        .get("enum")
        .and_then(Value::as_array)
        .is_some_and(|values| values.iter().all(|value| !value.is_array()));
    if own_enum {
        return Ok(choice(object));
    }
    match object.get("items") {
        Some(schema @ Value::Object(_)) => kind(name, schema, &format!("{path}[]"), depth + 1),
        _ => Ok(ValueKind::Any),
    }
}

/// Returns the listed values and the default, which counts as a value, with any synonyms that the schema declares.
fn choice(object: &Map<String, Value>) -> ValueKind {
    let mut values = object
        .get("enum")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    values.extend(object.get("const").cloned());
    let synonyms = synonyms(object, &values);
    let default = object
        .get("default")
        .filter(|value| !value.is_null() && !value.is_array());
    if let Some(default) = default.filter(|default| !values.contains(default)) {
        values.push(default.clone());
    }
    ValueKind::Choice { values, synonyms }
}

/// `{"gte": ">="}`, `{">=": ["gte", "ge"]}`, or names listed beside the values.
fn synonyms(object: &Map<String, Value>, values: &[Value]) -> Vec<(String, Value)> {
    const MAPS: [&str; 11] = [
        "x-synonyms",
        "synonyms",
        "x-enum-synonyms",
        "enumSynonyms",
        "enum_synonyms",
        "x-enum-aliases",
        "enumAliases",
        "enum_aliases",
        "aliases",
        "x-aliases",
        "x-enumAliases",
    ];
    const LISTS: [&str; 4] = [
        "x-enum-varnames",
        "x-enumNames",
        "enumNames",
        "x-enum-names",
    ];
    let maps = MAPS
        .iter()
        .filter_map(|key| object.get(*key)?.as_object())
        .flatten();
    let mut found: Vec<(String, Value)> = maps
        .flat_map(|(key, value)| synonym_pairs(key, value, values))
        .collect();
    for names in LISTS.iter().filter_map(|key| object.get(*key)?.as_array()) {
        found.extend(
            names
                .iter()
                .zip(values)
                .filter_map(|(name, value)| Some((name.as_str()?.to_owned(), value.clone()))),
        );
    }
    found
}

fn synonym_pairs(key: &str, value: &Value, values: &[Value]) -> Vec<(String, Value)> {
    let is_key = |candidate: &Value| {
        candidate
            .as_str()
            .map_or_else(|| candidate.to_string(), str::to_owned)
            == key
    };
    if let Some(known) = values.iter().find(|candidate| is_key(candidate)) {
        let words = value
            .as_array()
            .map_or_else(|| vec![value.clone()], Clone::clone);
        return words
            .iter()
            .filter_map(Value::as_str)
            .map(|word| (word.to_owned(), known.clone()))
            .collect();
    }
    values
        .iter()
        .filter(|known| *known == value)
        .map(|known| (key.to_owned(), known.clone()))
        .collect()
}

fn range(object: &Map<String, Value>) -> NumberRange {
    let number = |key: &str| object.get(key).and_then(Value::as_number).cloned();
    let flag = |key: &str| object.get(key).and_then(Value::as_bool).unwrap_or(false);
    let (low, high) = (number("exclusiveMinimum"), number("exclusiveMaximum"));
    NumberRange {
        above_min: low.is_some() || flag("exclusiveMinimum"),
        below_max: high.is_some() || flag("exclusiveMaximum"),
        min: low.or_else(|| number("minimum")),
        max: high.or_else(|| number("maximum")),
    }
}

/// A declared unit, or the one that the name ends with: `depth_mm`, `speed_mm_s`.
fn unit(name: &str, object: &Map<String, Value>) -> Option<DeclaredUnit> {
    const SUFFIXES: [(&str, &str); 11] = [
        ("_mm_s", "mm/s"),
        ("_cm_s", "cm/s"),
        ("_m_s", "m/s"),
        ("_mm", "mm"),
        ("_cm", "cm"),
        ("_m", "m"),
        ("_deg", "deg"),
        ("_rad", "rad"),
        ("_ms", "ms"),
        ("_s", "s"),
        ("_hz", "hz"),
    ];
    let declared = ["unit", "x-unit", "units"]
        .iter()
        .find_map(|key| DeclaredUnit::named(object.get(*key)?.as_str()?));
    declared.or_else(|| {
        SUFFIXES
            .iter()
            .find(|(suffix, _)| name.ends_with(suffix))
            .and_then(|(_, unit)| DeclaredUnit::named(unit))
    })
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_the_dialects() {
        let shape = ArgumentShape::from_json_schema(&json!({"type": "dict", "required": ["a"], "properties": {
            "a": {"type": "float", "unit": "mm", "minimum": 0}, "b": {"type": ["string", "null"]}, "c": {"type": "tuple", "items": {"type": "int"}},
            "d": {"type": "array", "items": {"type": "string"}, "enum": ["x"]}, "e": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "f": {"enum": [1, 2]}, "g": {"type": "any"}, "h": {"type": "array", "description": "Default is empty array."}}}))
        .unwrap();
        let kinds: Vec<_> = shape
            .params
            .iter()
            .map(|param| param.kind.describe())
            .collect();
        assert_eq!(
            kinds,
            [
                "a number at least 0 in mm",
                "a text",
                "a list, each a whole number",
                "a list, each one of the listed values",
                "a whole number",
                "one of the listed values",
                "any value",
                "a list, each any value"
            ]
        );
        assert!(
            shape.params[0].required
                && !shape.params[1].required
                && shape.params[7].empty_is_default
        );
    }

    #[test]
    fn reads_declared_synonyms_either_way_round() {
        for schema in [
            json!({"enum": [">="], "x-synonyms": {"gte": ">="}}),
            json!({"enum": [">="], "synonyms": {">=": ["gte", "ge"]}}),
            json!({"enum": [">="], "x-enum-varnames": ["gte"]}),
            json!({"oneOf": [{"const": ">=", "title": "gte"}]}),
        ] {
            let shape =
                ArgumentShape::from_json_schema(&json!({"properties": {"op": schema}})).unwrap();
            let ValueKind::Choice { synonyms, .. } = &shape.params[0].kind else {
                panic!("{schema}")
            };
            assert_eq!(synonyms[0], ("gte".to_owned(), json!(">=")));
        }
    }

    #[test]
    fn names_what_is_wrong() {
        let error = |schema| {
            ArgumentShape::from_json_schema(&schema)
                .unwrap_err()
                .to_string()
        };
        assert!(error(json!([])).contains("a list"));
        assert!(error(json!({"properties": {"a": {"type": "sting"}}})).contains("'sting' at a"));
    }
}
