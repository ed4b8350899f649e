//! The surface as a whole, without a socket: the real door on a scripted runtime, a log in memory, real views.

mod access;
mod artifacts;
mod audit;
mod connections;
mod envelope;
mod events;
mod identity;
mod tasks;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use actors::{
    Caller, Context, Spaces,
    capability::{Catalogue, Sensitivity, row},
    config::Config,
    spaces::{IssueToken, Parts},
};
use axum::{
    Router,
    body::Body,
    extract::ConnectInfo,
    http::{HeaderMap, Method, Request, StatusCode},
    response::Response,
};
use eventlog::{EventLog, Role, event::instance::Bundle, memory::MemoryLog, sealing::KeyStore};
use http_body_util::BodyExt as _;
use metrics_exporter_prometheus::PrometheusBuilder;
use projections::{Projector, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt as _;

use super::{App, AppState, router};
use crate::limits::HttpConfig;

/// The Workspace that most tests play in.
const WORKSPACE: &str = "/api/v1/workspaces/team";

/// A whole server without its socket. Everything ends when it is dropped.
struct Server {
    state: AppState,
    router: Router,
    spaces: Spaces,
    /// May enter every Workspace.
    operator: String,
    stopping: CancellationToken,
    _stop: DropGuard,
    dir: TempDir,
}

impl Server {
    async fn start() -> Self {
        Self::with(HttpConfig::default()).await
    }

    async fn with(config: HttpConfig) -> Self {
        config.validate().expect("the configuration is valid");
        let dir = TempDir::new().expect("a folder");
        let log: Arc<dyn EventLog> = Arc::new(MemoryLog::new());
        let actors = Config { allow_scripted_runtime: true, ..Config::default() };
        let mut parts = Parts::new(Arc::clone(&log), dir.path().to_owned(), actors).expect("parts");
        parts.keys = Some(Arc::new(KeyStore::in_memory()));
        parts.catalogue = catalogue();
        let spaces = Spaces::start(parts).await.expect("the actors start");
        let store =
            Store::open(&projections::Place::Sqlite(dir.path().join("views.sqlite"))).await.expect("a store");
        let projector = Projector::open(store.clone(), Arc::clone(&log)).await.expect("a projector");
        let stopping = CancellationToken::new();
        tokio::spawn(projector.run(stopping.clone()));
        let metrics = PrometheusBuilder::new().build_recorder().handle();
        let (views, spaces_of_state, stops) = (store.views(), spaces.clone(), stopping.clone());
        let state = AppState {
            spaces: spaces_of_state,
            views,
            log,
            config,
            metrics,
            stopping: stops,
            checkpoints: None,
        };
        let operator = first_token(&spaces).await;
        let stop = stopping.clone().drop_guard();
        Self { router: router(state.clone()), state, spaces, operator, stopping, _stop: stop, dir }
    }

    /// The state that handlers see, anew.
    fn app(&self) -> App {
        App::from(self.state.clone())
    }

    /// Sends a request as it is.
    async fn raw(&self, mut request: Request<Body>) -> Response {
        let peer: SocketAddr = "127.0.0.1:4711".parse().expect("an address");
        request.extensions_mut().insert(ConnectInfo(peer));
        self.router.clone().oneshot(request).await.expect("the router always answers")
    }

    async fn send(&self, ask: Ask<'_>) -> Reply {
        Reply::of(self.raw(ask.request()).await).await
    }

    async fn get(&self, token: &str, path: &str) -> Reply {
        self.send(Ask::get(path).by(token)).await
    }

    async fn post(&self, token: &str, path: &str, body: Value) -> Reply {
        self.send(Ask::post(path, body).by(token)).await
    }

    /// A token of the Workspace of `path`, of this role and owner.
    async fn token(&self, path: &str, role: &str, owner: &str) -> String {
        let body = json!({ "role": role, "owner_id": owner });
        let made = self.post(&self.operator, &format!("{path}/tokens"), body).await;
        made.expect(StatusCode::CREATED)["token"].as_str().expect("a token").to_owned()
    }

    /// A scripted instance that the Workspace may reserve.
    async fn instance(&self, workspace: &str) -> String {
        let body = json!({ "kind": "scripted", "bundle": "standard", "workspaces": [workspace] });
        let made = self.post(&self.operator, "/api/v1/browser-instances", body).await;
        made.expect(StatusCode::CREATED)["browser_instance_id"].as_str().expect("an id").to_owned()
    }

    /// A Space of the agent `owner`, and its path.
    async fn space(&self, token: &str, owner: &str) -> String {
        let instance = self.instance("team").await;
        let made = self.post(token, &format!("{WORKSPACE}/browser-spaces"), create(&instance, owner)).await;
        let id = made.expect(StatusCode::CREATED)["space_id"].as_str().expect("an id").to_owned();
        format!("{WORKSPACE}/browser-spaces/{id}")
    }

    /// An agent's token and a Space of its own.
    async fn agent_with_space(&self) -> (String, String) {
        let token = self.token(WORKSPACE, "runtime_agent", "agent-a").await;
        let space = self.space(&token, "agent-a").await;
        (token, space)
    }
}

/// Three capabilities, which is all that these tests ask for; their own, so that the program's may change.
fn catalogue() -> Arc<Catalogue> {
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Navigate {
        url: String,
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    let rows = [
        row::<Navigate, Nothing>(
            "navigate",
            "Goes to a page.",
            Bundle::Standard,
            Sensitivity::ACTS,
            json!({ "url": "https://a.example" }),
        ),
        row::<Nothing, Nothing>(
            "get_url",
            "Says where it is.",
            Bundle::Standard,
            Sensitivity::READS,
            json!({}),
        ),
        row::<Nothing, Nothing>("click", "Clicks.", Bundle::Standard, Sensitivity::ACTS, json!({})),
    ];
    Arc::new(Catalogue::new(rows).expect("the table is well-formed"))
}

async fn first_token(spaces: &Spaces) -> String {
    let context = Context {
        caller: Caller::system(),
        trace_id: eventlog::TraceId::default(),
        span: tracing::Span::none(),
        deadline: std::time::Instant::now() + Duration::from_secs(10),
    };
    let issue = |workspace: &str| IssueToken {
        workspace: workspace.parse().expect("a name"),
        all_workspaces: true,
        role: Role::Operator,
        owner_id: "root".parse().expect("a name"),
        expires_at: None,
    };
    // A second Workspace, so that there is one to keep out of.
    spaces.issue_token(&context, issue("other")).await.expect("a token");
    spaces.issue_token(&context, issue("team")).await.expect("a token").token.into_exposed()
}

fn create(instance: &str, owner: &str) -> Value {
    json!({
        "browser_instance_id": instance,
        "owner_type": "runtime_agent",
        "owner_id": owner,
        "granted_capabilities": ["navigate", "get_url"],
    })
}

/// A `navigate` whose URL tells the scripted runtime what to play.
fn navigate(request_id: &str, script: &str) -> Value {
    json!({
        "request_id": request_id,
        "capability": "navigate",
        "args": { "url": format!("http://scripted.invalid/?{script}") },
    })
}

/// One request.
struct Ask<'a> {
    method: Method,
    path: &'a str,
    headers: Vec<(&'static str, String)>,
    body: Body,
}

impl<'a> Ask<'a> {
    fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, headers: Vec::new(), body: Body::empty() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "a body is made at the call")]
    fn post(path: &'a str, body: Value) -> Self {
        let ask = Self { method: Method::POST, body: Body::from(body.to_string()), ..Self::get(path) };
        ask.with("content-type", "application/json")
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn by(self, token: &str) -> Self {
        self.with("authorization", format!("Bearer {token}"))
    }

    fn request(self) -> Request<Body> {
        let mut request = Request::builder().method(self.method).uri(self.path);
        if !self.headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "127.0.0.1:7000");
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        request.body(self.body).expect("a request")
    }
}

/// One answer, whole.
#[derive(Debug)]
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Reply {
    async fn of(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        Self {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// The data of a success.
    #[track_caller]
    fn expect(&self, status: StatusCode) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.json()["data"].clone()
    }

    /// Checks that this is an error in the envelope, with this status and code.
    #[track_caller]
    fn refused(&self, status: u16, code: &str) -> Value {
        let error = self.json()["error"].clone();
        assert_eq!((self.status.as_u16(), error["code"].as_str()), (status, Some(code)), "{}", self.text);
        assert_eq!(self.json()["data"], Value::Null);
        assert!(error["message"].is_string() && error["retryable"].is_boolean(), "{}", self.text);
        error["details"].clone()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}
