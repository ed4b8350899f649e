//! Acting waits until an element can be acted on, says why it cannot, and never acts on another one.

#![allow(clippy::unwrap_used)]

mod common;

use browser::args::*;
use browser::results::Effect;
use browser::{Check, Error};
use common::{args, call, ref_of, world};
use serde_json::json;

const BUTTONS: &str = r#"<title>buttons</title><body style="margin:0">
<div style="position:relative"><button onclick="document.title='occluded'">Occluded</button>
  <div id=cover style="position:absolute;inset:0;background:#ccc"></div></div>
<button disabled>Disabled</button>
<button id=late disabled onclick="document.title='late'">Late</button>
<button style="position:relative;animation:run 1s linear forwards" onclick="document.title='moved'">Moving</button>
<button style="visibility:hidden">Hidden</button>
<label>Labelled <input type=checkbox id=box style="opacity:0.01;position:absolute;pointer-events:none"></label>
<button id=doomed onclick="this.remove();document.title='removed'">Doomed</button>
<div style="height:3000px"></div>
<button onclick="document.title='below '+event.isTrusted">Below</button>
<style>@keyframes run { from { left: 0 } to { left: 300px } }</style>
<script>setTimeout(() => { late.disabled = false; }, 1200);</script>"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_click_waits_for_rest_and_enabling_scrolls_and_names_what_is_in_the_way() {
    let world = world(&[("/", BUTTONS)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let short = |name: &str| args::<ClickArgs>(json!({ "ref": ref_of(&text, name), "timeout_ms": 900 }));
    assert_eq!(world.click(&ref_of(&text, "Moving")).await.unwrap().title, "moved");
    let covered = world.browser.click(&short("\"Occluded\""), &call()).await.unwrap_err();
    assert!(
        matches!(&covered, Error::ElementNotActionable { check: Check::ReceivesEvents, covered_by: Some(by), .. }
            if by == "div#cover"),
        "{covered:?}"
    );
    assert_eq!((covered.code(), covered.may_have_run()), ("element_not_actionable", false));
    let disabled = world.browser.click(&short("\"Disabled\""), &call()).await.unwrap_err();
    assert!(matches!(disabled, Error::ElementNotActionable { check: Check::Enabled, .. }), "{disabled:?}");
    assert_eq!(world.click(&ref_of(&text, "\"Late\"")).await.unwrap().title, "late");
    let below = world.click(&ref_of(&text, "\"Below\"")).await.unwrap();
    assert_eq!((below.title.as_str(), below.effect), ("below true", Effect::Done));
    let forced: ClickArgs = args(json!({ "ref": ref_of(&text, "\"Occluded\""), "force": true }));
    let forced = world.browser.click(&forced, &call()).await.unwrap();
    assert_eq!(forced.effect, Effect::SentUnconfirmed, "the cover got the click, and we say so");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ref_of_a_node_that_is_gone_is_stale_and_nothing_else_is_clicked() {
    let world = world(&[
        ("/", BUTTONS),
        ("/other", "<title>other</title><button onclick=\"document.title='hit'\">Doomed</button>"),
    ])
    .await;
    world.open("/").await;
    let text = world.snapshot().await;
    let doomed = ref_of(&text, "Doomed");
    assert_eq!(world.click(&doomed).await.unwrap().title, "removed");
    let stale = world.click(&doomed).await.unwrap_err();
    assert_eq!((stale.code(), stale.may_have_run()), ("stale_ref", false));
    let below = ref_of(&text, "\"Below\"");
    // Another site is another process, whose node ids begin anew as they are read: old ids are taken again there.
    let other = world.site.url("localhost", "/other");
    world.browser.navigate(&args(json!({ "url": other })), &call()).await.unwrap();
    world.snapshot().await;
    for reference in
        text.split_whitespace().filter(|word| word.starts_with('e') && word[1..].parse::<u32>().is_ok())
    {
        let quick: ClickArgs = args(json!({ "ref": reference, "timeout_ms": 500 }));
        assert_eq!(
            world.browser.click(&quick, &call()).await.unwrap_err().code(),
            "stale_ref",
            "{reference}"
        );
    }
    assert_eq!(world.click("e99999").await.unwrap_err().code(), "element_not_found");
    let again = world.snapshot().await;
    assert!(!again.contains(&format!("{below} ")), "a number is never used again:\n{again}");
    assert_eq!(world.title().await, "other");
    world.end().await;
}

const FIELDS: &str = r#"<title>fields</title>
<input aria-label="One" value="old"><textarea aria-label="Many"></textarea>
<div contenteditable role=textbox aria-label="Rich">before</div>
<input type=date aria-label="Day"><input readonly aria-label="Fixed" value="x"><button>No field</button>
<form onsubmit="document.title='sent '+this.q.value;return false"><input name=q aria-label="Search"></form>
<script>window.keys='';addEventListener('keydown',e=>{keys+=e.key+(e.ctrlKey?'^':'')+' ';if(e.key==='F2')document.title=keys});</script>"#;

#[tokio::test(flavor = "multi_thread")]
async fn any_script_of_the_world_can_be_filled_typed_and_cleared() {
    let world = world(&[("/", FIELDS)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let fill = async |name: &str, value: &str| {
        let fill: FillArgs = args(json!({ "ref": ref_of(&text, name), "text": value, "timeout_ms": 1500 }));
        world.browser.fill(&fill, &call()).await
    };
    let wide = "漢字 👨‍👩‍👧 🇩🇪 שלום ñ";
    for name in ["One", "Many", "Rich"] {
        assert_eq!(fill(name, wide).await.unwrap().effect, Effect::Done, "{name}");
    }
    assert_eq!(fill("Day", "2024-02-29").await.unwrap().effect, Effect::Done);
    assert_eq!(fill("Day", "yesterday").await.unwrap_err().code(), "invalid_args");
    let fixed = fill("Fixed", "y").await.unwrap_err();
    assert!(matches!(fixed, Error::ElementNotActionable { check: Check::Editable, .. }), "{fixed:?}");
    assert_eq!(world.snapshot().await.matches(wide).count(), 3);
    assert_eq!(fill("One", "").await.unwrap().effect, Effect::Done);
    let typed: TypeArgs = args(json!({ "ref": ref_of(&text, "Search"), "text": "a 漢👨‍👩‍👧b", "submit": true }));
    assert_eq!(world.browser.type_text(&typed, &call()).await.unwrap().title, "sent a 漢👨‍👩‍👧b");
    for (key, modifiers) in [("a", json!(["Control"])), ("ArrowDown", json!([])), ("F2", json!([]))] {
        let press: PressArgs = args(json!({ "key": key, "modifiers": modifiers }));
        world.browser.press(&press, &call()).await.unwrap();
    }
    let title = world.title().await;
    assert!(title.ends_with("a^ ArrowDown F2"), "{title}");
    let empty = world.snapshot().await;
    assert!(empty.lines().any(|line| line.ends_with("textbox \"One\"")), "{empty}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_thing_can_be_waited_for_and_a_wait_ends_in_time() {
    let page = r#"<title>w</title><p id=p>first</p><button id=b disabled>B</button><script>
      setTimeout(() => { p.textContent = 'second  thing'; b.disabled = false; history.pushState(0, '', '/moved?x'); }, 400);
    </script>"#;
    let world = world(&[("/", page)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let wait = async |what| world.browser.wait(&args(what), &call()).await;
    assert_eq!(wait(json!({ "text_gone": "first" })).await.unwrap().met, "text_gone");
    assert_eq!(wait(json!({ "text": "second thing" })).await.unwrap().met, "text");
    let enabled = json!({ "ref_state": { "ref": ref_of(&text, "\"B\""), "state": "enabled" } });
    assert_eq!(wait(enabled).await.unwrap().met, "ref_state");
    assert_eq!(wait(json!({ "url": "*/moved?*" })).await.unwrap().met, "url");
    assert_eq!(wait(json!({ "load_state": "load" })).await.unwrap().met, "load_state");
    assert!(wait(json!({ "ms": 120 })).await.unwrap().waited_ms >= 120);
    let late = wait(json!({ "text": "never", "timeout_ms": 500 })).await.unwrap_err();
    assert_eq!((late.code(), late.may_have_run()), ("task_timeout", false));
    assert_eq!(wait(json!({})).await.unwrap_err().code(), "invalid_args");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_have_the_size_and_format_that_was_asked_for() {
    let page = r#"<body style="margin:0;height:3000px"><button style="width:200px;height:50px;position:absolute;top:2000px">Pic</button>"#;
    let world = world(&[("/", page)]).await;
    world.open("/").await;
    let shot = async |what| world.browser.screenshot(&args(what), &call()).await.unwrap();
    let view = shot(json!({})).await;
    assert_eq!((view.width, view.height, view.media_type), (1280, 800, "image/png"));
    assert_eq!(png_size(&view.bytes), (1280, 800));
    let whole = shot(json!({ "full_page": true, "max_width": 320 })).await;
    assert_eq!((whole.width, png_size(&whole.bytes)), (320, (320, 750)));
    let button = ref_of(&world.snapshot().await, "Pic");
    let one = shot(json!({ "ref": button })).await;
    assert_eq!(png_size(&one.bytes), (200, 50));
    let jpeg = shot(json!({ "format": "jpeg", "quality": 30 })).await;
    assert_eq!((&jpeg.bytes[..2], jpeg.media_type), (&[0xff, 0xd8][..], "image/jpeg"));
    world.end().await;
}

fn png_size(bytes: &[u8]) -> (u32, u32) {
    let side = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (side(16), side(20))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_a_page_can_be_read_as_markdown() {
    let page = r#"<h1>Head</h1><p>Some <b>bold</b> and <a href="/x">a link</a>.</p><ul><li>one<li>two</ul><p>bst_A_bA_b [x] *y* `z`</p>
      <table><tr><th>A<th>B<tr><td>1<td>2|3</table><input value="secret"><script>var hidden</script><p style="display:none">unseen</p>"#;
    let world = world(&[("/", page)]).await;
    world.open("/").await;
    let read: GetContentArgs = args(json!({ "format": "markdown" }));
    let text = world.browser.get_content(&read, &call()).await.unwrap().text;
    for part in [
        "# Head",
        "Some **bold** and [a link](http://",
        "- one\n- two",
        "| A | B |\n| --- | --- |\n| 1 | 2|3 |",
        // As it stands on the page: what is masked must be found first, and an escape would hide it.
        "bst_A_bA_b [x] *y* `z`",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(!text.contains("secret") && !text.contains("hidden") && !text.contains("unseen"), "{text}");
    world.end().await;
}
