//! The demo, ended by Ctrl-C at many moments: it says that it was interrupted, shows no log, and leaves nothing.
//!
//! Runs the real demo with the built program (`BROWSERSPACE_BIN`, else beside this test) and a real Chromium.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// Within that time an interrupted demo must have put everything away.
const END_WITHIN: Duration = Duration::from_secs(25);

fn program() -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name("browserspace");
    let found = std::env::var_os("BROWSERSPACE_BIN").map_or(beside, PathBuf::from);
    assert!(found.is_file(), "build the program first: cargo build --package api");
    found
}

/// What an interrupted demo left.
struct Left {
    said: String,
    success: bool,
}

/// Where in the demo Ctrl-C is pressed.
enum Moment<'a> {
    /// When it has printed this.
    Printed(&'a str),
    /// When this file is there, below the folder of the demo.
    Made(&'a str),
}

/// Runs the demo and sends SIGINT to its whole process group, as a terminal does, `times` times.
fn interrupted_at(moment: &Moment<'_>, times: usize, arguments: &[&str]) -> Left {
    let short = |prefix| tempfile::Builder::new().prefix(prefix).rand_bytes(4).tempdir();
    let (place, target) =
        (short("d").expect("a folder can be made"), short("t").expect("a folder can be made"));
    let temporary = place.path();
    // Browsers pass through it as users of their own.
    fs::set_permissions(temporary, fs::Permissions::from_mode(0o711)).expect("the folder is ours");
    let mut demo = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("demo")
        .args(arguments)
        .env("TMPDIR", temporary)
        .env("CARGO_TARGET_DIR", target.path())
        .env("BROWSERSPACE_BIN", program())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("the demo starts");
    let group = Pid::from_child(&demo);
    let errors = demo.stderr.take().expect("it is piped");
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        BufReader::new(errors).read_to_string(&mut text).map(|_| text)
    });
    let mut output = BufReader::new(demo.stdout.take().expect("it is piped"));
    let mut said = String::new();
    match moment {
        Moment::Printed(wanted) => {
            while !said.contains(wanted) {
                let read = output.read_line(&mut said).expect("the output is text");
                assert!(read > 0, "the demo ended before it printed {wanted}:\n{said}");
            }
        }
        Moment::Made(name) => wait("the file is there", || below(temporary, name)),
    }
    for _ in 0..times {
        kill_process_group(group, Signal::INT).expect("the demo runs");
    }
    let begun = Instant::now();
    output.read_to_string(&mut said).expect("the output is text");
    let status = demo.wait().expect("it is ours");
    assert!(begun.elapsed() < END_WITHIN, "it took {:?}", begun.elapsed());
    said.push_str(&errors.join().expect("the reader ends").expect("the errors are text"));
    let rest: Vec<_> =
        fs::read_dir(temporary).expect("it is there").flatten().map(|entry| entry.path()).collect();
    assert!(rest.is_empty(), "left behind: {rest:?}\n{said}");
    wait("no process of the demo is left", || !is_named(temporary));
    Left { said, success: status.success() }
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < END_WITHIN, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the demo's folder, wherever it lies below `folder`, has this file.
fn below(folder: &Path, name: &str) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| entry.path().join(name).exists())
}

/// Whether a process has this folder in its command line.
fn is_named(folder: &Path) -> bool {
    let wanted = folder.to_string_lossy().into_owned();
    fs::read_dir("/proc").expect("Linux has it").flatten().any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&wanted)
    })
}

#[track_caller]
fn is_interrupted(left: &Left) {
    assert!(left.said.ends_with("\nxtask: interrupted\n"), "{}", left.said);
    assert!(!left.success, "{}", left.said);
    for unwanted in ["lines of the server's log", "ended before it listened", "panicked"] {
        assert!(!left.said.contains(unwanted), "{unwanted} in\n{}", left.said);
    }
}

#[test]
fn ctrl_c_before_the_server_listens_leaves_nothing_real_browser() {
    for file in ["server.log", "data/log", "data/operator.token"] {
        is_interrupted(&interrupted_at(&Moment::Made(file), 1, &["--once"]));
    }
}

#[test]
fn ctrl_c_in_any_step_leaves_nothing_real_browser() {
    for step in [" 1. ", " 2. ", " 3. navigate", " 4. snapshot", " 5. click", "screenshot"] {
        is_interrupted(&interrupted_at(&Moment::Printed(step), 1, &["--once"]));
    }
}

#[test]
fn an_impatient_ctrl_c_changes_nothing_real_browser() {
    is_interrupted(&interrupted_at(&Moment::Printed(" 3. navigate"), 5, &[]));
}

#[test]
fn ctrl_c_in_a_step_that_hangs_does_not_wait_for_it_real_browser() {
    // Taken by the kernel and never answered.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let page = format!("http://{}/", silent.local_addr().expect("it has an address"));
    is_interrupted(&interrupted_at(&Moment::Printed(" 3. navigate"), 1, &[&page]));
}

#[test]
fn ctrl_c_after_the_job_is_the_invited_end_real_browser() {
    let left = interrupted_at(&Moment::Printed("Ctrl-C stops it"), 1, &[]);
    assert!(left.success && left.said.contains("its folder is gone"), "{}", left.said);
}
