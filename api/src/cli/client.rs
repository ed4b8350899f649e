//! Speaks to the server that runs on a data folder, as its operator.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::print;
use crate::server::{OPERATOR_TOKEN_FILE, SERVER_FILE, ServerRecord};

const TIMEOUT: Duration = Duration::from_secs(30);

/// A client of one running server.
pub(super) struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
}

impl Client {
    /// The client, if a server runs on this folder and answers.
    pub(super) async fn of_running(data_dir: &Path) -> Result<Option<Self>> {
        let Ok(record) = std::fs::read(data_dir.join(SERVER_FILE)) else {
            return Ok(None);
        };
        let Ok(ServerRecord { address }) = serde_json::from_slice(&record) else {
            return Ok(None);
        };
        // Straight to the loopback address: a proxy of the environment must not see the operator's token.
        let http = reqwest::Client::builder().no_proxy().timeout(TIMEOUT).build()?;
        // A server that was killed leaves its record behind; then nobody answers there, or somebody else does.
        let alive = http.get(format!("{address}/healthz")).send().await;
        if !alive.is_ok_and(|answer| answer.status().is_success()) {
            return Ok(None);
        }
        let path = data_dir.join(OPERATOR_TOKEN_FILE);
        let token = std::fs::read_to_string(&path).with_context(|| {
            format!("a server is running, but its operator token {} can not be read", path.display())
        })?;
        Ok(Some(Self { http, base: format!("{address}/api/v1"), token: token.trim().to_owned() }))
    }

    /// `GET path`; gives the whole answer.
    pub(super) async fn get(&self, path: &str) -> Result<Value> {
        self.send(self.http.get(format!("{}{path}", self.base))).await
    }

    /// `POST path`; gives the whole answer.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(self.http.post(format!("{}{path}", self.base)).json(body)).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Value> {
        let answer =
            request.bearer_auth(&self.token).send().await.context("the server could not be asked")?;
        let status = answer.status();
        let body: Value = answer.json().await.unwrap_or_default();
        if status.is_success() {
            return Ok(body);
        }
        let message = body["error"]["message"].as_str().unwrap_or("no reason given");
        let code = body["error"]["code"].as_str().unwrap_or("no code");
        bail!(
            "the server refused: {} ({}, HTTP {})",
            print::escaped(message),
            print::escaped(code),
            status.as_u16()
        )
    }
}
