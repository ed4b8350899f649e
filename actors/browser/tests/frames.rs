//! Frames of other sites, nested frames and shadow roots are read and acted on like the page itself.

#![allow(clippy::unwrap_used)]

mod common;

use browser::args::*;
use browser::results::Effect;
use common::{args, call, ref_of, world};
use serde_json::json;

const TOP: &str = r#"<title>top</title><body style="margin:0"><div style="height:1500px">above</div>
<iframe src="http://localhost:{PORT}/middle" style="margin-left:70px;border:5px solid;padding:7px;width:600px;height:400px"></iframe>
<div id=open></div><div id=closed></div>
<script>
  const open = document.getElementById('open').attachShadow({ mode: 'open' });
  open.innerHTML = '<label><input type=checkbox> Open box</label>';
  const closed = document.getElementById('closed').attachShadow({ mode: 'closed' });
  closed.innerHTML = '<button>Closed button</button><slot></slot>';
  closed.querySelector('button').onclick = (e) => { document.title = 'closed ' + e.isTrusted; };
  addEventListener('message', (e) => { document.title = e.data; });
</script>"#;

const MIDDLE: &str = r#"<body style="margin:0"><div style="height:900px">middle text</div>
<button onclick="top.postMessage('middle ' + event.isTrusted, '*')">Middle button</button>
<iframe src="http://127.0.0.1:{PORT}/inner" style="width:300px;height:200px"></iframe>"#;

const INNER: &str = r#"<body><div style="height:700px">inner text</div>
<input aria-label="Inner field" oninput="top.postMessage('inner ' + this.value, '*')">
<iframe srcdoc="<button onclick=&quot;top.postMessage('deepest','*')&quot;>Deepest button</button>"></iframe>"#;

#[tokio::test(flavor = "multi_thread")]
async fn nested_frames_of_other_sites_and_closed_shadow_roots_are_read_clicked_and_filled() {
    let world = world(&[("/", TOP), ("/middle", MIDDLE), ("/inner", INNER)]).await;
    world.open("/").await;
    let snapshot = world.browser.snapshot(&SnapshotArgs::default(), &call()).await.unwrap();
    assert_eq!(snapshot.frames, Some(4), "{}", snapshot.text);
    let text = snapshot.text;
    for part in ["middle text", "inner text", "Open box", "Closed button", "Deepest button"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    for (name, title) in
        [("Middle button", "middle true"), ("Closed button", "closed true"), ("Deepest button", "deepest")]
    {
        let page = world.click(&ref_of(&text, name)).await.unwrap();
        assert_eq!((page.title.as_str(), page.effect), (title, Effect::Done), "{name}");
    }
    let checked = world.click(&ref_of(&text, "Open box")).await.unwrap();
    assert_eq!(checked.effect, Effect::Done);
    let field = ref_of(&text, "Inner field");
    let fill: FillArgs = args(json!({ "ref": field, "text": "héllo" }));
    assert_eq!(world.browser.fill(&fill, &call()).await.unwrap().title, "inner héllo");
    let typed: TypeArgs = args(json!({ "ref": field, "text": " wörld" }));
    assert_eq!(world.browser.type_text(&typed, &call()).await.unwrap().title, "inner héllo wörld");
    let after = world.snapshot().await;
    assert!(after.contains("Open box\" checked"), "{after}");
    assert_eq!(ref_of(&after, "Inner field"), field, "a ref stays while its node lives");
    let content = world.browser.get_content(&GetContentArgs::default(), &call()).await.unwrap().text;
    assert!(content.contains("middle text") && content.contains("inner text"), "{content}");
    let wait: WaitArgs = args(json!({ "text": "Closed button" }));
    assert_eq!(world.browser.wait(&wait, &call()).await.unwrap().met, "text");
    // A frame inside a frame that is gone is gone too.
    world.open("/inner").await;
    let plain = world.snapshot().await;
    assert!(plain.contains("Inner field") && !plain.contains("could not be read"), "{plain}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_does_not_answer_is_named_and_the_rest_is_read() {
    let page = r#"<button>Here</button><iframe src="http://localhost:{PORT}/stuck"></iframe>"#;
    let stuck =
        "<p>stuck</p><script>onmessage = () => { while (true); }; parent.postMessage('ready', '*');</script>";
    let page = format!(
        "{page}<script>onmessage = (e) => {{ e.source.postMessage('go', '*'); setTimeout(() => document.title = 'gone', 300); }}</script>"
    );
    let world = world(&[("/", &page), ("/stuck", stuck)]).await;
    let url = world.site.url("127.0.0.1", "/");
    world.browser.navigate(&args(json!({ "url": url, "wait": "none" })), &call()).await.unwrap();
    wait_for_title(&world, "gone").await;
    let text = world.browser.snapshot(&args(json!({ "timeout_ms": 10_000 })), &call()).await.unwrap().text;
    assert!(text.contains("Here") && text.contains("frame"), "{text}");
    assert!(text.contains("could not be read") || text.contains("has not loaded"), "{text}");
    world.end().await;
}

async fn wait_for_title(world: &common::World, title: &str) {
    let mut left = 100;
    while world.title().await != title {
        left -= 1;
        assert!(left > 0, "the title never became {title}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
