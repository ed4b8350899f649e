//! Browser instances: list, register, retire. No endpoint, path or pid is shown.

use actors::{Denial, Scope, spaces::RegisterInstance};
use axum::{
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode},
};
use eventlog::{
    Json, Position,
    event::instance::{Bundle, InstanceKind, NetworkPolicy},
    id::{InstanceId, WorkspaceId},
};

use projections::{InstanceRow, views::PAGE_ITEMS_MAX};

use super::{
    App,
    answer::{Answer, Page},
    asked::{Asked, Id},
    body::{Fields, Phrase, RawBody, choice, flag, list as list_of, parsed, text, whole},
    reads::{self, Wanted},
    wire,
};
use crate::problem::{Code, Problem};

/// Workspaces that an instance may name at most.
const WORKSPACES_MAX: usize = 100;
/// Rules of one list of a network policy at most.
const RULES_MAX: usize = 200;
/// The longest rule, in bytes: a DNS name and a port.
const RULE_BYTES_MAX: usize = 260;

const KINDS: &[(&str, InstanceKind)] =
    &[("chromium", InstanceKind::Chromium), ("scripted", InstanceKind::Scripted)];
const BUNDLES: &[(&str, Bundle)] = &[("standard", Bundle::Standard), ("trusted", Bundle::Trusted)];

/// `GET /browser-instances`: those that a Workspace of the caller may reserve.
pub(crate) async fn list(
    State(app): State<App>,
    asked: Asked,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Page<wire::Instance>, Problem> {
    let wanted = Wanted::only(query.as_deref())?;
    reads::caught_up(&app, &asked.exchange, &headers).await?;
    let own = own(&asked);
    let page = app.views.instances(own.as_deref(), wanted.cursor(), wanted.limit).await?;
    let data = page.items.iter().map(|row| shown(&app, &asked, row)).collect();
    Ok(Page { data, next: page.next })
}

/// The Workspaces that the caller may enter; `None`: every one.
fn own(asked: &Asked) -> Option<Vec<WorkspaceId>> {
    match &asked.caller.scope {
        Scope::All => None,
        Scope::Only(own) => Some(own.iter().cloned().collect()),
    }
}

/// An instance as this caller may see it: of its Workspaces, only those that are the caller's too.
fn shown(app: &App, asked: &Asked, row: &InstanceRow) -> wire::Instance {
    let mut body = wire::Instance::new(row, app.spaces.catalogue().bundle(row.bundle));
    let mine = row.workspaces.iter().filter(|workspace| asked.caller.scope.holds(workspace));
    body.workspaces = mine.map(ToString::to_string).collect();
    body
}

/// An instance, if this caller may see it; else one that does not exist.
pub(crate) async fn visible(
    app: &App,
    asked: &Asked,
    instance: InstanceId,
) -> Result<wire::Instance, Problem> {
    reads::absorbed(app, asked.exchange.head).await?;
    let missing = || Problem::new(Code::InstanceNotFound);
    let row = app.views.instance(instance).await?.ok_or_else(missing)?;
    let is_named = row.workspaces.iter().any(|workspace| asked.caller.scope.holds(workspace));
    if is_named || asked.caller.scope == Scope::All || is_bound(app, asked, instance).await? {
        return Ok(shown(app, asked, &row));
    }
    Err(missing())
}

/// Whether a binding lets one of the caller's Workspaces reserve the instance.
async fn is_bound(app: &App, asked: &Asked, instance: InstanceId) -> Result<bool, Problem> {
    let own = own(asked);
    let mut cursor = None;
    loop {
        let page = app.views.instances(own.as_deref(), cursor.as_deref(), PAGE_ITEMS_MAX).await?;
        if page.items.iter().any(|row| row.browser_instance_id == instance) {
            return Ok(true);
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(false);
        }
    }
}

/// `POST /browser-instances`
pub(crate) async fn register(
    State(app): State<App>,
    asked: Asked,
    body: RawBody,
) -> Result<Answer<wire::Instance>, Problem> {
    asked.must_operate()?;
    let mut fields = body.fields()?;
    let register = RegisterInstance {
        kind: fields.required("kind", choice(KINDS))?,
        name: fields.optional("name", parsed)?,
        workspaces: fields.optional("workspaces", list_of(WORKSPACES_MAX, parsed))?,
        bundle: fields.optional("bundle", choice(BUNDLES))?.unwrap_or(Bundle::Standard),
        network_policy: network_policy(fields.inner("network_policy")?)?,
        headless: fields.optional("headless", flag)?.unwrap_or(true),
    };
    fields.finish()?;
    let named = register.workspaces.iter().flatten();
    if !named.into_iter().all(|workspace| asked.caller.scope.holds(workspace)) {
        return Err(Denial::EachWorkspace.into());
    }
    let (instance, position) = app.spaces.register_instance(&asked.context(), register).await?;
    let body = known(&app, &asked, instance, position).await?;
    Ok(Answer::with(StatusCode::CREATED, body).at(position))
}

fn network_policy(mut fields: Fields) -> Result<NetworkPolicy, Problem> {
    let rules = || list_of(RULES_MAX, rule);
    let policy = NetworkPolicy {
        allow: fields.optional("allow", rules())?.unwrap_or_default(),
        deny: fields.optional("deny", rules())?.unwrap_or_default(),
        max_bytes: fields.optional("max_bytes", whole(1..=u64::MAX))?,
        max_connections: fields
            .optional("max_connections", whole(1..=65_535))?
            .map(|most| u32::try_from(most).expect("the range was checked")),
    };
    fields.finish()?;
    Ok(policy)
}

/// `host` or `host:port`. What a host may be is for the egress rules to say; here it only must be one word.
fn rule(value: Json) -> Result<String, Phrase> {
    let rule = text(value)?;
    let is_word = rule.bytes().all(|byte| byte.is_ascii_graphic() && !b"/@?#\\".contains(&byte));
    let fits = (1..=RULE_BYTES_MAX).contains(&rule.len()) && is_word;
    if fits { Ok(rule.to_ascii_lowercase()) } else { Err("must be host or host:port".into()) }
}

/// `POST /browser-instances/{instance_id}/retire`
pub(crate) async fn retire(
    State(app): State<App>,
    asked: Asked,
    Id(instance): Id<InstanceId>,
    body: RawBody,
) -> Result<Answer<wire::Instance>, Problem> {
    asked.must_operate()?;
    visible(&app, &asked, instance).await?;
    body.nothing()?;
    let position = app.spaces.retire_instance(&asked.context(), instance).await?;
    let body = known(&app, &asked, instance, position).await?;
    Ok(Answer::ok(body).at(position))
}

async fn known(
    app: &App,
    asked: &Asked,
    instance: InstanceId,
    position: Position,
) -> Result<wire::Instance, Problem> {
    reads::absorbed(app, position).await?;
    visible(app, asked, instance).await
}
