use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::*;

#[test]
fn a_navigation_that_the_renderer_is_done_with_has_been_handed_over_until_the_browser_tells_more() {
    let requested = ("Page.frameRequestedNavigation", "currentTab");
    let elsewhere = ("Page.frameRequestedNavigation", "newTab");
    let cleared = ("Page.frameClearedScheduledNavigation", "");
    let (started, stopped) = (("Page.frameStartedNavigating", ""), ("Page.frameStoppedLoading", ""));
    for (events, leaving) in [
        (vec![requested], Leaving::Asked),
        (vec![requested, cleared], Leaving::Handed),
        (vec![requested, cleared, started], Leaving::Begun),
        (vec![requested, started, cleared], Leaving::Begun),
        (vec![started, requested], Leaving::Begun),
        (vec![requested, cleared, started, stopped], Leaving::No),
        (vec![elsewhere, cleared], Leaving::No),
    ] {
        let mut tab = Tab::new("main".into(), "session".into(), None);
        for (method, disposition) in &events {
            let params = serde_json::json!({ "frameId": "main", "disposition": disposition });
            leaves(&mut tab, method, serde_json::from_value(params).expect("the shape fits"));
        }
        let shown = tab.main_frame().map(|frame| frame.leaving);
        assert_eq!(shown, Some(leaving), "{events:?}");
    }
}

#[tokio::test]
async fn a_frame_that_nobody_took_is_answered_when_a_newer_one_comes() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let hub = Hub::new();
    let appearance = Appearance { device_scale: 1.0, ..Appearance::default() };
    let connection = Connection::new(near, Observer { hub: hub.clone(), viewport: (1, 1), appearance });
    let (far_read, mut far_write) = tokio::io::split(far);
    for number in [7, 8] {
        let params = serde_json::json!({ "data": "", "sessionId": number, "metadata": {} });
        let event =
            serde_json::json!({ "method": "Page.screencastFrame", "sessionId": "s", "params": params });
        far_write.write_all(format!("{event}\0").as_bytes()).await.expect("the pipe is open");
    }
    let mut answer = Vec::new();
    BufReader::new(far_read).read_until(0, &mut answer).await.expect("the pipe is open");
    answer.pop();
    let answer: serde_json::Value = serde_json::from_slice(&answer).expect("a command is JSON");
    assert_eq!((&answer["method"], &answer["sessionId"]), (&"Page.screencastFrameAck".into(), &"s".into()));
    assert_eq!(answer["params"]["sessionId"], 7, "the one that was replaced");
    assert_eq!(hub.take_shot().await.number, 8);
    connection.close();
}
