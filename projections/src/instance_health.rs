//! The browser instances: how they are, and who holds them.
//!
//! ```text
//!   registered ► ready ── runtime_starting ──► starting ── runtime_ready ──► ready
//!                  ▲                            ▲   │ circuit_opened
//!                  │ released, runtime_stopped  │   ▼
//!                  └─── circuit_closed ──── unavailable          retired: for ever
//! ```

use async_trait::async_trait;
use eventlog::{
    Event, InstanceEvent, Position, RecordedEvent, StreamId, Timestamp,
    event::instance::{Bundle, InstanceKind, NetworkPolicy},
    id::{DisplayName, InstanceId, SpaceId, WorkspaceId},
};
use serde::{Deserialize, Serialize};

use crate::{
    projection::{ApplyError, Misfit, Projection, Transaction},
    table::{Folded, Row, fold_all, row, write},
};

/// How an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Its runtime is being started.
    Starting,
    /// It can be reserved, or its runtime is at work.
    Ready,
    /// Its runtime was lost too often; it is tried again later.
    Unavailable,
    /// It takes no new Space.
    Retired,
}

row! {
    /// A browser instance.
    InstanceRow in "instance" {
        /// Its id.
        browser_instance_id: InstanceId,
        /// What drives it.
        kind: InstanceKind,
        /// Its name for people.
        name: Option<DisplayName>,
        /// Which set of capabilities it loads.
        bundle: Bundle,
        /// How it is.
        health: Health,
        /// The Space that holds it.
        reserved_by: Option<SpaceId>,
        /// Which addresses it may reach.
        network_policy: NetworkPolicy,
        /// Who may reserve it without a binding.
        workspaces: Vec<WorkspaceId>,
        /// Whether it shows no window.
        headless: bool,
        /// When it was registered.
        created_at: Timestamp,
        /// The position at which it was registered; lists go by it.
        place: Position,
    }
}

impl InstanceRow {
    fn registered(id: InstanceId, event: &RecordedEvent) -> Option<Self> {
        let Event::Instance(InstanceEvent::Registered {
            instance_kind,
            name,
            workspaces,
            bundle,
            network_policy,
            headless,
        }) = &event.event
        else {
            return None;
        };
        Some(Self {
            browser_instance_id: id,
            kind: *instance_kind,
            name: name.clone(),
            bundle: *bundle,
            health: Health::Ready,
            reserved_by: None,
            network_policy: network_policy.clone(),
            workspaces: workspaces.clone(),
            headless: *headless,
            created_at: event.metadata.recorded_at,
            place: event.position,
        })
    }

    fn change(&mut self, event: &InstanceEvent) {
        match event {
            InstanceEvent::Reserved { space, .. } => self.reserved_by = Some(*space),
            InstanceEvent::Released { .. } => {
                self.reserved_by = None;
                self.leave(Health::Starting, Health::Ready);
            }
            // Between a loss and the next start it is not ready either.
            InstanceEvent::RuntimeStarting { .. } | InstanceEvent::RuntimeLost { .. } => {
                self.leave(Health::Ready, Health::Starting);
            }
            // A start that was given up with its Space leaves nothing to wait for.
            InstanceEvent::RuntimeStopped { .. } => self.leave(Health::Starting, Health::Ready),
            InstanceEvent::RuntimeReady { .. } | InstanceEvent::CircuitClosed {} => {
                self.become_unless_retired(Health::Ready);
            }
            InstanceEvent::CircuitOpened { .. } => self.become_unless_retired(Health::Unavailable),
            InstanceEvent::Retired {} => self.health = Health::Retired,
            InstanceEvent::Registered { .. } => {}
        }
    }

    fn leave(&mut self, from: Health, to: Health) {
        if self.health == from {
            self.health = to;
        }
    }

    fn become_unless_retired(&mut self, health: Health) {
        if self.health != Health::Retired {
            self.health = health;
        }
    }
}

impl Folded for InstanceRow {
    fn key_of(event: &RecordedEvent) -> Option<String> {
        match (&event.stream, &event.event) {
            (StreamId::Instance(id), Event::Instance(_)) => Some(id.to_string()),
            _ => None,
        }
    }

    fn is_first(event: &RecordedEvent) -> bool {
        matches!(event.event, Event::Instance(InstanceEvent::Registered { .. }))
    }

    fn fold(row: Option<Self>, event: &RecordedEvent) -> Result<Option<Self>, Misfit> {
        let (StreamId::Instance(id), Event::Instance(change)) = (&event.stream, &event.event) else {
            return Ok(row);
        };
        let Some(mut row) = row else {
            let registered = Self::registered(*id, event);
            return registered.map(Some).ok_or_else(|| Misfit::new(event, "its instance was not registered"));
        };
        if Self::is_first(event) {
            return Err(Misfit::new(event, "its instance was registered before"));
        }
        row.change(change);
        Ok(Some(row))
    }
}

row! {
    /// A Workspace that may reserve an instance without a binding.
    LinkRow in "instance_workspace" {
        /// Instance and Workspace.
        link_id: String,
        /// The instance.
        browser_instance_id: InstanceId,
        /// The Workspace.
        workspace_id: WorkspaceId,
    }
}

impl LinkRow {
    fn all_of(event: &RecordedEvent) -> Vec<Self> {
        let (StreamId::Instance(id), Event::Instance(InstanceEvent::Registered { workspaces, .. })) =
            (&event.stream, &event.event)
        else {
            return Vec::new();
        };
        let mut workspaces: Vec<&WorkspaceId> = workspaces.iter().collect();
        workspaces.sort_unstable();
        workspaces.dedup();
        let row = |workspace: &WorkspaceId| Self {
            link_id: format!("{id}/{workspace}"),
            browser_instance_id: *id,
            workspace_id: workspace.clone(),
        };
        workspaces.into_iter().map(row).collect()
    }
}

/// Folds instances.
pub struct InstanceHealth;

#[async_trait]
impl Projection for InstanceHealth {
    fn name(&self) -> &'static str {
        "instance_health"
    }

    fn version(&self) -> u64 {
        1
    }

    fn tables(&self) -> &'static [&'static str] {
        &[InstanceRow::TABLE, LinkRow::TABLE]
    }

    async fn apply(&self, events: &[RecordedEvent], transaction: &mut Transaction) -> Result<(), ApplyError> {
        fold_all::<InstanceRow>(events, transaction).await?;
        let links: Vec<LinkRow> = events.iter().flat_map(LinkRow::all_of).collect();
        write(&links, transaction).await
    }
}
