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
