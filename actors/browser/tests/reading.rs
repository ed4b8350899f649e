//! Reading one thing of an element, markup, a printed page, and what a script says.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use browser::args::*;
use browser::results::*;
use browser::{Call, Error};
use common::{World, args, call, ref_of, world};
use serde_json::{Value, json};

const THINGS: &str = r#"<title>things</title><body style="margin:0"><main>
<p role=note tabindex=0 aria-label=Note>some  <b>bold</b> text<span style="display:none">unseen</span></p>
<input aria-label="Name" value="Ada" data-csrf-token="SECRET-ATTR" placeholder="who">
<input type=password aria-label="Pass" value="SECRET-VALUE" title=hint>
<input autocomplete="one-time-code" aria-label="Code" value="SECRET-CODE">
<select multiple aria-label="Cakes"><option value=a selected>A</option><option value=b selected>B</option></select>
<input type=checkbox checked disabled aria-label="Box"><button style="margin-top:2000px">Far</button>
<textarea aria-label="Long"></textarea></main>
<script>document.querySelector('textarea').value = '漢'.repeat(12000);</script>"#;

async fn get(world: &World, reference: &str, what: Value) -> Result<GetResult, Error> {
    let mut what = what;
    what["ref"] = json!(reference);
    world.browser.get(&args(what), &call()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn c13_one_thing_of_an_element_is_read_and_what_a_field_hides_never_is() {
    let world = world(&[("/", THINGS), ("/other", "")]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let named = |name: &str| ref_of(&text, &format!("\"{name}\""));
    let value = async |name: &str, what: Value| get(&world, &named(name), what).await.unwrap();
    assert_eq!(value("Note", json!({ "what": "text" })).await.value, "some bold text");
    assert_eq!(value("Name", json!({ "what": "value" })).await.value, "Ada");
    assert_eq!(value("Name", json!({ "what": "attribute", "name": "placeholder" })).await.value, "who");
    assert_eq!(value("Name", json!({ "what": "attribute", "name": "nothing" })).await.value, Value::Null);
    assert_eq!(value("Cakes", json!({ "what": "value" })).await.value, json!(["a", "b"]));
    let long = value("Long", json!({ "what": "value" })).await;
    assert_eq!((long.value.as_str().unwrap().chars().count(), long.truncated), (10_000, true));
    for (name, what, length) in [
        ("Pass", json!({ "what": "value" }), 12),
        ("Pass", json!({ "what": "attribute", "name": "value" }), 12),
        ("Code", json!({ "what": "value" }), 11),
        ("Name", json!({ "what": "attribute", "name": "data-csrf-token" }), 11),
    ] {
        let hidden = value(name, what).await;
        assert_eq!((hidden.value, hidden.hidden), (Value::Null, Some(length)), "{name}");
    }
    assert_eq!(value("Pass", json!({ "what": "attribute", "name": "title" })).await.value, "hint");
    // Also once the page turns it into plain text.
    let show = "document.querySelector('[type=password]').type = 'text'; document.querySelector('[title=hint]').removeAttribute('type')";
    world.browser.evaluate(&args(json!({ "expression": show })), &call()).await.unwrap();
    assert_eq!(value("Pass", json!({ "what": "value" })).await.hidden, Some(12));
    let states = value("Box", json!({ "what": "states" })).await.value;
    assert_eq!(
        (&states["checked"], &states["enabled"], &states["visible"]),
        (&json!(true), &json!(false), &json!(true))
    );
    assert_eq!(value("Far", json!({ "what": "states" })).await.value["in_view"], false);
    let area = value("Note", json!({ "what": "box" })).await.value;
    assert!(area["width"].as_f64().unwrap() > 1000.0 && area["x"] == 0.0, "{area}");
    for bad in
        [json!({ "what": "attribute" }), json!({ "what": "text", "name": "x" }), json!({ "what": "value" })]
    {
        let refused = get(&world, &named("Note"), bad).await.unwrap_err();
        assert_eq!((refused.code(), refused.may_have_run()), ("invalid_args", false));
    }
    world.open("/other").await;
    assert_eq!(get(&world, &named("Name"), json!({ "what": "text" })).await.unwrap_err().code(), "stale_ref");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_box_in_a_frame_is_where_it_is_seen_on_the_page() {
    let outer = r#"<body style="margin:0"><iframe src="http://localhost:{PORT}/in" style="position:absolute;left:100px;top:50px;border:10px solid;transform:scale(0.5);transform-origin:0 0;width:400px;height:300px"></iframe>"#;
    let inner = r#"<body style="margin:0"><button style="position:absolute;left:20px;top:40px;width:100px;height:60px">In</button>"#;
    let world = world(&[("/", outer), ("/in", inner)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let area = get(&world, &ref_of(&text, "\"In\""), json!({ "what": "box" })).await.unwrap();
    assert_eq!(area.value, json!({ "x": 115.0, "y": 75.0, "width": 50.0, "height": 30.0 }));
    world.end().await;
}

const MARKUP: &str = r#"<title>markup</title><style>p{color:red}</style><main class=m onclick="evil()"><!-- SECRET-COMMENT -->
<h1 data-api-key="SECRET-KEY">Head &amp; more</h1><input name=q value="SECRET-VALUE"><textarea>SECRET-AREA</textarea>
<a href="javascript:SECRET">run</a><img src="data:image/png;base64,SECRET"><a href="/x?y=1">go</a><script>SECRET</script>
<div id=host></div><svg viewBox="0 0 1 1"><path d="M0 0"></path></svg></main>
<ul id=list></ul><script>host.attachShadow({ mode: 'open' }).innerHTML = '<em>shadow</em>';
document.querySelector('textarea').value = 'SECRET-TYPED'; document.querySelector('[name=q]').setAttribute('value', 'SECRET-SET');
list.innerHTML = Array.from({ length: 2000 }, (_, i) => '<li class="row">row ' + i + '</li>').join('');
class Own extends HTMLElement { constructor() { super(); document.title = 'constructed'; } }</script>"#;

#[tokio::test(flavor = "multi_thread")]
async fn markup_is_read_without_what_runs_styles_or_is_held_by_fields_and_is_whole_where_it_is_cut() {
    let world = world(&[("/", MARKUP)]).await;
    world.open("/").await;
    let html = async |what: Value| world.browser.get_html(&args(what), &call()).await.unwrap();
    let whole = html(json!({ "max_chars": 60_000, "outer": true })).await;
    assert!(whole.html.starts_with("<html><head><title>markup</title></head>"), "{}", &whole.html[..200]);
    for part in [
        "<h1>Head &amp; more</h1>",
        "<a href=\"/x?y=1\">go</a>",
        "<em>shadow</em>",
        "<path d=\"M0 0\"></path>",
    ] {
        assert!(whole.html.contains(part), "{part} is missing in {}", &whole.html[..900]);
    }
    for part in ["SECRET", "onclick", "<style", "<script", "evil"] {
        assert!(!whole.html.contains(part), "{part} is in {}", &whole.html[..900]);
    }
    let cut = html(json!({ "max_chars": 1000 })).await;
    let chars = cut.html.chars().count();
    assert!((900..1100).contains(&chars), "{chars}");
    assert!(cut.html.ends_with("</ul></body>") || cut.html.ends_with("</main></body>"), "{}", cut.html);
    let rows = cut.html.matches("<li").count() as u64;
    assert_eq!((rows + cut.omitted, whole.omitted > 0), (2000, whole.html.matches("<li").count() < 2000));
    let text = world.snapshot().await;
    let link: GetHtmlArgs = args(json!({ "ref": ref_of(&text, "\"go\""), "outer": true }));
    let link = world.browser.get_html(&link, &call()).await.unwrap();
    assert_eq!((link.html.as_str(), link.omitted), ("<a href=\"/x?y=1\">go</a>", 0));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_printed_on_the_paper_that_was_asked_for() {
    let page = r#"<title>print</title><h1>Hello</h1><div style="height:3000px"></div><p>end"#;
    let world = world(&[("/", page)]).await;
    world.open("/").await;
    let pdf = async |what: Value| world.browser.pdf(&args(what), &call()).await;
    let all = pdf(json!({})).await.unwrap();
    assert!(all.bytes.starts_with(b"%PDF-") && all.bytes.trim_ascii_end().ends_with(b"%%EOF"));
    let text = |pdf: &Pdf| String::from_utf8_lossy(&pdf.bytes).into_owned();
    assert!(
        text(&all).contains("/MediaBox [0 0 594.95996 841.91998]")
            || text(&all).contains("/MediaBox [0 0 59"),
        "A4"
    );
    let pages = |pdf: &Pdf| text(pdf).matches("/Type /Page\n").count();
    assert!(pages(&all) >= 3, "{}", pages(&all));
    let one =
        pdf(json!({ "ranges": "2", "paper": "letter", "landscape": true, "scale": 0.5 })).await.unwrap();
    assert_eq!(pages(&one), 1);
    assert!(text(&one).contains("/MediaBox [0 0 792 612]"));
    let beyond = pdf(json!({ "ranges": "90-95" })).await.unwrap_err();
    assert_eq!((beyond.code(), beyond.may_have_run()), ("invalid_args", false), "{beyond:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s03_a_script_says_its_value_or_why_it_has_none_and_is_stopped_in_time() {
    let page = r#"<title>s</title><script>window.own = { tea: [1, 2] };</script><button data-n=5>B</button>
      <iframe src="http://localhost:{PORT}/in"></iframe>"#;
    let world =
        world(&[("/", page), ("/in", "<button>Inner</button><script>var where='inside'</script>")]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let run = async |what: Value| world.browser.evaluate(&args(what), &call()).await;
    let value =
        async |expression: &str| run(json!({ "expression": expression })).await.unwrap().value.unwrap();
    assert_eq!(value("own").await, json!({ "tea": [1, 2] }));
    assert_eq!(value("const n = 2; n + 1").await, 3);
    assert_eq!(value("new Promise((done) => setTimeout(() => done('late'), 50))").await, "late");
    assert_eq!(value("undefined").await, Value::Null);
    assert_eq!(value("NaN").await, "NaN");
    assert_eq!(run(json!({ "expression": "document.title = 'set'" })).await.unwrap().page.title, "set");
    let on = json!({ "expression": "element.dataset.n * 2", "ref": ref_of(&text, "\"B\"") });
    assert_eq!(run(on).await.unwrap().value, Some(json!(10)));
    let inside = json!({ "expression": "where", "ref": ref_of(&text, "\"Inner\"") });
    assert_eq!(run(inside).await.unwrap().value, Some(json!("inside")));
    for (expression, said) in [
        ("throw new TypeError('not tea')", "TypeError: not tea"),
        ("Promise.reject('no')", "no"),
        ("syntax error here", "SyntaxError"),
        ("const ring = {}; ring.ring = ring; ring", "reference chain"),
    ] {
        let failed = run(json!({ "expression": expression })).await.unwrap_err();
        assert_eq!((failed.code(), failed.may_have_run()), ("script_failed", true), "{failed:?}");
        assert!(failed.to_string().contains(said), "{failed}");
    }
    let large = run(json!({ "expression": "'x'.repeat(1e6)" })).await.unwrap_err();
    assert_eq!(large.code(), "result_too_large");
    let asks = run(json!({ "expression": "alert('hi'); 5" })).await.unwrap();
    assert_eq!((asks.page.dialog.unwrap().message.as_str(), asks.value), ("hi", None));
    world.browser.dialog(&args(json!({ "action": "accept" })), &call()).await.unwrap();
    let began = Instant::now();
    let short = Call::within(Duration::from_millis(700));
    let endless =
        world.browser.evaluate(&args(json!({ "expression": "while(1);" })), &short).await.unwrap_err();
    assert_eq!((endless.code(), endless.may_have_run()), ("task_timeout", true));
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(value("1").await, 1, "the page goes on");
    world.end().await;
}
