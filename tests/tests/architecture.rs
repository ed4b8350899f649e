//! The house keeps its plan: who may use whom, what the pure core may not know, and how long a file may be.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const FILE_LINES_MAX: usize = 500;

/// Which of our crates each of our crates may use. Nothing points back; actors and projections do not know each other.
const ARROWS: [(&str, &str, &[&str]); 6] = [
    ("eventlog", "eventlog", &[]),
    ("browser", "actors/browser", &[]),
    ("egress", "actors/egress", &[]),
    ("actors", "actors", &["eventlog", "browser", "egress"]),
    ("projections", "projections", &["eventlog"]),
    ("api", "api", &["eventlog", "actors", "projections"]),
];

/// Folders and files of the pure core: values in, values out.
const PURE: [&str; 21] = [
    "actors/src/caller.rs",
    "actors/src/place.rs",
    "actors/src/rejection.rs",
    "actors/src/space/command.rs",
    "actors/src/space/decide.rs",
    "actors/src/space/effect.rs",
    "actors/src/space/evolve.rs",
    "actors/src/space/state.rs",
    "actors/src/space/summary.rs",
    "actors/src/instance/command.rs",
    "actors/src/instance/decide.rs",
    "actors/src/instance/effect.rs",
    "actors/src/instance/evolve.rs",
    "actors/src/instance/state.rs",
    "actors/src/workspace/command.rs",
    "actors/src/workspace/decide.rs",
    "actors/src/workspace/evolve.rs",
    "actors/src/workspace/state.rs",
    "eventlog/src/event.rs",
    "eventlog/src/event",
    "eventlog/src/number.rs",
];

/// What the pure core may not touch: time, chance, threads, the world.
const WORLD: [&str; 13] = [
    "tokio",
    "kameo",
    "Instant::now",
    "SystemTime",
    "now_v7",
    "new_v4",
    "rand::",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "async fn",
];

/// The stable codes of the contract; each must be explained to those who meet it.
const CODES: [&str; 43] = [
    "unauthenticated",
    "forbidden",
    "workspace_not_found",
    "space_not_found",
    "instance_not_found",
    "binding_not_found",
    "task_not_found",
    "token_not_found",
    "browser_instance_in_use",
    "instance_retired",
    "space_closed",
    "space_task_in_progress",
    "space_in_error",
    "request_id_conflict",
    "invalid_request",
    "capability_unknown",
    "capability_not_granted",
    "invalid_args",
    "runtime_not_ready",
    "runtime_crashed",
    "runtime_disconnected",
    "task_timeout",
    "interrupted",
    "cancelled",
    "element_not_found",
    "stale_ref",
    "element_not_actionable",
    "navigation_failed",
    "blocked_by_policy",
    "dialog_open",
    "tab_closed",
    "tab_crashed",
    "cancel_timeout",
    "runtime_stopped",
    "result_too_large",
    "invalid_cursor",
    "overloaded",
    "rate_limited",
    "log_unavailable",
    "outcome_unknown",
    "corrupt_stream",
    "shutting_down",
    "internal",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the project has a root")
}

/// Every file of the project below `folder`, but for what is built or fetched.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of ours can be read") {
        let path = entry.expect("an entry of a folder can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", ".git", "node_modules", "dist"].contains(&name.as_str()) {
                files(&path, found);
            }
        } else if name != ".git" {
            found.push(path);
        }
    }
}

fn all_files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root(), &mut found);
    found
}

fn has_extension(path: &Path, wanted: &[&str]) -> bool {
    path.extension().is_some_and(|extension| wanted.iter().any(|one| extension == *one))
}

#[track_caller]
fn assert_none(what: &str, bad: &[String]) {
    assert!(bad.is_empty(), "{what}:\n  {}", bad.join("\n  "));
}

#[test]
fn crates_use_only_those_below_them() {
    let ours: BTreeSet<&str> = ARROWS.iter().map(|(name, _, _)| *name).collect();
    let mut bad = Vec::new();
    for (name, folder, allowed) in ARROWS {
        let manifest =
            fs::read_to_string(root().join(folder).join("Cargo.toml")).expect("each crate has a manifest");
        let manifest: toml::Table = manifest.parse().expect("a manifest is TOML");
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let used =
                manifest.get(section).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
            // A crate names itself among its development dependencies to switch its own test features on.
            let wrong = used.filter(|used| ours.contains(used.as_str()) && *used != name);
            bad.extend(
                wrong.filter(|used| !allowed.contains(&used.as_str())).map(|used| format!("{name} → {used}")),
            );
        }
    }
    assert_none("arrows that point the wrong way", &bad);
}

#[test]
fn the_pure_core_knows_neither_time_nor_chance_nor_the_world() {
    let mut bad = Vec::new();
    for place in PURE {
        let mut found = vec![root().join(place)];
        if found[0].is_dir() {
            files(&found.remove(0), &mut found);
        }
        for path in found {
            let text =
                fs::read_to_string(&path).unwrap_or_else(|_| panic!("{place} is in the plan, and not there"));
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in lines {
                bad.extend(
                    WORLD.iter().filter(|word| line.contains(**word)).map(|word| format!("{place}: {word}")),
                );
            }
        }
    }
    assert_none("the pure core touches the world", &bad);
}

#[test]
fn no_file_is_longer_than_one_reading() {
    let mut bad = Vec::new();
    for path in all_files() {
        if has_extension(&path, &["rs", "ts", "tsx", "js", "css", "html", "sh", "sql"]) {
            let lines = fs::read_to_string(&path).expect("source is text").lines().count();
            if lines > FILE_LINES_MAX {
                bad.push(format!("{}: {lines} lines", path.display()));
            }
        }
    }
    assert_none("files with more than 500 lines", &bad);
}

#[test]
fn every_error_code_is_documented() {
    let page = fs::read_to_string(root().join("docs/errors.md")).expect("docs/errors.md is there");
    let missing = |code: &&str| !page.contains(&format!("`{code}`"));
    let bad: Vec<String> = CODES.iter().filter(|code| missing(code)).map(|code| (*code).to_owned()).collect();
    assert_none("codes that docs/errors.md does not explain", &bad);
}

#[test]
fn nothing_names_a_machine() {
    // Put together here, so that this file does not name one itself.
    let marks = [
        "/wo".to_owned() + "rk/",
        "/ho".to_owned() + "me/",
        "/Us".to_owned() + "ers/",
        "C:\\Us".to_owned() + "ers",
    ];
    let mut bad = Vec::new();
    for path in all_files() {
        // Binary files (golden events) are no text; what they hold is made by tests.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let named = marks.iter().filter(|mark| text.contains(mark.as_str()));
        bad.extend(named.map(|mark| format!("{}: {mark}", path.display())));
    }
    assert_none("files that name a place of some machine", &bad);
}
