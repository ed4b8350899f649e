//! The figures that an operator watches are there, and go back to nothing when nothing is left.

use browserspace_tests::{Server, ServerOptions, SpaceRequest, eventually};
use serde_json::json;

/// The value of a gauge or the count of a histogram; labels are part of its name here.
fn figure(metrics: &str, name: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

#[tokio::test]
async fn waits_and_work_of_actors_active_tasks_recoveries_and_runtimes_are_told() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let script = json!({ "url": "http://scripted.invalid/?delay_ms=60000" });
    space.submit("r1", "navigate", script).await.expect(202);
    let metrics = || async { operator.get("/metrics").await.text() };
    let shows = |name: &'static str, value: f64| {
        eventually(name, move || async move { (figure(&metrics().await, name) == Some(value)).then_some(()) })
    };
    shows("browserspace_task_active", 1.0).await;
    shows("browserspace_runtime_state{state=\"ready\"}", 1.0).await;
    shows("browserspace_runtime_state{state=\"starting\"}", 0.0).await;
    shows("browserspace_actor_recovering", 0.0).await;
    let text = metrics().await;
    for name in ["mailbox_wait", "handle"] {
        let name = format!("browserspace_actor_{name}_duration_seconds_count{{command=\"submit\"}}");
        assert_eq!(figure(&text, &name), Some(1.0), "{name}\n{text}");
    }
    assert!(figure(&text, "browserspace_http_connections").is_some_and(|open| open >= 1.0), "{text}");
    space.close().await;
    shows("browserspace_task_active", 0.0).await;
    shows("browserspace_runtime_state{state=\"ready\"}", 0.0).await;
}
