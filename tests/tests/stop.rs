//! How a server is stopped: one wish drains it, a second one ends it at once, and a folder's first start is said.

use browserspace_tests::{Script, Server, ServerOptions, Space, SpaceRequest, eventually};
use nix::sys::signal::Signal;

async fn with_task(options: ServerOptions, script: &Script) -> (Server, Space, String) {
    let server = Server::start(options);
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let task = space.play("r1", script).await.expect(202).field("task_id");
    space.runs(&task).await;
    (server, space, task)
}

#[tokio::test]
async fn signals_that_come_together_are_one_wish_and_the_stop_stays_in_order() {
    let (mut server, space, task) = with_task(ServerOptions::default(), &Script::delay_ms(300)).await;
    // As `timeout` and a terminal do: the process, and then its group.
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGTERM, Signal::SIGINT] {
        server.signal(signal);
    }
    let exit = server.ended();
    assert!(exit.status.success(), "{exit:?}");
    assert!(!exit.stderr.contains("Second signal:"), "{}", exit.stderr);
    assert!(!server.data_dir().join("server.json").exists(), "everything was put away");
    server.again();
    assert_eq!(space.ended(&task).await["status"], "completed", "it had the time to finish");
    assert_eq!(space.status().await, "closed");
    let events = space.events().await;
    assert_eq!(events.last().expect("it has events")["payload"]["reason"], "drained");
}

#[tokio::test]
async fn a_second_wish_ends_the_server_at_once_and_a_space_survives_that() {
    let options = ServerOptions::default().arg("--drain-seconds").arg("600");
    let (mut server, space, task) = with_task(options, &Script::outcome("hang")).await;
    eventually("a later signal ends it", || {
        server.signal(Signal::SIGTERM);
        let ended = server.has_ended();
        async move { ended.then_some(()) }
    })
    .await;
    let exit = server.ended();
    assert_eq!(exit.status.code(), Some(143), "{exit:?}");
    assert!(exit.stderr.contains("Second signal: exiting at once."), "{}", exit.stderr);
    server.again();
    assert_eq!(space.ended(&task).await["error"]["code"], "interrupted");
    space.becomes("idle").await;
}

#[tokio::test]
async fn the_first_start_on_a_folder_is_said_and_no_other() {
    let said = "is a new data folder";
    let mut server = Server::start(ServerOptions::default());
    let exit = server.sigterm();
    let folder = server.data_dir().canonicalize().expect("the folder is there");
    assert!(exit.stdout.contains(&format!("first start: {} {said}", folder.display())), "{}", exit.stdout);
    assert!(exit.stderr.contains("First start: new data folder."), "{}", exit.stderr);
    server.again();
    let exit = server.sigterm();
    assert!(!exit.stdout.contains(said) && !exit.stderr.contains("First start"), "{exit:?}");
}

#[tokio::test]
async fn a_collector_that_is_not_there_is_warned_of_once_and_counted() {
    let closed = {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        listener.local_addr().expect("it has an address")
    };
    let options = ServerOptions::default()
        .arg("--otlp-endpoint")
        .arg(format!("http://user:s3cret@{closed}"))
        .env("OTEL_BSP_SCHEDULE_DELAY", "20");
    let server = Server::start(options);
    let operator = server.operator();
    let lost = || async {
        operator.get("/capabilities").await.expect(200);
        let text = String::from_utf8(operator.get("/metrics").await.expect(200).bytes).expect("it is text");
        let line = text.lines().find_map(|line| line.strip_prefix("browserspace_spans_lost_total "));
        line.expect("the figure is there").parse::<u64>().expect("a number")
    };
    let first = eventually("spans are lost", || async { Some(lost().await).filter(|lost| *lost > 0) }).await;
    eventually("more are lost", || async { Some(lost().await).filter(|lost| *lost > first) }).await;
    let said = server.output();
    assert_eq!(said.matches("The collector takes no traces").count(), 1, "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}
