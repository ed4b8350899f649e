//! What somebody who drives a browser by raw CDP has to write for a navigation, a snapshot and a click.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{disk::milliseconds, raw::RawBrowser};

/// What is measured.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Navigate = 0,
    Snapshot = 1,
    Click = 2,
}

/// What a result says of the page.
const PAGE: &str = "({ url: location.href, title: document.title })";

const ARRIVED: &str = "({ url: location.href, title: document.title,
    status: performance.getEntriesByType('navigation')[0].responseStatus })";

/// Visible, enabled, and the same place on two frames.
const READY: &str = "async function () {
    const box = () => JSON.stringify(this.getBoundingClientRect());
    const frame = () => new Promise((done) => requestAnimationFrame(() => done(box())));
    if (!this.isConnected || !this.checkVisibility() || this.matches(':disabled')) return false;
    return await frame() === await frame();
}";

const RECEIVES: &str = "function (x, y) { return this.contains(this.getRootNode().elementFromPoint(x, y)) }";

/// A plain script: it does what the capability promises and knows in the end what its result says. Milliseconds.
pub(crate) fn whole(raw: &mut RawBrowser, step: Step, url: &str) -> Result<f64> {
    match step {
        Step::Navigate => timed(raw, |raw| {
            navigate(raw, url)?;
            let arrived = evaluate(raw, ARRIVED)?;
            ensure!(arrived["status"] == 200, "the page was answered: {arrived}");
            Ok(())
        }),
        Step::Snapshot => timed(raw, |raw| {
            let frames = raw.call("Page.getFrameTree", &json!({}))?;
            tree(raw, &json!({ "frameId": frames["frameTree"]["frame"]["id"] }))?;
            evaluate(raw, PAGE)?;
            Ok(())
        }),
        Step::Click => {
            let node = button(raw)?;
            timed(raw, |raw| {
                checked_click(raw, &node)?;
                evaluate(raw, PAGE)?;
                Ok(())
            })
        }
    }
}

/// Bare calls: the browser does something, nothing is checked, and nothing is known afterwards. Milliseconds.
pub(crate) fn bare(raw: &mut RawBrowser, step: Step, url: &str) -> Result<f64> {
    match step {
        Step::Navigate => timed(raw, |raw| navigate(raw, url)),
        Step::Snapshot => timed(raw, |raw| tree(raw, &json!({}))),
        Step::Click => {
            let node = button(raw)?;
            timed(raw, |raw| {
                let (x, y) = centre(raw, &node)?;
                press(raw, x, y)
            })
        }
    }
}

fn timed(raw: &mut RawBrowser, work: impl FnOnce(&mut RawBrowser) -> Result<()>) -> Result<f64> {
    let begun = Instant::now();
    work(raw)?;
    Ok(milliseconds(begun.elapsed()))
}

fn evaluate(raw: &mut RawBrowser, expression: &str) -> Result<Value> {
    let answer = raw.call("Runtime.evaluate", &json!({ "expression": expression, "returnByValue": true }))?;
    Ok(answer["result"]["value"].clone())
}

fn navigate(raw: &mut RawBrowser, url: &str) -> Result<()> {
    raw.call("Page.navigate", &json!({ "url": url }))?;
    raw.wait_for("Page.loadEventFired")
}

fn tree(raw: &mut RawBrowser, of: &Value) -> Result<()> {
    let tree = raw.call("Accessibility.getFullAXTree", of)?;
    ensure!(tree["nodes"].as_array().is_some_and(|nodes| nodes.len() > 5), "the tree has nodes");
    Ok(())
}

/// The button. A ref is known before it is clicked; so is the node here, outside of the time that is measured.
fn button(raw: &mut RawBrowser) -> Result<Value> {
    let document = raw.call("DOM.getDocument", &json!({}))?;
    let query = json!({ "nodeId": document["root"]["nodeId"], "selector": "#b" });
    Ok(json!({ "nodeId": raw.call("DOM.querySelector", &query)?["nodeId"] }))
}

fn centre(raw: &mut RawBrowser, node: &Value) -> Result<(f64, f64)> {
    raw.call("DOM.scrollIntoViewIfNeeded", node)?;
    let quads = raw.call("DOM.getContentQuads", node)?;
    let corner = |index: usize| quads["quads"][0][index].as_f64().context("a quad has numbers");
    Ok(((corner(0)? + corner(4)?) / 2.0, (corner(1)? + corner(5)?) / 2.0))
}

/// A click with the checks of the usual table: visible, enabled, stable, receives events.
fn checked_click(raw: &mut RawBrowser, node: &Value) -> Result<()> {
    let frames = raw.call("Page.getFrameTree", &json!({}))?;
    let world = json!({ "frameId": frames["frameTree"]["frame"]["id"], "worldName": "script" });
    let world = raw.call("Page.createIsolatedWorld", &world)?;
    let resolve = json!({ "nodeId": node["nodeId"], "executionContextId": world["executionContextId"] });
    let object = raw.call("DOM.resolveNode", &resolve)?["object"]["objectId"].clone();
    let on = |function: &str, args: &Value| {
        json!({ "objectId": object, "functionDeclaration": function, "arguments": args,
            "returnByValue": true, "awaitPromise": true })
    };
    let ready = raw.call("Runtime.callFunctionOn", &on(READY, &json!([])))?;
    ensure!(ready["result"]["value"] == true, "the button is ready: {ready}");
    let (x, y) = centre(raw, node)?;
    let at = json!([{ "value": x }, { "value": y }]);
    let receives = raw.call("Runtime.callFunctionOn", &on(RECEIVES, &at))?;
    ensure!(receives["result"]["value"] == true, "the button receives events: {receives}");
    press(raw, x, y)
}

fn press(raw: &mut RawBrowser, x: f64, y: f64) -> Result<()> {
    for (kind, buttons, count) in [("mouseMoved", 0, 0), ("mousePressed", 1, 1), ("mouseReleased", 0, 1)] {
        let button = if count == 0 { "none" } else { "left" };
        raw.call(
            "Input.dispatchMouseEvent",
            &json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": count }),
        )?;
    }
    Ok(())
}
