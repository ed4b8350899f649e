//! Acceptance 6: two tasks of one Space never overlap, by the runtime's own record.

use std::sync::atomic::{AtomicUsize, Ordering};

use browserspace_tests::{Script, Server, ServerOptions, SpaceRequest};
use futures::future::join_all;

const CLIENTS: usize = 8;
const TASKS_EACH: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s06_tasks_of_one_space_never_overlap() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let refused = AtomicUsize::new(0);
    let client = async |number: usize| {
        for turn in 0..TASKS_EACH {
            let request_id = format!("client-{number}-{turn}");
            loop {
                let answer = space.play_out(&request_id, &Script::delay_ms(5)).await;
                if answer.status == 409 {
                    answer.expect_error(409, "space_task_in_progress");
                    refused.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                assert_eq!(answer.expect(200).field("status"), "completed");
                break;
            }
        }
    };
    join_all((0..CLIENTS).map(client)).await;
    let journal = server.journal();
    let calls = journal.of_space(&space.id);
    assert_eq!(calls.len(), CLIENTS * TASKS_EACH);
    for pair in calls.windows(2) {
        assert!(!pair[0].overlaps(pair[1]), "{pair:?}");
    }
    assert!(refused.into_inner() > 0, "the clients did compete");
    journal.at_most_once();
}

#[tokio::test]
async fn s06_a_second_submit_names_the_task_in_progress() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let first = space.play("r1", &Script::delay_ms(60_000)).await.expect(202);
    let second = space.play("r2", &Script::ok()).await;
    let details = second.expect_error(409, "space_task_in_progress")["details"].to_string();
    assert!(details.contains(&first.field("task_id")), "{details}");
    let shown = space.show().await.expect(200);
    assert_eq!(shown.data()["active_task"]["task_id"], first.field("task_id").as_str());
    assert_eq!(shown.field("status"), "running");
    space.cancel().await.expect(200);
    space.ended(&first.field("task_id")).await;
    assert_eq!(server.journal().calls.len(), 1);
}
