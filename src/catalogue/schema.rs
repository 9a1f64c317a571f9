//! JSON Schema of arguments and results, in the subset that every model provider accepts:
//! one plain `type` per property, `description`, `enum` of texts, `items` of a list; nothing else.

use serde_json::{Map, Value, json};

use super::{ENUM_MAX, KnownNames, ParameterKind, ResultFieldKind, ToolDefinition, ToolParameter};

/// Returns the schema of a tool's arguments, with the values that are valid on this node now.
#[must_use]
pub fn input(tool: &ToolDefinition, known: &KnownNames) -> Map<String, Value> {
    fields(tool.shown_parameters(known), known)
}

/// Returns the schema of an object with these parameters.
fn fields<'a>(
    parameters: impl Iterator<Item = &'a ToolParameter>,
    known: &KnownNames,
) -> Map<String, Value> {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for parameter in parameters {
        let schema = Value::Object(property(parameter, known));
        properties.insert(parameter.name.clone(), schema);
        required.extend(parameter.required.then(|| parameter.name.clone()));
    }
    let mut schema = object(properties);
    // Some schema readers require at least one name in this list.
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

fn object(properties: Map<String, Value>) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    // Some providers refuse an object schema without this key, even when it is empty.
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema
}

fn property(parameter: &ToolParameter, known: &KnownNames) -> Map<String, Value> {
    let mut schema = match parameter.kind {
        ParameterKind::Object => object(Map::new()),
        _ => Map::from_iter([("type".to_owned(), json!(parameter.kind.json_type()))]),
    };
    schema.insert("description".to_owned(), json!(text(parameter, known)));
    let item = match &parameter.kind {
        ParameterKind::Texts => Some(json!({"type": "string"})),
        ParameterKind::Point { .. } => Some(json!({"type": "number"})),
        ParameterKind::Objects(keys) => Some(Value::Object(fields(keys.iter(), known))),
        _ => None,
    };
    schema.extend(item.map(|item| ("items".to_owned(), item)));
    let values = values(&parameter.kind, known);
    if (1..=ENUM_MAX).contains(&values.len()) {
        schema.insert("enum".to_owned(), json!(values));
    }
    schema
}

/// Returns the values of a choice.
fn values<'a>(kind: &'a ParameterKind, known: &'a KnownNames) -> &'a [String] {
    match kind {
        ParameterKind::Name(vocabulary) => known.names(*vocabulary),
        ParameterKind::Choice(values) => values,
        _ => &[],
    }
}

/// Returns a parameter's description. If there are too many values for an `enum`, it names the first and where to find the rest.
pub(super) fn text(parameter: &ToolParameter, known: &KnownNames) -> String {
    let is_in_name = |unit: &str| parameter.name.ends_with(&format!("_{unit}"));
    let text = match parameter.kind.unit() {
        Some(unit) if !is_in_name(unit) => format!("{}, in {unit}", parameter.words),
        _ => parameter.words.clone(),
    };
    let names = values(&parameter.kind, known);
    if names.len() <= ENUM_MAX {
        return text;
    }
    let first: Vec<&str> = names.iter().take(ENUM_MAX).map(String::as_str).collect();
    let rest = names.len() - ENUM_MAX;
    format!(
        "{text}: {} and {rest} more (see list_nodes)",
        first.join(", ")
    )
}

/// Fields of every result.
const COMMON_FIELDS: [(&str, ResultFieldKind); 7] = [
    ("success", ResultFieldKind::Bool),
    ("message", ResultFieldKind::Text),
    ("understood", ResultFieldKind::Object),
    ("repairs", ResultFieldKind::Objects),
    ("usage_hints", ResultFieldKind::Texts),
    ("job", ResultFieldKind::Object),
    ("now", ResultFieldKind::Text),
];

/// Returns the schema of a tool's result. It is loose, so that a client that validates results accepts every real one.
#[must_use]
pub fn output(tool: &ToolDefinition) -> Map<String, Value> {
    let common = COMMON_FIELDS.iter();
    let common = common.map(|(name, kind)| ((*name).to_owned(), kind_schema(*kind).into()));
    let own = tool.fields.iter().map(|field| {
        let mut schema = kind_schema(field.kind);
        schema.insert("description".to_owned(), json!(field.words));
        (field.name.to_owned(), schema.into())
    });
    let mut schema = object(common.chain(own).collect());
    schema.insert("required".to_owned(), json!(["success", "message"]));
    schema
}

fn kind_schema(kind: ResultFieldKind) -> Map<String, Value> {
    let (kind, item) = match kind {
        ResultFieldKind::Text => ("string", None),
        ResultFieldKind::Bool => ("boolean", None),
        ResultFieldKind::Whole => ("integer", None),
        ResultFieldKind::Number => ("number", None),
        ResultFieldKind::Object => ("object", None),
        ResultFieldKind::Texts => ("array", Some("string")),
        ResultFieldKind::Objects => ("array", Some("object")),
    };
    let mut schema = Map::from_iter([("type".to_owned(), json!(kind))]);
    schema.extend(item.map(|item| ("items".to_owned(), json!({"type": item}))));
    schema
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::super::{TOOLS, test_names};
    use super::{Value, input, output};

    /// Checks that a schema has only keys that every model provider accepts.
    fn check_plain(schema: &Value, path: &str) {
        const PLAIN: [&str; 6] = [
            "type",
            "properties",
            "description",
            "enum",
            "required",
            "items",
        ];
        for (key, value) in schema.as_object().unwrap() {
            assert!(PLAIN.contains(&key.as_str()), "{path}.{key}");
            match key.as_str() {
                "type" => assert!(value.is_string(), "{path}.type"),
                "items" => check_plain(value, path),
                "properties" => {
                    for (name, schema) in value.as_object().unwrap() {
                        assert!(
                            name.chars().all(|c| c.is_ascii_lowercase() || c == '_'),
                            "{path}.{name}"
                        );
                        check_plain(schema, name);
                    }
                }
                _ => {}
            }
        }
    }

    #[test]
    fn every_schema_is_plain() {
        for tool in TOOLS.iter() {
            check_plain(&Value::Object(input(tool, &test_names())), &tool.name);
            check_plain(&Value::Object(output(tool)), &tool.name);
        }
    }

    #[test]
    fn a_choice_of_one_is_not_shown() {
        let mut known = test_names();
        let stroke = test_names().find("stroke").unwrap().clone();
        let shown = |known: &_| {
            input(&stroke, known)["properties"]
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            shown(&known),
            [
                "scene", "meta", "dry_run", "plan", "resume", "again", "debug"
            ]
        );
        known.arms.push("second".to_owned());
        known.nodes.push("there".to_owned());
        known.overlays.clear();
        assert_eq!(
            shown(&known),
            [
                "scene", "arm", "node", "dry_run", "plan", "resume", "again", "debug"
            ]
        );
    }

    #[test]
    fn a_canvas_adds_its_parameters() {
        let mut known = test_names();
        let stroke = known.find("stroke").unwrap().clone();
        let keys = ["text", "svg", "size_mm", "at_mm"];
        let shown = |known: &_, key: &str| input(&stroke, known)["properties"].get(key).cloned();
        assert!(keys.iter().all(|key| shown(&known, key).is_none()));
        known.canvases.push("canvas".to_owned());
        assert!(keys.iter().all(|key| shown(&known, key).is_some()));
        let at = shown(&known, "at_mm").unwrap();
        assert_eq!(at["items"]["type"], "number");
        check_plain(&Value::Object(input(&stroke, &known)), "stroke");
    }

    #[test]
    fn more_values_than_are_listed_move_into_the_description() {
        let mut known = test_names();
        known.scenes = (0..19).map(|i| format!("s{i}")).collect();
        let scene = &input(
            TOOLS.iter().find(|tool| tool.name == "stroke").unwrap(),
            &known,
        )["properties"]["scene"];
        assert_eq!(scene.get("enum"), None);
        assert!(
            scene["description"]
                .as_str()
                .unwrap()
                .ends_with("s15 and 3 more (see list_nodes)")
        );
    }
}
