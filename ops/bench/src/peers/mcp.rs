//! Peers that speak MCP over stdio: JSON-RPC 2.0, one message a line.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{
    answer::{Control, Refs},
    contestant::{Contestant, Start},
    tree::Tree,
};

/// How long a server that is told to end may take, its browser included.
const GRACE: Duration = Duration::from_secs(5);

/// How long a server may take to say hello.
const START_WITHIN: Duration = Duration::from_secs(60);

/// Which server it is: they name their tools differently.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Devtools,
    Playwright,
}

/// An MCP server with its browser.
pub(crate) struct Mcp {
    kind: Kind,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
    snapshot: String,
    tree: Tree,
}

impl Mcp {
    /// Starts chrome-devtools-mcp. What it sends home is turned off; it would only measure the network.
    pub(crate) fn devtools(start: &Start<'_>) -> Result<Self> {
        let script = "node_modules/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js";
        let browser = start.browser.display();
        let mut args = vec!["--headless", "--isolated", "--no-usage-statistics", "--no-performance-crux"];
        args.extend(Start::is_root().then_some("--chromeArg=--no-sandbox"));
        Self::start(start, Kind::Devtools, script, &args, &format!("--executablePath={browser}"))
    }

    /// Starts @playwright/mcp.
    pub(crate) fn playwright(start: &Start<'_>) -> Result<Self> {
        let browser = start.browser.display();
        let sandbox = if Start::is_root() { "--no-sandbox" } else { "--sandbox" };
        let args = ["--headless", "--isolated", sandbox];
        let script = "node_modules/@playwright/mcp/cli.js";
        Self::start(start, Kind::Playwright, script, &args, &format!("--executable-path={browser}"))
    }

    fn start(start: &Start<'_>, kind: Kind, script: &str, args: &[&str], browser: &str) -> Result<Self> {
        let folder = start.own_folder(if kind == Kind::Devtools { "dt" } else { "pw" })?;
        let mut command = start.command(Path::new("node"), &folder);
        command.arg(start.packages.join(script)).args(args).arg(browser);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let tree = Tree::new(Some(child.id()), &folder, start.browser);
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let mut server = Self { kind, child, input, output, next_id: 0, snapshot: String::new(), tree };
        let client = json!({ "name": "browserspace-bench", "version": env!("CARGO_PKG_VERSION") });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let tree = server.tree.clone();
        start.watch.over(&tree, START_WITHIN, || server.call("initialize", &hello))?;
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let input = self.input.as_mut().context("it was told to end")?;
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        input.write_all(&line).context("the server is gone")
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let mut line = Vec::new();
            ensure!(self.output.read_until(b'\n', &mut line)? > 0, "the server ended");
            let mut message: Value = serde_json::from_slice(&line).context("a message is a line of JSON")?;
            if message["method"].is_string() {
                self.answer(&message)?;
            } else if message["id"] == id {
                ensure!(message["error"].is_null(), "{method}: {}", message["error"]);
                return Ok(message["result"].take());
            }
        }
    }

    /// What the server itself asks. We offer nothing but to be alive; a notification wants no answer.
    fn answer(&mut self, message: &Value) -> Result<()> {
        let Some(id) = message.get("id") else { return Ok(()) };
        let refusal = json!({ "code": -32_601, "message": "method not found" });
        let (name, content) =
            if message["method"] == "ping" { ("result", json!({})) } else { ("error", refusal) };
        self.send(&json!({ "jsonrpc": "2.0", "id": id, name: content }))
    }

    /// Calls a tool; all text of its answer.
    fn tool(&mut self, name: &str, mut args: Value) -> Result<String> {
        if self.kind == Kind::Devtools {
            args["pageId"] = json!(1);
        }
        let result = self.call("tools/call", &json!({ "name": name, "arguments": args }))?;
        let text = text_of(&result);
        if result["isError"] == true {
            bail!("{name}: {}", text.chars().take(300).collect::<String>());
        }
        Ok(text)
    }

    fn of(&self, control: Control, name: &str) -> Result<String> {
        let refs = if self.kind == Kind::Devtools { Refs::Uid } else { Refs::Bracketed };
        refs.of(&self.snapshot, control, name)
    }

    fn click_and_see(&mut self, button: &str, text: &str) -> Result<()> {
        // The click of one gives the page when asked to; the other has a tool that searches it.
        let click = json!({ "uid": button, "includeSnapshot": true });
        let mut sees = match self.kind {
            Kind::Devtools => self.tool("click", click)?.contains(text),
            Kind::Playwright => {
                self.tool("browser_click", json!({ "element": "the button", "target": button }))?;
                false
            }
        };
        while !sees {
            sees = match self.kind {
                Kind::Devtools => self.tool("take_snapshot", json!({}))?.contains(text),
                Kind::Playwright => is_found(&self.tool("browser_find", json!({ "text": text }))?),
            };
        }
        Ok(())
    }
}

impl Contestant for Mcp {
    fn navigate(&mut self, url: &str, title: &str) -> Result<()> {
        let answer = match self.kind {
            Kind::Devtools => self.tool("navigate_page", json!({ "type": "url", "url": url }))?,
            Kind::Playwright => self.tool("browser_navigate", json!({ "url": url }))?,
        };
        ensure!(answer.contains(title), "the page is another one: {answer}");
        Ok(())
    }

    fn snapshot(&mut self) -> Result<String> {
        let tool = if self.kind == Kind::Devtools { "take_snapshot" } else { "browser_snapshot" };
        self.snapshot = self.tool(tool, json!({}))?;
        Ok(self.snapshot.clone())
    }

    fn fill(&mut self, fields: &[(String, String)]) -> Result<()> {
        let field = |(name, text): &(String, String)| {
            let target = self.of(Control::Field, name)?;
            Ok(match self.kind {
                Kind::Devtools => json!({ "uid": target, "value": text }),
                Kind::Playwright => {
                    json!({ "element": name, "name": name, "target": target, "type": "textbox", "value": text })
                }
            })
        };
        let fields = fields.iter().map(field).collect::<Result<Vec<Value>>>()?;
        match self.kind {
            Kind::Devtools => self.tool("fill_form", json!({ "elements": fields }))?,
            Kind::Playwright => self.tool("browser_fill_form", json!({ "fields": fields }))?,
        };
        Ok(())
    }

    fn click(&mut self, button: &str, seen: Option<&str>) -> Result<()> {
        let target = self.of(Control::Button, button)?;
        match (seen, self.kind) {
            (Some(text), _) => self.click_and_see(&target, text)?,
            (None, Kind::Devtools) => drop(self.tool("click", json!({ "uid": target }))?),
            (None, Kind::Playwright) => {
                drop(self.tool("browser_click", json!({ "element": button, "target": target }))?);
            }
        }
        Ok(())
    }

    fn tree(&self) -> &Tree {
        &self.tree
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        // MCP, "Shutdown" of the stdio transport: the client closes the server's input.
        drop(self.input.take());
        self.tree.end(GRACE);
        // It is gone; only its status is left to be taken.
        let _ = self.child.wait();
    }
}

/// All text of a tool's answer.
fn text_of(result: &Value) -> String {
    let parts = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// Whether an answer of `browser_find` tells of a find.
fn is_found(answer: &str) -> bool {
    let count = answer.lines().find_map(|line| line.strip_prefix("Found ")?.split(' ').next()?.parse().ok());
    count.is_some_and(|count: usize| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_answer_is_all_of_its_parts_that_are_text() {
        let part = |text: &str| json!({ "type": "text", "text": text });
        let result = json!({ "content": [part("a"), { "type": "image", "data": "" }, part("b")] });
        assert_eq!(text_of(&result), "a\nb");
        assert_eq!(text_of(&json!({})), "");
    }

    #[test]
    fn a_find_is_told_from_none() {
        assert!(is_found("### Result\nFound 1 match for \"Saved\":\n\n- paragraph [ref=e36]: Saved"));
        assert!(is_found("### Result\nFound 12 matches for \"Saved\":"));
        assert!(!is_found("### Result\nFound 0 matches for \"Saved\""));
        assert!(!is_found("### Result\nNo matches found for \"Saved\"."));
    }
}
