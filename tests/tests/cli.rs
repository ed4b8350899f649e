//! The program's other commands: `replay`, `token`, `doctor`, `rebuild`, beside a running server and without one.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use browserspace_tests::{Program, Script, Server, ServerOptions, Space, SpaceRequest, eventually};
use nix::sys::signal::Signal;
use serde_json::Value;

async fn lived_in() -> (Server, Space) {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    space.play_out("r1", &Script::ok()).await.expect(200);
    space.play_out("r2", &Script::outcome("fail")).await.expect(200);
    (server, space)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

#[tokio::test]
async fn replay_of_a_space_tells_what_the_server_tells() {
    let (mut server, space) = lived_in().await;
    let told = space.events().await;
    for running in [true, false] {
        if !running {
            server.kill9();
        }
        let replayed = lines(&Program::on(server.data_dir(), &["replay", &space.id, "--json"]).ok());
        for (ours, theirs) in replayed.iter().zip(&told) {
            for field in ["sequence", "position", "kind"] {
                assert_eq!(ours[field], theirs[field], "{field} of {ours}");
            }
        }
        assert_eq!(replayed.len(), told.len());
    }
    let text = Program::on(server.data_dir(), &["replay", &space.id]).ok();
    for kind in ["opened", "queued", "started", "completed", "failed", "navigation_failed"] {
        assert!(text.contains(kind), "{kind} in\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "no colour where there is no terminal");
}

#[tokio::test]
async fn replay_of_the_whole_log_is_without_a_gap() {
    let (server, space) = lived_in().await;
    let replayed = lines(&Program::on(server.data_dir(), &["replay", "--json"]).ok());
    let positions: Vec<_> =
        replayed.iter().map(|event| event["position"].as_u64().expect("a position")).collect();
    assert_eq!(positions, (1..=positions.len() as u64).collect::<Vec<_>>());
    let text = Program::on(server.data_dir(), &["replay"]).ok();
    assert!(text.contains(&space.id) && text.contains("booted"), "{text}");
}

#[tokio::test]
async fn replay_of_what_is_not_there_is_refused() {
    let (server, _space) = lived_in().await;
    for id in ["spc_00000000000000000000000000", "nonsense"] {
        let said = Program::on(server.data_dir(), &["replay", id]).refused();
        assert!(said.contains(id) || said.contains("no such"), "{said}");
    }
    let empty = tempfile::tempdir().expect("a temporary folder can be made");
    Program::on(&empty.path().join("nowhere"), &["replay"]).refused();
    assert!(!empty.path().join("nowhere").exists(), "a command that reads makes nothing");
}

#[tokio::test]
async fn replay_shows_who_led_to_an_event() {
    let server = Server::start(ServerOptions::default());
    let instance = server.operator().scripted_instance(&["default"]).await;
    let agent = server.agent("default", "agent-7").await;
    let space = agent.open(&SpaceRequest::new("default", &instance).agent("agent-7")).await;
    space.play_out("r1", &Script::ok()).await.expect(200);
    server.operator().get(&space.path("")).await.expect(200);
    let text = Program::on(server.data_dir(), &["replay", &space.id]).ok();
    let line = |kind: &str| text.lines().find(|line| line.contains(kind)).expect("the event is there");
    assert!(line(" queued ").contains(" agent agent-7 "), "{text}");
    let whole = Program::on(server.data_dir(), &["replay"]).ok();
    let booted = whole.lines().find(|line| line.contains(" booted ")).expect("it has booted");
    assert!(booted.contains(" system "), "{booted}");
    assert!(whole.lines().any(|line| line.contains(" operator operator ")), "{whole}");
}

#[tokio::test]
async fn replay_after_a_position_beyond_the_end_is_refused_as_by_the_api() {
    let (server, space) = lived_in().await;
    let operator = server.operator();
    let head = operator.log_after(0).await.last().expect("events")["position"].as_u64().expect("a number");
    let replay = |after: u64, more: &[&str]| {
        let after = after.to_string();
        let args = [&["replay", "--after-position", &after][..], more].concat();
        Program::on(server.data_dir(), &args)
    };
    assert_eq!(replay(head, &[]).ok(), "", "nothing lies after the end, and that is fine");
    for more in [&[][..], &["--follow"], &[&space.id], &["--json"]] {
        let said = replay(head + 1, more).refused();
        assert!(said.contains("invalid_cursor") && said.contains(&head.to_string()), "{said}");
    }
    operator.get(&format!("/log?after_position={}", head + 1)).await.expect_error(422, "invalid_cursor");
}

#[tokio::test]
async fn replay_that_follows_a_space_ends_with_it() {
    let (server, space) = lived_in().await;
    let folder = server.data_dir().to_str().expect("UTF-8");
    let args = ["replay", &space.id, "--follow", "--data-dir", folder];
    let mut live = Program::start(args, &[]);
    live.line_after(" failed ", Duration::from_secs(30)).expect("what there is, is shown");
    assert!(!live.has_ended(), "more may come");
    space.close().await;
    let shown = live.exit_within(Duration::from_secs(30)).ok();
    assert!(shown.lines().last().is_some_and(|line| line.contains(" closed ")), "{shown}");
    // Of one that is closed already, also from behind its last event.
    assert_eq!(Program::on(server.data_dir(), &args[..3]).ok(), shown);
    let end = server.operator().log_after(0).await.last().expect("events")["position"].to_string();
    let behind = Program::on(server.data_dir(), &[&args[..3], &["--after-position", &end]].concat());
    assert_eq!(behind.ok(), "");
    let unknown = ["replay", "spc_00000000000000000000000000", "--follow"];
    let said = Program::on(server.data_dir(), &unknown).refused();
    assert!(said.contains("no such space"), "{said}");
}

fn token_in(text: &str) -> String {
    let found = text.split_whitespace().find(|word| word.starts_with("bst_"));
    found.unwrap_or_else(|| panic!("no token in {text}")).to_owned()
}

#[tokio::test]
async fn a_token_is_made_listed_and_revoked_beside_a_running_server() {
    let (server, _space) = lived_in().await;
    let make = ["token", "create", "--role", "agent", "--workspace", "default", "--owner-id", "agent-7"];
    let token = token_in(&Program::on(server.data_dir(), &make).ok());
    let agent = server.client(&token);
    agent.get("/workspaces/default/browser-spaces").await.expect(200);
    let list = Program::on(server.data_dir(), &["token", "list", "--workspace", "default"]).ok();
    assert!(!list.contains(&token), "shown once");
    let line = list.lines().find(|line| line.contains("agent-7")).expect("it is listed");
    let id = line.split_whitespace().find(|word| word.starts_with("tok_")).expect("it has an id");
    Program::on(server.data_dir(), &["token", "revoke", id, "--workspace", "default"]).ok();
    agent.get("/workspaces/default/browser-spaces").await.expect_error(401, "unauthenticated");
}

#[tokio::test]
async fn a_token_is_made_without_a_server_too() {
    let (mut server, _space) = lived_in().await;
    server.sigterm().ok();
    let make = ["token", "create", "--role", "auditor", "--workspace", "team-x", "--owner-id", "eyes"];
    let token = token_in(&Program::on(server.data_dir(), &make).ok());
    server.again();
    let auditor = server.client(&token);
    auditor.get("/workspaces/team-x/browser-spaces").await.expect(200);
    auditor.get("/workspaces/default/browser-spaces").await.expect_error(403, "forbidden");
}

#[tokio::test]
async fn a_list_of_tokens_is_in_the_same_order_with_a_server_and_without() {
    let (mut server, _space) = lived_in().await;
    for number in 0..3 {
        server.agent("default", &format!("agent-{number}")).await;
    }
    let ids = |server: &Server| -> Vec<String> {
        let listed = lines(&Program::on(server.data_dir(), &["token", "list", "--json"]).ok());
        listed.iter().map(|token| token["token_id"].as_str().expect("an id").to_owned()).collect()
    };
    let with = ids(&server);
    assert_eq!(with.len(), 4);
    server.sigterm().ok();
    assert_eq!(ids(&server), with);
    let newest = Program::on(server.data_dir(), &["token", "list"]).ok();
    assert!(newest.lines().nth(1).is_some_and(|line| line.contains("agent-2")), "{newest}");
}

#[tokio::test]
async fn the_text_of_a_token_is_not_printed_back() {
    let (server, _space) = lived_in().await;
    let token = server.operator_token();
    let flag = format!("--workspace={token} x");
    for args in [
        &["token", "revoke", &token][..],
        &["replay", &token],
        &["token", "list", &token],
        &["token", "list", &flag],
        &[&token],
    ] {
        let exit = Program::on(server.data_dir(), args);
        let said = format!("{}{}", exit.stdout, exit.stderr);
        assert!(!said.contains(&token[8..]), "{args:?} printed it: {said}");
        assert!(said.contains("tok_") && said.contains("token list"), "it says what to do: {said}");
        exit.refused();
    }
}

#[tokio::test]
async fn an_operator_who_is_locked_out_is_told_how_to_get_in_again() {
    let (mut server, _space) = lived_in().await;
    let folder = server.data_dir().to_owned();
    let doctor = || Program::on(&folder, &["doctor"]).ok();
    assert!(doctor().contains("operator.token is valid"), "{}", doctor());
    let listed = lines(&Program::on(&folder, &["token", "list", "--json"]).ok());
    let own = listed.last().expect("the first start's own")["token_id"].as_str().expect("an id").to_owned();
    let remedy = "token create --data-dir";
    let revoked = Program::on(&folder, &["token", "revoke", &own]);
    assert!(revoked.stderr.contains(remedy), "warned at the revoke: {revoked:?}");
    revoked.ok();
    assert!(doctor().contains("was revoked") && doctor().contains(remedy), "{}", doctor());
    let said = Program::on(&folder, &["token", "list"]).refused();
    assert!(said.contains(remedy) && said.contains("operator.token"), "{said}");
    std::fs::remove_file(folder.join("operator.token")).expect("the file is there");
    assert!(doctor().contains("can not be read") && doctor().contains(remedy), "{}", doctor());
    let said = Program::on(&folder, &["token", "list"]).refused();
    assert!(said.contains(remedy), "{said}");
    // What is advised works.
    server.sigterm().ok();
    let make = ["token", "create", "--role", "operator", "--all-workspaces", "--owner-id", "operator"];
    let token = token_in(&Program::on(&folder, &make).ok());
    std::fs::write(folder.join("operator.token"), token).expect("the folder is ours");
    assert!(doctor().contains("can be read by others"), "{}", doctor());
    server.again();
    Program::on(&folder, &["token", "list"]).ok();
}

#[tokio::test]
async fn doctor_says_that_a_server_drains() {
    let (server, _space) = lived_in().await;
    let doctor = || Program::on(server.data_dir(), &["doctor"]).ok();
    assert!(doctor().contains("takes work"), "{}", doctor());
    let drained = server.operator().post("/server/drain", &serde_json::json!({})).await.expect(202);
    let message = drained.field("message");
    assert!(message.contains("every Space is closed") && message.contains("SIGTERM"), "{message}");
    let text = eventually("the drain has begun", || async {
        Some(doctor()).filter(|text| text.contains("draining"))
    })
    .await;
    assert!(text.contains("SIGTERM"), "{text}");
}

#[tokio::test]
async fn a_reader_that_leaves_ends_every_command_quietly() {
    let (mut server, space) = lived_in().await;
    let folder = server.data_dir().to_owned();
    let on_folder = |args: &[&str]| {
        let folder = folder.to_str().expect("UTF-8");
        let args: Vec<String> =
            args.iter().chain(&["--data-dir", folder]).map(|arg| (*arg).to_owned()).collect();
        Program::unread(args).exit_within(Duration::from_secs(30))
    };
    let quietly = |args: &[&str]| {
        let exit = on_folder(args);
        assert!(exit.status.success() && exit.stderr.is_empty(), "{args:?}: {exit:?}");
    };
    for running in [true, false] {
        if !running {
            server.sigterm().ok();
        }
        quietly(&["doctor"]);
        quietly(&["replay"]);
        quietly(&["replay", "--json"]);
        quietly(&["replay", &space.id]);
        quietly(&["token", "list"]);
        quietly(&["token", "list", "--json"]);
        quietly(&["token", "create", "--role", "auditor", "--owner-id", "eve"]);
    }
    quietly(&["rebuild"]);
    quietly(&["serve", "--help"]);
    Program::unread(["--version"]).exit_within(Duration::from_secs(30)).ok();
}

#[tokio::test]
async fn a_server_whose_output_nobody_reads_serves_on() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data_dir = folder.path().join("data");
    let path = data_dir.to_str().expect("UTF-8");
    let server =
        Program::unread(["serve", "--listen", "127.0.0.1:0", "--instances", "0", "--data-dir", path]);
    eventually("it listens", || async { data_dir.join("server.json").exists().then_some(()) }).await;
    let text = Program::on(&data_dir, &["doctor"]).ok();
    assert!(text.contains("takes work"), "{text}");
    server.signal(Signal::SIGTERM);
    server.exit_within(Duration::from_secs(30)).ok();
}

#[test]
fn a_bad_role_or_workspace_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data_dir = folder.path().join("data");
    for (role, workspace) in [("king", "default"), ("agent", "../x")] {
        let args = ["token", "create", "--role", role, "--workspace", workspace, "--owner-id", "a"];
        Program::on(&data_dir, &args).refused();
    }
}

#[test]
fn doctor_says_of_each_thing_whether_it_is_well() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data_dir = folder.path().join("data");
    let exit = Program::on(&data_dir, &["doctor"]);
    let text = format!("{}{}", exit.stdout, exit.stderr).to_lowercase();
    for thing in ["browser", "sandbox", "disk", "log", "port"] {
        assert!(text.contains(thing), "{thing} in\n{text}");
    }
    assert!(exit.status.success(), "this machine is well:\n{text}");
    let missing = Program::on(&data_dir, &["doctor", "--chromium", "/nonexistent/chromium"]);
    assert!(!missing.status.success());
    let text = missing.refused();
    assert!(text.contains("fail") && text.contains("chromium"), "it says what to do:\n{text}");
}

#[tokio::test]
async fn a_data_folder_that_browsers_can_not_live_in_is_told_by_doctor_and_at_the_start() {
    let folder = tempfile::tempdir_in("/tmp").expect("a temporary folder can be made");
    let data_dir = folder.path().join("long".repeat(20));
    let doctor = Program::on(&data_dir, &["doctor"]).refused();
    assert!(doctor.contains("bytes") && doctor.contains("elsewhere"), "{doctor}");
    let server = Server::start(ServerOptions::default().data_dir(&data_dir));
    let said = server.output();
    assert!(said.contains("No browser will start.") && said.contains("elsewhere"), "{said}");
}

#[tokio::test]
async fn folders_above_a_new_data_folder_let_browsers_pass() {
    let folder = tempfile::tempdir_in("/tmp").expect("a temporary folder can be made");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let data_dir = folder.path().join("a/b/data");
    drop(Server::start(ServerOptions::default().data_dir(&data_dir)));
    let doctor = Program::on(&data_dir, &["doctor"]);
    assert!(doctor.status.success(), "{}{}", doctor.stdout, doctor.stderr);
}

#[test]
fn help_and_version_are_there_for_a_newcomer() {
    let version = Program::run(["--version"]).ok();
    assert!(version.starts_with("browserspace "), "{version}");
    for command in ["serve", "replay", "token", "rebuild", "doctor"] {
        let help = Program::run([command, "--help"]).ok();
        assert!(help.contains("Usage:") && help.contains("--data-dir"), "{command}:\n{help}");
    }
    Program::run(["no-such-command"]).refused();
}
