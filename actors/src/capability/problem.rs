//! What is wrong with an arg, in words of ours: where, and what would fit; never what was sent.

use eventlog::{Json, Redactor};
use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};

/// At most so many bytes of a property's name, of a pointer or of a schema's value are told.
const TOLD_BYTES_MAX: usize = 128;
/// At most so many bytes of the words that would fit.
const LISTED_BYTES_MAX: usize = 512;

/// One line for one problem: JSON pointer (RFC 6901), then what is wrong there by `schema`, the whole one.
pub(super) fn describe(error: &ValidationError<'_>, schema: &Json) -> String {
    let pointer = error.instance_path().as_str();
    let place = if pointer.is_empty() { "(args)".to_owned() } else { told(pointer) };
    let wrong = match error.kind() {
        Kind::OneOfMultipleValid { .. } | Kind::OneOfNotValid { .. } => choices(error, schema, "exactly one"),
        Kind::AnyOf { .. } => choices(error, schema, "at least one"),
        kind => wrong(kind),
    };
    format!("{place}: {wrong}")
}

/// The forms of the `oneOf` or `anyOf` that was not met.
fn forms<'a>(error: &ValidationError<'_>, schema: &'a Json) -> &'a [Json] {
    schema.pointer(error.schema_path().as_str()).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

fn is_null(form: &Json) -> bool {
    form.get("type").and_then(Json::as_str) == Some("null")
}

/// What would fit one of several forms: their words, or the properties that tell them apart.
fn choices(error: &ValidationError<'_>, schema: &Json, how_many: &str) -> String {
    let (mut words, mut properties) = (Vec::new(), Vec::new());
    if !forms(error, schema).iter().all(|form| gather(form, &mut words, &mut properties)) {
        return "must fit one of the forms of the schema".to_owned();
    }
    let listed = |names: &[&str]| clip_to(&names.join(", "), LISTED_BYTES_MAX);
    match (words.is_empty(), properties.is_empty()) {
        (false, true) => format!("must be one of {}", listed(&words)),
        (true, false) => format!("must have {how_many} of {}", listed(&properties)),
        (false, false) => {
            format!("must be one of {}, or have one of {}", listed(&words), listed(&properties))
        }
        (true, true) => "must fit one of the forms of the schema".to_owned(),
    }
}

/// Whether a form could be put into words.
fn gather<'a>(form: &'a Json, words: &mut Vec<&'a str>, properties: &mut Vec<&'a str>) -> bool {
    let texts = |keyword: &str| form.get(keyword).and_then(Json::as_array).into_iter().flatten();
    let known = words.len() + properties.len();
    words.extend(form.get("const").into_iter().chain(texts("enum")).filter_map(Json::as_str));
    properties.extend(texts("required").filter_map(Json::as_str));
    let inner = texts("oneOf").chain(texts("anyOf")).all(|inner| gather(inner, words, properties));
    inner && (is_null(form) || words.len() + properties.len() > known)
}

/// Only what the schema says goes into the words, and names of properties, which are no values.
fn wrong(kind: &Kind) -> String {
    match kind {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names: Vec<_> = unexpected.iter().take(3).map(|name| format!("{:?}", told(name))).collect();
            format!("has no property {}", names.join(", "))
        }
        Kind::Required { property } => format!("{} is required", schema_value(property)),
        Kind::Type { kind } => type_words(kind),
        Kind::Enum { options } => format!("must be one of {}", listed(options)),
        Kind::Constant { expected_value } => format!("must be {}", schema_value(expected_value)),
        Kind::Minimum { limit } => format!("must be at least {}", schema_value(limit)),
        Kind::Maximum { limit } => format!("must be at most {}", schema_value(limit)),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {}", schema_value(limit)),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {}", schema_value(limit)),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("must have at least {limit} properties"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} properties"),
        Kind::Pattern { pattern } => format!("must match {pattern}"),
        Kind::Format { format } => format!("must be a {format}"),
        Kind::UniqueItems => "must have each item once".to_owned(),
        other => format!("breaks the schema's {:?}", other.keyword()),
    }
}

fn type_words(kind: &jsonschema::error::TypeKind) -> String {
    use jsonschema::{JsonType, error::TypeKind};
    let word = |kind: JsonType| match kind {
        JsonType::Array => "an array",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    };
    match kind {
        TypeKind::Single(kind) => format!("must be {}", word(*kind)),
        TypeKind::Multiple(kinds) => {
            format!("must be {}", kinds.iter().map(word).collect::<Vec<_>>().join(" or "))
        }
    }
}

/// The values of an `enum`: texts without quotes, as people write them.
fn listed(options: &Json) -> String {
    let shown = |option: &Json| option.as_str().map_or_else(|| option.to_string(), str::to_owned);
    let options: Vec<_> = options.as_array().into_iter().flatten().map(shown).collect();
    clip_to(&options.join(", "), LISTED_BYTES_MAX)
}

/// A value that stands in the schema, so it is ours.
fn schema_value(value: &Json) -> String {
    clip(&value.to_string())
}

/// A name that the caller chose. It is no value, but a secret may have been put there all the same.
fn told(name: &str) -> String {
    clip(Redactor::new().text(name).get())
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

fn clip(text: &str) -> String {
    clip_to(text, TOLD_BYTES_MAX)
}

fn clip_to(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(bytes_max)])
}
