//! The connection against a scripted far end; no browser.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::browser::GetVersionParams;
use chromiumoxide_cdp::cdp::browser_protocol::page::{NavigateParams, StopLoadingParams};
use serde_json::{Value, json};
use tokio::io::{DuplexStream, duplex};
use tokio::time::Instant;

use super::*;
use crate::session::Session;

struct Recorder(mpsc::UnboundedSender<String>);

impl Listener for Recorder {
    fn event(&mut self, _connection: &Connection, event: Event<'_>) {
        let _ = self.0.send(format!("{} {} {}", event.method, event.session.unwrap_or("-"), event.params));
    }

    fn closed(&mut self) {
        let _ = self.0.send("closed".into());
    }
}

struct FarEnd {
    stream: DuplexStream,
    events: mpsc::UnboundedReceiver<String>,
}

impl FarEnd {
    async fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        loop {
            match self.stream.read_u8().await.expect("a message is on its way") {
                0 => return serde_json::from_slice(&bytes).expect("the message is JSON"),
                byte => bytes.push(byte),
            }
        }
    }

    async fn write(&mut self, message: &str) {
        self.stream.write_all(message.as_bytes()).await.expect("the near end reads");
        self.stream.write_all(&[0]).await.expect("the near end reads");
    }
}

fn scripted(limit: usize) -> (Connection, FarEnd) {
    let (near, far) = duplex(64 * 1024);
    let (sender, events) = mpsc::unbounded_channel();
    let connection = Connection::with_message_limit(near, Recorder(sender), limit);
    (connection, FarEnd { stream: far, events })
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

#[tokio::test]
async fn answers_find_their_calls_in_any_order() {
    let (connection, mut far) = scripted(1000);
    let page = Session::attached(connection.clone(), "S1".into());
    let browser = Session::browser(connection);
    let one = tokio::spawn({
        let page = page.clone();
        async move { page.call_raw(&NavigateParams::new("about:blank"), soon()).await }
    });
    let first = far.read().await;
    assert_eq!((&first["method"], &first["sessionId"]), (&json!("Page.navigate"), &json!("S1")));
    let two = tokio::spawn(async move { browser.call_raw(&StopLoadingParams::default(), soon()).await });
    let second = far.read().await;
    assert_eq!(second.get("sessionId"), None);
    far.write(&format!(r#"{{"id":{},"result":{{"n":2}}}}"#, second["id"])).await;
    far.write(&format!(r#"{{"id":{},"result":{{"n":1}},"sessionId":"S1"}}"#, first["id"])).await;
    assert_eq!(&one.await.expect("joined").expect("answered")[..], br#"{"n":1}"#);
    assert_eq!(&two.await.expect("joined").expect("answered")[..], br#"{"n":2}"#);
}

#[tokio::test]
async fn the_end_of_the_stream_fails_waiting_and_later_calls_at_once() {
    let (connection, mut far) = scripted(1000);
    let browser = Session::browser(connection);
    let waiting = tokio::spawn({
        let browser = browser.clone();
        async move { browser.call_raw(&GetVersionParams::default(), soon()).await }
    });
    far.read().await;
    drop(far.stream);
    let failed = waiting.await.expect("joined").expect_err("the stream ended");
    assert!(matches!(failed, CallError::Gone(Gone::Closed)), "{failed:?}");
    let later = browser.call_raw(&GetVersionParams::default(), soon()).await.expect_err("the stream ended");
    assert!(matches!(later, CallError::Gone(Gone::Closed)), "{later:?}");
    assert_eq!(far.events.recv().await.as_deref(), Some("closed"));
}

#[tokio::test]
async fn a_lost_session_fails_its_own_calls_only() {
    let (connection, mut far) = scripted(1000);
    let lost = tokio::spawn({
        let page = Session::attached(connection.clone(), "S1".into());
        async move { page.call_raw(&StopLoadingParams::default(), soon()).await }
    });
    far.read().await;
    let kept = tokio::spawn({
        let page = Session::attached(connection.clone(), "S2".into());
        async move { page.call_raw(&StopLoadingParams::default(), soon()).await }
    });
    let second = far.read().await;
    connection.fail_session("S1", Gone::Crashed);
    let failed = lost.await.expect("joined").expect_err("its session is gone");
    assert!(matches!(failed, CallError::Gone(Gone::Crashed)), "{failed:?}");
    far.write(&format!(r#"{{"id":{},"result":{{}}}}"#, second["id"])).await;
    kept.await.expect("joined").expect("its session lives");
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_at_its_deadline_and_a_late_answer_is_ignored() {
    let (connection, mut far) = scripted(1000);
    let browser = Session::browser(connection.clone());
    let failed =
        browser.call_raw(&GetVersionParams::default(), Instant::now() + Duration::from_millis(50)).await;
    assert!(matches!(failed, Err(CallError::Overdue { .. })), "{failed:?}");
    assert_eq!(connection.0.pending.lock().as_ref().map(HashMap::len), Some(0));
    let sent = far.read().await;
    far.write(&format!(r#"{{"id":{},"result":{{}}}}"#, sent["id"])).await;
    far.write(r#"{"method":"After.that","params":{}}"#).await;
    assert_eq!(far.events.recv().await.as_deref(), Some("After.that - {}"));
}

#[tokio::test]
async fn unknown_methods_fields_and_broken_messages_do_not_end_the_connection() {
    let (connection, mut far) = scripted(1000);
    far.write("this is no JSON").await;
    far.write(r#"{"method":"Future.event","params":{"new":[1]},"sessionId":"S9","more":true}"#).await;
    assert_eq!(far.events.recv().await.as_deref(), Some(r#"Future.event S9 {"new":[1]}"#));
    let browser = Session::browser(connection);
    let call = tokio::spawn(async move { browser.call_raw(&GetVersionParams::default(), soon()).await });
    let sent = far.read().await;
    far.write(&format!(r#"{{"id":{},"result":{{}},"future":1}}"#, sent["id"])).await;
    call.await.expect("joined").expect("answered");
}

#[tokio::test]
async fn an_answer_beyond_the_limit_fails_its_call_alone() {
    let (connection, mut far) = scripted(500);
    let browser = Session::browser(connection.clone());
    let call = tokio::spawn(async move { browser.call_raw(&GetVersionParams::default(), soon()).await });
    let sent = far.read().await;
    far.write(&format!(r#"{{"id":{},"result":"{}"}}"#, sent["id"], "x".repeat(2000))).await;
    let failed = call.await.expect("joined").expect_err("the answer was dropped");
    assert!(matches!(failed, CallError::TooLarge { .. }), "{failed:?}");
    far.write(r#"{"method":"Still.alive"}"#).await;
    assert_eq!(far.events.recv().await.as_deref(), Some("Still.alive - {}"));
}
