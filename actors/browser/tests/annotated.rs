//! Pictures with refs: drawn by us, over what is seen, and never over a secret.

#![allow(clippy::unwrap_used)]

mod common;

use browser::results::*;
use browser::{Check, Error};
use common::{args, call, ref_of, world};
use serde_json::{Value, json};

const PAGE: &str = r#"<title>a</title><body style="margin:0;background:#fff">
<button style="position:absolute;left:100px;top:100px;width:80px;height:40px;background:#fff;border:0">One</button>
<div style="position:absolute;left:300px;top:100px"><button style="width:80px;height:40px">Under</button><div style="position:absolute;inset:0;background:#0f0"></div></div>
<input type=password aria-label="Pass" value="SECRET" style="position:absolute;left:100px;top:300px;width:200px;height:40px;border:0;background:#ff0">
<button style="position:absolute;left:100px;top:2000px;width:80px;height:40px">Far</button><button style="visibility:hidden">Never</button>
<iframe src="http://localhost:{PORT}/in" style="position:absolute;left:600px;top:200px;border:0;width:300px;height:200px"></iframe>
<script>new MutationObserver(() => document.title = 'touched').observe(document.documentElement, { childList: true, subtree: true, attributes: true });</script>"#;

fn pixel(picture: &Screenshot, x: u32, y: u32) -> [u8; 3] {
    let mut reader = png::Decoder::new(std::io::Cursor::new(picture.bytes.as_ref())).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (picture.width, picture.height));
    let at = ((y * info.width + x) * 3) as usize;
    [pixels[at], pixels[at + 1], pixels[at + 2]]
}

#[tokio::test(flavor = "multi_thread")]
async fn c13_what_can_be_acted_on_is_framed_with_its_ref_and_a_secret_is_covered() {
    let inner = r#"<body style="margin:0"><button style="position:absolute;left:20px;top:30px;width:50px;height:20px">In</button>"#;
    let world = world(&[("/", PAGE), ("/in", inner)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let named = |name: &str| ref_of(&text, &format!("\"{name}\""));
    let shot = async |what: Value| world.browser.screenshot_annotate(&args(what), &call()).await;
    let all = shot(json!({})).await.unwrap();
    let area = |annotated: &Annotated, name: &str| {
        let reference = named(name);
        annotated.legend.iter().find(|mark| mark.reference.to_string() == reference).map(|mark| mark.area)
    };
    let of = |x: f64, y: f64, width: f64, height: f64| Some(Area { x, y, width, height });
    assert_eq!(area(&all, "One"), of(100.0, 100.0, 80.0, 40.0));
    assert_eq!(area(&all, "In"), of(620.0, 230.0, 50.0, 20.0), "in a frame of another process");
    assert_eq!(area(&all, "Pass"), of(100.0, 300.0, 200.0, 40.0));
    assert_eq!((area(&all, "Under"), area(&all, "Far")), (None, None), "covered, and out of view");
    assert_eq!((all.picture.media_type, all.picture.width, all.picture.height), ("image/png", 1280, 800));
    let white = [255, 255, 255];
    assert_ne!(pixel(&all.picture, 100, 120), white, "a frame");
    assert_eq!(pixel(&all.picture, 105, 135), white, "what is framed can be seen");
    assert_eq!(pixel(&all.picture, 250, 320), [60, 60, 60], "a secret can not");
    let other = shot(json!({ "refs": [named("Under")], "full_page": true, "max_width": 640 })).await.unwrap();
    assert_eq!(area(&other, "Under"), of(150.0, 50.0, 40.0, 20.0), "asked for by name, in a smaller picture");
    assert_eq!((other.legend.len(), other.picture.width), (1, 640));
    let part = shot(json!({ "ref": named("One") })).await.unwrap();
    assert_eq!((area(&part, "One"), part.picture.width), (of(0.0, 0.0, 80.0, 40.0), 80));
    assert_eq!(world.title().await, "a", "nothing is drawn into the page");
    world.open("/in").await;
    assert_eq!(shot(json!({ "refs": [named("One")] })).await.unwrap_err().code(), "stale_ref");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c13_a_secret_is_covered_also_where_something_lies_over_its_middle() {
    let page = r#"<title>m</title><body style="margin:0"><input type=password aria-label="Pass" value="SECRET" style="position:absolute;left:0;top:0;width:300px;height:40px;border:0;background:#ff0">
      <div style="position:absolute;left:140px;top:0;width:20px;height:40px;background:#0f0"></div>"#;
    let world = world(&[("/", page)]).await;
    world.open("/").await;
    let shot = world.browser.screenshot_annotate(&args(json!({})), &call()).await.unwrap();
    assert_eq!(shot.legend, [], "what is covered is not framed");
    assert_eq!(pixel(&shot.picture, 10, 20), [60, 60, 60]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_element_that_can_not_be_seen_is_not_framed_but_told() {
    let page = "<title>h</title><button id=b>B</button>";
    let world = world(&[("/", page)]).await;
    world.open("/").await;
    let button = ref_of(&world.snapshot().await, "\"B\"");
    let hide = json!({ "expression": "b.style.visibility = 'hidden'" });
    world.browser.evaluate(&args(hide), &call()).await.unwrap();
    let hidden =
        world.browser.screenshot_annotate(&args(json!({ "refs": [button] })), &call()).await.unwrap_err();
    assert!(matches!(hidden, Error::ElementNotActionable { check: Check::Visible, .. }), "{hidden:?}");
    world.end().await;
}
