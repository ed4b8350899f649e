//! The auditor's walk in `docs/auditing-the-log.md`, run as it is printed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use browserspace_tests::{Program, binary};
use nix::sys::signal::Signal;

/// One command of the page, and what it prints there.
#[derive(Debug, Default)]
struct Step {
    command: String,
    printed: Vec<String>,
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/auditing-the-log.md");
    fs::read_to_string(path).expect("the page is there")
}

/// The steps of every block of the kind `console`.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let (true, Some(command)) = (inside, line.strip_prefix("$ ")) {
            steps.push(Step { command: command.to_owned(), printed: Vec::new() });
        } else if inside {
            steps.last_mut().expect("a block begins with a command").printed.push(line.to_owned());
        }
    }
    steps
}

/// Whether a line is as printed, where `…` stands for anything.
fn is_as_printed(line: &str, printed: &str) -> bool {
    let mut parts = printed.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// A folder with a data folder in it, whose server was started once and stopped.
fn stopped_server() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let data_dir = folder.path().join("browserspace-data");
    let text = data_dir.to_str().expect("a plain path");
    let mut server = Program::start(["serve", "--data-dir", text, "--listen", "127.0.0.1:0"], &[]);
    server.line_after("the operator's token is in", Duration::from_secs(30)).expect("it starts");
    server.signal(Signal::SIGTERM);
    server.exit_within(Duration::from_secs(60)).ok();
    (folder, data_dir)
}

#[test]
fn the_auditors_walk_is_as_it_is_printed() {
    let (folder, _) = stopped_server();
    let program = binary().canonicalize().expect("the program is there");
    let path = format!(
        "{}:{}",
        program.parent().expect("it lies in a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let steps = steps(&page());
    assert!(steps.len() > 25, "the page has its steps");
    for Step { command, printed } in &steps {
        let output = Command::new("sh")
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .current_dir(folder.path())
            .env("PATH", &path)
            .output()
            .expect("a shell runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = said.lines().collect();
        let fits = lines.len() == printed.len()
            && lines.iter().zip(printed).all(|(line, printed)| is_as_printed(line, printed));
        assert!(fits, "$ {command}\nprinted:\n{}\nbut it says:\n{said}", printed.join("\n"));
    }
    println!("{} commands, each as printed", steps.len());
}

#[test]
fn the_comparison_of_the_walk_is_strict() {
    assert!(is_as_printed("a 12 b", "a … b") && is_as_printed("x", "…") && is_as_printed("same", "same"));
    assert!(!is_as_printed("a 12 c", "a … b") && !is_as_printed("same!", "same"));
}
