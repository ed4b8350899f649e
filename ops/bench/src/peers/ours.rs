//! We ourselves: a server with its defaults, one Space on it, and a client that speaks HTTP. Every step is durable
//! before it is acknowledged, and goes through the wall.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use browserspace_tests::{Server, ServerOptions, Space, SpaceRequest};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::{
    answer::{Control, Refs},
    contestant::{Contestant, Start},
    tree::Tree,
};
use crate::{disk::milliseconds, keepalive::KeepAlive};

/// The most that one call gives.
const SNAPSHOT_CHARS_MAX: u32 = 60_000;

/// A page of tens of thousands of rows takes longer than the default.
const SNAPSHOT_TIMEOUT_MS: u32 = 60_000;

/// A server of our own, and a Space on it.
pub(crate) struct Ours {
    handle: Handle,
    hosts: Vec<String>,
    space: Place,
    snapshot: String,
    tree: Tree,
    // After the connections to it.
    server: Server,
}

/// A Space, and a connection that its tasks go over.
struct Place {
    handle: Handle,
    address: String,
    token: String,
    connection: KeepAlive,
    path: String,
    submits: u32,
    space: Space,
}

impl Ours {
    /// Starts the server, and opens the Space.
    pub(crate) fn start(start: &Start<'_>) -> Result<Self> {
        let browser = start.browser.to_string_lossy().into_owned();
        let options = ServerOptions::default().arg("--log-filter").arg("warn").arg("--chromium").arg(browser);
        let server = Server::start(options);
        let tree = Tree::new(Some(server.pid()), server.data_dir(), start.browser);
        let hosts = start.site.hosts().to_vec();
        let space = start.handle.block_on(Place::open(start.handle, &server, &hosts, None))?;
        Ok(Self { handle: start.handle.clone(), hosts, space, snapshot: String::new(), tree, server })
    }

    /// The whole page, part by part.
    fn read(&mut self, mut args: Value) -> Result<String> {
        args["max_chars"] = json!(SNAPSHOT_CHARS_MAX);
        args["timeout_ms"] = json!(SNAPSHOT_TIMEOUT_MS);
        let mut whole = String::new();
        loop {
            let result = self.space.wait_for("snapshot", &args)?;
            for part in ["url", "title", "text"] {
                whole.push_str(result[part].as_str().context("a snapshot has a text")?);
                whole.push('\n');
            }
            if result["cursor"].is_null() {
                return Ok(whole);
            }
            args["cursor"] = result["cursor"].clone();
        }
    }

    async fn create(&self, url: &str) -> Result<f64> {
        let operator = self.server.operator();
        let instance = operator.chromium_instance(&["default"], &self.hosts).await;
        let begun = Instant::now();
        let mut place = Place::open(&self.handle, &self.server, &self.hosts, Some(instance)).await?;
        place.step("navigate", &json!({ "url": url })).await?;
        place.step("snapshot", &json!({})).await?;
        let took = milliseconds(begun.elapsed());
        place.space.close().await;
        place.space.becomes("closed").await;
        Ok(took)
    }
}

impl Place {
    async fn open(
        handle: &Handle,
        server: &Server,
        hosts: &[String],
        instance: Option<String>,
    ) -> Result<Self> {
        let operator = server.operator();
        let instance = match instance {
            Some(instance) => instance,
            None => operator.chromium_instance(&["default"], hosts).await,
        };
        let space = operator.open(&SpaceRequest::new("default", &instance)).await;
        let (address, token) = (server.address(), server.operator_token());
        let connection = KeepAlive::connect(&address, &token).await?;
        let path = format!("/api/v1{}", space.path("/tasks"));
        Ok(Self { handle: handle.clone(), address, token, connection, path, submits: 0, space })
    }

    async fn step(&mut self, capability: &str, args: &Value) -> Result<Value> {
        self.submits += 1;
        let request_id = format!("r{}", self.submits);
        let body = json!({ "request_id": request_id, "capability": capability, "args": args }).to_string();
        let answer = match self.connection.post(&self.path, &body).await {
            Ok(answer) => answer,
            // The server closes connections that were silent for long, as while another side read a large page. The
            // same request id is the same task, so the request may be repeated.
            Err(_) => {
                self.connection = KeepAlive::connect(&self.address, &self.token).await?;
                self.connection.post(&self.path, &body).await?
            }
        };
        if !answer.shows_completed() {
            let task = answer.json()?;
            // Of a task that failed, or of a request that was refused.
            let error = if task["error"].is_object() { &task["error"] } else { &task["data"]["error"] };
            bail!("{capability}: {} {}: {}", answer.status, error["code"], error["message"]);
        }
        Ok(answer.json()?["data"]["result"].take())
    }

    fn wait_for(&mut self, capability: &str, args: &Value) -> Result<Value> {
        let handle = self.handle.clone();
        handle.block_on(self.step(capability, args))
    }
}

impl Contestant for Ours {
    fn navigate(&mut self, url: &str, title: &str) -> Result<()> {
        let result = self.space.wait_for("navigate", &json!({ "url": url }))?;
        ensure!(result["title"] == title, "the page is another one: {result}");
        Ok(())
    }

    fn snapshot(&mut self) -> Result<String> {
        self.snapshot = self.read(json!({}))?;
        Ok(self.snapshot.clone())
    }

    fn other_snapshot(&mut self) -> Option<Result<(String, &'static str)>> {
        Some(self.read(json!({ "urls": true })).map(|answer| (answer, "`urls`")))
    }

    fn fill(&mut self, fields: &[(String, String)]) -> Result<()> {
        for (name, text) in fields {
            let field = Refs::Ours.of(&self.snapshot, Control::Field, name)?;
            self.space.wait_for("fill", &json!({ "ref": field, "text": text }))?;
        }
        Ok(())
    }

    fn click(&mut self, button: &str, seen: Option<&str>) -> Result<()> {
        let button = Refs::Ours.of(&self.snapshot, Control::Button, button)?;
        self.space.wait_for("click", &json!({ "ref": button }))?;
        if let Some(text) = seen {
            self.space.wait_for("wait", &json!({ "text": text }))?;
        }
        Ok(())
    }

    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn create_and_read(&mut self, url: &str) -> Option<Result<f64>> {
        Some(self.handle.clone().block_on(self.create(url)))
    }
}
