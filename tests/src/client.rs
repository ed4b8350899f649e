//! A client of the HTTP interface that keeps status, headers and JSON of every answer.

use std::{
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{HeaderMap, HeaderName},
};
use serde_json::{Value, json};

use crate::{SpaceRequest, Sse, space::Space};

/// Longer than any wait that a request may ask for.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(90);

/// Every answer that was given, as text: what a search for a planted secret reads.
#[derive(Clone, Default)]
pub struct Transcript(Arc<Mutex<String>>);

impl Transcript {
    /// Adds a piece.
    pub fn add(&self, piece: &str) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(piece);
        text.push('\n');
    }

    /// All of it.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body as it came.
    pub bytes: Vec<u8>,
    /// Its body as JSON; null where it is none.
    pub json: Value,
}

impl Answer {
    /// Checks its status.
    ///
    /// # Panics
    /// When it is another one.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self
    }

    /// Checks that it is an error in the envelope, with this status and code, and gives its `error` object.
    ///
    /// # Panics
    /// When it is anything else.
    #[track_caller]
    pub fn expect_error(&self, status: u16, code: &str) -> &Value {
        let error = &self.json["error"];
        let seen = (self.status.as_u16(), error["code"].as_str().unwrap_or("no code"));
        assert_eq!(seen, (status, code), "{}", self.text());
        assert!(self.json["data"].is_null(), "an error has no data: {}", self.text());
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{}", self.text());
        assert!(error["retryable"].is_boolean(), "{}", self.text());
        error
    }

    /// Its `data`.
    #[must_use]
    pub fn data(&self) -> &Value {
        &self.json["data"]
    }

    /// Its `data` as a list.
    ///
    /// # Panics
    /// When it is none.
    #[track_caller]
    #[must_use]
    pub fn list(&self) -> &[Value] {
        self.data().as_array().unwrap_or_else(|| panic!("not a list: {}", self.text()))
    }

    /// A field of its `data`, as text.
    ///
    /// # Panics
    /// When there is no such text.
    #[track_caller]
    #[must_use]
    pub fn field(&self, name: &str) -> String {
        let field = self.data()[name].as_str();
        field.unwrap_or_else(|| panic!("no text {name} in {}", self.text())).to_owned()
    }

    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The position of the log that the answer rests on.
    ///
    /// # Panics
    /// When it does not say.
    #[track_caller]
    #[must_use]
    pub fn position(&self) -> u64 {
        let position = self.header("x-log-position").and_then(|text| text.parse().ok());
        position.unwrap_or_else(|| panic!("no x-log-position: {}", self.text()))
    }

    /// Status, headers and body, for a message or a search.
    #[must_use]
    pub fn text(&self) -> String {
        let headers: Vec<String> =
            self.headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        format!("{}\n{}\n{}", self.status, headers.join("\n"), String::from_utf8_lossy(&self.bytes))
    }
}

/// A client with one token (or none). It follows its server to the port of its next start.
#[derive(Clone)]
pub struct Client {
    address: Arc<RwLock<String>>,
    token: Option<String>,
    http: reqwest::Client,
    transcript: Transcript,
}

impl Client {
    pub(crate) fn new(address: Arc<RwLock<String>>, token: &str, transcript: Transcript) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(REQUEST_TIMEOUT);
        let http = http.redirect(reqwest::redirect::Policy::none()).build().expect("a client can be built");
        Self { address, token: Some(token.to_owned()), http, transcript }
    }

    /// The same client without a token.
    #[must_use]
    pub fn anonymous(&self) -> Self {
        Self { token: None, ..self.clone() }
    }

    /// The same client with another token.
    #[must_use]
    pub fn bearing(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// Its token.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// A request to a path below `/api/v1`, or to one of the server's own (`/healthz`, `/metrics`, …).
    ///
    /// # Panics
    /// Never: no holder of the address panics.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        const OWN: [&str; 5] = ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"];
        let address = self.address.read().expect("no holder of the address panics").clone();
        let base = if OWN.iter().any(|own| path.starts_with(own)) { "" } else { "/api/v1" };
        let request = self.http.request(method, format!("{address}{base}{path}"));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request.
    ///
    /// # Panics
    /// When no answer comes.
    pub async fn send(&self, request: RequestBuilder) -> Answer {
        self.try_send(request).await.expect("the server answers")
    }

    /// Sends a request to a server that may be gone.
    ///
    /// # Errors
    /// When no whole answer comes.
    pub async fn try_send(&self, request: RequestBuilder) -> Result<Answer, reqwest::Error> {
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.bytes().await?.to_vec();
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let answer = Answer { status, headers, bytes, json };
        self.transcript.add(&answer.text());
        Ok(answer)
    }

    /// Reads a path.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    /// Posts JSON to a path.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// Posts JSON with one more header.
    pub async fn post_with(&self, path: &str, body: &Value, name: &str, value: &str) -> Answer {
        let name: HeaderName = name.parse().expect("a header name");
        self.send(self.request(Method::POST, path).header(name, value).json(body)).await
    }

    /// Follows a path as server-sent events, after `last_event_id` where given.
    ///
    /// # Panics
    /// When the server does not answer with a stream.
    pub async fn stream(&self, path: &str, last_event_id: Option<u64>) -> Sse {
        let mut request = self.request(Method::GET, path).header("accept", "text/event-stream");
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id.to_string());
        }
        let response: Response = request.send().await.expect("the server answers");
        assert_eq!(response.status(), 200, "a stream was asked for");
        Sse::new(response, self.transcript.clone())
    }

    /// Makes a token of `workspace` and gives its text.
    pub async fn issue_token(&self, workspace: &str, role: &str, owner_id: &str) -> String {
        let body = json!({ "role": role, "owner_id": owner_id });
        let path = format!("/workspaces/{workspace}/tokens");
        // Past the transcript: this answer is the one place where a token may stand.
        let request = self.request(Method::POST, &path).json(&body);
        let response = request.send().await.expect("the server answers");
        let status = response.status();
        let answer: Value = response.json().await.expect("the answer is JSON");
        assert_eq!(status, 201, "{answer}");
        answer["data"]["token"].as_str().expect("a new token is shown once").to_owned()
    }

    /// Registers a scripted instance for `workspaces` and gives its id.
    pub async fn scripted_instance(&self, workspaces: &[&str]) -> String {
        self.instance(&json!({ "kind": "scripted", "bundle": "standard", "workspaces": workspaces })).await
    }

    /// Registers a Chromium that may reach `allow`, and gives its id.
    pub async fn chromium_instance(&self, workspaces: &[&str], allow: &[String]) -> String {
        let policy = json!({ "allow": allow, "deny": [] });
        self.instance(&json!({
            "kind": "chromium", "bundle": "standard", "workspaces": workspaces, "network_policy": policy
        }))
        .await
    }

    /// Registers an instance and gives its id.
    pub async fn instance(&self, body: &Value) -> String {
        self.post("/browser-instances", body).await.expect(201).field("browser_instance_id")
    }

    /// Opens a Space.
    pub async fn open(&self, request: &SpaceRequest) -> Space {
        let answer = self.post(&request.path(), &request.body()).await.expect(201);
        Space::new(self.clone(), &request.workspace, &answer.field("space_id"), &request.instance)
    }

    /// Every event of the log from `after_position` on, as the caller may see it.
    ///
    /// # Panics
    /// When a page is over its bound.
    pub async fn log_after(&self, after_position: u64) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        let mut after = after_position;
        loop {
            let page = self.get(&format!("/log?after_position={after}&limit=100")).await.expect(200);
            assert!(page.list().len() <= 100, "at most 100 a page");
            let Some(last) = page.list().last() else { return events };
            after = last["position"].as_u64().expect("an event has a position");
            events.extend_from_slice(page.list());
        }
    }
}
