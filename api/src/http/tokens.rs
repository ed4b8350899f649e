//! Tokens of a Workspace: list, issue (the text is shown this once), revoke.

use actors::spaces::IssueToken;
use axum::{
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode},
};
use eventlog::{Json, Role, Timestamp, id::TokenId};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{
    App,
    answer::{Answer, Page},
    asked::{Entered, Entering, Id},
    body::{Phrase, RawBody, choice, flag, parsed, text},
    reads::{self, Wanted},
    wire,
};
use crate::problem::{Code, Problem};

/// `agent` is what the command line says; answers say `runtime_agent`.
const ROLES: &[(&str, Role)] = &[
    ("operator", Role::Operator),
    ("runtime_agent", Role::RuntimeAgent),
    ("agent", Role::RuntimeAgent),
    ("auditor", Role::Auditor),
];

/// `GET …/tokens`
pub(crate) async fn list(
    State(app): State<App>,
    entered: Entered,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Page<wire::Token>, Problem> {
    entered.must_oversee()?;
    let wanted = Wanted::only(query.as_deref())?;
    reads::caught_up(&app, &entered.exchange, &headers).await?;
    let page = app.views.tokens(&entered.workspace, wanted.cursor(), wanted.limit).await?;
    Ok(page.into())
}

/// `POST …/tokens`
pub(crate) async fn issue(
    State(app): State<App>,
    Entering(entered): Entering,
    body: RawBody,
) -> Result<Answer<wire::NewToken>, Problem> {
    entered.must_operate()?;
    let mut fields = body.fields()?;
    let issue = IssueToken {
        workspace: entered.workspace.clone(),
        role: fields.required("role", choice(ROLES))?,
        owner_id: fields.required("owner_id", parsed)?,
        all_workspaces: fields.optional("all_workspaces", flag)?.unwrap_or(false),
        expires_at: fields.optional("expires_at", moment)?,
    };
    fields.finish()?;
    if issue.all_workspaces {
        entered.must_hold_all()?;
    }
    let issued = app.spaces.issue_token(&entered.context(), issue.clone()).await?;
    let body = wire::NewToken {
        token_id: issued.id.to_string(),
        workspace_id: issue.workspace.to_string(),
        role: issue.role.into(),
        owner_id: issue.owner_id.to_string(),
        all_workspaces: issue.all_workspaces,
        expires_at: issue.expires_at.map(Timestamp::to_rfc3339),
        token: issued.token.into_exposed(),
    };
    Ok(Answer::with(StatusCode::CREATED, body).at(issued.position))
}

/// A moment as RFC 3339, to the microsecond.
fn moment(value: Json) -> Result<Timestamp, Phrase> {
    let moment = OffsetDateTime::parse(&text(value)?, &Rfc3339).ok();
    let micros = moment.and_then(|moment| i64::try_from(moment.unix_timestamp_nanos() / 1_000).ok());
    micros.map(Timestamp).ok_or_else(|| "must be a moment as 2026-11-30T15:04:05Z".into())
}

/// `POST …/tokens/{token_id}/revoke`
pub(crate) async fn revoke(
    State(app): State<App>,
    entered: Entered,
    Id(token): Id<TokenId>,
    body: RawBody,
) -> Result<Answer<wire::Token>, Problem> {
    entered.must_operate()?;
    body.nothing()?;
    let position = app.spaces.revoke_token(&entered.context(), &entered.workspace, token).await?;
    reads::absorbed(&app, position).await?;
    let found = app.views.token(token).await?.filter(|row| row.workspace_id == entered.workspace);
    found.map(|row| Answer::ok((&row).into()).at(position)).ok_or_else(|| Problem::new(Code::TokenNotFound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_to_the_microsecond_or_refused() {
        assert_eq!(moment("1970-01-01T00:00:01.000002Z".into()), Ok(Timestamp(1_000_002)));
        assert_eq!(moment("1970-01-01T01:00:00+01:00".into()), Ok(Timestamp(0)));
        for bad in ["", "tomorrow", "2026-11-30", "2026-11-30T15:04:05"] {
            assert!(moment(bad.into()).is_err(), "{bad}");
        }
    }
}
