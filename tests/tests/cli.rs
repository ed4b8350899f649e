//! The program's other commands: `replay`, `token`, `doctor`, `rebuild`, beside a running server and without one.

use browserspace_tests::{Program, Script, Server, ServerOptions, Space, SpaceRequest};
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
