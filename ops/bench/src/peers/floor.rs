//! The floor: bare calls of the protocol. They find an element by its id, check nothing, and know nothing but the text
//! that they look for.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{
    contestant::{Contestant, Start},
    tree::Tree,
};
use crate::raw::RawBrowser;

/// A browser, and nothing in front of it.
pub(crate) struct Floor {
    raw: RawBrowser,
    tree: Tree,
}

impl Floor {
    /// Starts one.
    pub(crate) fn start(start: &Start<'_>) -> Result<Self> {
        let raw = RawBrowser::start()?;
        let tree = Tree::new(Some(raw.pid()), raw.profile(), start.browser);
        Ok(Self { raw, tree })
    }

    fn evaluate(&mut self, expression: &str) -> Result<Value> {
        let args = json!({ "expression": expression, "returnByValue": true });
        Ok(self.raw.call("Runtime.evaluate", &args)?["result"]["value"].take())
    }

    /// The element with this id.
    fn element(&mut self, id: &str) -> Result<Value> {
        let expression = format!("document.getElementById({})", json!(id));
        let found = self.raw.call("Runtime.evaluate", &json!({ "expression": expression }))?;
        let object = found["result"]["objectId"].as_str().with_context(|| format!("no element {id}"))?;
        Ok(json!({ "objectId": object }))
    }

    fn press(&mut self, id: &str) -> Result<()> {
        let element = self.element(id)?;
        self.raw.call("DOM.scrollIntoViewIfNeeded", &element)?;
        let quads = self.raw.call("DOM.getContentQuads", &element)?;
        let corner = |index: usize| quads["quads"][0][index].as_f64().context("a quad has numbers");
        let (x, y) = (f64::midpoint(corner(0)?, corner(4)?), f64::midpoint(corner(1)?, corner(5)?));
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 });
            self.raw.call("Input.dispatchMouseEvent", &event)?;
        }
        Ok(())
    }
}

impl Contestant for Floor {
    fn navigate(&mut self, url: &str, title: &str) -> Result<()> {
        self.raw.call("Page.navigate", &json!({ "url": url }))?;
        loop {
            // The end of an earlier load may be read here, where nobody has waited for it.
            self.raw.wait_for("Page.loadEventFired")?;
            if self.evaluate("location.href")? == url {
                let found = self.evaluate("document.title")?;
                ensure!(found == title, "the page is another one: {found}");
                return Ok(());
            }
        }
    }

    fn snapshot(&mut self) -> Result<String> {
        // Not decoded: what a client makes of it is not the browser's part.
        let bytes = self.raw.call_unread("Accessibility.getFullAXTree", &json!({}))?;
        ensure!(bytes > 0, "the tree has nodes");
        Ok(String::new())
    }

    fn fill(&mut self, fields: &[(String, String)]) -> Result<()> {
        for (name, text) in fields {
            let element = self.element(name)?;
            self.raw.call("DOM.focus", &element)?;
            self.raw.call("Input.insertText", &json!({ "text": text }))?;
        }
        Ok(())
    }

    fn click(&mut self, button: &str, seen: Option<&str>) -> Result<()> {
        self.press(button)?;
        let Some(text) = seen else { return Ok(()) };
        let sees = format!("document.body?.innerText.includes({}) ?? false", json!(text));
        // An answer is an error while one page makes place for the next.
        while !self.evaluate(&sees).is_ok_and(|sees| sees == true) {
            ensure!(self.raw.is_alive(), "the browser is gone");
        }
        Ok(())
    }

    fn tree(&self) -> &Tree {
        &self.tree
    }
}
