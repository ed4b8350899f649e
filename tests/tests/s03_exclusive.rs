//! Acceptance 3: of N concurrent creates on one instance one wins, and the others leave nothing behind.

use std::collections::BTreeMap;

use browserspace_tests::{Server, ServerOptions, SpaceRequest};
use futures::future::join_all;

const CREATES: usize = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s03_of_many_concurrent_creates_exactly_one_wins() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let before = operator.get("/healthz").await.position();
    let creates = (0..CREATES).map(|number| {
        let request = SpaceRequest::new("default", &instance).agent(&format!("agent-{number}"));
        let operator = operator.clone();
        tokio::spawn(async move { operator.post(&request.path(), &request.body()).await })
    });
    let answers: Vec<_> =
        join_all(creates).await.into_iter().map(|done| done.expect("no task panics")).collect();
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
    assert_eq!(won.len(), 1, "exactly one wins");
    for answer in lost {
        answer.expect_error(409, "browser_instance_in_use");
    }
    let space = won[0].field("space_id");
    let listed = operator.get("/workspaces/default/browser-spaces").await.expect(200);
    assert_eq!(listed.list().len(), 1);
    assert_eq!(listed.list()[0]["space_id"], space.as_str());
    let mut kinds = BTreeMap::<String, usize>::new();
    for event in operator.log_after(before).await {
        *kinds.entry(event["kind"].as_str().expect("an event has a kind").to_owned()).or_default() += 1;
    }
    assert_eq!(kinds.remove("opened"), Some(1), "one Space");
    assert_eq!(kinds.remove("reserved"), Some(1), "one reservation");
    kinds.retain(|kind, _| !kind.starts_with("runtime_"));
    assert!(kinds.is_empty(), "nothing else is in the log: {kinds:?}");
}

#[tokio::test]
async fn s03_a_reserved_instance_is_refused_until_it_is_released() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let request = SpaceRequest::new("default", &instance);
    for _ in 0..3 {
        let space = operator.open(&request).await;
        operator.post(&request.path(), &request.body()).await.expect_error(409, "browser_instance_in_use");
        space.close().await.expect(200);
        space.becomes("closed").await;
    }
}
