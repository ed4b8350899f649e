//! The rules of a submit, in the order in which they are checked (S2, S3, S5, S6, S7).

use eventlog::{SpaceEvent, event::space::TaskError};

use super::{
    TASK_TIMEOUT_MAX, TASK_TIMEOUT_MIN,
    command::{Facts, RuntimeStatus, Submit},
    decide::{Decision, Reply, usable},
    failure::Failure,
    state::{OpenSpace, Phase, Space, SpaceState},
};
use crate::rejection::{Rejection, check_plain};

/// A repeat is answered first, also on a closed Space: the first answer stands. Then what needs no record, then the
/// refusals that an auditor must see. A busy Space refuses before those, so nobody can fill the log while it works.
pub(super) fn submit(
    state: &SpaceState,
    space: &Space,
    asked: &Submit,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    if let Some(first) = space.requests.get(&asked.request_id)
        && !eventlog::mutant::is("request_id_is_forgotten")
    {
        return if first.fingerprint == asked.fingerprint || eventlog::mutant::is("conflict_is_a_repeat") {
            Ok(Decision::nothing().reply(Reply::Repeated(first.task)))
        } else {
            Err(Rejection::RequestIdConflict)
        };
    }
    let open = match state {
        SpaceState::Open(open) if open.closing.is_none() => open,
        SpaceState::Open(_) | SpaceState::Closed(_) | SpaceState::Absent(_) => {
            return Err(Rejection::SpaceClosed);
        }
    };
    if facts.draining {
        return Err(Rejection::ShuttingDown);
    }
    asked.checked.clone()?;
    check_timeout(asked)?;
    check_plain("request_id", asked.request_id.as_str())?;
    if let Some(active) = open.active_task() {
        if eventlog::mutant::is("two_tasks_at_once") {
            return Ok(accept(open, asked, facts));
        }
        return Err(Rejection::SpaceTaskInProgress { task: active.task().task });
    }
    admit(open, asked, facts)
}

fn check_timeout(asked: &Submit) -> Result<(), Rejection> {
    if (TASK_TIMEOUT_MIN..=TASK_TIMEOUT_MAX).contains(&asked.timeout) {
        return Ok(());
    }
    Err(Rejection::InvalidRequest {
        field: "timeout_seconds",
        problem: format!("must be from {} to {}", TASK_TIMEOUT_MIN.as_secs(), TASK_TIMEOUT_MAX.as_secs()),
    })
}

/// Nothing is in the way but the grant and the runtime.
fn admit(open: &OpenSpace, asked: &Submit, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let task = Some(asked.task);
    let unavailable = match facts.runtime {
        RuntimeStatus::Unavailable { retry_after_ms, fault } => Some((retry_after_ms, fault)),
        RuntimeStatus::Stopped | RuntimeStatus::Starting | RuntimeStatus::Ready(_) => None,
    };
    // In error means that a restart is under way. Where the supervisor has given up, "not ready" is the truth.
    if matches!(open.phase, Phase::Faulted { .. }) && unavailable.is_none() {
        return Err(Rejection::SpaceInError);
    }
    if !open.space.granted_capabilities.contains(&asked.capability) {
        return Ok(refuse(
            asked,
            Failure::CapabilityNotGranted.error(),
            Rejection::CapabilityNotGranted { capability: asked.capability.clone(), task },
        ));
    }
    if let Some((retry_after_ms, fault)) = unavailable {
        let rejection = Rejection::RuntimeNotReady { task, retry_after_ms, fault: Some(fault) };
        return Ok(refuse(asked, Failure::RuntimeNotReady(fault).error(), rejection));
    }
    Ok(accept(open, asked, facts))
}

/// Recorded as a task that is failed from the start and can never be dispatched: it has no args.
fn refuse(asked: &Submit, error: TaskError, rejection: Rejection) -> Decision {
    let mut queued = queued(asked);
    if let SpaceEvent::TaskQueued { sealed_args, .. } = &mut queued {
        *sealed_args = None;
    }
    let events = vec![queued, SpaceEvent::TaskFailed { task: asked.task, error }];
    Decision::record(events).reply(Reply::Refused(rejection))
}

/// Where the runtime is ready, queued and started are one append: one sync before the call (S6).
fn accept(open: &OpenSpace, asked: &Submit, facts: &Facts<'_>) -> Decision {
    let started = usable(&open.space, facts.runtime).map(|generation| SpaceEvent::TaskStarted {
        task: asked.task,
        generation,
        deadline: facts.now.plus(asked.timeout),
    });
    let events = std::iter::once(queued(asked)).chain(started).collect();
    Decision::record(events).reply(Reply::Queued(asked.task))
}

fn queued(asked: &Submit) -> SpaceEvent {
    SpaceEvent::TaskQueued {
        task: asked.task,
        operation: asked.operation,
        request_id: asked.request_id.clone(),
        capability: asked.capability.clone(),
        arg_keys: asked.arg_keys.clone(),
        fingerprint: asked.fingerprint,
        timeout_seconds: asked.timeout.as_secs(),
        sealed_args: Some(asked.sealed_args.clone()),
    }
}
