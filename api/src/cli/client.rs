//! Speaks to the server that runs on a data folder, as its operator.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use reqwest::StatusCode;
use serde_json::Value;

use super::print;
use crate::{
    problem::Code,
    server::{OPERATOR_TOKEN_FILE, SERVER_FILE, ServerRecord},
};

const TIMEOUT: Duration = Duration::from_secs(30);

/// How an operator whose token file opens nothing gets in again: the folder itself is the proof of who that is.
pub(super) fn how_to_get_in(data_dir: &Path) -> String {
    let file = data_dir.join(OPERATOR_TOKEN_FILE);
    // The shell makes the file, so its mode must be closed before the token is in it.
    format!(
        "stop the server, run `(umask 077; browserspace token create --data-dir {} --role operator --all-workspaces \
         --owner-id operator > {})`, and start it again",
        data_dir.display(),
        file.display()
    )
}

/// A client of one running server.
pub(super) struct Client {
    http: reqwest::Client,
    address: String,
    data_dir: PathBuf,
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
        Ok(Some(Self { http, address, data_dir: data_dir.to_owned() }))
    }

    /// Whether it drains, or has drained: it takes no new work and waits for its end.
    pub(super) async fn is_draining(&self) -> bool {
        let Ok(answer) = self.http.get(format!("{}/readyz", self.address)).send().await else { return false };
        let body: Value = answer.json().await.unwrap_or_default();
        body["error"]["code"] == Code::ShuttingDown.as_str()
    }

    /// Whether it takes the token in the operator's file.
    pub(super) async fn takes_our_token(&self) -> Result<bool> {
        let request = self.http.get(self.url("/capabilities")).bearer_auth(self.token()?);
        let answer = request.send().await.context("the server could not be asked")?;
        Ok(answer.status() != StatusCode::UNAUTHORIZED)
    }

    /// `GET path`; gives the whole answer.
    pub(super) async fn get(&self, path: &str) -> Result<Value> {
        self.send(self.http.get(self.url(path))).await
    }

    /// `POST path`; gives the whole answer.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(self.http.post(self.url(path)).json(body)).await
    }

    fn url(&self, path: &str) -> String {
        format!("{}/api/v1{path}", self.address)
    }

    fn token_file(&self) -> PathBuf {
        self.data_dir.join(OPERATOR_TOKEN_FILE)
    }

    fn token(&self) -> Result<String> {
        let path = self.token_file();
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!(
                "a server is running, but its operator's token can not be read from {}; if it is lost, {}",
                path.display(),
                how_to_get_in(&self.data_dir)
            )
        })?;
        Ok(text.trim().to_owned())
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Value> {
        let answer =
            request.bearer_auth(self.token()?).send().await.context("the server could not be asked")?;
        let status = answer.status();
        let body: Value = answer.json().await.unwrap_or_default();
        if status.is_success() {
            return Ok(body);
        }
        let code = body["error"]["code"].as_str().unwrap_or("no code");
        if status == StatusCode::UNAUTHORIZED {
            return Err(self.locked_out(code));
        }
        let message = body["error"]["message"].as_str().unwrap_or("no reason given");
        bail!(
            "the server refused: {} ({}, HTTP {})",
            print::escaped(message),
            print::escaped(code),
            status.as_u16()
        )
    }

    /// It is not what was asked that is wrong, but who asked.
    fn locked_out(&self, code: &str) -> anyhow::Error {
        anyhow!(
            "the server does not take the token in {}: it was revoked, its time is over, or it is of another server \
             ({}). To get in again: {}",
            self.token_file().display(),
            print::escaped(code),
            how_to_get_in(&self.data_dir)
        )
    }
}
