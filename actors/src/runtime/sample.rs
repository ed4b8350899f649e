//! The smallest value that fits a JSON Schema of ours: what the scripted runtime answers with.

use eventlog::Json;
use serde_json::{Map, json};

/// Schemas of ours are a few levels deep; a recursive one would not end.
const DEPTH_MAX: usize = 32;

/// The smallest value of `schema`: no optional fields, empty arrays, the first of several alternatives.
pub(crate) fn smallest(schema: &Json) -> Json {
    value(schema, schema, 0)
}

fn value(root: &Json, schema: &Json, depth: usize) -> Json {
    if depth > DEPTH_MAX {
        return Json::Null;
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(first) = schema.pointer("/enum/0") {
        return first.clone();
    }
    if let Some(target) = schema.get("$ref").and_then(Json::as_str).and_then(|path| path.strip_prefix('#')) {
        return root.pointer(target).map_or(Json::Null, |schema| value(root, schema, depth + 1));
    }
    for alternatives in ["oneOf", "anyOf", "allOf"] {
        if let Some(first) = schema.get(alternatives).and_then(|all| all.get(0)) {
            return value(root, first, depth + 1);
        }
    }
    match kind(schema) {
        "object" => object(root, schema, depth),
        "array" => Json::Array(Vec::new()),
        "string" => text(schema),
        "integer" => json!(schema.get("minimum").and_then(Json::as_u64).unwrap_or(0)),
        "number" => json!(schema.get("minimum").and_then(Json::as_f64).unwrap_or(0.0)),
        "boolean" => Json::Bool(false),
        _ => Json::Null,
    }
}

fn kind(schema: &Json) -> &str {
    match schema.get("type") {
        Some(Json::String(kind)) => kind,
        Some(Json::Array(kinds)) => kinds.first().and_then(Json::as_str).unwrap_or("null"),
        _ if schema.get("properties").is_some() => "object",
        _ => "null",
    }
}

fn object(root: &Json, schema: &Json, depth: usize) -> Json {
    let required = schema.get("required").and_then(Json::as_array).into_iter().flatten();
    let fields: Map<String, Json> = required
        .filter_map(Json::as_str)
        .map(|name| {
            let field = schema.get("properties").and_then(|properties| properties.get(name));
            (name.to_owned(), field.map_or(Json::Null, |field| value(root, field, depth + 1)))
        })
        .collect();
    Json::Object(fields)
}

/// What the patterns of our schemas take: ids of tabs, elements and artifacts.
const IDS: [&str; 3] = ["t1", "e1", "art_00000000000000000000000000"];

fn text(schema: &Json) -> Json {
    if schema.get("pattern").is_some() {
        let fits = |id: &&str| jsonschema::is_valid(schema, &Json::from(*id));
        return Json::from(IDS.iter().copied().find(fits).unwrap_or_default());
    }
    let length = schema.get("minLength").and_then(Json::as_u64).unwrap_or(0);
    Json::from("x".repeat(usize::try_from(length).unwrap_or(0)))
}
