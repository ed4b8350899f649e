//! The first start on an empty data folder: Workspace `default`, some instances, one operator token.
//!
//! A marker file lies in the folder until all of it is done, so that a start which was cut short is completed by the
//! next one, and an operator who deletes the token file later does not get a new one by surprise.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use actors::{
    Caller, Context, Spaces,
    spaces::{IssueToken, RegisterInstance},
};
use eventlog::{
    Event, EventLog, InstanceEvent, Position, Role, TraceId,
    event::instance::{Bundle, InstanceKind, NetworkPolicy},
    id::{OwnerId, WorkspaceId},
};
use futures::StreamExt;

use super::{OPERATOR_TOKEN_FILE, StartError, write_private};

const MARKER_FILE: &str = "first-start";
const WORKSPACE: &str = "default";
const OPERATOR: &str = "operator";
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether the first start is still to be done; marks an empty folder.
pub(super) fn is_owed(data_dir: &Path, log: &dyn EventLog) -> Result<bool, StartError> {
    let marker = data_dir.join(MARKER_FILE);
    if *log.durable_head().borrow() > Position::ZERO {
        return Ok(marker.exists());
    }
    write_private(data_dir, MARKER_FILE, "the first start is not complete yet")
        .map_err(|source| StartError::Folder { path: data_dir.to_owned(), source })?;
    Ok(true)
}

/// Does what is left of it; gives the path of the token file.
pub(super) async fn complete(
    spaces: &Spaces,
    log: &dyn EventLog,
    data_dir: &Path,
    instances: u16,
) -> Result<PathBuf, StartError> {
    let workspace: WorkspaceId = WORKSPACE.parse().expect("the name is well formed");
    let owner_id: OwnerId = OPERATOR.parse().expect("the name is well formed");
    let folder = |source| StartError::Folder { path: data_dir.to_owned(), source };
    // An earlier try may have issued a token whose text never reached the file: nobody has it, so it opens nothing.
    let issue = IssueToken {
        workspace: workspace.clone(),
        all_workspaces: true,
        role: Role::Operator,
        owner_id,
        expires_at: None,
    };
    let issued = spaces.issue_token(&context(), issue).await.map_err(StartError::FirstStart)?;
    for _ in registered(log).await?..u64::from(instances) {
        spaces.register_instance(&context(), instance(&workspace)).await.map_err(StartError::FirstStart)?;
    }
    write_private(data_dir, OPERATOR_TOKEN_FILE, issued.token.expose()).map_err(folder)?;
    fs::remove_file(data_dir.join(MARKER_FILE)).map_err(folder)?;
    Ok(data_dir.join(OPERATOR_TOKEN_FILE))
}

fn instance(workspace: &WorkspaceId) -> RegisterInstance {
    RegisterInstance {
        kind: InstanceKind::Chromium,
        name: None,
        workspaces: Some(vec![workspace.clone()]),
        bundle: Bundle::Standard,
        network_policy: NetworkPolicy::default(),
        headless: true,
    }
}

/// How many instances an earlier try has registered. The log is short: nobody could do anything yet.
async fn registered(log: &dyn EventLog) -> Result<u64, StartError> {
    let mut events = log.read_all(Position(1));
    let mut count = 0;
    while let Some(event) = events.next().await {
        let event = event.map_err(actors::StartError::from)?.event;
        count += u64::from(matches!(event, Event::Instance(InstanceEvent::Registered { .. })));
    }
    Ok(count)
}

fn context() -> Context {
    Context {
        caller: Caller::system(),
        trace_id: TraceId::default(),
        span: tracing::info_span!("first_start"),
        deadline: Instant::now() + PATIENCE,
    }
}
