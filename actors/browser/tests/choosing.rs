//! Choosing: selects, checkboxes, radios and switches, each with what it takes, gives and refuses.

#![allow(clippy::unwrap_used)]

mod common;

use browser::args::*;
use browser::results::*;
use browser::{Check, Error};
use common::{World, args, call, ref_of, world};
use serde_json::{Value, json};

const SELECTS: &str = r#"<title>selects</title>
<select aria-label="Tea" onchange="document.title='tea '+value+' '+event.bubbles" oninput="this.heard=1">
  <option value="">choose</option><option value=g>Green  tea</option><option value=b>Black tea</option>
  <optgroup label="Herbs" disabled><option value=m>Mint</option></optgroup><option value=x disabled>None</option></select>
<select multiple aria-label="Cakes"><option selected>Plum</option><option>Apple</option><option>Nut</option></select>
<select disabled aria-label="Closed"><option>One</option></select>
<label>Milk <select aria-label="Milk jug" onchange="document.title='milk '+this.value"><option>no</option><option>yes</option></select></label>
<select aria-label="Late"></select><button>No select</button>
<select aria-label="Asks" onchange="confirm('sure?')"><option>a</option><option>b</option></select>
<select aria-label="Leaves" onchange="location.href='/other'"><option>a</option><option>b</option></select>
<script>setTimeout(() => { document.querySelector('[aria-label=Late]').innerHTML = '<option>later</option>'; }, 700);</script>"#;

async fn select(world: &World, text: &str, name: &str, values: Value) -> Result<SelectResult, Error> {
    let line = format!("\"{name}\"");
    let select = json!({ "ref": ref_of(text, &line), "values": values, "timeout_ms": 1500 });
    world.browser.select(&args(select), &call()).await
}

fn labels(result: &SelectResult) -> Vec<&str> {
    result.selected.iter().flatten().map(|option| option.label.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn options_are_chosen_by_value_or_label_with_events_and_nothing_else_is() {
    let world = world(&[("/", SELECTS), ("/other", "<title>other</title>")]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let tea = select(&world, &text, "Tea", json!(["b"])).await.unwrap();
    assert_eq!((tea.page.title.as_str(), tea.page.effect), ("tea b true", Effect::Done));
    assert_eq!(labels(&tea), ["Black tea"]);
    let tea = select(&world, &text, "Tea", json!(["Green tea"])).await.unwrap();
    assert_eq!((tea.page.title.as_str(), tea.selected.unwrap()[0].value.as_str()), ("tea g true", "g"));
    let cakes = select(&world, &text, "Cakes", json!(["Nut", "Apple"])).await.unwrap();
    assert_eq!(labels(&cakes), ["Apple", "Nut"], "what was chosen before no longer is");
    let late = select(&world, &text, "Late", json!(["later"])).await.unwrap();
    assert_eq!(labels(&late), ["later"], "an option that comes late is waited for");
    let milk = select(&world, &text, "Milk jug", json!(["yes"])).await.unwrap();
    assert_eq!(milk.page.title, "milk yes");
    for (name, values, problem) in [
        ("Tea", json!(["b", "g"]), "only one option"),
        ("Tea", json!(["m"]), "is disabled"),
        ("Tea", json!(["x"]), "is disabled"),
        ("Tea", json!(["coffee"]), "has no such option; it has choose, Green tea, Black tea"),
        ("No select", json!(["x"]), "is no select"),
    ] {
        let refused = select(&world, &text, name, values).await.unwrap_err();
        assert_eq!((refused.code(), refused.may_have_run()), ("invalid_args", false), "{refused}");
        assert!(refused.to_string().contains(problem), "{refused}");
    }
    let closed = select(&world, &text, "Closed", json!(["One"])).await.unwrap_err();
    assert!(matches!(closed, Error::ElementNotActionable { check: Check::Enabled, .. }), "{closed:?}");
    let leaves = select(&world, &text, "Leaves", json!(["b"])).await.unwrap();
    assert_eq!((leaves.page.title.as_str(), leaves.page.navigated), ("other", true));
    let stale = select(&world, &text, "Tea", json!(["b"])).await.unwrap_err();
    assert_eq!((stale.code(), stale.may_have_run()), ("stale_ref", false));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_choice_that_opens_a_dialog_says_so_at_once() {
    let world = world(&[("/", SELECTS)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let asks = select(&world, &text, "Asks", json!(["b"])).await.unwrap();
    assert_eq!(asks.page.dialog.as_ref().unwrap().message, "sure?");
    assert_eq!(asks.selected, None, "the page has not answered yet");
    let held = select(&world, &text, "Tea", json!(["b"])).await.unwrap_err();
    assert_eq!(held.code(), "dialog_open");
    world.browser.dialog(&args(json!({ "action": "accept" })), &call()).await.unwrap();
    assert_eq!(labels(&select(&world, &text, "Tea", json!(["b"])).await.unwrap()), ["Black tea"]);
    world.end().await;
}

const BOXES: &str = r#"<title>boxes</title>
<input type=checkbox aria-label="Plain" onclick="document.title='plain '+this.checked+' '+event.isTrusted">
<input type=checkbox aria-label="Mixed" id=mixed checked>
<input type=radio name=r aria-label="First" checked><input type=radio name=r aria-label="Second">
<div role=switch tabindex=0 aria-checked=false aria-label="Lamp" onclick="setTimeout(()=>this.setAttribute('aria-checked', this.getAttribute('aria-checked')!=='true'),150)"></div>
<span role=checkbox tabindex=0 aria-checked=true aria-label="Span" onclick="this.setAttribute('aria-checked','false')">s</span>
<input type=checkbox aria-label="Stubborn" onclick="event.preventDefault()">
<input type=checkbox disabled aria-label="Closed">
<style>.own{position:absolute;width:1px;height:1px;clip:rect(0 0 0 0);overflow:hidden}</style>
<label style="display:inline-block;width:80px;height:30px;background:#ccc"><input class=own type=checkbox aria-label="Drawn">drawn</label>
<input type=checkbox aria-label="Asks" onclick="alert('hi')"><input type=checkbox aria-label="Goes" onclick="location.href='/other'">
<button>No box</button><style>[role=switch]{width:40px;height:20px;background:red}</style>
<script>mixed.indeterminate = true;</script>"#;

async fn turn(world: &World, text: &str, name: &str, wanted: bool) -> Result<CheckResult, Error> {
    let line = format!("\"{name}\"");
    let element: ElementArgs = args(json!({ "ref": ref_of(text, &line), "timeout_ms": 1500 }));
    match wanted {
        true => world.browser.check(&element, &call()).await,
        false => world.browser.uncheck(&element, &call()).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_checked_is_checked_by_a_click_and_only_if_it_is_not() {
    let world = world(&[("/", BOXES), ("/other", "<title>other</title>")]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let turned = async |name: &str, wanted| {
        let result = turn(&world, &text, name, wanted).await.unwrap();
        (result.checked, result.page.effect)
    };
    let plain = turn(&world, &text, "Plain", true).await.unwrap();
    assert_eq!((plain.checked, plain.page.title.as_str()), (Some(true), "plain true true"));
    world.browser.wait(&args(json!({ "ms": 10 })), &call()).await.unwrap();
    assert_eq!(turned("Plain", true).await, (Some(true), Effect::Done));
    assert_eq!(world.title().await, "plain true true", "no second click");
    assert_eq!(turned("Plain", false).await, (Some(false), Effect::Done));
    assert_eq!(world.title().await, "plain false true");
    assert_eq!(turned("Mixed", true).await, (Some(true), Effect::Done));
    assert_eq!(turned("Second", true).await, (Some(true), Effect::Done));
    assert_eq!(turned("Lamp", true).await, (Some(true), Effect::Done), "a switch that turns later");
    assert_eq!(turned("Lamp", false).await, (Some(false), Effect::Done));
    assert_eq!(turned("Span", false).await, (Some(false), Effect::Done));
    assert_eq!(turned("Drawn", true).await, (Some(true), Effect::Done), "its label is what can be seen");
    assert_eq!(turned("Stubborn", true).await, (Some(false), Effect::SentUnconfirmed), "the page refused");
    let first = turn(&world, &text, "Second", false).await.unwrap_err();
    assert!(first.to_string().contains("can not be unchecked"), "{first}");
    let no_box = turn(&world, &text, "No box", true).await.unwrap_err();
    assert_eq!((no_box.code(), no_box.may_have_run()), ("invalid_args", false));
    let closed = turn(&world, &text, "Closed", true).await.unwrap_err();
    assert!(matches!(closed, Error::ElementNotActionable { check: Check::Enabled, .. }), "{closed:?}");
    let asks = turn(&world, &text, "Asks", true).await.unwrap();
    assert_eq!((asks.page.dialog.unwrap().message.as_str(), asks.checked), ("hi", None));
    world.browser.dialog(&args(json!({ "action": "accept" })), &call()).await.unwrap();
    let goes = turn(&world, &text, "Goes", true).await.unwrap();
    assert_eq!((goes.page.title.as_str(), goes.page.navigated), ("other", true));
    assert_eq!(turn(&world, &text, "Plain", true).await.unwrap_err().code(), "stale_ref");
    world.end().await;
}
