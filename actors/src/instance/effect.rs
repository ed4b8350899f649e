//! What the world still owes to an instance, derived from its state.

use eventlog::{Fence, Generation, event::space::CloseReason, id::SpaceId};

use super::state::{Circuit, InstanceState, RuntimeState};

/// What to do. The supervisor decides when: back-off and windows are its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Start the holder's runtime, when the back-off allows it.
    StartRuntime {
        /// For whom.
        space: SpaceId,
        /// Under which reservation.
        fence: Fence,
        /// Whether it is the one probe of an open circuit, due so many milliseconds after the circuit opened.
        probe_after_ms: Option<u64>,
    },
    /// End the runtime: nobody holds the instance.
    StopRuntime {
        /// Which start.
        generation: Generation,
    },
    /// Ask the holder's Space to close: the instance is retired.
    CloseHolder {
        /// Which Space.
        space: SpaceId,
        /// Why.
        reason: CloseReason,
    },
}

/// The effects that `state` is owed.
#[must_use]
pub fn due(state: &InstanceState) -> Vec<Effect> {
    let Some(instance) = state.instance() else { return Vec::new() };
    let retired = instance.holder.as_ref().filter(|_| instance.retired);
    let close = retired
        .map(|holder| Effect::CloseHolder { space: holder.space, reason: CloseReason::InstanceRetired });
    let runtime = match (&instance.holder, instance.runtime) {
        (Some(holder), RuntimeState::Down) if !instance.retired => Some(Effect::StartRuntime {
            space: holder.space,
            fence: holder.fence,
            probe_after_ms: match instance.circuit {
                Circuit::Closed => None,
                Circuit::Open { retry_after_ms, .. } => Some(retry_after_ms),
            },
        }),
        (None, RuntimeState::Starting | RuntimeState::Ready) => {
            Some(Effect::StopRuntime { generation: instance.generation })
        }
        (Some(_), _) | (None, RuntimeState::Down) => None,
    };
    close.into_iter().chain(runtime).collect()
}
