//! Bindings of a Workspace: list, grant, revoke.

use actors::spaces::GrantBinding;
use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
};
use eventlog::{Role, id::BindingId};

use super::{
    App,
    answer::{Answer, Page},
    asked::{Entered, Id},
    body::{RawBody, list as list_of, parsed},
    instances, reads, wire,
};
use crate::problem::{Code, Problem};

/// Capabilities that a binding may name at most.
const CAPABILITIES_MAX: usize = 256;

/// `GET …/bindings`: an agent sees those that are for it or for everybody in the Workspace.
pub(crate) async fn list(
    State(app): State<App>,
    entered: Entered,
    headers: HeaderMap,
) -> Result<Page<wire::Binding>, Problem> {
    reads::caught_up(&app, &entered.exchange, &headers).await?;
    let mut bindings = reads::bindings(&app, &entered.workspace).await?;
    if entered.caller.role() == Some(Role::RuntimeAgent) {
        let own = entered.caller.owner_id().map(ToString::to_string);
        bindings.retain(|binding| binding.owner_id.is_none() || binding.owner_id == own);
    }
    Ok(Page::whole(bindings))
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
    let id = binding.to_string();
    let bindings = reads::bindings(app, &entered.workspace).await?;
    bindings
        .into_iter()
        .find(|binding| binding.binding_id == id)
        .ok_or_else(|| Problem::new(Code::BindingNotFound))
}
