//! What an instance can be asked, by operators and by its supervisor.

use std::collections::BTreeSet;

use eventlog::{
    Generation,
    event::{
        instance::{Bundle, InstanceKind, LossReason, NetworkPolicy},
        space::CloseReason,
    },
    id::{DisplayName, SpaceId, WorkspaceId},
};

use crate::caller::Caller;

/// What an instance is asked. (To reserve it is [`crate::space::Open`]: it is decided over two streams.)
///
/// `Register` and `Retire` come from operators; the rest only from the server itself.
#[derive(Debug, Clone)]
pub enum Command {
    /// Make it known.
    Register(Box<Register>),
    /// Take no new Space; idempotent.
    Retire,
    /// A start of its runtime is about to begin.
    BeginStart,
    /// That start takes steps.
    NoteReady {
        /// Which start.
        generation: Generation,
    },
    /// That start is gone without having been asked.
    NoteLost {
        /// Which start.
        generation: Generation,
        /// How.
        reason: LossReason,
    },
    /// That start was ended because its Space is over.
    NoteStopped {
        /// Which start.
        generation: Generation,
    },
    /// Start none for a while.
    OpenCircuit {
        /// How many losses there were in the window.
        losses: u32,
        /// For how long.
        retry_after_ms: u64,
    },
    /// Its holder's Space turned out to be over. (A close releases by itself; this is recovery's.)
    Release {
        /// Whose.
        space: SpaceId,
        /// Why that Space was closed.
        reason: CloseReason,
    },
}

/// What to make known.
#[derive(Debug, Clone)]
pub struct Register {
    /// What drives it.
    pub kind: InstanceKind,
    /// For people.
    pub name: Option<DisplayName>,
    /// Who may reserve it without a binding; all that the caller may enter where `None`.
    pub workspaces: Option<Vec<WorkspaceId>>,
    /// Which capabilities it loads.
    pub bundle: Bundle,
    /// What its browser may reach.
    pub network_policy: NetworkPolicy,
    /// Whether it runs without a window.
    pub headless: bool,
}

/// What `decide` has to know besides state and command.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Who asks; the server itself is [`Caller::system`].
    pub caller: &'a Caller,
    /// What the server's configuration allows.
    pub allowed: Allowed,
    /// Every Workspace that exists.
    pub workspaces: &'a BTreeSet<WorkspaceId>,
}

/// What the server's configuration allows; off by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowed {
    /// The bundle `trusted` (S3).
    pub trusted: bool,
    /// The kind `scripted`.
    pub scripted: bool,
}
