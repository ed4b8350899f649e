//! The HTTP surface: every route on one screen, and the layers around them.
//!
//! ```text
//! request ─► surround (ids, span, log line) ─► guard (names, bounds) ─► time_out ─► authenticate ─► handler
//!            401 ─► 422 for a parameter where there is none ─► 403 for the Workspace ─► 404 for the id ─► 403 for the owner ─► 400, 422 or 409
//! ```
//!
//! Handlers turn a request into a command for [`actors::Spaces`] or a question to the views, and the answer into a
//! body of [`wire`]. They decide nothing: rules live in `actors`.

mod answer;
mod artifacts;
mod asked;
mod audit;
mod bindings;
mod body;
pub(crate) mod connections;
mod console;
mod docs;
pub(crate) mod downloads;
mod events;
pub(crate) mod evidence;
mod exchange;
mod gate;
pub(crate) mod identity;
mod instances;
mod log;
mod prefer;
mod reads;
pub(crate) mod server;
mod spaces;
mod stream;
mod tasks;
#[cfg(test)]
mod tests;
mod tokens;
mod view;
pub(crate) mod wire;

use std::sync::Arc;

use actors::Spaces;
use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware::{from_fn, from_fn_with_state},
    routing::{get, post},
};
use eventlog::EventLog;
use metrics_exporter_prometheus::PrometheusHandle;
use projections::Views;
use tokio::{net::TcpListener, sync::Mutex};
use tokio_util::sync::CancellationToken;

use crate::{
    checkpoints,
    identity::Names,
    limits::{HttpConfig, Limits},
};

/// What the HTTP surface is built from.
#[derive(Clone)]
pub struct AppState {
    /// The one door to everything that changes something.
    pub spaces: Spaces,
    /// What reads are answered from.
    pub views: Views,
    /// What events are read from.
    pub log: Arc<dyn EventLog>,
    /// The bounds; validated before.
    pub config: HttpConfig,
    /// What `/metrics` prints.
    pub metrics: PrometheusHandle,
    /// Cancelled when the server stops: open event streams end, so that a graceful stop does not wait for them.
    pub stopping: CancellationToken,
    /// Who signs the log; `None` where it lies on no disk.
    pub checkpoints: Option<checkpoints::Handle>,
}

/// The state that handlers see: what was given, and the counters. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) spaces: Spaces,
    pub(crate) views: Views,
    pub(crate) log: Arc<dyn EventLog>,
    pub(crate) config: HttpConfig,
    pub(crate) metrics: PrometheusHandle,
    pub(crate) stopping: CancellationToken,
    pub(crate) checkpoints: Option<checkpoints::Handle>,
    /// Held by the one check of the log that may be under way.
    pub(crate) verifying: Arc<Mutex<()>>,
    pub(crate) names: Names,
    pub(crate) limits: Limits,
}

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl From<AppState> for App {
    fn from(state: AppState) -> Self {
        let AppState { spaces, views, log, config, metrics, stopping, checkpoints } = state;
        let (names, limits) = (Names::new(&config), Limits::new(&config));
        let verifying = Arc::default();
        Self(Arc::new(Inner {
            spaces,
            views,
            log,
            config,
            metrics,
            stopping,
            checkpoints,
            verifying,
            names,
            limits,
        }))
    }
}

/// Serves the whole surface until the state's `stopping` is cancelled; returns once what was under way is answered.
pub(crate) async fn serve(listener: TcpListener, state: AppState) {
    let (config, stopping) = (state.config.clone(), state.stopping.clone());
    let app = App::from(state);
    let refusal = Router::new()
        .fallback(gate::no_place)
        .layer(from_fn_with_state(app.clone(), exchange::surround))
        .with_state(app.clone());
    connections::serve(listener, routes(app), refusal, &config, stopping).await;
}

/// Every route, with its layers.
///
/// Whoever serves it puts the peer's address into each request as `ConnectInfo<SocketAddr>`: failed authentications
/// are counted by peer, and `metrics_public` means this machine only.
pub fn router(state: AppState) -> Router {
    routes(App::from(state))
}

fn routes(app: App) -> Router {
    let task_body = DefaultBodyLimit::max(app.config.task_body_bytes_max);
    let space = Router::new()
        .route("/", get(spaces::get))
        .route("/tasks", get(tasks::list).post(tasks::submit).layer(task_body))
        .route("/tasks/{task_id}", get(tasks::get))
        .route("/cancel", post(spaces::cancel))
        .route("/close", post(spaces::close))
        .route("/events", get(events::of_space))
        .route("/view", get(view::of_space))
        .route("/artifacts", get(artifacts::list))
        .route("/artifacts/{artifact_id}", get(artifacts::bytes))
        .route("/downloads", get(downloads::list))
        .route("/downloads/{guid}/release", post(downloads::release))
        .route("/downloads/{guid}/reject", post(downloads::reject))
        .route("/downloads/{guid}/content", get(downloads::content));
    let workspace = Router::new()
        .route("/browser-spaces", get(spaces::list).post(spaces::create))
        .nest("/browser-spaces/{space_id}", space)
        .route("/bindings", get(bindings::list).post(bindings::grant))
        .route("/bindings/{binding_id}/revoke", post(bindings::revoke))
        .route("/tokens", get(tokens::list).post(tokens::issue))
        .route("/tokens/{token_id}/revoke", post(tokens::revoke))
        .route("/audit-trail", get(audit::list));
    let v1 = Router::new()
        .nest("/workspaces/{workspace_id}", workspace)
        .route("/browser-instances", get(instances::list).post(instances::register))
        .route("/browser-instances/{instance_id}/retire", post(instances::retire))
        .route("/identity", get(identity::get))
        .route("/capabilities", get(server::capabilities))
        .route("/log", get(log::events))
        .route("/log/verify", post(evidence::verify))
        .route("/log/checkpoint", post(evidence::checkpoint))
        .route("/server/drain", post(server::drain))
        .route_layer(from_fn(gate::parameters))
        .route_layer(from_fn_with_state(app.clone(), asked::authenticate));
    Router::new()
        .nest("/api/v1", v1)
        .route("/healthz", get(server::healthz))
        .route("/readyz", get(server::readyz))
        .route("/metrics", get(server::metrics))
        .route("/openapi.json", get(docs::openapi))
        .route("/", get(console::page))
        .route("/assets/{*name}", get(console::asset))
        .route("/favicon.svg", get(console::asset))
        .route("/docs", get(docs::page))
        .route("/docs/style.css", get(docs::style))
        .fallback(gate::no_route)
        .method_not_allowed_fallback(gate::no_method)
        .layer(DefaultBodyLimit::max(app.config.body_bytes_max))
        .layer(from_fn_with_state(app.clone(), gate::time_out))
        .layer(from_fn_with_state(app.clone(), gate::guard))
        .layer(from_fn_with_state(app.clone(), exchange::surround))
        .with_state(app)
}
