//! What can be done to a data folder without a server: reading events, tokens while no server runs, rebuilding views.
//!
//! Changes go through the same pure rules as the server's, and need the folder's lock, so that they never meet one.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use actors::{
    Caller, Rejection, capability,
    clock::{Clock, IdSource, SystemClock, SystemIds},
    tokens,
    workspace::{self, WorkspaceState},
};
use anyhow::{Result, bail};
use eventlog::{
    Append, Appended, Event, EventLog, ExpectedSequence, Metadata, Part, Position, Principal, ReadError,
    Role, Sensitive, Sequence, ServerEvent, StreamId, Timestamp, TraceId, WorkspaceEvent,
    id::{BootId, CommandId, OwnerId, TokenId, WorkspaceId},
    log::Events,
    segment::{OpenError, OpenOptions, SegmentLog, SegmentReader},
};
use futures::StreamExt;
use projections::{Place, Store};
use serde_json::{Value, json};

use crate::config::Config;

/// How often a follower looks for more. The server's own readers are told; one from outside can only look.
const FOLLOW_TICK: Duration = Duration::from_millis(100);
/// Batches that are read ahead of the one who prints.
const BATCHES_AHEAD: usize = 4;

/// Where the log lies in a data folder.
#[must_use]
pub fn log_folder(data_dir: &Path) -> PathBuf {
    data_dir.join("log")
}

/// Where the views lie in a data folder, where no other place is configured.
#[must_use]
pub fn views_file(data_dir: &Path) -> PathBuf {
    data_dir.join("views.sqlite")
}

/// Opens the log of a data folder for itself; it must reach at least `known_position`.
///
/// # Errors
/// [`OpenError`]: each says what to do.
pub fn open_log(config: &Config, known_position: Position) -> Result<SegmentLog, OpenError> {
    SegmentLog::open(OpenOptions {
        known_position,
        free_bytes_min: config.free_space_min_mib * 1024 * 1024,
        ..OpenOptions::new(log_folder(&config.data_dir))
    })
}

/// Where the log of a data folder ends, as far as whole batches lie there. Reads its last segment only.
///
/// # Errors
/// As [`read_events`], or the segment can not be read.
pub fn head(config: &Config) -> Result<Position> {
    // Nobody is at the end of that: the last segment is opened, and nothing of it is told.
    let mut reader = SegmentReader::open_at(&existing_log(config)?, Position(u64::MAX))?;
    while reader.next_batch()?.is_some() {}
    Ok(Position(reader.read_to().0 - 1))
}

/// The log of a data folder.
///
/// # Errors
/// There is none.
pub fn existing_log(config: &Config) -> Result<PathBuf> {
    let folder = log_folder(&config.data_dir);
    if !folder.is_dir() {
        bail!("there is no log in {} (is --data-dir right?)", config.data_dir.display());
    }
    Ok(folder)
}

/// The events of a data folder from a position on, read beside whoever writes there; with `follow`, also what comes.
///
/// # Errors
/// There is no log in this folder, or its segments do not join.
pub fn read_events(config: &Config, from: Position, follow: bool) -> Result<Events> {
    let mut reader = SegmentReader::open_at(&existing_log(config)?, from)?;
    let (sender, receiver) = tokio::sync::mpsc::channel(BATCHES_AHEAD);
    // The disk blocks, so it has a thread of its own; it ends when nobody listens any more.
    std::thread::Builder::new().name("replay".to_owned()).spawn(move || {
        loop {
            let batch = match reader.next_batch() {
                Ok(Some(batch)) => Ok(batch),
                Ok(None) if follow && !sender.is_closed() => {
                    std::thread::sleep(FOLLOW_TICK);
                    continue;
                }
                Ok(None) => break,
                Err(error) => Err(error),
            };
            let is_last = batch.is_err();
            if sender.blocking_send(batch).is_err() || is_last {
                break;
            }
        }
    })?;
    let batches = tokio_stream::wrappers::ReceiverStream::new(receiver);
    Ok(batches.flat_map(|batch| futures::stream::iter(events_of(batch))).boxed())
}

fn events_of(
    batch: Result<Vec<eventlog::RecordedEvent>, ReadError>,
) -> Vec<Result<eventlog::RecordedEvent, ReadError>> {
    match batch {
        Ok(events) => events.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    }
}

/// The tokens of a Workspace, as the API lists them, the newest first; never their text or hash. Reads only.
///
/// # Errors
/// As [`read_events`], or the log can not be read to its end.
pub async fn read_tokens(config: &Config, workspace: &WorkspaceId) -> Result<Vec<Value>> {
    let stream = StreamId::Workspace(workspace.clone());
    let mut events = read_events(config, Position(1), false)?;
    let mut state = WorkspaceState::Absent(workspace.clone());
    let mut issued = Vec::new();
    while let Some(event) = events.next().await {
        let event = event?;
        if event.stream == stream {
            if let Event::Workspace(WorkspaceEvent::TokenIssued { token, .. }) = &event.event {
                issued.push(*token);
            }
            state = workspace::evolve_recorded(state, &event);
        }
    }
    let Some(found) = state.workspace() else {
        bail!("there is no Workspace {workspace}");
    };
    // The order of the log, backwards: as the server lists them.
    let listed = issued.iter().rev().filter_map(|id| found.tokens.get_key_value(id)).map(|(id, token)| {
        json!({
            "token_id": id,
            "workspace_id": workspace,
            "role": token.role,
            "owner_id": token.owner_id,
            "all_workspaces": token.all_workspaces,
            "created_at": token.issued_at.to_rfc3339(),
            "expires_at": token.expires_at.map(Timestamp::to_rfc3339),
            "revoked": token.revoked,
        })
    });
    Ok(listed.collect())
}

/// What the token in the operator's file is worth, as the log tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenState {
    /// It opens the server.
    Valid,
    /// It was revoked.
    Revoked,
    /// Its time is over.
    Expired,
    /// The log knows no such token.
    Unknown,
}

/// Looks a token up by its text, in every Workspace. Reads only.
///
/// # Errors
/// As [`read_events`], or the log can not be read to its end.
pub async fn token_state(config: &Config, text: &Sensitive<String>) -> Result<TokenState> {
    let wanted = tokens::hash(text);
    let mut events = read_events(config, Position(1), false)?;
    let mut found: Option<TokenId> = None;
    let mut state = TokenState::Unknown;
    while let Some(event) = events.next().await {
        match event?.event {
            Event::Workspace(WorkspaceEvent::TokenIssued { token, hash, expires_at, .. })
                if hash == wanted =>
            {
                found = Some(token);
                let is_over = expires_at.is_some_and(|end| end <= SystemClock.now());
                state = if is_over { TokenState::Expired } else { TokenState::Valid };
            }
            Event::Workspace(WorkspaceEvent::TokenRevoked { token }) if found == Some(token) => {
                state = TokenState::Revoked;
            }
            _ => {}
        }
    }
    Ok(state)
}

/// A data folder that we hold while no server does.
pub struct Offline {
    log: Arc<dyn EventLog>,
    views: Place,
    boot: BootId,
}

impl Offline {
    /// Takes the folder.
    ///
    /// # Errors
    /// A server runs on it, it does not exist, or its log is damaged or ends before what the views have seen of it.
    pub async fn open(config: &Config) -> Result<Self> {
        let seen = Store::reached_in(&config.views()).await?;
        Self::open_from(config, seen.unwrap_or_default())
    }

    /// As [`open`](Self::open), whatever the views have seen: they are about to be made anew, for instance because an
    /// older copy of the log was put in place.
    ///
    /// # Errors
    /// A server runs on it, it does not exist, or its log is damaged.
    pub fn open_for_rebuild(config: &Config) -> Result<Self> {
        Self::open_from(config, Position::ZERO)
    }

    fn open_from(config: &Config, known: Position) -> Result<Self> {
        existing_log(config)?;
        let log = match open_log(config, known) {
            Err(OpenError::Locked(_)) => bail!(
                "a server runs on {}: stop it first (or, if it is just starting, wait until it answers)",
                config.data_dir.display()
            ),
            opened => Arc::new(opened?),
        };
        Ok(Self { log, views: config.views(), boot: BootId::from_uuid(SystemIds.uuid()) })
    }

    /// Which start this counts as.
    #[must_use]
    pub const fn boot(&self) -> BootId {
        self.boot
    }

    /// Records something that happened to the server itself; gives its position.
    ///
    /// # Errors
    /// The log takes no writes.
    pub async fn record(&self, event: ServerEvent) -> Result<Position> {
        let metadata = self.metadata(None, SystemClock.now());
        let expected = ExpectedSequence::Any;
        let parts = vec![Part { stream: StreamId::Server, expected, events: vec![event.into()] }];
        let id = CommandId::from_uuid(SystemIds.uuid());
        match self.log.append(Append { id, metadata, parts }).await? {
            Appended::Stored(stored) => Ok(stored.last),
            Appended::Duplicate { .. } | Appended::Conflict { .. } => Err(Rejection::Internal.into()),
        }
    }

    const fn metadata(&self, workspace: Option<WorkspaceId>, recorded_at: Timestamp) -> Metadata {
        Metadata {
            principal: Principal::System,
            workspace,
            recorded_at,
            trace_id: TraceId([0; 16]),
            causation: None,
            boot: self.boot,
        }
    }

    /// The last position.
    #[must_use]
    pub fn head(&self) -> Position {
        *self.log.durable_head().borrow()
    }

    /// Lets the folder go; everything is durable.
    pub async fn close(self) {
        self.log.close().await;
    }

    /// Makes a token; gives its id and its text, which is kept nowhere.
    ///
    /// # Errors
    /// The rules refuse, or the log takes no writes.
    pub async fn issue_token(
        &self,
        workspace: &WorkspaceId,
        role: Role,
        owner_id: &OwnerId,
        all_workspaces: bool,
        expires_at: Option<Timestamp>,
    ) -> Result<(TokenId, Sensitive<String>)> {
        let text = tokens::text(&SystemIds.secret());
        let token = TokenId::from_uuid(SystemIds.uuid());
        let command = workspace::Command::IssueToken(workspace::IssueToken {
            token,
            hash: tokens::hash(&text),
            role,
            owner_id: owner_id.clone(),
            all_workspaces,
            expires_at,
        });
        self.command(workspace, &command).await?;
        Ok((token, text))
    }

    /// Ends a token; repeating it is fine.
    ///
    /// # Errors
    /// There is no such token, or the log takes no writes.
    pub async fn revoke_token(&self, workspace: &WorkspaceId, token: TokenId) -> Result<()> {
        self.command(workspace, &workspace::Command::RevokeToken { token }).await
    }

    /// Empties the views and folds them again; gives the position that they hold.
    ///
    /// # Errors
    /// The log can not be read, or the views can not be written.
    pub async fn rebuild_views(&self) -> Result<Position> {
        // Also a damaged file, and one that is ahead of a log that was restored from a backup, is thrown away.
        Store::remove(&self.views).await?;
        let store = Store::open(&self.views).await?;
        let rebuilt = projections::rebuild(&store, Arc::clone(&self.log)).await;
        store.close().await;
        Ok(rebuilt?)
    }

    /// Decide, append: the folder is ours alone, so nobody can come between.
    async fn command(&self, workspace: &WorkspaceId, command: &workspace::Command) -> Result<()> {
        let stream = StreamId::Workspace(workspace.clone());
        let mut state = WorkspaceState::Absent(workspace.clone());
        let mut events = self.log.read_stream(&stream, Sequence(1));
        while let Some(event) = events.next().await {
            state = workspace::evolve_recorded(state, &event?);
        }
        let (caller, catalogue) = (Caller::system(), capability::standard());
        let now = SystemClock.now();
        let facts = workspace::Facts { now, caller: &caller, instance: None, catalogue: &catalogue };
        let parts = workspace::decide(&state, command, &facts)?.parts(&state);
        if parts.is_empty() {
            return Ok(());
        }
        let metadata = self.metadata(Some(workspace.clone()), now);
        let id = CommandId::from_uuid(SystemIds.uuid());
        match self.log.append(Append { id, metadata, parts }).await? {
            Appended::Stored(_) => Ok(()),
            Appended::Duplicate { .. } | Appended::Conflict { .. } => Err(Rejection::Internal.into()),
        }
    }
}
