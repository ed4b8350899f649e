//! What every route of `/api/v1` is given: who asks, in which Workspace, and about what. Taken from the request in the
//! order of the answers: 401, then 403 for the Workspace, then 404 for an id.

use std::{net::SocketAddr, str::FromStr};

use actors::{Caller, Context, Denial, Scope};
use axum::{
    extract::{ConnectInfo, FromRequestParts, RawPathParams, Request, State},
    http::request::Parts,
    middleware::Next,
    response::Response,
};
use eventlog::{
    Role, Sensitive, StreamId,
    id::{ArtifactId, BindingId, InstanceId, SpaceId, TaskId, TokenId, WorkspaceId},
};

use super::{
    App,
    body::{Phrase, parse_text},
    exchange::Exchange,
};
use crate::{
    identity,
    problem::{Code, Problem},
};

/// Who sees more than Spaces of their own.
pub(crate) const OVERSEERS: &[Role] = &[Role::Operator, Role::Auditor];

/// A caller who was authenticated by its token.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) caller: Caller,
    /// The same token again: a stream asks from time to time whether it is still good.
    pub(crate) token: Sensitive<String>,
    pub(crate) token_id: TokenId,
    pub(crate) exchange: Exchange,
}

/// Authenticates, and counts the request against its token's rate. Around every route below `/api/v1`.
pub(crate) async fn authenticate(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let exchange = exchange_of(request.extensions());
    let (caller, token) = identify(&app, request.headers(), request.extensions())?;
    let token_id = token_id(&caller)?;
    app.limits.admit(token_id)?;
    request.extensions_mut().insert(Asked { caller, token, token_id, exchange });
    Ok(next.run(request).await)
}

/// Who bears the request's token; a failure is counted against the peer.
pub(crate) fn identify(
    app: &App,
    headers: &axum::http::HeaderMap,
    extensions: &axum::http::Extensions,
) -> Result<(Caller, Sensitive<String>), Problem> {
    let refuse = || app.limits.refuse(peer(extensions).map(|peer| peer.ip()));
    let token = identity::bearer(headers).ok_or_else(refuse)?;
    let caller = app.spaces.authenticate(&token).map_err(|_| refuse())?;
    Ok((caller, token))
}

/// Where the request came from, where the server was told.
pub(crate) fn peer(extensions: &axum::http::Extensions) -> Option<SocketAddr> {
    extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0)
}

fn exchange_of(extensions: &axum::http::Extensions) -> Exchange {
    extensions.get::<Exchange>().expect("the outermost layer puts it there").clone()
}

/// The server itself never calls over HTTP, so a caller always has a token.
fn token_id(caller: &Caller) -> Result<TokenId, Problem> {
    match &caller.principal {
        eventlog::Principal::Token { token, .. } => Ok(*token),
        eventlog::Principal::System => Err(Problem::new(Code::Internal)),
    }
}

impl Asked {
    /// What goes with a command.
    pub(crate) fn context(&self) -> Context {
        self.exchange.context(&self.caller)
    }

    /// Refuses whoever is not an operator.
    pub(crate) fn must_operate(&self) -> Result<(), Problem> {
        Ok(self.caller.must_be(&[Role::Operator])?)
    }

    /// Refuses agents: what is asked is about more than their own Spaces.
    pub(crate) fn must_oversee(&self) -> Result<(), Problem> {
        Ok(self.caller.must_be(OVERSEERS)?)
    }

    /// Refuses auditors: they change nothing.
    pub(crate) fn must_change(&self) -> Result<(), Problem> {
        Ok(self.caller.must_be(&[Role::Operator, Role::RuntimeAgent])?)
    }

    /// Refuses whoever may not enter every Workspace: what is asked is about the whole server.
    pub(crate) fn must_hold_all(&self) -> Result<(), Problem> {
        match self.caller.scope {
            Scope::All => Ok(()),
            Scope::Only(_) => Err(Denial::EveryWorkspace.into()),
        }
    }
}

impl FromRequestParts<App> for Asked {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        Ok(parts
            .extensions
            .get::<Self>()
            .expect("`authenticate` is around every route that asks for it")
            .clone())
    }
}

/// A caller inside the Workspace of the path.
#[derive(Debug, Clone)]
pub(crate) struct Entered {
    pub(crate) asked: Asked,
    pub(crate) workspace: WorkspaceId,
}

impl std::ops::Deref for Entered {
    type Target = Asked;

    fn deref(&self) -> &Asked {
        &self.asked
    }
}

impl FromRequestParts<App> for Entered {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let (asked, workspace) = enter(parts, app).await?;
        let missing = || Problem::new(Code::WorkspaceNotFound);
        let workspace = workspace.map_err(|_| missing())?;
        if asked.caller.scope == Scope::All && !exists(app, &workspace).await? {
            return Err(missing());
        }
        Ok(Self { asked, workspace })
    }
}

/// The same, whether or not the Workspace is there yet: the first token of one makes it.
#[derive(Debug, Clone)]
pub(crate) struct Entering(pub(crate) Entered);

impl FromRequestParts<App> for Entering {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let (asked, workspace) = enter(parts, app).await?;
        let workspace = workspace.map_err(|phrase| Problem::invalid("workspace_id", phrase))?;
        Ok(Self(Entered { asked, workspace }))
    }
}

/// The caller and the Workspace of the path, or what is wrong with its name.
async fn enter(parts: &mut Parts, app: &App) -> Result<(Asked, Result<WorkspaceId, Phrase>), Problem> {
    let asked = Asked::from_request_parts(parts, app).await?;
    let name: Option<String> = path_param(parts, app, "workspace_id").await?;
    let workspace = parse_text::<WorkspaceId>(&name.unwrap_or_default());
    match (&asked.caller.scope, &workspace) {
        (Scope::All, _) => {}
        (Scope::Only(own), Ok(workspace)) if own.contains(workspace) => {}
        // The same for one that does not exist: who may not enter learns nothing.
        (Scope::Only(_), _) => return Err(Denial::Workspace.into()),
    }
    Ok((asked, workspace))
}

async fn exists(app: &App, workspace: &WorkspaceId) -> Result<bool, Problem> {
    let head = app.log.stream_head(&StreamId::Workspace(workspace.clone())).await?;
    Ok(head.0 > 0)
}

/// An id that stands in a path; one that does not parse is one that does not exist.
pub(crate) trait PathId: FromStr {
    /// Its name in the route.
    const PARAM: &'static str;
    /// How its absence is answered.
    const MISSING: Code;
}

macro_rules! path_ids {
    ($($id:ident = $param:literal, $missing:ident;)*) => {$(
        impl PathId for $id {
            const PARAM: &'static str = $param;
            const MISSING: Code = Code::$missing;
        }
    )*};
}

path_ids! {
    SpaceId = "space_id", SpaceNotFound;
    TaskId = "task_id", TaskNotFound;
    ArtifactId = "artifact_id", ArtifactNotFound;
    InstanceId = "instance_id", InstanceNotFound;
    BindingId = "binding_id", BindingNotFound;
    TokenId = "token_id", TokenNotFound;
}

/// The id of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Id<T>(pub(crate) T);

impl<T: PathId> FromRequestParts<App> for Id<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let id = path_param(parts, app, T::PARAM).await?.ok_or_else(|| Problem::new(T::MISSING))?;
        Ok(Self(id))
    }
}

/// A parameter of the path that parses. An address that is not UTF-8 leads nowhere at all.
async fn path_param<T: FromStr>(parts: &mut Parts, app: &App, name: &str) -> Result<Option<T>, Problem> {
    let params = RawPathParams::from_request_parts(parts, app).await;
    let params = params.map_err(|_| Problem::new(Code::RouteNotFound))?;
    Ok(params.iter().find(|(param, _)| *param == name).and_then(|(_, text)| text.parse().ok()))
}
