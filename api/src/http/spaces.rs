//! Spaces: list, create, get, cancel, close.

use std::time::Duration;

use actors::{Context, Rejection, plain_text, space::summary::SpaceSummary, spaces::CreateSpace};
use axum::{
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode},
};
use eventlog::{
    Role, StreamId,
    event::{
        environment::{ColourScheme, Environment, Viewport},
        space::{Owner, OwnerKind},
    },
    id::{OwnerId, SpaceId},
};

use projections::{SpaceFilter, SpaceRow, SpaceStatus};

use super::{
    App,
    answer::{Answer, Page},
    asked::{Entered, Id},
    body::{Fields, Params, RawBody, choice, choice_text, list as list_of, number, parsed, text, whole},
    reads::{self, Wanted},
    wire,
};
use crate::problem::{Code, Problem};

/// Capabilities that a Space may be granted at most; the catalogue has fewer.
const CAPABILITIES_MAX: usize = 256;
/// The longest `Idempotency-Key`, in bytes.
const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;

const STATES: &[(&str, SpaceStatus)] = &[
    ("idle", SpaceStatus::Idle),
    ("running", SpaceStatus::Running),
    ("error", SpaceStatus::Error),
    ("closed", SpaceStatus::Closed),
];
/// `agent` is what the command line says; answers say `runtime_agent`.
const OWNERS: &[(&str, OwnerKind)] = &[
    ("operator", OwnerKind::Operator),
    ("runtime_agent", OwnerKind::RuntimeAgent),
    ("agent", OwnerKind::RuntimeAgent),
];

/// Hosts that an environment may let in.
const HOSTS_MAX: usize = 64;
const COLOUR_SCHEMES: &[(&str, ColourScheme)] =
    &[("light", ColourScheme::Light), ("dark", ColourScheme::Dark)];

/// `GET …/browser-spaces`
pub(crate) async fn list(
    State(app): State<App>,
    entered: Entered,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Page<wire::Space>, Problem> {
    let mut params = Params::new(query.as_deref());
    let status = params.optional("status", choice_text(STATES))?;
    let wanted = Wanted::of(&mut params)?;
    params.finish()?;
    reads::caught_up(&app, &entered.exchange, &headers).await?;
    let owner = own_only(&entered);
    let filter = SpaceFilter { workspaces: Some(vec![entered.workspace]), owner, status };
    let page = app.views.spaces(&filter, wanted.cursor(), wanted.limit).await?;
    let mut data = Vec::with_capacity(page.items.len());
    for row in page.items {
        data.push(reads::space_body(&app, row).await?);
    }
    Ok(Page { data, next: page.next })
}

/// An agent lists its own Spaces; the others list all of the Workspace.
fn own_only(entered: &Entered) -> Option<Owner> {
    let is_agent = entered.caller.role() == Some(Role::RuntimeAgent);
    let id = entered.caller.owner_id().filter(|_| is_agent)?;
    Some(Owner { kind: OwnerKind::RuntimeAgent, id: id.clone() })
}

/// `POST …/browser-spaces`
pub(crate) async fn create(
    State(app): State<App>,
    entered: Entered,
    headers: HeaderMap,
    body: RawBody,
) -> Result<Answer<wire::Space>, Problem> {
    entered.must_change()?;
    let idempotency_key = idempotency_key(&headers)?;
    let mut fields = body.fields()?;
    let create = CreateSpace {
        workspace: entered.workspace.clone(),
        instance: fields.required("browser_instance_id", parsed)?,
        binding: fields.optional("binding_id", parsed)?,
        owner: owner(&mut fields)?,
        granted_capabilities: fields.required("granted_capabilities", list_of(CAPABILITIES_MAX, parsed))?,
        idle_timeout: fields.optional("idle_timeout_seconds", whole(10..=86_400))?.map(Duration::from_secs),
        idempotency_key,
        environment: environment(fields.inner("environment")?)?,
    };
    fields.finish()?;
    let created = app.spaces.create(&entered.context(), create).await?;
    entered.exchange.span.record("space.id", tracing::field::display(created.space.space));
    let status = if created.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(Answer::with(status, wire::Space::from(&created.space)).at(created.space.position))
}

fn environment(mut fields: Fields) -> Result<Environment, Problem> {
    let shown = |value| plain_text(&text(value)?).map_err(Into::into);
    let environment = Environment {
        timezone: fields.optional("timezone", text)?,
        locale: fields.optional("locale", text)?,
        viewport: viewport(&mut fields)?,
        device_scale: fields.optional("device_scale", number)?,
        colour_scheme: fields.optional("colour_scheme", choice(COLOUR_SCHEMES))?,
        user_agent: fields.optional("user_agent", shown)?,
        start_page: fields.optional("start_page", shown)?,
        allowed_hosts: fields.optional("allowed_hosts", list_of(HOSTS_MAX, text))?.unwrap_or_default(),
    };
    fields.finish()?;
    Ok(environment)
}

fn viewport(fields: &mut Fields) -> Result<Option<Viewport>, Problem> {
    let mut sides = fields.inner("viewport")?;
    if sides.is_empty() {
        return Ok(None);
    }
    let side = || whole(100..=4_096);
    let (width, height) = (sides.required("width", side())?, sides.required("height", side())?);
    sides.finish()?;
    let side = |pixels| u32::try_from(pixels).unwrap_or(u32::MAX);
    Ok(Some(Viewport { width: side(width), height: side(height) }))
}

fn owner(fields: &mut Fields) -> Result<Owner, Problem> {
    let kind = fields.required("owner_type", choice(OWNERS))?;
    let id = fields.required::<OwnerId>("owner_id", parsed)?;
    Ok(Owner { kind, id })
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len()));
    match (key, values.next()) {
        (Some(key), None) => Ok(Some(key.to_owned())),
        _ => Err(Problem::invalid(
            "Idempotency-Key",
            "must stand there once, with 1 to 255 printable characters",
        )),
    }
}

/// `GET …/browser-spaces/{space_id}`
pub(crate) async fn get(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    headers: HeaderMap,
) -> Result<Answer<wire::Space>, Problem> {
    let row = readable(&app, &entered, space, &headers).await?;
    Ok(Answer::ok(reads::space_body(&app, row).await?))
}

/// `POST …/browser-spaces/{space_id}/cancel`
pub(crate) async fn cancel(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    body: RawBody,
) -> Result<Answer<wire::Space>, Problem> {
    let spaces = app.spaces.clone();
    let ask = async |context| spaces.cancel(&context, &entered.workspace, space).await;
    told(&app, &entered, space, body, ask).await
}

/// `POST …/browser-spaces/{space_id}/close`
pub(crate) async fn close(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    body: RawBody,
) -> Result<Answer<wire::Space>, Problem> {
    let spaces = app.spaces.clone();
    let ask = async |context| spaces.close(&context, &entered.workspace, space).await;
    told(&app, &entered, space, body, ask).await
}

/// Tells a Space something that needs no words.
async fn told(
    app: &App,
    entered: &Entered,
    space: SpaceId,
    body: RawBody,
    ask: impl AsyncFnOnce(Context) -> Result<SpaceSummary, Rejection>,
) -> Result<Answer<wire::Space>, Problem> {
    entered.exchange.span.record("space.id", tracing::field::display(space));
    if let Err(problem) = body.nothing() {
        return Err(in_order(app, entered, space, problem).await);
    }
    let summary = ask(entered.context()).await?;
    Ok(Answer::ok(wire::Space::from(&summary)).at(summary.position))
}

/// A Space that the caller may read, as the views have it; reading renews its owner's hold (S14).
pub(crate) async fn readable(
    app: &App,
    entered: &Entered,
    space: SpaceId,
    headers: &HeaderMap,
) -> Result<SpaceRow, Problem> {
    entered.exchange.span.record("space.id", tracing::field::display(space));
    reads::caught_up(app, &entered.exchange, headers).await?;
    let row = in_workspace(app, entered, space).await?;
    entered.caller.may_read(&row.workspace_id, &reads::owner(&row))?;
    app.spaces.touch(&entered.caller, space);
    Ok(row)
}

/// A Space of another Workspace is one that does not exist (C14).
async fn in_workspace(app: &App, entered: &Entered, space: SpaceId) -> Result<SpaceRow, Problem> {
    let row = app.views.space(space).await?.filter(|row| row.workspace_id == entered.workspace);
    let row = row.ok_or_else(|| Problem::new(Code::SpaceNotFound))?;
    let stream = StreamId::Space(space);
    // The row is what was folded before the damage was met.
    if app.log.is_damaged(&stream) { Err(Rejection::CorruptStream { stream }.into()) } else { Ok(row) }
}

/// What to answer to a body that is wrong: first whether the Space is there and may be changed by the caller. The door
/// checks that itself, so it is asked here only when the door can not be.
pub(crate) async fn in_order(app: &App, entered: &Entered, space: SpaceId, problem: Problem) -> Problem {
    let headers = HeaderMap::new();
    if let Err(earlier) = reads::caught_up(app, &entered.exchange, &headers).await {
        return earlier;
    }
    match in_workspace(app, entered, space).await {
        Err(earlier) => earlier,
        Ok(row) => match entered.caller.may_act(&row.workspace_id, &reads::owner(&row)) {
            Err(denial) => denial.into(),
            Ok(()) => problem,
        },
    }
}
