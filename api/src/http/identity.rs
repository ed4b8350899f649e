//! Who the bearer of a token is, and what it may do: so that a client offers nothing that would be refused.
//!
//! What is told here is found out by the same checks that the routes make; it gives no right.

use std::collections::BTreeSet;

use actors::Scope;
use axum::{extract::State, http::HeaderMap};
use eventlog::{Principal, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::{App, answer::Answer, asked::Asked, reads, wire::RoleName};
use crate::problem::{Code, Problem};

/// Workspaces that are named at most; a bearer who may enter every one may enter others as well.
const WORKSPACES_MAX: usize = 1_000;

/// Who asks, and what its role lets it do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Identity {
    #[schema(example = "tok_01jdz4b8c9e2tq5w7y3n6h0m1k")]
    pub(crate) token_id: String,
    #[schema(inline)]
    pub(crate) role: RoleName,
    /// Who it is, in events and in the audit trail.
    pub(crate) owner_id: String,
    /// Whether it may enter every Workspace, also those that are not there yet.
    pub(crate) all_workspaces: bool,
    /// Those that it may enter, by name; at most 1000.
    pub(crate) workspaces: Vec<String>,
    /// When its token ends by itself.
    #[schema(format = DateTime)]
    pub(crate) expires_at: Option<String>,
    /// What its role may do. Whether a certain Space or instance lets it is told where it is tried.
    #[schema(inline)]
    pub(crate) may: Vec<Right>,
}

/// Declares the acts, each with the check that its routes make.
macro_rules! acts {
    ($($(#[$doc:meta])* $act:ident if $($check:ident)&&+;)*) => {
        /// Something that a role may do or not.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum Right { $($(#[$doc])* $act,)* }

        impl Right {
            /// All that these checks let through.
            fn all_of(asked: &Asked) -> Vec<Self> {
                let acts = [$((Self::$act, $(asked.$check().is_ok())&&+),)*];
                acts.into_iter().filter_map(|(act, may)| may.then_some(act)).collect()
            }
        }
    };
}

acts! {
    /// Open Spaces; an agent those of its own id.
    OpenSpaces if must_change;
    /// Submit and cancel tasks, and close Spaces; an agent those of its own id.
    ActOnSpaces if must_change;
    /// Read Spaces of others in its Workspaces.
    ReadAllSpaces if must_oversee;
    /// Read the log, and have it verified and signed.
    ReadLog if must_oversee;
    /// Read the audit trail and the other views of a Workspace.
    Audit if must_oversee;
    /// Register and retire instances.
    ManageInstances if must_operate;
    /// Grant and revoke bindings.
    ManageBindings if must_operate;
    /// List tokens.
    ListTokens if must_oversee;
    /// Issue and revoke tokens.
    ManageTokens if must_operate;
    /// Issue tokens for every Workspace, and drain the server.
    ManageServer if must_operate && must_hold_all;
}

/// `GET /identity`
pub(crate) async fn get(
    State(app): State<App>,
    asked: Asked,
    headers: HeaderMap,
) -> Result<Answer<Identity>, Problem> {
    let Principal::Token { role, id, token } = &asked.caller.principal else {
        return Err(Problem::new(Code::Internal));
    };
    reads::caught_up(&app, &asked.exchange, &headers).await?;
    let row = app.views.token(*token).await?;
    let workspaces = match &asked.caller.scope {
        Scope::All => every_workspace(&app).await?,
        Scope::Only(own) => own.iter().map(ToString::to_string).collect(),
    };
    Ok(Answer::ok(Identity {
        token_id: token.to_string(),
        role: (*role).into(),
        owner_id: id.to_string(),
        all_workspaces: asked.caller.scope == Scope::All,
        workspaces: workspaces.into_iter().take(WORKSPACES_MAX).collect(),
        expires_at: row.and_then(|row| row.expires_at).map(Timestamp::to_rfc3339),
        may: Right::all_of(&asked),
    }))
}

async fn every_workspace(app: &App) -> Result<BTreeSet<String>, Problem> {
    let mut names = BTreeSet::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = app.views.workspaces(cursor.as_deref(), projections::views::PAGE_ITEMS_MAX).await?;
        names.extend(page.items.iter().map(|row| row.workspace_id.to_string()));
        cursor = page.next;
        if cursor.is_none() || names.len() >= WORKSPACES_MAX {
            return Ok(names);
        }
    }
}
