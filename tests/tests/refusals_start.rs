//! A server that can not start says why and ends; one whose disk fills up refuses new work and keeps what it has.

use std::{fs, net::TcpListener, path::PathBuf, time::Duration};

use browserspace_tests::{Exit, Program, Script, Server, ServerOptions, Space, SpaceRequest, eventually};
use nix::mount::{MsFlags, mount, umount};
use serde_json::json;
use tempfile::TempDir;

fn refusal(options: ServerOptions) -> String {
    match Server::try_start(options) {
        Ok(server) => panic!("it started: {}", server.output()),
        Err(exit) => Exit::refused(*exit),
    }
}

#[tokio::test]
async fn a_folder_that_another_server_holds_is_refused_and_the_other_goes_on() {
    let server = Server::start(ServerOptions::default());
    for tidied_up in [false, true] {
        if tidied_up {
            fs::remove_file(server.data_dir().join("log/LOCK")).expect("it can be removed");
        }
        let said = refusal(ServerOptions::default().data_dir(server.data_dir()));
        assert!(said.contains("another") || said.contains("in use") || said.contains("lock"), "{said}");
    }
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    space.play_out("r1", &Script::ok()).await.expect(200);
}

#[test]
fn a_folder_that_can_not_be_written_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("file");
    fs::write(&file, "no folder").expect("a file can be written");
    for place in [file.clone(), file.join("below"), PathBuf::from("/proc/browserspace")] {
        let said = refusal(ServerOptions::default().data_dir(&place));
        let shown = place.to_string_lossy().to_lowercase();
        assert!(said.contains(&shown), "it names the folder {shown}: {said}");
    }
    assert_eq!(fs::read_to_string(file).expect("it is still there"), "no folder");
}

#[test]
fn a_port_that_is_taken_is_refused() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let address = taken.local_addr().expect("a listener has an address").to_string();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data_dir = folder.path().join("data");
    let exit = Program::run(["serve", "--listen", &address, "--data-dir", data_dir.to_str().expect("UTF-8")]);
    let said = exit.refused();
    assert!(said.contains(&address), "it names the address: {said}");
}

#[test]
fn c03_an_open_address_without_declared_tls_is_refused() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let said = refusal(ServerOptions::default().arg("--listen").arg(address));
        assert!(said.contains("tls"), "it says what is missing: {said}");
    }
}

#[test]
fn an_unknown_setting_or_flag_is_refused_and_named() {
    let said = refusal(ServerOptions::default().env("BROWSERSPACE_DRIAN_SECONDS", "3"));
    assert!(said.contains("no setting browserspace_drian_seconds"), "{said}");
    assert!(said.contains("did you mean browserspace_drain_seconds?"), "as one writes it there: {said}");
    let said = refusal(ServerOptions::default().arg("--no-such-flag"));
    assert!(said.contains("--no-such-flag"), "{said}");
    let said = refusal(ServerOptions::default().arg("--drain-seconds").arg("601"));
    assert!(said.contains("drain"), "{said}");
}

#[test]
fn a_browser_that_is_named_and_not_there_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let no_program = folder.path().join("no-program");
    fs::write(&no_program, "a text").expect("a file can be written");
    let no_program = no_program.to_str().expect("UTF-8");
    let data_dir = folder.path().join("data");
    for given in ["/nonexistent/chromium", no_program] {
        let said = refusal(ServerOptions::default().data_dir(&data_dir).arg("--chromium").arg(given));
        let named = &given.to_lowercase();
        assert!(said.contains(&format!("browserspace: {named}")), "it names the browser: {said}");
        assert!(said.contains("--chromium"), "it says what to do: {said}");
        assert!(!data_dir.exists(), "nothing was made");
        let doctor = Program::on(&data_dir, &["doctor", "--chromium", given]).refused();
        assert!(doctor.contains(named), "doctor names it too: {doctor}");
    }
}

#[tokio::test]
async fn c15_a_damaged_log_is_refused_and_left_as_it_is() {
    let mut server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    for number in 0..20 {
        space.play_out(&format!("r{number}"), &Script::ok()).await.expect(200);
    }
    server.sigterm().ok();
    let segment = largest_segment(&server);
    let mut bytes = fs::read(&segment).expect("a segment can be read");
    let middle = bytes.len() / 3;
    bytes[middle] ^= 0x40;
    fs::write(&segment, &bytes).expect("a segment can be written");
    let said = refusal(ServerOptions::default().data_dir(server.data_dir()));
    assert!(said.contains("damage") || said.contains("corrupt") || said.contains("crc"), "{said}");
    assert_eq!(
        fs::read(&segment).expect("a segment can be read"),
        bytes,
        "nothing was repaired behind our back"
    );
}

fn largest_segment(server: &Server) -> PathBuf {
    fn files(folder: &std::path::Path, into: &mut Vec<(u64, PathBuf)>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                files(&path, into);
            } else {
                let length = entry.metadata().map_or(0, |metadata| metadata.len());
                into.push((length, path));
            }
        }
    }
    let mut found = Vec::new();
    files(&server.data_dir().join("log"), &mut found);
    let is_segment =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("seg-"));
    found.retain(|(_, path)| is_segment(path));
    found.into_iter().max().expect("the log has a segment").1
}

/// A small disk of the test's own.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    fn new(mebibytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let options = format!("size={mebibytes}m,mode=0711");
        match mount(Some("tmpfs"), folder.path(), Some("tmpfs"), MsFlags::empty(), Some(options.as_str())) {
            Ok(()) => Some(Self { folder }),
            Err(error) => {
                println!("skipped: a small disk can not be mounted here ({error}); it needs root");
                None
            }
        }
    }

    fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn ballast(&self) -> PathBuf {
        self.folder.path().join("ballast")
    }

    /// Fills it but for so many bytes: too few for new work, enough for what is under way.
    fn fill_but(&self, bytes: u64) {
        self.fill();
        let file = fs::OpenOptions::new().write(true).open(self.ballast()).expect("it was made");
        let filled = file.metadata().expect("it is open").len();
        file.set_len(filled - bytes).expect("a file can be cut");
    }

    /// Fills it until nothing more goes in.
    fn fill(&self) {
        use std::io::Write;
        let mut file = fs::File::create(self.ballast()).expect("a file can be made");
        for chunk in [1 << 20, 1 << 12, 1] {
            let bytes = vec![0; chunk];
            while file.write_all(&bytes).is_ok() {}
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Err(error) = umount(self.folder.path()) {
            eprintln!("the small disk stays mounted: {error}");
        }
    }
}

#[tokio::test]
async fn c15_a_full_disk_refuses_new_work_keeps_reads_and_loses_nothing() {
    let Some(disk) = SmallDisk::new(96) else { return };
    let options =
        ServerOptions::default().data_dir(&disk.data_dir()).env("BROWSERSPACE_FREE_SPACE_MIN_MIB", "0");
    let mut server = Server::start(options);
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let first = space.play_out("r0", &Script::ok()).await.expect(200);
    disk.fill();
    let mut acknowledged = vec![first.field("task_id")];
    let refused = loop {
        let number = acknowledged.len();
        let script = Script::ok().and("result_bytes", "40000");
        let answer = space.play_out(&format!("r{number}"), &script).await;
        if answer.status != 200 {
            break answer;
        }
        acknowledged.push(answer.field("task_id"));
    };
    match refused.status.as_u16() {
        503 => drop(refused.expect_error(503, "log_unavailable").clone()),
        // Accepted, and then its end could not be recorded.
        202 => acknowledged.push(refused.field("task_id")),
        _ => drop(refused.expect_error(504, "outcome_unknown").clone()),
    }
    let again = space.submit("next", "get_url", json!({})).await;
    assert!([409, 503].contains(&again.status.as_u16()), "{}", again.text());
    space.events_page("after_sequence=0").await.expect(200);
    operator.get("/healthz").await.expect(200);
    server.kill9();
    fs::remove_file(disk.ballast()).expect("the ballast can be removed");
    server.again();
    for task in &acknowledged {
        space.ended(task).await;
    }
    space.becomes("idle").await;
    space.play_out("after", &Script::ok()).await.expect(200);
    server.journal().at_most_once();
    drop(server);
}

/// Whether the end of a task is recorded in a few seconds.
async fn ends_in_the_log(space: &Space, task: &str) -> bool {
    let ended = eventually("the task ends", || async {
        let events = space.events().await;
        let is_end = |event: &serde_json::Value| event["task_id"] == task && event["kind"] == "completed";
        events.iter().any(is_end).then_some(())
    });
    tokio::time::timeout(Duration::from_secs(3), ended).await.is_ok()
}

#[tokio::test]
async fn c15_after_a_full_disk_the_views_catch_up_and_readiness_has_told_the_truth() {
    let Some(disk) = SmallDisk::new(96) else { return };
    let options =
        ServerOptions::default().data_dir(&disk.data_dir()).env("BROWSERSPACE_FREE_SPACE_MIN_MIB", "0");
    let server = Server::start(options);
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let script = Script::ok().and("result_bytes", "40000");
    for round in 0..3 {
        disk.fill();
        for number in 0..200 {
            let submitted = space.play(&format!("r{round}-{number}"), &script).await;
            if submitted.status != 202 || !ends_in_the_log(&space, &submitted.field("task_id")).await {
                break;
            }
        }
        eventually("readiness tells it", || async {
            (operator.get("/readyz").await.status == 503).then_some(())
        })
        .await;
        fs::remove_file(disk.ballast()).expect("the ballast can be removed");
        eventually("it is ready again", || async {
            (operator.get("/readyz").await.status == 200).then_some(())
        })
        .await;
        space.becomes("idle").await;
        let events = space.events().await;
        let shown = space.show().await.expect(200);
        assert_eq!(shown.data()["revision"], events.last().expect("events")["sequence"], "round {round}");
        let queued = events.iter().filter(|event| event["kind"] == "queued").count();
        assert_eq!(space.tasks().await.len(), queued, "round {round}");
    }
    space.play_out("after", &Script::ok()).await.expect(200);
    drop(server);
}

#[tokio::test]
async fn c15_new_work_is_refused_before_the_disk_is_full_and_taken_again_after() {
    let Some(disk) = SmallDisk::new(96) else { return };
    let options =
        ServerOptions::default().data_dir(&disk.data_dir()).env("BROWSERSPACE_FREE_SPACE_MIN_MIB", "16");
    let server = Server::start(options);
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    space.play_out("r1", &Script::ok()).await.expect(200);
    disk.fill_but(8 << 20);
    let refused = eventually("new work is refused", || async {
        let answer = space.play("r2", &Script::ok()).await;
        (answer.status == 503).then_some(answer)
    })
    .await;
    refused.expect_error(503, "log_unavailable");
    assert!(refused.header("retry-after").is_some());
    operator.get("/readyz").await.expect(503);
    space.show().await.expect(200);
    fs::remove_file(disk.ballast()).expect("the ballast can be removed");
    eventually("new work is taken again", || async {
        let answer = space.play_out("r3", &Script::ok()).await;
        (answer.status == 200).then_some(())
    })
    .await;
    drop(server);
}
