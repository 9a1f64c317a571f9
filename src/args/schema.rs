//! Builds a shape from any JSON Schema, including the dialects of tool lists (`dict`, `float`, `tuple`, `any`).

use super::{
    limits::DEPTH_MAX,
    shape::{ArgumentShape, ItemCount, NumberRange, ParameterShape, ValueKind},
    unit::DeclaredUnit,
    value_coercion::plain_text,
};
use serde_json::{Map, Value};
use thiserror::Error;

/// Reason why a JSON Schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// It is not an object.
    #[error("a schema must be a JSON object, but this is {0}")]
    NotAnObject(&'static str),
    /// Its parameters are not an object.
    #[error("`properties` must be an object at {0}")]
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
        fields(inner_schema(object), "", 0).map(Self::new)
    }
}

/// Returns the schema inside a tool definition, or the object itself.
fn inner_schema(object: &Map<String, Value>) -> &Map<String, Value> {
    if object.contains_key("properties") {
        return object;
    }
    if let Some(Value::Object(function)) = object.get("function") {
        return inner_schema(function);
    }
    let mut keys = ["inputSchema", "input_schema", "parameters", "schema"].iter();
    let carried = keys.find_map(|key| object.get(*key)?.as_object());
    let is_schema = |inner: &&Map<String, Value>| {
        inner.contains_key("properties") || inner.get("type").is_some_and(Value::is_string)
    };
    carried.filter(is_schema).unwrap_or(object)
}

const fn type_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
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
    let path = match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    let place = SchemaPlace {
        name,
        path: &path,
        depth: depth + 1,
    };
    let has = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    let default = schema.get("default").filter(|value| !value.is_null());
    Ok(ParameterShape {
        aliases: texts(schema.get("x-aliases").or_else(|| schema.get("aliases"))),
        required: (required.iter().any(|r| r == name) || has("required")) && !has("optional"),
        default: default.or_else(|| schema.get("const")).cloned(),
        empty_is_default: default.map_or_else(|| describes_empty_default(schema), is_empty),
        nullable: is_nullable(schema),
        ..ParameterShape::new(name, place.kind(schema)?)
    })
}

/// Returns whether null is declared to be a value.
fn is_nullable(schema: &Value) -> bool {
    let is_null = |word: &Value| word == "null" || word == "none";
    let types = schema.get("type").and_then(Value::as_array);
    let unions = ["anyOf", "oneOf"].iter();
    let unions = unions.filter_map(|key| schema.get(*key)?.as_array());
    let mut members = unions.flatten();
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

/// Returns whether the description alone declares an empty default: "Default is empty array".
fn describes_empty_default(schema: &Value) -> bool {
    let words = schema.get("description").and_then(Value::as_str);
    let words = words.unwrap_or_default().to_lowercase();
    let Some((_, after)) = words.split_once("default") else {
        return false;
    };
    let is_mark = |c: char| c.is_whitespace() || matches!(c, 's' | ':' | '=');
    let after = after.trim_start_matches(is_mark);
    let fillers = ["is ", "to ", "an ", "a ", "is an ", "to an ", "is a "].iter();
    let rests = fillers.filter_map(|word| after.strip_prefix(word));
    let after = rests.min_by_key(|rest| rest.len()).unwrap_or(after);
    let kind = after.strip_prefix("empty ").unwrap_or_default();
    let mut types = ["array", "list", "object", "dict"].iter();
    types.any(|one| kind.starts_with(one)) || after.starts_with("[]") || after.starts_with("{}")
}

/// Returns the texts of a list, or a text alone.
fn texts(value: Option<&Value>) -> Vec<String> {
    let one = value.filter(|value| value.is_string());
    let items = value.and_then(Value::as_array).into_iter().flatten();
    let items = items.chain(one).filter_map(Value::as_str);
    items.map(str::to_owned).collect()
}

/// Place of a part of a schema.
#[derive(Clone, Copy)]
struct SchemaPlace<'a> {
    /// Name of the parameter.
    name: &'a str,
    path: &'a str,
    depth: usize,
}

impl SchemaPlace<'_> {
    fn kind(self, schema: &Value) -> Result<ValueKind, SchemaError> {
        if self.depth > DEPTH_MAX {
            return Err(SchemaError::TooDeep(self.path.to_owned()));
        }
        let Value::Object(object) = schema else {
            return Ok(ValueKind::Any);
        };
        if let Some(members) = union_of(object) {
            return self.union(members, object);
        }
        match object.get("type") {
            Some(Value::Array(types)) => {
                let types = types.iter().filter_map(Value::as_str);
                one_or_any(types.map(|word| self.typed(word, object)))
            }
            Some(Value::String(word)) => self.typed(word, object),
            _ if is_choice(object) => Ok(choice(object)),
            _ if object.contains_key("properties") => self.typed("object", object),
            _ if object.contains_key("items") => self.typed("array", object),
            _ => Ok(ValueKind::Any),
        }
    }

    /// Reads `oneOf` with constants as an enumeration with titles; the members of any other union are tried in order, each
    /// with the keywords that stand beside the union.
    fn union(
        self,
        members: &[Value],
        beside: &Map<String, Value>,
    ) -> Result<ValueKind, SchemaError> {
        let constants = members.iter().filter_map(|member| member.get("const"));
        let values: Vec<Value> = constants.cloned().collect();
        if values.len() == members.len() && !values.is_empty() {
            let title = |member: &Value| Some(member.get("title")?.as_str()?.to_owned());
            let titled = members.iter().zip(&values);
            let titled = titled.filter_map(|(member, value)| Some((title(member)?, value.clone())));
            return Ok(ValueKind::Choice {
                synonyms: titled.chain(synonyms(beside, &values)).collect(),
                values,
            });
        }
        let depth = self.depth + 1;
        let is_inherited = |key: &str| !INNER_SCHEMAS.contains(&key);
        let members = members.iter();
        let members = members.map(|member| with_inherited(member, beside, is_inherited));
        one_or_any(members.map(|member| Self { depth, ..self }.kind(&member)))
    }

    fn typed(self, word: &str, object: &Map<String, Value>) -> Result<ValueKind, SchemaError> {
        let lower = word.to_ascii_lowercase();
        let is_list = matches!(lower.as_str(), "array" | "list" | "tuple" | "set");
        if is_choice(object) && !is_list && lower != "null" {
            return Ok(choice(object));
        }
        Ok(match lower.as_str() {
            "string" | "str" | "text" | "char" => ValueKind::Text,
            "integer" | "int" | "long" => ValueKind::Integer {
                range: range(object),
                unit: unit(self.name, object),
            },
            "number" | "float" | "double" => ValueKind::Number {
                range: range(object),
                unit: unit(self.name, object),
            },
            "boolean" | "bool" => ValueKind::Bool,
            "null" | "none" => ValueKind::Nothing,
            "object" | "dict" | "map" | "hashmap" => {
                let fields = fields(object, self.path, self.depth)?;
                let allows_others = object.get("additionalProperties") != Some(&Value::Bool(false));
                let open = allows_others || fields.is_empty();
                ValueKind::Object { fields, open }
            }
            "any" => ValueKind::Any,
            _ if is_list => ValueKind::List {
                item: Box::new(self.items(object)?),
                count: count(object),
            },
            _ => {
                let (name, path) = (word.to_owned(), self.path.to_owned());
                return Err(SchemaError::UnknownType { name, path });
            }
        })
    }

    /// Returns the kind of a list's items; an `enum`, synonyms or a unit beside `items` apply to each item.
    fn items(self, object: &Map<String, Value>) -> Result<ValueKind, SchemaError> {
        let listed = object.get("enum").and_then(Value::as_array);
        if listed.is_some_and(|values| !values.iter().any(Value::is_array)) {
            return Ok(choice(object));
        }
        match object.get("items") {
            Some(schema @ Value::Object(_)) => {
                let (path, depth) = (&format!("{}[]", self.path), self.depth + 1);
                SchemaPlace {
                    path,
                    depth,
                    ..self
                }
                .kind(&with_inherited(schema, object, is_annotation))
            }
            _ => Ok(ValueKind::Any),
        }
    }
}

/// Keys whose values are schemas, or belong to them.
const INNER_SCHEMAS: [&str; 5] = ["anyOf", "oneOf", "properties", "required", "items"];

/// Returns the members of a union. Members that only narrow a declared type, such as lists of what is required, are none.
fn union_of(object: &Map<String, Value>) -> Option<&Vec<Value>> {
    let mut unions = ["anyOf", "oneOf"].iter();
    let members = unions.find_map(|key| object.get(*key)?.as_array())?;
    let keys = [
        "type",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "properties",
        "items",
    ];
    let has_kind = |member: &Value| keys.iter().any(|key| member.get(*key).is_some());
    (!object.contains_key("type") || members.iter().any(has_kind)).then_some(members)
}

/// Returns a schema with the keys of the one around it that it inherits and does not have.
fn with_inherited(
    schema: &Value,
    around: &Map<String, Value>,
    is_inherited: impl Fn(&str) -> bool,
) -> Value {
    let mut merged = schema.clone();
    if let Value::Object(object) = &mut merged {
        for (key, value) in around.iter().filter(|(key, _)| is_inherited(key)) {
            object.entry(key).or_insert_with(|| value.clone());
        }
    }
    merged
}

/// Returns whether a key says something about each value, whatever holds the values.
fn is_annotation(key: &str) -> bool {
    let mut all = SYNONYM_MAPS.iter().chain(&SYNONYM_LISTS).chain(&UNITS);
    all.any(|known| *known == key)
}

/// Keys of declared units.
const UNITS: [&str; 3] = ["unit", "x-unit", "units"];

/// Keys of maps of declared synonyms.
const SYNONYM_MAPS: [&str; 11] = [
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

/// Keys of names listed beside values.
const SYNONYM_LISTS: [&str; 4] = [
    "x-enum-varnames",
    "x-enumNames",
    "enumNames",
    "x-enum-names",
];

/// Returns the only kind, or all of several except null.
fn one_or_any(
    kinds: impl Iterator<Item = Result<ValueKind, SchemaError>>,
) -> Result<ValueKind, SchemaError> {
    let mut kinds = kinds.collect::<Result<Vec<_>, _>>()?;
    if kinds.len() > 1 {
        kinds.retain(|kind| *kind != ValueKind::Nothing);
    }
    Ok(match kinds.len() {
        0 | 1 => kinds.pop().unwrap_or(ValueKind::Any),
        _ => ValueKind::AnyOf(kinds),
    })
}

fn is_choice(object: &Map<String, Value>) -> bool {
    object.contains_key("enum") || object.contains_key("const")
}

/// Returns the bounds on a list's length.
fn count(object: &Map<String, Value>) -> ItemCount {
    let bound = |key: &str| usize::try_from(object.get(key)?.as_u64()?).ok();
    ItemCount {
        min: bound("minItems").unwrap_or(ItemCount::ANY.min),
        max: bound("maxItems").unwrap_or(ItemCount::ANY.max),
    }
}

/// Returns the listed values and the default, which counts as a value, with any synonyms that the schema declares.
fn choice(object: &Map<String, Value>) -> ValueKind {
    let listed = object.get("enum").and_then(Value::as_array);
    let mut values = listed.cloned().unwrap_or_default();
    values.extend(object.get("const").cloned());
    let synonyms = synonyms(object, &values);
    let is_new = |value: &&Value| !value.is_null() && !value.is_array() && !values.contains(value);
    let default = object.get("default").filter(is_new).cloned();
    values.extend(default);
    ValueKind::Choice { values, synonyms }
}

/// Returns declared synonyms: `{"gte": ">="}`, `{">=": ["gte", "ge"]}`, or names listed beside the values.
fn synonyms(object: &Map<String, Value>, values: &[Value]) -> Vec<(String, Value)> {
    let maps = SYNONYM_MAPS
        .iter()
        .filter_map(|key| object.get(*key)?.as_object());
    let mapped = maps.flatten();
    let mapped = mapped.flat_map(|(key, value)| synonym_pairs(key, value, values));
    let lists = SYNONYM_LISTS
        .iter()
        .filter_map(|key| object.get(*key)?.as_array());
    let named = lists.flat_map(|names| names.iter().zip(values));
    let named = named.filter_map(|(name, value)| Some((name.as_str()?.to_owned(), value.clone())));
    mapped.chain(named).collect()
}

fn synonym_pairs(key: &str, value: &Value, values: &[Value]) -> Vec<(String, Value)> {
    if let Some(known) = values.iter().find(|known| plain_text(known) == key) {
        let words = value
            .as_array()
            .map_or(std::slice::from_ref(value), Vec::as_slice);
        let words = words.iter().filter_map(Value::as_str);
        return words.map(|word| (word.to_owned(), known.clone())).collect();
    }
    let same = values.iter().filter(|known| *known == value);
    same.map(|known| (key.to_owned(), known.clone())).collect()
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

/// Returns the declared unit, or the one that the name ends with: `depth_mm`, `speed_mm_s`.
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
    let declared = UNITS
        .iter()
        .find_map(|key| DeclaredUnit::named(object.get(*key)?.as_str()?));
    let mut suffixes = SUFFIXES.iter();
    declared.or_else(|| {
        let (_, unit) = suffixes.find(|(suffix, _)| name.ends_with(suffix))?;
        DeclaredUnit::named(unit)
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
                "a string",
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
    fn what_stands_beside_a_union_or_around_items_holds_for_each() {
        let operator = json!([{"type": "string", "enum": [">", ">="]}, {"type": "null"}]);
        let shape = ArgumentShape::from_json_schema(&json!({"properties": {
            "any": {"anyOf": operator, "x-synonyms": {"gte": ">="}, "x-aliases": ["either"]},
            "one": {"oneOf": operator, "synonyms": {">=": ["gte"]}, "x-aliases": "alone"},
            "constants": {"oneOf": [{"const": ">"}, {"const": ">="}], "x-synonyms": {"gte": ">="}},
            "outside": {"enum": [">", ">="], "anyOf": [{"type": "string"}, {"type": "null"}], "x-synonyms": {"gte": ">="}},
            "listed": {"anyOf": [{"type": "array", "items": {"enum": [">", ">="]}}, {"type": "null"}], "x-synonyms": {"gte": ">="}},
            "depth": {"anyOf": [{"type": "number"}, {"type": "null"}], "unit": "mm", "minimum": 1},
            "depths": {"type": "array", "items": {"type": "number"}, "unit": "mm"},
            "narrowed": {"type": "object", "properties": {"a": {"type": "number", "unit": "mm"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}}}))
        .unwrap();
        let read = |name: &str, text: Value| {
            let sent = json!({name: text}).to_string();
            match crate::explain_line(&shape, &sent) {
                crate::LineReading::Understood { understood, .. } => {
                    Some(Value::Object(understood))
                }
                crate::LineReading::Refused { .. } => None,
            }
        };
        for (name, sent, read_as) in [
            ("any", json!("gte"), json!({"any": ">="})),
            ("either", json!("gte"), json!({"any": ">="})),
            ("alone", json!("gte"), json!({"one": ">="})),
            ("constants", json!("gte"), json!({"constants": ">="})),
            ("outside", json!("gte"), json!({"outside": ">="})),
            (
                "listed",
                json!(["gte", ">"]),
                json!({"listed": [">=", ">"]}),
            ),
            ("depth", json!("2 cm"), json!({"depth": 20})),
            ("depths", json!(["2 cm", 1]), json!({"depths": [20, 1]})),
            (
                "narrowed",
                json!({"a": "2 cm"}),
                json!({"narrowed": {"a": 20}}),
            ),
        ] {
            assert_eq!(read(name, sent), Some(read_as), "{name}");
        }
        assert_eq!(read("depth", json!(0.5)), None);
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
