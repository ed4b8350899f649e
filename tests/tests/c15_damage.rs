//! Damage on the disk: what was acknowledged is never cut away, and one bad byte takes one Space.

use std::{
    fs,
    path::{Path, PathBuf},
};

use browserspace_tests::{Exit, Program, Script, Server, ServerOptions, Space, SpaceRequest, eventually};
use eventlog::{
    Append, Appended, EventLog, OpenOptions, Part, Position, RecordedEvent, SegmentLog, StreamId,
    number::ExpectedSequence,
};
use futures::TryStreamExt;

async fn space_of(server: &Server) -> Space {
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    operator.open(&SpaceRequest::new("default", &instance)).await
}

/// The segment files, first to last.
fn segments(data_dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data_dir.join("log")).expect("the folder lists");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it lists").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    paths.sort();
    paths
}

fn torn(data_dir: &Path) -> usize {
    let entries = fs::read_dir(data_dir.join("log")).expect("the folder lists");
    entries
        .filter(|entry| entry.as_ref().is_ok_and(|at| at.path().to_string_lossy().contains(".torn")))
        .count()
}

fn remove_views(data_dir: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(data_dir.join(format!("views.sqlite{suffix}")));
    }
}

fn refused(data_dir: &Path) -> String {
    match Server::try_start(ServerOptions::default().data_dir(data_dir)) {
        Ok(server) => panic!("it started: {}", server.output()),
        Err(exit) => Exit::refused(*exit),
    }
}

/// A server that was killed once its views had everything.
async fn killed() -> (Server, Space, PathBuf, Vec<u8>) {
    let mut server = Server::start(ServerOptions::default());
    let space = space_of(&server).await;
    for number in 0..5 {
        space.play_out(&format!("r{number}"), &Script::ok()).await.expect(200);
    }
    space.show().await.expect(200);
    server.kill9();
    let path = segments(server.data_dir()).pop().expect("a segment");
    let bytes = fs::read(&path).expect("it reads");
    (server, space, path, bytes)
}

#[tokio::test]
async fn c15_a_flipped_bit_in_the_last_batch_refuses_each_start_and_cuts_nothing() {
    let (mut server, space, path, good) = killed().await;
    let mut bad = good.clone();
    let at = bad.len() - 5;
    bad[at] ^= 0x40;
    fs::write(&path, &bad).expect("it writes");
    for views in [true, true, false, false] {
        if !views {
            remove_views(server.data_dir());
        }
        let said = refused(server.data_dir());
        assert!(said.contains("damaged") && said.contains("seg-"), "{said}");
        let said = Program::on(server.data_dir(), &["doctor"]).refused();
        assert!(said.contains("damaged") && said.contains("seg-"), "{said}");
        assert_eq!(fs::read(&path).expect("it reads"), bad, "with views: {views}");
    }
    assert_eq!(torn(server.data_dir()), 0);
    fs::write(&path, &good).expect("it writes");
    server.again();
    assert_eq!(space.tasks().await.len(), 5, "everything acknowledged is there");
}

#[tokio::test]
async fn c15_a_tail_that_the_views_have_seen_is_not_cut_and_any_other_is_kept_beside() {
    let (mut server, space, path, good) = killed().await;
    let cut = &good[..good.len() - 1];
    fs::write(&path, cut).expect("it writes");
    for _ in 0..2 {
        let said = refused(server.data_dir());
        assert!(said.contains("acknowledged"), "{said}");
        let said = Program::on(server.data_dir(), &["doctor"]).refused();
        assert!(said.contains("the views have seen"), "{said}");
        let make = ["token", "create", "--role", "agent", "--workspace", "default", "--owner-id", "agent-7"];
        let said = Program::on(server.data_dir(), &make).refused();
        assert!(said.contains("acknowledged"), "{said}");
        assert_eq!(fs::read(&path).expect("it reads"), cut);
    }
    assert_eq!(torn(server.data_dir()), 0);
    // Without the views nobody knows that it was more than an unfinished batch.
    remove_views(server.data_dir());
    let said = Program::on(server.data_dir(), &["doctor"]);
    assert!(format!("{said:?}").contains("unfinished batch"), "{said:?}");
    server.again();
    assert_eq!(torn(server.data_dir()), 1);
    space.becomes("idle").await;
}

#[tokio::test]
async fn c15_when_the_keys_are_lost_open_spaces_go_on_and_only_old_repeats_are_refused() {
    let (mut server, space, ..) = killed().await;
    fs::remove_dir_all(server.data_dir().join("keys")).expect("it is removed");
    server.again();
    space.becomes("idle").await;
    for number in 0..2 {
        space.play_out(&format!("new{number}"), &Script::ok()).await.expect(200);
        // Known under the new key.
        space.play_out(&format!("new{number}"), &Script::ok()).await.expect(200);
    }
    space.play_out("r0", &Script::ok()).await.expect_error(409, "request_id_conflict");
    server.restart();
    space.play_out("new0", &Script::ok()).await.expect(200);
    server.journal().at_most_once();
}

#[tokio::test]
async fn closed_spaces_leave_the_memory_of_the_server() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    for _ in 0..10 {
        let space = operator.open(&SpaceRequest::new("default", &instance)).await;
        space.play_out("r1", &Script::ok()).await.expect(200);
        space.close().await.expect(200);
        space.becomes("closed").await;
    }
    eventually("no actor is awake", || async {
        let metrics = operator.get("/metrics").await.text();
        let live = metrics.lines().find_map(|line| line.strip_prefix("browserspace_actor_live "));
        (live == Some("0")).then_some(())
    })
    .await;
}

/// Writes the log of a folder anew in segments so small that nearly all of it is sealed, and in the index.
async fn reseal(data_dir: &Path) {
    let (old, new) = (data_dir.join("log"), data_dir.join("log.new"));
    let options =
        |folder: &Path| OpenOptions { segment_bytes: 4096, free_bytes_min: 0, ..OpenOptions::new(folder) };
    let from = SegmentLog::open(options(&old)).expect("it opens");
    let to = SegmentLog::open(options(&new)).expect("it opens");
    let events: Vec<RecordedEvent> = from.read_all(Position(1)).try_collect().await.expect("it reads");
    for append in events.chunk_by(|one, next| one.command == next.command) {
        let part = |events: &[RecordedEvent]| Part {
            stream: events[0].stream.clone(),
            expected: ExpectedSequence::Any,
            events: events.iter().map(|event| event.event.clone()).collect(),
        };
        let parts = append.chunk_by(|one, next| one.stream == next.stream).map(part).collect();
        let metadata = (*append[0].metadata).clone();
        let stored = to.append(Append { id: append[0].command, metadata, parts }).await;
        assert!(matches!(stored, Ok(Appended::Stored(_))), "{stored:?}");
    }
    from.close().await;
    to.close().await;
    // An open puts what is sealed into the index.
    SegmentLog::open(options(&new)).expect("it opens").close().await;
    fs::remove_dir_all(&old).expect("it is removed");
    fs::rename(new, old).expect("it is renamed");
}

/// Flips one byte in the second event of a Space that lies in a sealed segment; answers in which.
fn flip_in(data_dir: &Path, space: &Space) -> PathBuf {
    let key = StreamId::Space(space.id.parse().expect("an id")).to_bytes();
    let mut files = segments(data_dir);
    files.pop();
    let mut seen = 0;
    for path in files {
        let mut bytes = fs::read(&path).expect("it reads");
        let places: Vec<_> =
            (0..bytes.len() - key.len()).filter(|at| bytes[*at..].starts_with(&key)).collect();
        for at in places {
            seen += 1;
            if seen == 2 {
                bytes[at + key.len() + 30] ^= 0x10;
                fs::write(&path, bytes).expect("it writes");
                return path;
            }
        }
    }
    panic!("{} has no two events in sealed segments", space.id);
}

#[tokio::test]
async fn c15_one_bad_byte_in_a_sealed_segment_takes_its_space_and_no_other() {
    let mut server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let (closed, open, healthy) = (space_of(&server).await, space_of(&server).await, space_of(&server).await);
    for space in [&closed, &open, &healthy] {
        for number in 0..3 {
            space.play_out(&format!("r{number}"), &Script::ok()).await.expect(200);
        }
    }
    closed.close().await.expect(200);
    for number in 3..12 {
        healthy.play_out(&format!("r{number}"), &Script::ok()).await.expect(200);
    }
    let told = healthy.events().await;
    // A drain would close them.
    server.kill9();
    reseal(server.data_dir()).await;
    let files = [flip_in(server.data_dir(), &closed), flip_in(server.data_dir(), &open)];
    for views in ["kept", "made anew"] {
        if views == "made anew" {
            server.kill9();
            remove_views(server.data_dir());
        }
        server.again();
        operator.get("/readyz").await.expect(200);
        for space in [&closed, &open] {
            for refused in [
                space.play("again", &Script::ok()).await,
                space.close().await,
                space.events_page("after_sequence=1").await,
            ] {
                refused.expect_error(500, "corrupt_stream");
            }
        }
        if views == "kept" {
            closed.show().await.expect_error(500, "corrupt_stream");
            open.show().await.expect_error(500, "corrupt_stream");
        }
        assert_eq!(healthy.events().await[..told.len()], told[..], "views {views}");
        healthy.play_out(&format!("after, views {views}"), &Script::ok()).await.expect(200);
        space_of(&server).await.play_out("r1", &Script::ok()).await.expect(200);
        let said = Program::on(server.data_dir(), &["doctor"]).refused();
        let name = files[0].file_name().expect("a name").to_string_lossy().to_lowercase();
        assert!(said.contains(&name), "{name} in {said}");
    }
}
