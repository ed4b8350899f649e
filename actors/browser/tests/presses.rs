//! A press finds its element at rest and in front, or the page never sees it.

#![allow(clippy::unwrap_used)]

mod common;

use browser::args::*;
use browser::results::Effect;
use browser::{Check, Error};
use common::{args, call, ref_of, world};
use serde_json::json;

/// Each button says in the title that it was clicked; every press that the page sees is counted.
const RESTLESS: &str = r#"<title>none</title><body style="margin:0">
<style>button { position: absolute; left: 0; width: 120px; height: 30px }</style>
<button id=glides style="top:0">Glides</button>
<button id=jumps style="top:40px">Jumps</button>
<button id=hides style="top:80px">Hides</button>
<button id=still style="top:120px">Still</button>
<button id=quiet style="top:160px">Quiet</button>
<button id=spins style="top:200px;animation:glow 0.2s infinite">Glows</button>
<button id=runs style="top:240px;animation:run 1.5s linear forwards">Runs</button>
<p id=seen style="position:absolute;top:280px">seen 0</p>
<style>@keyframes run { from { margin-left: 0 } to { margin-left: 40px } } @keyframes glow { from { color: red } to { color: blue } }</style>
<script>
  for (const button of document.querySelectorAll('button')) {
    let early = '';
    const isMoving = () => button === glides ? glides.style.left !== '400px' : button === runs && runs.getAnimations()[0].playState === 'running';
    button.onpointerenter = button.onpointerdown = (event) => { if (isMoving() && (event.type === 'pointerdown' || button === runs)) early = ' early'; };
    button.onclick = () => { document.title = button.id + early; };
  }
  let count = 0;
  document.addEventListener('mousedown', () => { seen.textContent = 'seen ' + ++count; });
  // Moved by script, not by an animation that the browser knows of.
  const began = performance.now();
  const glide = () => {
    // Slowly: the point that was aimed at is still on it a frame later.
    const left = Math.min(400, (performance.now() - began) / 8);
    glides.style.left = left + 'px';
    if (left < 400) requestAnimationFrame(glide);
  };
  glide();
  jumps.onmouseenter = () => { jumps.style.left = '300px'; jumps.onmouseenter = null; };
  hides.onmouseenter = () => {
    const cover = document.createElement('div');
    cover.id = 'cover';
    cover.style = 'position:absolute;top:80px;left:0;width:120px;height:30px;background:grey';
    cover.onclick = () => { document.title = 'cover'; };
    document.body.append(cover);
  };
  quiet.onpointerdown = (event) => event.preventDefault();
</script>"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_element_that_moves_is_clicked_where_it_comes_to_rest_and_not_before() {
    let world = world(&[("/", RESTLESS)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    for (name, id) in [("Runs", "runs"), ("Glides", "glides"), ("Jumps", "jumps")] {
        let page = world.click(&ref_of(&text, name)).await.unwrap();
        assert_eq!((page.title.as_str(), page.effect), (id, Effect::Done));
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_covers_an_element_when_the_mouse_comes_does_not_get_its_click() {
    let world = world(&[("/", RESTLESS)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let hides: ClickArgs = args(json!({ "ref": ref_of(&text, "Hides"), "timeout_ms": 3000 }));
    let refused = world.browser.click(&hides, &call()).await.unwrap_err();
    assert!(
        matches!(&refused, Error::ElementNotActionable { check: Check::ReceivesEvents, covered_by: Some(by), .. }
            if by == "div#cover"),
        "{refused:?}"
    );
    assert!(!refused.may_have_run(), "the mouse was there, but it was not pressed");
    assert_eq!(world.title().await, "none");
    let shown = world.snapshot().await;
    assert!(shown.contains("seen 0"), "no press came through: {shown}");
    // The guard of that press is gone: the next ones are seen.
    let page = world.click(&ref_of(&text, "Still")).await.unwrap();
    assert_eq!((page.title.as_str(), page.effect), ("still", Effect::Done));
    assert!(world.snapshot().await.contains("seen 1"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_prevents_presses_or_glows_for_ever_is_clicked_all_the_same() {
    let world = world(&[("/", RESTLESS)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    for (name, id) in [("Quiet", "quiet"), ("Glows", "spins")] {
        let page = world.click(&ref_of(&text, name)).await.unwrap();
        assert_eq!((page.title.as_str(), page.effect), (id, Effect::Done));
    }
    let twice: ClickArgs = args(json!({ "ref": ref_of(&text, "Still") }));
    assert_eq!(world.browser.dblclick(&twice, &call()).await.unwrap().title, "still");
    assert!(
        world.snapshot().await.contains("seen 3"),
        "one press, and two; a prevented one makes no mousedown"
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_page_does_by_a_timer_of_no_length_is_in_the_state_after_the_click() {
    let page = r#"<title>before</title>
        <button onclick="setTimeout(() => setTimeout(() => { document.title = 'timer' }))">Timer</button>
        <button onclick="Promise.resolve().then(() => { document.title = 'promise' })">Promise</button>
        <button onclick="setTimeout(() => { location.href = '/next' })">Leave</button>"#;
    let world = world(&[("/", page), ("/next", "<title>next</title>")]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    for (name, title) in [("Timer", "timer"), ("Promise", "promise")] {
        assert_eq!(world.click(&ref_of(&text, name)).await.unwrap().title, title);
    }
    let left = world.click(&ref_of(&text, "Leave")).await.unwrap();
    assert!(left.navigated && left.title == "next" && left.url.ends_with("/next"), "{left:?}");
    world.end().await;
}
