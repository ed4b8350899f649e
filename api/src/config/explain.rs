//! What is wrong with a configuration, in the operator's words: where it stands, under which name, what would be right.
//!
//! The library knows the layers (file, variables, flags) only by tags of its own; here they get back the names that
//! the operator wrote.

use std::{ops::RangeInclusive, path::Path};

use figment::error::{Actual, Kind};

use super::{Config, VARIABLE_PREFIX};
use crate::{checkpoints::CheckpointsConfig, limits::HttpConfig};

/// How alike two names must be for one to be a slip of the other: 0 to 1, by Jaro and Winkler.
const ALIKE_MIN: f64 = 0.84;

/// Every whole number outside of the sections, with its range.
pub(super) const RANGES: [(&str, RangeInclusive<u64>); 10] = [
    ("instances", 0..=64),
    ("drain_seconds", 0..=600),
    ("idle_timeout_seconds", 10..=86_400),
    ("free_space_min_mib", 0..=1_048_576),
    ("browser_uid_base", 1_000..=4_000_000_000),
    ("download_space_files_max", 1..=100_000),
    ("download_space_mib_max", 1..=1_048_576),
    ("download_workspace_day_mib_max", 1..=1_048_576),
    ("download_stall_seconds", 1..=3_600),
    ("download_quarantine_hours", 1..=8_760),
];

/// Where a text is no TOML.
pub(super) fn no_toml(path: &Path, text: &str, error: &toml::de::Error) -> String {
    let before = text.get(..error.span().unwrap_or_default().start).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
    let problem = error.message().replace('\n', ", ");
    format!("{}, line {line}, column {column}: {problem}", path.display())
}

/// Everything that the layers hold and a configuration can not.
pub(super) fn no_configuration(error: figment::Error, file: Option<&Path>) -> String {
    let problems: Vec<String> = error.into_iter().map(|error| problem(&error, file)).collect();
    problems.join("; ")
}

fn problem(error: &figment::Error, file: Option<&Path>) -> String {
    let layer = Layer::of(error, file);
    let mut path: Vec<&str> = error.path.iter().map(String::as_str).collect();
    if let Kind::UnknownField(name, _) = &error.kind {
        if path.last().is_none_or(|last| !last.eq_ignore_ascii_case(name)) {
            path.push(name);
        }
        let setting = path.join(".");
        let hint = alike(&setting).map(|known| format!("; did you mean {}?", layer.spelled(&known)));
        let named = layer.spelled(&setting);
        return format!("{}there is no setting {named}{}", layer.place(), hint.unwrap_or_default());
    }
    let setting = path.join(".");
    let named = layer.spelled(&setting);
    let wanted = wanted(&setting, &error.kind);
    // An address of a collector may carry a key, and one of a database a password.
    let found = if matches!(&*setting, "otlp_endpoint" | "views_url" | "checkpoints.url") {
        None
    } else {
        found(&error.kind)
    };
    let found = found.map(|found| format!(", and not {found}")).unwrap_or_default();
    format!("{}{named} must be {wanted}{found}", layer.place())
}

/// Which of the layers holds the value.
enum Layer<'a> {
    File(&'a Path),
    Variables,
    Other,
}

impl<'a> Layer<'a> {
    fn of(error: &figment::Error, file: Option<&'a Path>) -> Self {
        let name = error.metadata.as_ref().map(|metadata| metadata.name.as_ref()).unwrap_or_default();
        match file {
            _ if name.contains("environment variable") => Self::Variables,
            Some(path) if name.contains("TOML") => Self::File(path),
            Some(_) | None => Self::Other,
        }
    }

    fn place(&self) -> String {
        match self {
            Self::File(path) => format!("{}: ", path.display()),
            Self::Variables | Self::Other => String::new(),
        }
    }

    /// A setting's name as one writes it there.
    fn spelled(&self, setting: &str) -> String {
        match self {
            Self::Variables => format!("{VARIABLE_PREFIX}{}", setting.replace('.', "__").to_uppercase()),
            Self::File(_) | Self::Other => setting.to_owned(),
        }
    }
}

/// The setting that was probably meant.
fn alike(unknown: &str) -> Option<String> {
    let unknown = unknown.to_lowercase();
    // A setting of a section is easily written outside of it.
    let likeness = |known: &str| {
        let inner = known.split_once('.').map_or(known, |(_, inner)| inner);
        strsim::jaro_winkler(&unknown, known).max(strsim::jaro_winkler(&unknown, inner))
    };
    let by_likeness = settings().into_iter().map(|known| (likeness(&known), known));
    let best = by_likeness.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(likeness, _)| *likeness >= ALIKE_MIN).map(|(_, known)| known)
}

/// Every setting there is, those of a section as `section.setting`.
pub(super) fn settings() -> Vec<String> {
    let all = serde_json::to_value(Config::default()).expect("a configuration has only plain fields");
    let mut names = Vec::new();
    for (name, value) in all.as_object().into_iter().flatten() {
        match value.as_object() {
            Some(section) => names.extend(section.keys().map(|inner| format!("{name}.{inner}"))),
            None => names.push(name.clone()),
        }
    }
    names
}

/// The range of a whole number.
pub(super) fn range(setting: &str) -> Option<RangeInclusive<u64>> {
    if let Some(name) = setting.strip_prefix("http.") {
        let found = HttpConfig::RANGES.into_iter().find(|(field, _, _)| *field == name);
        return found.map(|(_, least, most)| least..=most);
    }
    if let Some(name) = setting.strip_prefix("checkpoints.") {
        let found = CheckpointsConfig::RANGES.into_iter().find(|(field, _, _)| *field == name);
        return found.map(|(_, least, most)| least..=most);
    }
    RANGES.into_iter().find(|(field, _)| *field == setting).map(|(_, range)| range)
}

fn wanted(setting: &str, kind: &Kind) -> String {
    if let Some(range) = range(setting) {
        return format!("a whole number from {} to {}", range.start(), range.end());
    }
    match setting {
        "listen" => return super::LISTEN_WANTED.to_owned(),
        "views_url" => return "a URL, as in postgres://browserspace@localhost/views".to_owned(),
        "otlp_endpoint" | "checkpoints.url" => return "a URL, as in http://127.0.0.1:4318".to_owned(),
        "http.allowed_hosts" | "http.allowed_origins" => {
            return "a list of texts, as in [\"a.example\"]".to_owned();
        }
        "http" | "checkpoints" => return format!("a section: [{setting}] and its settings below it"),
        _ => {}
    }
    match kind {
        Kind::UnknownVariant(_, known) => format!("one of {}", known.join(", ")),
        Kind::InvalidType(_, expected) | Kind::InvalidValue(_, expected) => match expected.as_str() {
            "a boolean" => "true or false".to_owned(),
            "a string" | "path string" => "a text in quotation marks".to_owned(),
            other => other.replace('`', ""),
        },
        other => format!("something else ({})", other.to_string().replace('`', "").replace('\n', ", ")),
    }
}

fn found(kind: &Kind) -> Option<String> {
    match kind {
        Kind::UnknownVariant(name, _) => Some(format!("\"{name}\"")),
        Kind::InvalidType(actual, _) | Kind::InvalidValue(actual, _) => match actual {
            Actual::Str(text) => Some(format!("\"{text}\"")),
            Actual::Bool(value) => Some(value.to_string()),
            Actual::Unsigned(number) => Some(number.to_string()),
            Actual::Signed(number) => Some(number.to_string()),
            Actual::Float(number) => Some(number.to_string()),
            Actual::Map => Some("a section".to_owned()),
            Actual::Seq => Some("a list".to_owned()),
            _ => None,
        },
        _ => None,
    }
}
