//! What is wrong with an arg, in words of ours: where, and what would fit; never what was sent.

use eventlog::{Json, Redactor};
use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};

/// At most so many bytes of a property's name, of a pointer or of a schema's value are told.
const TOLD_BYTES_MAX: usize = 128;

/// One line for one problem: JSON pointer (RFC 6901), then what is wrong there.
pub(super) fn describe(error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().as_str();
    let place = if pointer.is_empty() { "(args)".to_owned() } else { told(pointer) };
    format!("{place}: {}", wrong(error.kind()))
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
        Kind::Enum { options } => format!("must be one of {}", schema_value(options)),
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
        Kind::OneOfMultipleValid { .. } | Kind::OneOfNotValid { .. } => {
            "must fit exactly one of the forms of the schema".to_owned()
        }
        Kind::AnyOf { .. } => "must fit one of the forms of the schema".to_owned(),
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
    if text.len() <= TOLD_BYTES_MAX {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(TOLD_BYTES_MAX)])
}
