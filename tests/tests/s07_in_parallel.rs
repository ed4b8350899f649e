//! Acceptance 7: tasks of two Spaces on two instances do overlap.

use browserspace_tests::{Script, Server, ServerOptions, SpaceRequest, eventually};

#[tokio::test]
async fn s07_tasks_of_two_spaces_overlap() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let mut spaces = Vec::new();
    for _ in 0..2 {
        let instance = operator.scripted_instance(&["default"]).await;
        spaces.push(operator.open(&SpaceRequest::new("default", &instance)).await);
    }
    // Each works until it is cancelled, so that this waits for both to be at work and not for a clock.
    for space in &spaces {
        space.play("r1", &Script::delay_ms(60_000)).await.expect(202);
    }
    eventually("both are at work at once", || async {
        (server.journal().calls.iter().filter(|call| call.end.is_none()).count() == 2).then_some(())
    })
    .await;
    for space in &spaces {
        space.cancel().await.expect(200);
        space.becomes("idle").await;
    }
    let journal = server.journal();
    assert!(journal.calls[0].overlaps(&journal.calls[1]), "{:?}", journal.calls);
    assert_ne!(journal.calls[0].space, journal.calls[1].space);
}
