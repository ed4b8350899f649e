//! Scrolling, the mouse by coordinates, and dragging.

#![allow(clippy::unwrap_used)]

mod common;

use browser::args::*;
use browser::results::*;
use browser::{Check, Error};
use common::{World, args, call, ref_of, world};
use serde_json::{Value, json};

async fn scroll(world: &World, what: Value) -> Result<ScrollPosition, Error> {
    let result = world.browser.scroll(&args(what), &call()).await?;
    Ok(result.position.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_and_a_part_of_it_are_scrolled_by_a_distance_or_to_a_border() {
    let page = r#"<title>s</title><body style="margin:0;height:5000px;width:4000px;scroll-behavior:smooth">
      <div id=box tabindex=0 aria-label="Box" role=group style="width:200px;height:100px;overflow:auto"><p style="height:1000px">long<button style="margin-top:500px">In</button></p></div>
      <script>addEventListener('scroll', () => document.title = 'y' + scrollY);</script>"#;
    let shell = r#"<body style="margin:0"><main style="height:100vh;overflow:auto"><p style="height:3000px;margin:0">long"#;
    let world = world(&[("/", page), ("/shell", shell)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let down = world.browser.scroll(&args(json!({ "dy": 700, "dx": 30 })), &call()).await.unwrap();
    let at = down.position.unwrap();
    assert_eq!((at.x, at.y, at.x_max, at.y_max), (30.0, 700.0, 4000.0 - 1280.0, 5000.0 - 800.0));
    world.browser.wait(&args(json!({ "ms": 50 })), &call()).await.unwrap();
    assert_eq!(world.title().await, "y700", "the page has heard of it");
    assert_eq!(scroll(&world, json!({ "to": "bottom" })).await.unwrap().y, 4200.0);
    assert_eq!(scroll(&world, json!({ "to": "top" })).await.unwrap().y, 0.0);
    assert_eq!(scroll(&world, json!({ "dy": -20 })).await.unwrap().y, 0.0, "a border is the end");
    let inside = json!({ "ref": ref_of(&text, "\"In\""), "dy": 120 });
    let at = scroll(&world, inside.clone()).await.unwrap();
    assert_eq!(at.y, 120.0, "what holds the element is scrolled");
    assert!(at.y_max > 800.0 && at.y_max < 1100.0, "{at:?}");
    for bad in [json!({}), json!({ "to": "top", "dy": 1 })] {
        let refused = scroll(&world, bad).await.unwrap_err();
        assert_eq!((refused.code(), refused.may_have_run()), ("invalid_args", false));
    }
    world.open("/shell").await;
    assert_eq!(
        scroll(&world, json!({ "to": "bottom" })).await.unwrap().y,
        2200.0,
        "what fills the page scrolls"
    );
    assert_eq!(scroll(&world, inside).await.unwrap_err().code(), "stale_ref");
    world.end().await;
}

const PAD: &str = r#"<title>pad</title><body style="margin:0"><div id=pad style="width:400px;height:300px;background:#eee"></div>
<script>window.log = [];
for (const type of ['mousemove','mousedown','mouseup','click','auxclick','contextmenu','wheel']) pad.addEventListener(type, (e) => {
  log.push([type, e.clientX, e.clientY, e.button, e.buttons, e.shiftKey ? 'shift' : '', e.deltaY ?? '', e.isTrusted].join(' '));
  document.title = log.join('|'); if (type === 'contextmenu') e.preventDefault(); }, { passive: false });
pad.addEventListener('click', (e) => { if (e.ctrlKey) alert('ctrl'); });</script>"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_mouse_moves_presses_holds_and_turns_its_wheel_where_it_is_told() {
    let world = world(&[("/", PAD)]).await;
    world.open("/").await;
    let mouse = async |what: Value| world.browser.mouse(&args(what), &call()).await;
    mouse(json!({ "action": "down", "x": 10, "y": 20 })).await.unwrap();
    mouse(json!({ "action": "move", "x": 50, "y": 60 })).await.unwrap();
    mouse(json!({ "action": "up", "x": 50, "y": 60 })).await.unwrap();
    mouse(json!({ "action": "move", "x": 70, "y": 80 })).await.unwrap();
    mouse(json!({ "action": "click", "x": 5, "y": 6, "button": "right", "modifiers": ["Shift"] }))
        .await
        .unwrap();
    let last = mouse(json!({ "action": "wheel", "x": 5, "y": 6, "dy": 120 })).await.unwrap();
    assert_eq!(last.effect, Effect::Done);
    let log = world.title().await;
    for event in [
        "mousedown 10 20 0 1 true",
        "mousemove 50 60 0 1 true",
        "mouseup 50 60 0 0 true",
        "click 50 60 0 0 true",
        "mousemove 70 80 0 0 true",
        "mousedown 5 6 2 2 shift true",
        "contextmenu 5 6 2",
        "wheel 5 6 0 0 120 true",
    ] {
        assert!(log.contains(event), "{event}: {log}");
    }
    for bad in [
        json!({ "action": "click", "x": 1280, "y": 5 }),
        json!({ "action": "move", "x": 5, "y": 5, "dy": 4 }),
        json!({ "action": "wheel", "x": 5, "y": 5 }),
    ] {
        let refused = mouse(bad).await.unwrap_err();
        assert_eq!((refused.code(), refused.may_have_run()), ("invalid_args", false));
    }
    let asks = mouse(json!({ "action": "click", "x": 9, "y": 9, "modifiers": ["Control"] })).await.unwrap();
    assert_eq!(asks.dialog.unwrap().message, "ctrl");
    assert_eq!(mouse(json!({ "action": "move", "x": 9, "y": 9 })).await.unwrap_err().code(), "dialog_open");
    world.end().await;
}

const NATIVE: &str = r#"<title>native</title><body style="margin:0">
<div id=card draggable=true role=button aria-label="Card" style="width:100px;height:50px;background:red">card</div>
<div style="height:{GAP}px"></div>
<div id=bin role=button tabindex=0 aria-label="Bin" style="width:200px;height:100px;background:#ccc">bin</div>
<div draggable=true role=button aria-label="Fixed" ondragstart="event.preventDefault()" style="width:100px;height:50px">fixed</div>
<script>window.log=[];const say=(w)=>{if(log.at(-1)!==w)log.push(w);document.title=log.join(' ')};
card.ondragstart=(e)=>{e.dataTransfer.setData('text/plain','tea');e.dataTransfer.effectAllowed='move';say('start '+e.isTrusted)};
card.ondragend=(e)=>say('end '+e.dataTransfer.dropEffect);
bin.ondragenter=(e)=>{e.preventDefault();say('enter')};bin.ondragover=(e)=>{e.preventDefault();e.dataTransfer.dropEffect='move';say('over')};
bin.ondrop=(e)=>{e.preventDefault();say('drop '+e.dataTransfer.getData('text/plain')+' '+e.isTrusted)};
bin.onmouseup=()=>say('up');document.addEventListener('click',()=>say('click'));</script>"#;

async fn drag(world: &World, from: &str, to: &str) -> Result<PageState, Error> {
    let text = world.snapshot().await;
    let line = |name: &str| ref_of(&text, &format!("\"{name}\""));
    let drag = json!({ "from": line(from), "to": line(to), "steps": 8, "timeout_ms": 3000 });
    world.browser.drag(&args(drag), &call()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_native_drag_carries_its_data_to_where_it_is_dropped_also_out_of_view() {
    let (near, far) = (NATIVE.replace("{GAP}", "50"), NATIVE.replace("{GAP}", "2000"));
    let world = world(&[("/", &near), ("/far", &far)]).await;
    for path in ["/", "/far"] {
        world.open(path).await;
        let dropped = drag(&world, "Card", "Bin").await.unwrap();
        assert_eq!(dropped.effect, Effect::Done);
        world.browser.wait(&args(json!({ "ms": 100 })), &call()).await.unwrap();
        let title = world.title().await;
        assert_eq!(title, "start true enter over drop tea true end move", "{path}");
        // The button is free again: what follows is an ordinary click.
        world.click_named("\"Bin\"").await;
        assert!(world.title().await.ends_with("click"), "{}", world.title().await);
    }
    world.open("/").await;
    drag(&world, "Fixed", "Bin").await.unwrap();
    assert_eq!(world.title().await, "up click", "a page that makes no native drag of it gets the mouse");
    world.end().await;
}

const SLIDER: &str = r#"<title>own</title><body style="margin:0;height:600px">
<div id=a role=button tabindex=0 aria-label="Handle" style="position:absolute;left:10px;top:10px;width:40px;height:40px;background:red"></div>
<div id=b role=button tabindex=0 aria-label="Place" style="position:absolute;left:300px;top:300px;width:80px;height:80px;background:#ccc"></div>
<button style="position:absolute;left:500px;top:0" disabled>Off</button><button style="visibility:hidden;position:absolute" aria-label="Never">n</button>
<div style="position:absolute;left:600px;top:200px"><button>Under</button><div id=cover style="position:absolute;inset:0;background:#999"></div></div>
<script>let held=null,moves=0;a.onmousedown=(e)=>{held=[e.offsetX,e.offsetY];e.preventDefault()};
onmousemove=(e)=>{if(!held)return;moves++;a.style.left=e.clientX-held[0]+'px';a.style.top=e.clientY-held[1]+'px'};
onmouseup=(e)=>{if(held)document.title=['at',a.offsetLeft,a.offsetTop,moves>=8,e.buttons].join(' ');held=null};</script>"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_drag_by_the_mouse_moves_in_steps_and_is_refused_before_anything_is_pressed() {
    let world = world(&[("/", SLIDER)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    assert_eq!(drag(&world, "Handle", "Place").await.unwrap().title, "at 320 320 true 0");
    let under = drag(&world, "Handle", "Under").await.unwrap_err();
    assert!(
        matches!(&under, Error::ElementNotActionable { check: Check::ReceivesEvents, covered_by: Some(by), .. } if by == "div#cover"),
        "{under:?}"
    );
    assert!(!under.may_have_run());
    let off = drag(&world, "Off", "Place").await.unwrap_err();
    assert!(matches!(off, Error::ElementNotActionable { check: Check::Enabled, .. }), "{off:?}");
    assert_eq!(world.title().await, "at 320 320 true 0", "nothing was pressed");
    world.open("/").await;
    let stale: DragArgs =
        args(json!({ "from": ref_of(&text, "\"Handle\""), "to": ref_of(&text, "\"Place\"") }));
    assert_eq!(world.browser.drag(&stale, &call()).await.unwrap_err().code(), "stale_ref");
    world.end().await;
}
