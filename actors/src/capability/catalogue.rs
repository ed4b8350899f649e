//! The closed catalogue: one row per capability, made from the types of its args and of its result.

use std::{any::type_name, collections::HashMap, str::FromStr};

use eventlog::{Json, event::instance::Bundle, id::CapabilityName};
use jsonschema::{Draft, PatternOptions, Validator};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};

use super::problem::describe;
use crate::rejection::Rejection;

/// At most so many problems of one call's args are told.
pub const PROBLEMS_MAX: usize = 16;

/// Every capability there is. Cheap to ask, made once.
#[derive(Debug)]
pub struct Catalogue {
    rows: Vec<Row>,
    by_name: HashMap<CapabilityName, usize>,
}

/// One capability.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub name: CapabilityName,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The smallest bundle that has it.
    pub bundle: Bundle,
    /// What is sensitive about it.
    pub sensitivity: Sensitivity,
    /// Args as somebody might send them; they fit the schema.
    pub example: Json,
    /// The JSON Schema of its args (draft 2020-12); closed: no property that it does not name.
    pub args_schema: Json,
    /// The JSON Schema of its result (draft 2020-12).
    pub result_schema: Json,
    validator: Validator,
}

/// What is sensitive about a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sensitivity {
    /// What it does to the page.
    pub effects: Effects,
    /// The args whose values are secrets: masked in whatever the page gives back later.
    pub secret_args: &'static [&'static str],
}

impl Sensitivity {
    /// Only looks, and has no secret arg.
    pub const READS: Self = Self { effects: Effects::Reads, secret_args: &[] };
    /// Changes something, and has no secret arg.
    pub const ACTS: Self = Self { effects: Effects::Acts, secret_args: &[] };
    /// Runs a script of the caller's (S3).
    pub const SCRIPT: Self = Self { effects: Effects::Anything, secret_args: &[] };

    /// The same, with secret args.
    #[must_use]
    pub const fn with_secrets(self, secret_args: &'static [&'static str]) -> Self {
        Self { secret_args, ..self }
    }
}

/// What a capability does to the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effects {
    /// It only looks.
    Reads,
    /// It changes something, in the page or beyond: whether it ran matters.
    Acts,
    /// It does whatever the caller's script says: only in the trusted bundle, and only where the operator lets it in.
    Anything,
}

/// Why capability and args are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckError {
    /// There is no such capability.
    Unknown,
    /// The args do not fit: JSON pointer and what is wrong there, never the value.
    Args(Vec<String>),
}

impl From<CheckError> for Rejection {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Unknown => Self::CapabilityUnknown { at: None },
            CheckError::Args(problems) => Self::InvalidArgs { problems },
        }
    }
}

/// Why a table is not a catalogue: a bug in the table, found when the server starts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// The name is not one.
    #[error("{0:?} is no name for a capability")]
    Name(&'static str),
    /// Two rows have this name.
    #[error("{0} stands in the catalogue twice")]
    Twice(CapabilityName),
    /// The args are not an object, or take properties that they do not name.
    #[error("the args of {0} are not a closed object")]
    Open(CapabilityName),
    /// A secret arg is not among the args.
    #[error("{0} has no arg {1:?}")]
    NoSuchArg(CapabilityName, &'static str),
    /// What may do anything is in a bundle that any instance may have.
    #[error("{0} runs what its caller sends, and is not in the trusted bundle only")]
    Untrusted(CapabilityName),
    /// The example does not fit the schema.
    #[error("the example of {0} does not fit: {1}")]
    Example(CapabilityName, String),
    /// The schema can't be compiled.
    #[error("the schema of {0}'s args is no JSON Schema: {1}")]
    Schema(CapabilityName, String),
}

/// One row, from the types that its function takes and gives.
///
/// # Errors
/// [`CatalogueError`]: `Args` is not what a caller may send; see its variants.
pub fn row<Args, Output>(
    name: &'static str,
    summary: &'static str,
    bundle: Bundle,
    sensitivity: Sensitivity,
    example: Json,
) -> Result<Row, CatalogueError>
where
    Args: JsonSchema + DeserializeOwned,
    Output: JsonSchema + Serialize,
{
    let parsed = CapabilityName::from_str(name).map_err(|_| CatalogueError::Name(name))?;
    let settings = || SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let args_schema = settings().for_deserialize().into_generator().into_root_schema_for::<Args>().to_value();
    let result_schema =
        settings().for_serialize().into_generator().into_root_schema_for::<Output>().to_value();
    if !is_closed_object(&args_schema) {
        return Err(CatalogueError::Open(parsed));
    }
    if sensitivity.effects == Effects::Anything && bundle != Bundle::Trusted {
        return Err(CatalogueError::Untrusted(parsed));
    }
    if let Some(missing) = sensitivity.secret_args.iter().find(|arg| !names_property(&args_schema, arg)) {
        return Err(CatalogueError::NoSuchArg(parsed, missing));
    }
    // The `regex` engine runs in linear time, whatever an agent sends.
    let validator = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex())
        .build(&args_schema)
        .map_err(|error| {
            CatalogueError::Schema(parsed.clone(), format!("{}: {error}", type_name::<Args>()))
        })?;
    let row =
        Row { name: parsed, summary, bundle, sensitivity, example, args_schema, result_schema, validator };
    match row.check(&row.example) {
        Err(CheckError::Args(problems)) => Err(CatalogueError::Example(row.name, problems.join("; "))),
        Ok(()) | Err(CheckError::Unknown) => Ok(row),
    }
}

/// Whether a schema takes objects only, and only the properties that it names; each of them, where it has several forms.
fn is_closed_object(schema: &Json) -> bool {
    let closed = |keyword: &str| schema.get(keyword) == Some(&Json::Bool(false));
    let is_object = schema.get("type").and_then(Json::as_str) == Some("object");
    if is_object && (closed("additionalProperties") || closed("unevaluatedProperties")) {
        return true;
    }
    forms(schema).is_some_and(|forms| !forms.is_empty() && forms.iter().all(is_closed_object))
}

fn names_property(schema: &Json, name: &str) -> bool {
    schema.get("properties").is_some_and(|properties| properties.get(name).is_some())
        || forms(schema).is_some_and(|forms| forms.iter().any(|form| names_property(form, name)))
}

fn forms(schema: &Json) -> Option<&Vec<Json>> {
    schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Json::as_array)
}

impl Row {
    /// Whether an instance with this bundle loads it.
    #[must_use]
    pub const fn is_in(&self, bundle: Bundle) -> bool {
        match (self.bundle, bundle) {
            (Bundle::Standard, Bundle::Standard | Bundle::Trusted) | (Bundle::Trusted, Bundle::Trusted) => {
                true
            }
            (Bundle::Trusted, Bundle::Standard) => false,
        }
    }

    /// Whether `args` fit.
    ///
    /// # Errors
    /// [`CheckError::Args`]: the first [`PROBLEMS_MAX`] problems, in the order of the schema.
    pub fn check(&self, args: &Json) -> Result<(), CheckError> {
        if self.validator.is_valid(args) {
            return Ok(());
        }
        Err(CheckError::Args(
            self.validator
                .iter_errors(args)
                .take(PROBLEMS_MAX)
                .map(|e| describe(&e, &self.args_schema))
                .collect(),
        ))
    }
}

impl Catalogue {
    /// The catalogue of these rows, in this order.
    ///
    /// # Errors
    /// [`CatalogueError`]: a row is wrong in itself, or two have one name.
    pub fn new(rows: impl IntoIterator<Item = Result<Row, CatalogueError>>) -> Result<Self, CatalogueError> {
        let mut catalogue = Self { rows: Vec::new(), by_name: HashMap::new() };
        for row in rows {
            let row = row?;
            let index = catalogue.rows.len();
            if catalogue.by_name.insert(row.name.clone(), index).is_some() {
                return Err(CatalogueError::Twice(row.name));
            }
            catalogue.rows.push(row);
        }
        Ok(catalogue)
    }

    /// Every row, in the order of the table.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The row of this name.
    #[must_use]
    pub fn get(&self, name: &CapabilityName) -> Option<&Row> {
        self.by_name.get(name).map(|index| &self.rows[*index])
    }

    /// The names that an instance with this bundle loads, in the order of the table.
    pub fn bundle(&self, bundle: Bundle) -> impl Iterator<Item = &CapabilityName> {
        self.rows.iter().filter(move |row| row.is_in(bundle)).map(|row| &row.name)
    }

    /// Whether there is such a capability and `args` fit it.
    ///
    /// # Errors
    /// [`CheckError`]: what is wrong.
    pub fn check(&self, name: &CapabilityName, args: &Json) -> Result<(), CheckError> {
        self.get(name).ok_or(CheckError::Unknown)?.check(args)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Fill {
        #[schemars(regex(pattern = r"^e[1-9][0-9]{0,6}$"))]
        r#ref: String,
        #[schemars(length(max = 5))]
        text: String,
        #[serde(default)]
        #[schemars(range(min = 100, max = 60_000))]
        timeout_ms: Option<u32>,
        #[serde(default)]
        button: Option<Button>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[allow(dead_code, reason = "only its schema is used")]
    enum Button {
        Left,
        Right,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, rename_all = "snake_case")]
    #[allow(dead_code, reason = "only its schema is used")]
    enum Wait {
        Ms(u32),
        Text(String),
    }

    #[derive(Deserialize, JsonSchema)]
    struct Open {}

    #[derive(Serialize, JsonSchema)]
    struct Page {
        url: String,
    }

    fn fill() -> Result<Row, CatalogueError> {
        let sensitivity = Sensitivity::ACTS.with_secrets(&["text"]);
        row::<Fill, Page>(
            "fill",
            "Fills a field.",
            Bundle::Standard,
            sensitivity,
            json!({ "ref": "e1", "text": "x" }),
        )
    }

    fn catalogue() -> Catalogue {
        let evaluate = row::<Wait, Page>(
            "evaluate",
            "Runs a script.",
            Bundle::Trusted,
            Sensitivity::ACTS,
            json!({ "ms": 1 }),
        );
        Catalogue::new([fill(), evaluate]).expect("the table is right")
    }

    fn problems(args: &Json) -> Vec<String> {
        match catalogue().check(&"fill".parse().expect("a name"), args) {
            Err(CheckError::Args(problems)) => problems,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn s03_a_trusted_capability_is_in_the_trusted_bundle_only() {
        let catalogue = catalogue();
        let names = |bundle| catalogue.bundle(bundle).map(CapabilityName::as_str).collect::<Vec<_>>();
        assert_eq!(names(Bundle::Standard), ["fill"]);
        assert_eq!(names(Bundle::Trusted), ["fill", "evaluate"]);
        let unknown = catalogue.check(&"nope".parse().expect("a name"), &json!({}));
        assert_eq!(unknown, Err(CheckError::Unknown));
    }

    #[test]
    fn s05_args_that_fit_pass_and_each_other_kind_is_named_by_pointer() {
        let fits = json!({ "ref": "e12", "text": "héllo", "timeout_ms": 100, "button": "left" });
        assert_eq!(catalogue().check(&"fill".parse().expect("a name"), &fits), Ok(()));
        let wait = |args| catalogue().check(&"evaluate".parse().expect("a name"), &args);
        assert_eq!(wait(json!({ "ms": 5 })), Ok(()));
        assert!(wait(json!({ "ms": 5, "text": "x" })).is_err());

        assert_eq!(problems(&json!([])), ["(args): must be an object"]);
        assert_eq!(problems(&json!({ "text": "" })), ["(args): \"ref\" is required"]);
        assert_eq!(problems(&json!({ "ref": "#id", "text": "" })), [r"/ref: must match ^e[1-9][0-9]{0,6}$"]);
        assert_eq!(
            problems(&json!({ "ref": "e1", "text": "123456" })),
            ["/text: must have at most 5 characters"]
        );
        assert_eq!(
            problems(&json!({ "ref": "e1", "text": "", "timeout_ms": 99 })),
            ["/timeout_ms: must be at least 100"]
        );
        assert_eq!(
            problems(&json!({ "ref": "e1", "text": "", "script": 1 })),
            ["(args): has no property \"script\""]
        );
        assert_eq!(problems(&json!({ "ref": 1, "text": "" })), ["/ref: must be a string"]);
    }

    #[test]
    fn s04_no_problem_quotes_a_value() {
        let secret = "hunter2-hunter2";
        for args in [
            json!(secret),
            json!([secret]),
            json!({ "ref": secret, "text": secret, "timeout_ms": secret, "button": secret }),
            json!({ "ref": { "x": secret }, "text": [secret], "button": { secret: secret } }),
        ] {
            let problems = problems(&args);
            assert!(!problems.is_empty());
            assert!(problems.iter().all(|problem| !problem.contains(secret)), "{problems:?}");
        }
    }

    #[test]
    fn a_problem_is_bounded_however_much_is_wrong() {
        let many: serde_json::Map<String, Json> =
            (0..1_000).map(|i| (format!("{i}\n{}", "x".repeat(99)), json!(1))).collect();
        let problems = problems(&Json::Object(many));
        assert!(problems.len() <= PROBLEMS_MAX);
        assert!(
            problems.iter().all(|problem| problem.len() < 1_000 && !problem.contains('\n')),
            "{problems:?}"
        );
    }

    #[test]
    fn a_table_that_would_let_anything_in_is_no_catalogue() {
        let open = row::<Open, Page>("open", "", Bundle::Standard, Sensitivity::READS, json!({}));
        assert!(matches!(open, Err(CatalogueError::Open(_))));
        let not_an_object = row::<String, Page>("text", "", Bundle::Standard, Sensitivity::READS, json!({}));
        assert!(matches!(not_an_object, Err(CatalogueError::Open(_))));
        let secret = Sensitivity::ACTS.with_secrets(&["password"]);
        let secret = row::<Fill, Page>("fill", "", Bundle::Standard, secret, json!({}));
        assert!(matches!(secret, Err(CatalogueError::NoSuchArg(_, "password"))));
        assert!(matches!(Catalogue::new([fill(), fill()]), Err(CatalogueError::Twice(_))));
        let unfit =
            row::<Fill, Page>("fill", "", Bundle::Standard, Sensitivity::ACTS, json!({ "ref": "e1" }));
        assert!(matches!(unfit, Err(CatalogueError::Example(_, problem)) if problem.contains("text")));
        let script = row::<Fill, Page>("run", "", Bundle::Standard, Sensitivity::SCRIPT, json!({}));
        assert!(matches!(script, Err(CatalogueError::Untrusted(_))));
        let unnamed = row::<Fill, Page>("", "", Bundle::Standard, Sensitivity::READS, json!({}));
        assert!(matches!(unnamed, Err(CatalogueError::Name(""))));
    }
}
