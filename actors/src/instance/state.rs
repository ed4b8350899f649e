//! An instance as its events have made it.

use eventlog::{
    Fence, Generation, Position, Role, Sequence, Timestamp,
    event::instance::{Bundle, InstanceKind, NetworkPolicy},
    id::{DisplayName, InstanceId, SpaceId, WorkspaceId},
};

use crate::{
    caller::Caller,
    rejection::{Denial, Rejection},
};

/// A browser instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceState {
    /// It does not exist (yet).
    Absent(InstanceId),
    /// It does.
    Registered(Box<Instance>),
}

/// An instance that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Which.
    pub id: InstanceId,
    /// What drives it.
    pub kind: InstanceKind,
    /// For people.
    pub name: Option<DisplayName>,
    /// Who may reserve it without a binding.
    pub workspaces: Vec<WorkspaceId>,
    /// Which capabilities it loads.
    pub bundle: Bundle,
    /// What its browser may reach.
    pub network_policy: NetworkPolicy,
    /// Whether it runs without a window.
    pub headless: bool,
    /// Who holds it.
    pub holder: Option<Holder>,
    /// How its runtime stands.
    pub runtime: RuntimeState,
    /// The newest start of its runtime; 0 before the first.
    pub generation: Generation,
    /// Whether it may be started.
    pub circuit: Circuit,
    /// Whether it takes no new Space.
    pub retired: bool,
    /// When it was registered.
    pub created_at: Timestamp,
    /// Its last sequence.
    pub revision: Sequence,
    /// The position of its last event.
    pub position: Position,
}

/// Who holds an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Which Space.
    pub space: SpaceId,
    /// Of which Workspace.
    pub workspace: WorkspaceId,
    /// Under which reservation: the position of that Space's `opened`.
    pub fence: Fence,
}

/// How a runtime stands, as recorded. The generation is [`Instance::generation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuntimeState {
    /// There is none.
    Down,
    /// A start was begun.
    Starting,
    /// It takes steps.
    Ready,
}

/// Whether a runtime may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Circuit {
    /// At any time.
    Closed,
    /// After a while, once: the probe.
    Open {
        /// Since when.
        opened_at: Timestamp,
        /// For how long.
        retry_after_ms: u64,
    },
}

/// How an instance stands, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Health {
    /// Held, and its runtime is not there yet.
    Starting,
    /// Free to be reserved, or held and taking steps.
    Ready,
    /// Its runtime was lost too often.
    Unavailable,
    /// It takes no new Space.
    Retired,
}

impl InstanceState {
    /// Which instance.
    #[must_use]
    pub fn id(&self) -> InstanceId {
        match self {
            Self::Absent(id) => *id,
            Self::Registered(instance) => instance.id,
        }
    }

    /// The instance, if it exists.
    #[must_use]
    pub fn instance(&self) -> Option<&Instance> {
        match self {
            Self::Absent(_) => None,
            Self::Registered(instance) => Some(instance),
        }
    }

    /// Its last sequence; 0 if it does not exist.
    #[must_use]
    pub fn revision(&self) -> Sequence {
        self.instance().map_or(Sequence::ZERO, |instance| instance.revision)
    }
}

impl Instance {
    /// How it stands, derived from the rest.
    #[must_use]
    pub const fn health(&self) -> Health {
        match (self.retired, self.circuit, &self.holder, self.runtime) {
            (true, _, _, _) => Health::Retired,
            (false, Circuit::Open { .. }, _, _) => Health::Unavailable,
            (false, Circuit::Closed, Some(_), RuntimeState::Down | RuntimeState::Starting) => {
                Health::Starting
            }
            (false, Circuit::Closed, Some(_), RuntimeState::Ready) | (false, Circuit::Closed, None, _) => {
                Health::Ready
            }
        }
    }

    /// Whether `caller` may change what this instance is and who may hold it: an operator of each of its Workspaces.
    ///
    /// # Errors
    /// - [`Rejection::InstanceNotFound`]: it is not for any Workspace that the caller may enter.
    /// - [`Rejection::Forbidden`]: the caller is no operator, or not of all of them.
    pub fn check_authority(&self, caller: &Caller) -> Result<(), Rejection> {
        let everywhere = caller.scope == crate::caller::Scope::All;
        let held = |workspace: &WorkspaceId| caller.scope.holds(workspace);
        caller.must_be(&[Role::Operator])?;
        if !everywhere && !self.workspaces.iter().any(held) {
            return Err(Rejection::InstanceNotFound);
        }
        if everywhere || self.workspaces.iter().all(held) {
            Ok(())
        } else {
            Err(Denial::EachWorkspace.into())
        }
    }
}
