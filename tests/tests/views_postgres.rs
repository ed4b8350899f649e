//! The views in a PostgreSQL: the same answers, the same commands, nothing of them in the data folder.

use browserspace_tests::{Exit, Program, Script, Server, ServerOptions, SpaceRequest};
use own_postgres::Cluster;
use serde_json::{Value, json};

const VARIABLE: &str = "BROWSERSPACE_VIEWS_URL";

/// A schema of its own, in the cluster of the run or in one of this test's, which is held as long as the value is.
fn fresh_database() -> (Option<Cluster>, String) {
    let (cluster, url) = match std::env::var(own_postgres::SHARED) {
        Ok(url) => (None, url),
        Err(_) => {
            let cluster = Cluster::start().expect("a PostgreSQL starts");
            let url = cluster.url();
            (Some(cluster), url)
        }
    };
    (cluster, format!("{url}&schema=server_{}", std::process::id()))
}

async fn seen(server: &Server) -> Vec<Value> {
    let operator = server.operator();
    let mut seen = Vec::new();
    for path in ["/browser-spaces?limit=100", "/tokens", "/bindings", "/audit-trail?limit=100&action=task"] {
        seen.push(operator.get(&format!("/workspaces/default{path}")).await.expect(200).json);
    }
    seen
}

/// A schema is of one log, whether the other log is shorter or longer.
async fn another_folder_is_refused(url: &str) {
    let words = refusal(ServerOptions::default().env(VARIABLE, url));
    assert!(words.contains("name a schema of this server's own"), "{words}");
    let mut other = Server::start(ServerOptions::default());
    let operator = other.operator();
    for n in 0..60 {
        operator.issue_token("default", "auditor", &format!("auditor-{n}")).await;
    }
    other.sigterm().ok();
    let words = refusal(ServerOptions::default().env(VARIABLE, url).data_dir(other.data_dir()));
    assert!(words.contains("another data folder's log") && words.contains("`schema=`"), "{words}");
}

fn refusal(options: ServerOptions) -> String {
    match Server::try_start(options) {
        Ok(server) => panic!("it started: {}", server.output()),
        Err(exit) => Exit::refused(*exit),
    }
}

#[tokio::test]
async fn a_server_keeps_its_views_in_postgresql_and_every_command_finds_them_there() {
    let (_cluster, url) = fresh_database();
    let mut server = Server::start(ServerOptions::default().env(VARIABLE, url.clone()));
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    space.play_out("r1", &Script::ok()).await.expect(200);
    space.play_out("r2", &Script::outcome("fail")).await.expect(200);
    let _ = space.close().await;
    space.becomes("closed").await;
    server.restart();
    let before = seen(&server).await;
    assert_eq!(before[3]["data"].as_array().map(Vec::len), Some(2), "{before:?}");
    assert!(!server.data_dir().join("views.sqlite").exists());
    server.sigterm().ok();
    let config = server.data_dir().join("browserspace.toml");
    std::fs::write(&config, format!("views_url = {}\n", json!(url))).expect("it is written");
    Program::on(server.data_dir(), &["verify"]).ok();
    Program::on(server.data_dir(), &["rebuild"]).ok();
    let said = Program::on(server.data_dir(), &["verify", "--json"]).ok();
    let report: Value = serde_json::from_str(&said).expect("it is JSON");
    assert!(report["views"]["rows"].as_u64().is_some_and(|rows| rows > 5), "{said}");
    server.again();
    assert_eq!(seen(&server).await, before);
    server.sigterm().ok();
    another_folder_is_refused(&url).await;
    server.again();
    assert_eq!(seen(&server).await, before, "the other one changed nothing");
}
