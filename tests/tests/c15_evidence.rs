//! The log of a running server as evidence: verified and signed on demand, backed up while it is written, and not signed
//! again once it is another one.

use std::{fs, path::Path};

use browserspace_tests::{Client, Program, Script, Server, ServerOptions, Space, SpaceRequest};
use serde_json::{Value, json};

async fn space_of(server: &Server) -> Space {
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    operator.open(&SpaceRequest::new("default", &instance)).await
}

async fn verified(client: &Client, deep: bool) -> Value {
    let answer = client.post("/log/verify", &json!({ "deep": deep })).await.expect(200);
    answer.data().clone()
}

fn segment(data_dir: &Path) -> std::path::PathBuf {
    data_dir.join("log/seg-00000000000000000001.log")
}

/// `verify`, its exit code, and its report.
fn verify(data_dir: &Path, more: &[&str]) -> (i32, Value) {
    let args: Vec<&str> = ["verify", "--json"].iter().chain(more).copied().collect();
    let exit = Program::on(data_dir, &args);
    let report = serde_json::from_str(&exit.stdout).unwrap_or_default();
    (exit.status.code().unwrap_or(-1), report)
}

#[tokio::test]
async fn c15_a_running_server_verifies_its_log_for_operators_and_auditors_and_names_a_bad_byte() {
    let server = Server::start(ServerOptions::default());
    let space = space_of(&server).await;
    for number in 0..4 {
        space.play_out(&format!("r{number}"), &Script::ok()).await.expect(200);
    }
    let (operator, auditor) = (server.operator(), server.auditor("default").await);
    for client in [&operator, &auditor] {
        let report = verified(client, true).await;
        assert_eq!(report["verdict"], "whole", "{report}");
        assert!(report["replay"]["events"].as_u64().is_some_and(|events| events >= 14), "{report}");
    }
    let agent = server.agent("default", "agent-7").await;
    agent.post("/log/verify", &json!({})).await.expect_error(403, "forbidden");
    operator.post("/log/verify", &json!({ "depth": 1 })).await.expect_error(422, "invalid_request");
    let path = segment(server.data_dir());
    let good = fs::read(&path).expect("it reads");
    let mut bad = good.clone();
    bad[400] ^= 1;
    fs::write(&path, &bad).expect("it is written");
    let (told, told_less) = (verified(&operator, false).await, verified(&auditor, false).await);
    let (code, report) = verify(server.data_dir(), &[]);
    assert_eq!((code, &report["findings"][0]), (3, &told["findings"][0]));
    for report in [&told, &told_less] {
        assert_eq!(report["verdict"], "broken", "{report}");
        let first = &report["findings"][0];
        assert_eq!((&first["kind"], &first["cause"]), (&json!("frame"), &json!("damage")), "{first}");
        assert_eq!(first["position"], 2, "{first}");
    }
    assert_eq!(told["findings"][0]["stream"], "workspace/default");
    assert!(told_less["findings"][0]["stream"].is_null(), "one Workspace's auditor: {told_less}");
    fs::write(&path, &good).expect("it is written");
    assert_eq!(verified(&operator, true).await["verdict"], "whole");
}

#[tokio::test]
async fn c15_a_checkpoint_on_demand_is_kept_and_carried_and_the_log_is_held_against_it() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let folder = elsewhere.path().to_str().expect("a plain path");
    let mut server = Server::start(ServerOptions::default().env("BROWSERSPACE_CHECKPOINTS__FOLDER", folder));
    let space = space_of(&server).await;
    space.play_out("r1", &Script::ok()).await.expect(200);
    let made = server.operator().post("/log/checkpoint", &json!({})).await.expect(200);
    let note = made.field("checkpoint");
    let key = elsewhere.path().join("the.key");
    fs::write(&key, made.field("public_key")).expect("it is written");
    let carried =
        fs::read_dir(elsewhere.path()).expect("it lists").map(|entry| entry.expect("it lists").path());
    let carried =
        { carried }.find(|path| path.extension().is_some_and(|end| end == "txt")).expect("it was carried");
    assert!(fs::read_to_string(&carried).expect("it reads").contains(&note));
    server.kill9();
    let (carried, key) = (carried.to_str().expect("plain"), key.to_str().expect("plain"));
    let against = ["--checkpoints", carried, "--key", key];
    let (code, report) = verify(server.data_dir(), &against);
    assert_eq!((code, &report["verdict"]), (0, &json!("whole")), "{report}");
    // The same log, but for its last events: whole in itself.
    let other = elsewhere.path().join("other");
    let backup = elsewhere.path().join("backup");
    Program::on(server.data_dir(), &["backup", backup.to_str().expect("plain")]).ok();
    Program::on(&other, &["restore", backup.to_str().expect("plain"), "--to-position", "5"]).ok();
    assert_eq!(verify(&other, &[]).0, 0);
    let (code, report) = verify(&other, &against);
    assert_eq!((code, &report["findings"][0]["kind"]), (3, &json!("cut_tail")), "{report}");
    // A file that was named and holds no checkpoint, or not only those, proves nothing.
    let whole = fs::read_to_string(carried).expect("it reads");
    for (name, text) in [
        ("empty", String::new()),
        ("garbage", "nothing\n".repeat(9)),
        ("more", format!("{whole}\nx\ny 5\n")),
        ("unsigned", whole.replace('\u{2014}', "-")),
    ] {
        let file = elsewhere.path().join(name);
        fs::write(&file, text).expect("it is written");
        let against = ["--checkpoints", file.to_str().expect("plain"), "--key", key];
        assert_eq!(verify(server.data_dir(), &against).0, 1, "{name}");
    }
    // Another key signs nothing here.
    fs::write(key, "browserspace-0011223344556677+a8f6e6e7+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs")
        .expect("it is written");
    assert_eq!(verify(server.data_dir(), &against).0, 1);
}

#[tokio::test]
async fn c15_a_server_does_not_sign_a_log_that_is_not_the_one_it_signed_before() {
    let mut server = Server::start(ServerOptions::default());
    let space = space_of(&server).await;
    space.play_out("r1", &Script::ok()).await.expect(200);
    server.operator().post("/log/checkpoint", &json!({})).await.expect(200);
    server.kill9();
    let data_dir = server.data_dir().to_owned();
    let (backup, other) = (data_dir.join("a-backup"), data_dir.join("another"));
    Program::on(&data_dir, &["backup", backup.to_str().expect("plain")]).ok();
    Program::on(&other, &["restore", backup.to_str().expect("plain"), "--to-position", "6"]).ok();
    fs::remove_dir_all(data_dir.join("log")).expect("it is removed");
    fs::rename(other.join("log"), data_dir.join("log")).expect("it is renamed");
    Program::on(&data_dir, &["rebuild"]).ok();
    server.again();
    let refused = server.operator().post("/log/checkpoint", &json!({})).await;
    refused.expect_error(503, "log_unavailable");
    let metrics = server.operator().get("/metrics").await.text();
    assert!(metrics.contains("browserspace_checkpoints_refused 1"), "it is there to be seen");
}

#[tokio::test]
async fn c15_a_backup_beside_a_busy_server_is_whole_and_a_server_runs_on_it() {
    let server = Server::start(ServerOptions::default());
    let space = space_of(&server).await;
    let folder = tempfile::tempdir().expect("a folder");
    let backup = folder.path().join("backup");
    let busy = tokio::spawn(async move {
        for number in 0..40 {
            space.play_out(&format!("r{number}"), &Script::ok()).await.expect(200);
        }
        space
    });
    let target = backup.to_str().expect("plain").to_owned();
    let data_dir = server.data_dir().to_owned();
    let made = tokio::task::spawn_blocking(move || Program::on(&data_dir, &["backup", &target]));
    made.await.expect("it runs").ok();
    let space = busy.await.expect("it ends");
    let (code, report) = verify(&backup, &["--deep"]);
    assert_eq!((code, &report["verdict"]), (0, &json!("whole")), "{report}");
    space.close().await.expect(200);
    for name in ["keys", "operator.token", "checkpoints/signing.key"] {
        assert!(!backup.join(name).exists(), "{name} is no part of a backup");
    }
}

#[tokio::test]
async fn c15_a_restored_folder_keeps_what_was_signed_and_signs_anew_and_a_lost_key_is_not_replaced() {
    let server = Server::start(ServerOptions::default());
    space_of(&server).await.play_out("r1", &Script::ok()).await.expect(200);
    server.operator().post("/log/checkpoint", &json!({})).await.expect(200);
    let folder = tempfile::tempdir().expect("a folder");
    let (backup, restored) = (folder.path().join("backup"), folder.path().join("restored"));
    Program::on(server.data_dir(), &["backup", backup.to_str().expect("plain")]).ok();
    let said = Program::on(&restored, &["restore", backup.to_str().expect("plain")]);
    assert!(said.stderr.contains("signing key was not in the backup"), "{said:?}");
    let path = |name: &str| restored.join("checkpoints").join(name);
    let (notes, key) = (path("checkpoints.restored-1.txt"), path("public.restored-1.key"));
    let old = ["--checkpoints", notes.to_str().expect("plain"), "--key", key.to_str().expect("plain")];
    assert_eq!(verify(&restored, &old).0, 0);
    Program::on(&restored, &["checkpoint"]).ok();
    assert_eq!(
        (verify(&restored, &[]).0, verify(&restored, &old).0),
        (0, 0),
        "by the new key and by the old"
    );
    // The same without a restore: somebody loses the key.
    let public = fs::read(path("public.key")).expect("it reads");
    fs::remove_file(path("signing.key")).expect("it is removed");
    let said = Program::on(&restored, &["checkpoint"]).refused();
    assert!(said.contains("put it back there"), "{said}");
    assert_eq!(fs::read(path("public.key")).expect("it reads"), public, "the old one is still there");
    assert_eq!(verify(&restored, &[]).0, 0);
}

#[tokio::test]
async fn c15_a_repair_is_refused_until_it_is_accepted_and_then_recorded() {
    let mut server = Server::start(ServerOptions::default());
    let space = space_of(&server).await;
    space.play_out("r1", &Script::ok()).await.expect(200);
    let said = Program::on(server.data_dir(), &["repair"]).refused();
    assert!(said.contains("a server runs"), "{said}");
    server.kill9();
    let path = segment(server.data_dir());
    let mut bad = fs::read(&path).expect("it reads");
    let at = bad.len() - 300;
    bad[at] ^= 1;
    fs::write(&path, &bad).expect("it is written");
    let said = Program::on(server.data_dir(), &["repair"]);
    assert_eq!(said.status.code(), Some(3), "{said:?}");
    assert!(said.stdout.contains("LOST") && said.stdout.contains(&space.id), "{said:?}");
    assert_eq!(fs::read(&path).expect("it reads"), bad, "nothing was changed");
    Program::on(server.data_dir(), &["repair", "--accept-loss"]).ok();
    let kept = path.with_extension("log.damaged");
    assert_eq!(fs::read(kept).expect("it is kept"), bad);
    assert_eq!(verify(server.data_dir(), &["--deep"]).0, 0);
    server.again();
    let events = server.operator().get("/log?after_position=0").await;
    let repaired = events.list().iter().find(|event| event["kind"] == "repaired").expect("it is recorded");
    assert_eq!(repaired["payload"]["damage"], "frame", "{repaired}");
    let (first, own) = (&repaired["payload"]["first_lost"], &repaired["position"]);
    assert_eq!(first, own, "it stands where the first lost event stood");
}
