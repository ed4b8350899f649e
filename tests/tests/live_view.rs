//! The live view of a Space: pictures for who may look, over a restart of the browser, and an end with the Space.

use std::time::Duration;

use browserspace_tests::{Page, Pages, Server, ServerOptions, Space, SpaceRequest};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use reqwest::{Method, Response};
use serde_json::json;

const RED: &str = "<title>red</title><body style='background:red'>";
const BLUE: &str = "<title>blue</title><body style='background:blue'>";

/// The pictures of one answer.
struct View {
    answer: Response,
    bytes: Vec<u8>,
}

impl View {
    /// The next picture; `None` at the end.
    async fn next(&mut self) -> Option<Vec<u8>> {
        tokio::time::timeout(Duration::from_secs(30), self.part()).await.expect("a picture in time")
    }

    async fn part(&mut self) -> Option<Vec<u8>> {
        loop {
            if self.bytes.starts_with(b"--frame--") {
                return None;
            }
            let end = self.bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
            if let Some(end) = end {
                let head = String::from_utf8(self.bytes[..end].to_vec()).expect("a head is text");
                assert!(head.starts_with("--frame\r\nContent-Type: image/jpeg\r\n"), "{head}");
                let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
                let length: usize = length.expect("a length").parse().expect("a number");
                if self.bytes.len() >= end + length + 2 {
                    let picture = self.bytes[end..end + length].to_vec();
                    assert_eq!(&picture[..2], &[0xff, 0xd8], "a JPEG");
                    self.bytes.drain(..end + length + 2);
                    return Some(picture);
                }
            }
            match self.answer.chunk().await.expect("the answer goes on") {
                Some(chunk) => self.bytes.extend_from_slice(&chunk),
                None => return None,
            }
        }
    }

    async fn next_unlike(&mut self, known: &[u8]) -> Vec<u8> {
        loop {
            let picture = self.next().await.expect("a picture");
            if picture != known {
                return picture;
            }
        }
    }
}

fn path(space: &Space) -> String {
    format!("/workspaces/default/browser-spaces/{}/view", space.id)
}

#[tokio::test]
async fn a_live_view_shows_what_changes_and_goes_on_with_the_next_browser_and_ends_with_the_space() {
    let pages = Pages::serve([("/red", Page::html(RED)), ("/blue", Page::html(BLUE))]).await;
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[pages.host()]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    space.complete("r1", "navigate", json!({ "url": pages.url("/red") })).await;
    let answer = operator.request(Method::GET, &path(&space)).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "multipart/x-mixed-replace; boundary=frame");
    let mut view = View { answer, bytes: Vec::new() };
    let red = view.next().await.expect("a picture of a page at rest");
    space.complete("r2", "navigate", json!({ "url": pages.url("/blue") })).await;
    let blue = view.next_unlike(&red).await;
    // The only browser of this server.
    for pid in server.browsers() {
        let _ = kill(Pid::from_raw(i32::try_from(pid).expect("a pid fits")), Signal::SIGKILL);
    }
    view.next_unlike(&blue).await;
    space.close().await.expect(200);
    while view.next().await.is_some() {}
    operator.get(&path(&space)).await.expect_error(409, "space_closed");
    server.no_browser_left().await;
}

#[tokio::test]
async fn c14_a_live_view_is_for_who_may_read_the_space_and_ends_with_the_token() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[]).await;
    let owner = server.agent("default", "agent-1").await;
    let space =
        owner.open(&SpaceRequest::new("default", &instance).agent("agent-1").granting(&["get_url"])).await;
    let other = server.agent("default", "agent-2").await;
    other.get(&path(&space)).await.expect_error(403, "forbidden");
    operator.anonymous().get(&path(&space)).await.expect_error(401, "unauthenticated");
    operator.get(&path(&space).replace("/view", "/view?x=1")).await.expect_error(422, "invalid_request");
    let issued = operator
        .post("/workspaces/default/tokens", &json!({ "role": "auditor", "owner_id": "eve" }))
        .await
        .expect(201);
    let auditor = operator.bearing(&issued.field("token"));
    let answer = auditor.request(Method::GET, &path(&space)).send().await.expect("an answer");
    let mut view = View { answer, bytes: Vec::new() };
    view.next().await.expect("a picture");
    let revoke = format!("/workspaces/default/tokens/{}/revoke", issued.field("token_id"));
    operator.post(&revoke, &json!({})).await.expect(200);
    while view.next().await.is_some() {}
}

#[tokio::test]
async fn a_space_without_a_picture_says_so() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    space.play_out("r1", &browserspace_tests::Script::ok()).await.expect(200);
    operator.get(&path(&space)).await.expect_error(409, "no_screencast");
}
