//! Bindings of a Workspace: list, grant, revoke.

use actors::spaces::GrantBinding;
use axum::{
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode},
};
use eventlog::{Role, id::BindingId};

use super::{
    App,
    answer::{Answer, Page},
    asked::{Entered, Id},
    body::{RawBody, list as list_of, parsed},
    instances,
    reads::{self, Wanted},
    wire,
};
use crate::problem::{Code, Problem};

/// Capabilities that a binding may name at most.
const CAPABILITIES_MAX: usize = 256;

/// `GET …/bindings`: an agent sees those that are for it or for everybody in the Workspace, so a page may be short.
pub(crate) async fn list(
    State(app): State<App>,
    entered: Entered,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Page<wire::Binding>, Problem> {
    let wanted = Wanted::only(query.as_deref())?;
    reads::caught_up(&app, &entered.exchange, &headers).await?;
    let mut page = app.views.bindings(&entered.workspace, wanted.cursor(), wanted.limit).await?;
    if entered.caller.role() == Some(Role::RuntimeAgent) {
        page.items.retain(|binding| {
            binding.owner_id.is_none() || binding.owner_id.as_ref() == entered.caller.owner_id()
        });
    }
    Ok(page.into())
}

/// `POST …/bindings`
pub(crate) async fn grant(
    State(app): State<App>,
    entered: Entered,
    body: RawBody,
) -> Result<Answer<wire::Binding>, Problem> {
    entered.must_operate()?;
    let mut fields = body.fields()?;
    let grant = GrantBinding {
        workspace: entered.workspace.clone(),
        instance: fields.required("browser_instance_id", parsed)?,
        owner_id: fields.optional("owner_id", parsed)?,
        capabilities: fields.optional("capabilities", list_of(CAPABILITIES_MAX, parsed))?,
    };
    fields.finish()?;
    // Whoever may not see an instance can not let others reserve it.
    instances::visible(&app, &entered.asked, grant.instance).await?;
    let (binding, position) = app.spaces.grant_binding(&entered.context(), grant).await?;
    let body = known(&app, &entered, binding, position).await?;
    Ok(Answer::with(StatusCode::CREATED, body).at(position))
}

/// `POST …/bindings/{binding_id}/revoke`
pub(crate) async fn revoke(
    State(app): State<App>,
    entered: Entered,
    Id(binding): Id<BindingId>,
    body: RawBody,
) -> Result<Answer<wire::Binding>, Problem> {
    entered.must_operate()?;
    body.nothing()?;
    let position = app.spaces.revoke_binding(&entered.context(), &entered.workspace, binding).await?;
    let body = known(&app, &entered, binding, position).await?;
    Ok(Answer::ok(body).at(position))
}

async fn known(
    app: &App,
    entered: &Entered,
    binding: BindingId,
    position: eventlog::Position,
) -> Result<wire::Binding, Problem> {
    reads::absorbed(app, position).await?;
    let found = app.views.binding(binding).await?.filter(|row| row.workspace_id == entered.workspace);
    found.as_ref().map(wire::Binding::from).ok_or_else(|| Problem::new(Code::BindingNotFound))
}
