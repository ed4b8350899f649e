//! A small client of the API: what any program would do with it.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use ureq::Agent;

const CALL_TIMEOUT: Duration = Duration::from_secs(90);
const PICTURE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Speaks to one server as one bearer.
pub(crate) struct Client {
    agent: Agent,
    base: String,
    bearer: String,
}

impl Client {
    /// For the server at `base` (`http://…`), with the token.
    pub(crate) fn new(base: &str, token: &str) -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(CALL_TIMEOUT))
            .proxy(None)
            .build()
            .into();
        Self { agent, base: format!("{base}/api/v1"), bearer: format!("Bearer {token}") }
    }

    /// `GET path`; gives `data`.
    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        let request = self.agent.get(format!("{}{path}", self.base)).header("authorization", &self.bearer);
        let mut response = request.call().with_context(|| format!("GET {path}"))?;
        let body = response.body_mut().read_json().unwrap_or(Value::Null);
        data("GET", path, response.status().as_u16(), body)
    }

    /// `POST path` and waits for a task's end; gives `data`.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let request = self
            .agent
            .post(format!("{}{path}", self.base))
            .header("authorization", &self.bearer)
            .header("prefer", "wait=60");
        let mut response = request.send_json(body).with_context(|| format!("POST {path}"))?;
        let body = response.body_mut().read_json().unwrap_or(Value::Null);
        data("POST", path, response.status().as_u16(), body)
    }

    /// `GET path` as bytes.
    pub(crate) fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        let request = self.agent.get(format!("{}{path}", self.base)).header("authorization", &self.bearer);
        let mut response = request.call().with_context(|| format!("GET {path}"))?;
        if !response.status().is_success() {
            bail!("GET {path} answered {}", response.status());
        }
        Ok(response.body_mut().with_config().limit(PICTURE_BYTES_MAX).read_to_vec()?)
    }

    /// Runs one task of the Space to its end; gives its result.
    pub(crate) fn task(&self, space: &str, number: u32, capability: &str, args: &Value) -> Result<Value> {
        let body = json!({ "request_id": format!("demo-{number}"), "capability": capability, "args": args });
        let task = self.post(&format!("{space}/tasks"), &body)?;
        if task["status"] == "completed" {
            return Ok(task["result"].clone());
        }
        bail!("{capability} ended as {}: {}", task["status"], task["error"])
    }
}

fn data(method: &str, path: &str, status: u16, mut body: Value) -> Result<Value> {
    if (200..300).contains(&status) {
        return Ok(body["data"].take());
    }
    bail!("{method} {path} answered {status}: {}", body["error"])
}
