//! What the routes read. Who may see a row is decided by the caller, who names the Workspaces to look in.

use std::{sync::Arc, time::Duration};

use eventlog::{
    Position,
    event::space::Owner,
    id::{ArtifactId, BindingId, InstanceId, OwnerId, SpaceId, TaskId, TokenId, WorkspaceId},
};
use tokio::sync::watch;

use crate::{
    audit_trail::AuditRow,
    cursor::{self, InvalidCursor, Scope},
    database::Connections,
    instance_health::InstanceRow,
    projector::{Condition, Progress},
    space_list::{SpaceRow, SpaceStatus},
    statement::Statement,
    table::{Row, name_of, read, select},
    task_history::{ArtifactRow, TaskRow},
    workspace_access::{BindingRow, TokenRow, WorkspaceRow},
};

/// At most so many items in a page.
pub const PAGE_ITEMS_MAX: usize = 100;

/// Why a view could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// `422 invalid_cursor`.
    #[error(transparent)]
    InvalidCursor(#[from] InvalidCursor),
    /// The database refused.
    #[error("the views could not be read")]
    Database(#[from] sqlx::Error),
}

/// Why the views are not as new as was asked for. The checkpoint says how far they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The time was over; they are coming.
    #[error("the views are at position {checkpoint} and not further in time")]
    Behind {
        /// Where they are.
        checkpoint: Position,
    },
    /// They are not coming: the projector stopped.
    #[error("the views are at position {checkpoint} and their projector stopped at {position}: {reason}")]
    Stopped {
        /// Where they are.
        checkpoint: Position,
        /// What could not be absorbed.
        position: Position,
        /// Why.
        reason: Arc<str>,
    },
}

/// A part of a list, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins; `None` at the end of the list.
    pub next: Option<String>,
}

/// Which Spaces to list.
#[derive(Debug, Clone, Default)]
pub struct SpaceFilter {
    /// Only those of these Workspaces; of all if `None`.
    pub workspaces: Option<Vec<WorkspaceId>>,
    /// Only those of this owner.
    pub owner: Option<Owner>,
    /// Only those that are so.
    pub status: Option<SpaceStatus>,
}

/// Which entries of the audit trail to list.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only those of this Workspace; of all, and of the server, if `None`.
    pub workspace: Option<WorkspaceId>,
    /// Only those about this Space.
    pub space: Option<SpaceId>,
    /// Only those of this principal.
    pub owner: Option<OwnerId>,
    /// Only these: `task`, or the kind of an event.
    pub action: Option<String>,
    /// Only those that ended so.
    pub outcome: Option<String>,
    /// Only those that touched this site.
    pub site: Option<String>,
}

/// Reads the views. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Views {
    readers: Connections,
    progress: watch::Receiver<Progress>,
    /// Where readers say what they wait for, so that the projector does not gather meanwhile.
    wanted: Arc<watch::Sender<Position>>,
}

impl Views {
    pub(crate) const fn new(
        readers: Connections,
        progress: watch::Receiver<Progress>,
        wanted: Arc<watch::Sender<Position>>,
    ) -> Self {
        Self { readers, progress, wanted }
    }

    /// The position up to which every view has absorbed the log.
    #[must_use]
    pub fn checkpoint(&self) -> Position {
        self.progress.borrow().checkpoint
    }

    /// How far the views are, and what their projector does: for readiness.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }

    /// How many events the views are behind a log that ends at `head`.
    #[must_use]
    pub fn lag(&self, head: Position) -> u64 {
        head.0.saturating_sub(self.checkpoint().0)
    }

    /// Waits until the views have absorbed `position`, and returns how far they are then.
    ///
    /// # Errors
    /// [`WaitError`]; never a stale answer in silence. A stopped projector is told at once.
    pub async fn wait_for(&self, position: Position, deadline: Duration) -> Result<Position, WaitError> {
        self.wanted.send_if_modified(|wanted| {
            let rises = position > *wanted;
            *wanted = position.max(*wanted);
            rises
        });
        let mut progress = self.progress.clone();
        let settled = progress.wait_for(|progress| {
            progress.checkpoint >= position || matches!(progress.condition, Condition::Stopped { .. })
        });
        let Progress { checkpoint, condition } = match tokio::time::timeout(deadline, settled).await {
            Ok(Ok(settled)) => settled.clone(),
            // Out of time, or the store is gone; what was last known tells how far it came.
            Ok(Err(_)) | Err(_) => self.progress(),
        };
        match condition {
            _ if checkpoint >= position => Ok(checkpoint),
            Condition::Stopped { position, reason } => {
                Err(WaitError::Stopped { checkpoint, position, reason })
            }
            Condition::Idle | Condition::Running | Condition::Retrying { .. } => {
                Err(WaitError::Behind { checkpoint })
            }
        }
    }

    /// A Space.
    pub async fn space(&self, space: SpaceId) -> Result<Option<SpaceRow>, ViewError> {
        self.one(&space.to_string()).await
    }

    /// Spaces, the newest first.
    pub async fn spaces(
        &self,
        filter: &SpaceFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<SpaceRow>, ViewError> {
        let SpaceFilter { workspaces, owner, status } = filter;
        let owner_type = owner.as_ref().map(|owner| name_of(&owner.kind)).unwrap_or_default();
        let owner_id = owner.as_ref().map_or("", |owner| owner.id.as_str());
        let status = status.as_ref().map(name_of).unwrap_or_default();
        let names = joined(workspaces.as_deref());
        let scope = Scope::new("spaces", &[&names, &owner_type, owner_id, &status]);
        let mut query = select::<SpaceRow>();
        query.push(" WHERE 1 = 1");
        if let Some(workspaces) = workspaces {
            query.push_in(" AND ", "workspace_id", workspaces);
        }
        if owner.is_some() {
            query.push(" AND owner_type = ").bind(owner_type);
            query.push(" AND owner_id = ").bind(owner_id.to_owned());
        }
        if !status.is_empty() {
            query.push(" AND status = ").bind(status);
        }
        self.page(query, scope, cursor, limit).await
    }

    /// A task.
    pub async fn task(&self, task: TaskId) -> Result<Option<TaskRow>, ViewError> {
        self.one(&task.to_string()).await
    }

    /// The tasks of a Space, the newest first.
    pub async fn tasks(
        &self,
        space: SpaceId,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<TaskRow>, ViewError> {
        let (query, scope) = of_space::<TaskRow>(space);
        self.page(query, scope, cursor, limit).await
    }

    /// An artifact.
    pub async fn artifact(&self, artifact: ArtifactId) -> Result<Option<ArtifactRow>, ViewError> {
        self.one(&artifact.to_string()).await
    }

    /// The artifacts of a Space, the newest first.
    pub async fn artifacts(
        &self,
        space: SpaceId,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<ArtifactRow>, ViewError> {
        let (query, scope) = of_space::<ArtifactRow>(space);
        self.page(query, scope, cursor, limit).await
    }

    /// An instance.
    pub async fn instance(&self, instance: InstanceId) -> Result<Option<InstanceRow>, ViewError> {
        self.one(&instance.to_string()).await
    }

    /// Instances, the newest first: all of them, or those that one of these Workspaces may reserve, with or without
    /// a binding.
    pub async fn instances(
        &self,
        workspaces: Option<&[WorkspaceId]>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<InstanceRow>, ViewError> {
        let scope = Scope::new("instances", &[&joined(workspaces)]);
        let mut query = select::<InstanceRow>();
        query.push(" WHERE 1 = 1");
        if let Some(workspaces) = workspaces {
            query.push(
                " AND (EXISTS (SELECT 1 FROM instance_workspace AS link \
                 WHERE link.browser_instance_id = instance.browser_instance_id",
            );
            query.push_in(" AND ", "link.workspace_id", workspaces);
            query.push(
                ") OR EXISTS (SELECT 1 FROM binding WHERE binding.revoked_at IS NULL \
                 AND binding.browser_instance_id = instance.browser_instance_id",
            );
            query.push_in(" AND ", "binding.workspace_id", workspaces);
            query.push("))");
        }
        self.page(query, scope, cursor, limit).await
    }

    /// A Workspace.
    pub async fn workspace(&self, workspace: &WorkspaceId) -> Result<Option<WorkspaceRow>, ViewError> {
        self.one(workspace.as_str()).await
    }

    /// Workspaces, the newest first.
    pub async fn workspaces(
        &self,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<WorkspaceRow>, ViewError> {
        let mut query = select::<WorkspaceRow>();
        query.push(" WHERE 1 = 1");
        self.page(query, Scope::new("workspaces", &[]), cursor, limit).await
    }

    /// A binding, also a revoked one.
    pub async fn binding(&self, binding: BindingId) -> Result<Option<BindingRow>, ViewError> {
        self.one(&binding.to_string()).await
    }

    /// The bindings of a Workspace, the newest first, with the revoked ones.
    pub async fn bindings(
        &self,
        workspace: &WorkspaceId,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<BindingRow>, ViewError> {
        let (query, scope) = of_workspace::<BindingRow>(workspace);
        self.page(query, scope, cursor, limit).await
    }

    /// A token, also a revoked one.
    pub async fn token(&self, token: TokenId) -> Result<Option<TokenRow>, ViewError> {
        self.one(&token.to_string()).await
    }

    /// The tokens of a Workspace, the newest first, with the revoked ones.
    pub async fn tokens(
        &self,
        workspace: &WorkspaceId,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<TokenRow>, ViewError> {
        let (query, scope) = of_workspace::<TokenRow>(workspace);
        self.page(query, scope, cursor, limit).await
    }

    /// Entries of the audit trail, the newest first.
    pub async fn audit(
        &self,
        filter: &AuditFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<AuditRow>, ViewError> {
        let AuditFilter { workspace, space, owner, action, outcome, site } = filter;
        let wanted = [
            ("workspace_id", workspace.as_ref().map(ToString::to_string)),
            ("space_id", space.map(|space| space.to_string())),
            ("owner_id", owner.as_ref().map(ToString::to_string)),
            ("action", action.clone()),
            ("outcome", outcome.clone()),
            ("site", site.clone()),
        ];
        let mut query = select::<AuditRow>();
        query.push(" WHERE 1 = 1");
        let mut filters = Vec::new();
        for (column, value) in wanted {
            if let Some(value) = value {
                filters.extend([column.to_owned(), value.clone()]);
                query.push(" AND ").push(column).push(" = ").bind(value);
            }
        }
        let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
        self.page(query, Scope::new(AuditRow::TABLE, &filters), cursor, limit).await
    }

    async fn one<R: Row>(&self, key: &str) -> Result<Option<R>, ViewError> {
        let mut query = select::<R>();
        query.push(" WHERE ").push(R::COLUMNS[0]).push(" = ").bind(key.to_owned());
        let row = self.readers.fetch_optional(&query).await?;
        Ok(row.as_ref().map(R::read).transpose()?)
    }

    async fn page<R: Row>(
        &self,
        mut query: Statement,
        scope: Scope,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<R>, ViewError> {
        let limit = limit.clamp(1, PAGE_ITEMS_MAX);
        if let Some(cursor) = cursor {
            let after = cursor::decode(scope, cursor)?;
            // One from beyond the newest event was made by another log, or by nobody.
            if after / R::PLACES_PER_EVENT > self.checkpoint().0 {
                return Err(InvalidCursor.into());
            }
            query.push(" AND place < ").bind(i64::try_from(after).map_err(|_| InvalidCursor)?);
        }
        query.push(" ORDER BY place DESC LIMIT ").bind(i64::try_from(limit + 1).unwrap_or(i64::MAX));
        let mut rows = self.readers.fetch_all(&query).await?;
        let is_more = rows.len() > limit;
        rows.truncate(limit);
        let next = match rows.last().filter(|_| is_more) {
            Some(last) => Some(cursor::encode(scope, read(last, "place")?)),
            None => None,
        };
        Ok(Page { items: rows.iter().map(R::read).collect::<Result<_, _>>()?, next })
    }
}

fn of_space<R: Row>(space: SpaceId) -> (Statement, Scope) {
    let mut query = select::<R>();
    query.push(" WHERE space_id = ").bind(space.to_string());
    (query, Scope::new(R::TABLE, &[&space.to_string()]))
}

fn of_workspace<R: Row>(workspace: &WorkspaceId) -> (Statement, Scope) {
    let mut query = select::<R>();
    query.push(" WHERE workspace_id = ").bind(workspace.to_string());
    (query, Scope::new(R::TABLE, &[workspace.as_str()]))
}

/// The Workspaces as one text; a `/` can stand in none of their names.
fn joined(workspaces: Option<&[WorkspaceId]>) -> String {
    let Some(workspaces) = workspaces else { return "*/".to_owned() };
    let mut names: Vec<&str> = workspaces.iter().map(WorkspaceId::as_str).collect();
    names.sort_unstable();
    names.join("/")
}
