//! The rules of a create: one Space and one reservation, in one append or not at all (S1).

use std::{collections::BTreeSet, time::Duration};

use eventlog::{
    Event, ExpectedSequence, InstanceEvent, Part, Sequence, SpaceEvent, StreamId,
    event::{
        environment::Environment,
        space::{Idempotency, Owner},
    },
    id::{BindingId, CapabilityName, InstanceId, SpaceId, WorkspaceId},
    sealing::KeyId,
};

use super::{IDLE_TIMEOUT_MAX, IDLE_TIMEOUT_MIN};
use crate::{
    caller::Caller,
    capability::Catalogue,
    environment,
    instance::{Instance, InstanceState},
    rejection::{Rejection, check_plain},
    workspace::{Binding, WorkspaceState},
};

/// A create. Ids and keys come from the caller of [`open`].
#[derive(Debug, Clone)]
pub struct Open {
    /// The id that the Space will have.
    pub space: SpaceId,
    /// In which Workspace.
    pub workspace: WorkspaceId,
    /// Which instance to hold.
    pub instance: InstanceId,
    /// By which binding, where the instance does not name the Workspace itself.
    pub binding: Option<BindingId>,
    /// Whose it shall be.
    pub owner: Owner,
    /// What it shall be able to do.
    pub granted_capabilities: Vec<CapabilityName>,
    /// After how long without use it is closed; the server's default is filled in by the caller of [`open`].
    pub idle_timeout: Duration,
    /// The new key of its fingerprints.
    pub fingerprint_key: KeyId,
    /// What a repeat is recognised by.
    pub idempotency: Option<Idempotency>,
    /// What its pages shall be told of the place that they are in.
    pub environment: Environment,
}

/// What [`open`] has to know.
#[derive(Debug, Clone, Copy)]
pub struct OpenFacts<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// The instance asked for.
    pub instance: &'a InstanceState,
    /// The Workspace asked for: its bindings.
    pub workspace: &'a WorkspaceState,
    /// What there is to be granted.
    pub catalogue: &'a Catalogue,
    /// Whether the server drains.
    pub draining: bool,
}

/// A create that was allowed: both events, or neither.
#[derive(Debug, Clone, PartialEq)]
pub struct Opening {
    /// Which Space.
    pub space: SpaceId,
    /// On which instance.
    pub instance: InstanceId,
    /// Where the instance must still be.
    pub instance_at: Sequence,
    /// For the instance's stream.
    pub reserved: InstanceEvent,
    /// For the new Space's stream.
    pub opened: SpaceEvent,
}

impl Opening {
    /// The parts of the append. The reservation comes first, so its Space's fence is the position after it; the
    /// instance's fold relies on that.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        vec![
            Part {
                stream: StreamId::Instance(self.instance),
                expected: ExpectedSequence::Exact(self.instance_at),
                events: vec![Event::from(self.reserved.clone())],
            },
            Part {
                stream: StreamId::Space(self.space),
                expected: ExpectedSequence::NoStream,
                events: vec![Event::from(self.opened.clone())],
            },
        ]
    }
}

/// Decides a create, in this order: Workspace entry, owner, drain, instance and binding, grants, idle time-out,
/// owner id, environment, retired, in use.
///
/// # Errors
/// [`Rejection`]: nothing is to be appended.
pub fn open(asked: &Open, facts: &OpenFacts<'_>) -> Result<Opening, Rejection> {
    facts.caller.may_own(&asked.workspace, &asked.owner)?;
    if facts.draining {
        return Err(Rejection::ShuttingDown);
    }
    let (instance, binding) = visible(asked, facts)?;
    let granted_capabilities = grants(asked, instance, binding, facts.catalogue)?;
    check_idle_timeout(asked.idle_timeout)?;
    check_plain("owner_id", asked.owner.id.as_str())?;
    environment::check(&asked.environment, facts.caller)?;
    if instance.retired {
        return Err(Rejection::InstanceRetired);
    }
    if instance.holder.is_some() && !eventlog::mutant::is("reserved_twice") {
        return Err(Rejection::BrowserInstanceInUse);
    }
    Ok(Opening {
        space: asked.space,
        instance: asked.instance,
        instance_at: instance.revision,
        reserved: InstanceEvent::Reserved { space: asked.space, workspace: asked.workspace.clone() },
        opened: SpaceEvent::Opened {
            workspace: asked.workspace.clone(),
            instance: asked.instance,
            binding: asked.binding,
            owner: asked.owner.clone(),
            granted_capabilities,
            idle_timeout_seconds: asked.idle_timeout.as_secs(),
            fingerprint_key: asked.fingerprint_key,
            idempotency: asked.idempotency,
            environment: (!asked.environment.is_plain()).then(|| Box::new(asked.environment.clone())),
        },
    })
}

/// The instance, by its own list of Workspaces or by a binding that is valid for this owner.
fn visible<'a>(
    asked: &Open,
    facts: &OpenFacts<'a>,
) -> Result<(&'a Instance, Option<&'a Binding>), Rejection> {
    let instance = facts.instance.instance().ok_or(Rejection::InstanceNotFound)?;
    match asked.binding {
        None if instance.workspaces.contains(&asked.workspace) => Ok((instance, None)),
        None => Err(Rejection::InstanceNotFound),
        Some(id) => facts
            .workspace
            .binding(id)
            .filter(|binding| binding.permits(asked.instance, &asked.owner.id))
            .map(|binding| (instance, Some(binding)))
            .ok_or(Rejection::BindingNotFound),
    }
}

/// Each known, in the instance's bundle, and in the binding where that narrows; each once.
fn grants(
    asked: &Open,
    instance: &Instance,
    binding: Option<&Binding>,
    catalogue: &Catalogue,
) -> Result<Vec<CapabilityName>, Rejection> {
    let narrowed = binding.and_then(|binding| binding.capabilities.as_ref());
    let mut seen = BTreeSet::new();
    for (index, name) in asked.granted_capabilities.iter().enumerate() {
        let at = Some(("granted_capabilities", index));
        let row = catalogue.get(name).ok_or(Rejection::CapabilityUnknown { at })?;
        if !row.is_in(instance.bundle) || narrowed.is_some_and(|narrowed| !narrowed.contains(name)) {
            return Err(Rejection::CapabilityNotGranted { capability: name.clone(), task: None });
        }
        seen.insert(name);
    }
    let mut granted = asked.granted_capabilities.clone();
    granted.retain(|name| seen.remove(name));
    Ok(granted)
}

fn check_idle_timeout(idle_timeout: Duration) -> Result<(), Rejection> {
    if (IDLE_TIMEOUT_MIN..=IDLE_TIMEOUT_MAX).contains(&idle_timeout) {
        return Ok(());
    }
    Err(Rejection::InvalidRequest {
        field: "idle_timeout_seconds",
        problem: format!("must be from {} to {}", IDLE_TIMEOUT_MIN.as_secs(), IDLE_TIMEOUT_MAX.as_secs()),
    })
}
