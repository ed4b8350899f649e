//! given/when/then: the rules in the words of the domain. For tests of this and of other crates.
//!
//! ```text
//! given([opened(), queued(1), started(1, 1)]).when(report(1, 1, completed())).then([completed_event(1)]);
//! ```
//!
//! Everything is fixed: one Space of one agent on one instance, tasks 1, 2, 3 … with request ids to match, the clock at
//! [`NOW`] and one second between the events that were given.

use std::{str::FromStr, time::Duration};

use eventlog::{
    Fence, Generation, InstanceEvent, Position, Principal, Redacted, Redactor, Role, Sequence, SpaceEvent,
    Timestamp,
    event::{
        instance::LossReason,
        space::{CancelReason, CloseReason, Owner, OwnerKind, TaskError},
    },
    id::{CapabilityName, InstanceId, OperationId, RequestId, SpaceId, TaskId, WorkspaceId},
    sealing::{Fingerprint, KeyId, Sealed},
};
use serde_json::json;

use super::{
    command::{Asker, Command, Facts, Report, RuntimeStatus, Submit},
    decide::{Decision, Reply, decide},
    effect::{Effect, InHand, due},
    evolve::evolve_all,
    failure::Failure,
    state::SpaceState,
};
use crate::{
    caller::{Caller, Scope},
    place::Place,
    rejection::Rejection,
    runtime::Outcome,
};

/// The time of the decision.
pub const NOW: Timestamp = Timestamp(1_800_000_000_000_000);
/// The position of `opened`: the fence.
pub const OPENED_AT: Position = Position(2);

/// A Space with a history.
#[must_use]
pub fn given(events: impl IntoIterator<Item = SpaceEvent>) -> Given {
    let mut state = SpaceState::Absent(space_id());
    for (index, event) in (0u64..).zip(events) {
        let place = Place {
            sequence: Sequence(index + 1),
            position: Position(OPENED_AT.0 + index),
            recorded_at: Timestamp(NOW.0 - 3_600_000_000).plus(Duration::from_secs(index)),
        };
        state = evolve_all(state, &[event], place);
    }
    Given {
        state,
        now: NOW,
        caller: None,
        workspace: workspace_id(),
        runtime: RuntimeStatus::Ready(Generation(1)),
        draining: false,
    }
}

/// What is so before the command.
#[derive(Debug, Clone)]
pub struct Given {
    /// What the events made.
    pub state: SpaceState,
    now: Timestamp,
    caller: Option<Caller>,
    workspace: WorkspaceId,
    runtime: RuntimeStatus,
    draining: bool,
}

impl Given {
    /// At another time.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        Self { now, ..self }
    }

    /// Asked by somebody else than the owner.
    #[must_use]
    pub fn by(self, caller: Caller) -> Self {
        Self { caller: Some(caller), ..self }
    }

    /// Asked under another Workspace than the Space's.
    #[must_use]
    pub fn in_workspace(self, workspace: &str) -> Self {
        Self { workspace: workspace.parse().expect("a test names Workspaces well"), ..self }
    }

    /// With a runtime that stands like this.
    #[must_use]
    pub fn runtime(self, runtime: RuntimeStatus) -> Self {
        Self { runtime, ..self }
    }

    /// While the server drains.
    #[must_use]
    pub fn draining(self) -> Self {
        Self { draining: true, ..self }
    }

    /// Decides; callers' commands are asked by the owner where nobody else was named, the rest by the server.
    #[must_use]
    pub fn when(self, command: impl Into<Command>) -> When {
        let command = command.into();
        let owner = agent("agent-1");
        let by_caller =
            matches!(command, Command::Submit(_) | Command::Cancel { .. } | Command::Close { .. });
        let caller = self.caller.as_ref().or(by_caller.then_some(&owner));
        let asker =
            caller.map_or(Asker::Server, |caller| Asker::Caller { caller, workspace: &self.workspace });
        let facts = Facts { now: self.now, asker, runtime: self.runtime, draining: self.draining };
        let decided = decide(&self.state, &command, &facts);
        When { given: self, decided }
    }

    /// What the world owes to the Space, and nothing else.
    #[track_caller]
    pub fn then_due(&self, in_hand: InHand, effects: impl IntoIterator<Item = Effect>) {
        let expected: Vec<_> = effects.into_iter().collect();
        assert_eq!(due(&self.state, self.runtime, &in_hand), expected);
    }
}

/// What came of a command.
#[derive(Debug, Clone)]
pub struct When {
    given: Given,
    /// The decision.
    pub decided: Result<Decision, Rejection>,
}

impl When {
    /// Exactly these events, in one append with the instance's release where `closed` is among them.
    #[track_caller]
    pub fn then(self, events: impl IntoIterator<Item = SpaceEvent>) -> Self {
        let expected: Vec<_> = events.into_iter().collect();
        let decision = self.decided.as_ref().expect("the command is not rejected");
        assert_eq!(decision.events, expected);
        let closed = expected.iter().find_map(|event| match event {
            SpaceEvent::Closed { reason } => Some((instance_id(), released(*reason))),
            _ => None,
        });
        assert_eq!(decision.release, closed, "the instance is released with `closed`, and only then");
        self
    }

    /// Nothing to record, and no refusal either.
    #[track_caller]
    pub fn then_nothing(self) -> Self {
        self.then([])
    }

    /// The answer.
    #[track_caller]
    pub fn replied(self, reply: &Reply) -> Self {
        assert_eq!(self.decided.as_ref().map(|decision| &decision.reply), Ok(reply));
        self
    }

    /// Refused, and nothing recorded.
    #[track_caller]
    pub fn then_rejected(self, rejection: &Rejection) {
        assert_eq!(self.decided.as_ref(), Err(rejection));
    }

    /// The Space after the events were recorded at [`NOW`].
    #[must_use]
    pub fn after(self) -> Given {
        let events = self.decided.map(|decision| decision.events).unwrap_or_default();
        let space = self.given.state.space();
        let first = Place {
            sequence: space.map_or(Sequence::ZERO, |space| space.revision).next(),
            position: space.map_or(OPENED_AT, |space| space.position.next()),
            recorded_at: self.given.now,
        };
        let state = evolve_all(self.given.state.clone(), &events, first);
        Given { state, ..self.given }
    }
}

impl From<Submit> for Command {
    fn from(submit: Submit) -> Self {
        Self::Submit(Box::new(submit))
    }
}

impl From<Report> for Command {
    fn from(report: Report) -> Self {
        Self::Report(report)
    }
}

/// The id of any kind that is written with this prefix and number.
fn id<T: FromStr>(prefix: &str, n: u64) -> T {
    let parsed = format!("{prefix}{n:026}").parse();
    parsed.unwrap_or_else(|_| unreachable!("decimal digits are digits of an id"))
}

/// The Space.
#[must_use]
pub fn space_id() -> SpaceId {
    id("spc_", 1)
}

/// Its instance.
#[must_use]
pub fn instance_id() -> InstanceId {
    id("ins_", 1)
}

/// Its Workspace.
#[must_use]
pub fn workspace_id() -> WorkspaceId {
    "team".parse().expect("it is a slug")
}

/// The id of task `n`.
#[must_use]
pub fn task(n: u64) -> TaskId {
    id("tsk_", n)
}

/// The dispatch of task `n`.
#[must_use]
pub fn operation(n: u64) -> OperationId {
    id("op_", n)
}

/// The client's id of submit `n`.
#[must_use]
pub fn request(n: u64) -> RequestId {
    format!("request-{n}").parse().expect("it is short and printable")
}

/// A capability.
#[must_use]
pub fn capability(name: &str) -> CapabilityName {
    name.parse().expect("a test names capabilities well")
}

/// The sealed args of task `n`.
#[must_use]
pub fn sealed(n: u64) -> Sealed {
    Sealed { key: KeyId { file: 1, slot: n }, nonce: vec![0; 24], ciphertext: vec![1, 2, 3] }
}

/// An agent with this id, in the Space's Workspace.
#[must_use]
pub fn agent(id: &str) -> Caller {
    caller(Role::RuntimeAgent, id, &["team"])
}

/// A caller that may enter these Workspaces.
#[must_use]
pub fn caller(role: Role, name: &str, workspaces: &[&str]) -> Caller {
    Caller {
        principal: Principal::Token {
            role,
            id: name.parse().expect("a test names callers well"),
            token: id("tok_", 1),
        },
        scope: Scope::Only(
            workspaces.iter().map(|id| id.parse().expect("a test names Workspaces well")).collect(),
        ),
    }
}

/// The owner of the Space.
#[must_use]
pub fn owner() -> Owner {
    Owner { kind: OwnerKind::RuntimeAgent, id: "agent-1".parse().expect("it is short and printable") }
}

/// `navigate` and `snapshot` are granted; 60 s idle time-out.
#[must_use]
pub fn opened() -> SpaceEvent {
    SpaceEvent::Opened {
        workspace: workspace_id(),
        instance: instance_id(),
        binding: None,
        owner: owner(),
        granted_capabilities: vec![capability("navigate"), capability("snapshot")],
        idle_timeout_seconds: 60,
        fingerprint_key: KeyId { file: 1, slot: 0 },
        idempotency: None,
        environment: None,
    }
}

/// Submit `n`: `navigate`, 30 s.
#[must_use]
pub fn submit(n: u64) -> Submit {
    Submit {
        task: task(n),
        operation: operation(n),
        request_id: request(n),
        capability: capability("navigate"),
        checked: Ok(()),
        arg_keys: vec![Redacted::own("url")],
        fingerprint: Fingerprint([7; 32]),
        timeout: Duration::from_secs(30),
        sealed_args: sealed(n),
    }
}

/// What submit `n` records.
#[must_use]
pub fn queued(n: u64) -> SpaceEvent {
    queued_with(&submit(n), Some(sealed(n)))
}

/// What another submit records.
#[must_use]
pub fn queued_with(submit: &Submit, sealed_args: Option<Sealed>) -> SpaceEvent {
    SpaceEvent::TaskQueued {
        task: submit.task,
        operation: submit.operation,
        request_id: submit.request_id.clone(),
        capability: submit.capability.clone(),
        arg_keys: submit.arg_keys.clone(),
        fingerprint: submit.fingerprint,
        timeout_seconds: submit.timeout.as_secs(),
        sealed_args,
    }
}

/// Task `n` is handed over at [`NOW`].
#[must_use]
pub fn started(n: u64, generation: u64) -> SpaceEvent {
    let deadline = NOW.plus(Duration::from_secs(30));
    SpaceEvent::TaskStarted { task: task(n), generation: Generation(generation), deadline }
}

/// Task `n` did what it was asked.
#[must_use]
pub fn completed(n: u64) -> SpaceEvent {
    let result = Redactor::new().json(json!({ "ok": true }));
    SpaceEvent::TaskCompleted { task: task(n), result, artifacts: Vec::new() }
}

/// Task `n` failed with one of the rules' own codes.
///
/// # Panics
/// If the rules have no such code.
#[must_use]
pub fn failed(n: u64, code: &str) -> SpaceEvent {
    let failure =
        Failure::ALL.into_iter().find(|failure| failure.code() == code).expect("the rules have that code");
    SpaceEvent::TaskFailed { task: task(n), error: failure.error() }
}

/// A failure that a runtime reports.
#[must_use]
pub fn runtime_error(code: &str) -> TaskError {
    TaskError {
        code: code.to_owned(),
        message: Redacted::own("as the runtime says"),
        retryable: true,
        may_have_run: true,
        details: None,
    }
}

/// Somebody wants task `n` to stop.
#[must_use]
pub fn cancel_requested(n: u64, reason: CancelReason) -> SpaceEvent {
    SpaceEvent::CancelRequested { task: task(n), reason }
}

/// Task `n` stopped.
#[must_use]
pub fn cancelled(n: u64) -> SpaceEvent {
    SpaceEvent::TaskCancelled { task: task(n) }
}

/// The Space will close.
#[must_use]
pub const fn close_requested(reason: CloseReason) -> SpaceEvent {
    SpaceEvent::CloseRequested { reason }
}

/// The Space is over.
#[must_use]
pub const fn closed(reason: CloseReason) -> SpaceEvent {
    SpaceEvent::Closed { reason }
}

/// What goes into the instance's stream with [`closed`].
#[must_use]
pub fn released(reason: CloseReason) -> InstanceEvent {
    InstanceEvent::Released { space: space_id(), fence: Fence(OPENED_AT), reason }
}

/// The runtime is unusable.
#[must_use]
pub fn faulted(code: &str, generation: u64) -> SpaceEvent {
    SpaceEvent::Faulted { code: code.to_owned(), generation: Some(Generation(generation)) }
}

/// A new runtime is ready.
#[must_use]
pub const fn recovered(generation: u64) -> SpaceEvent {
    SpaceEvent::Recovered { generation: Generation(generation) }
}

/// What the runtime reports of task `n`.
#[must_use]
pub fn report(n: u64, generation: u64, outcome: Outcome) -> Report {
    Report { task: task(n), operation: operation(n), generation: Generation(generation), outcome }
}

/// The outcome behind [`completed`].
#[must_use]
pub fn done() -> Outcome {
    let result = Redactor::new().json(json!({ "ok": true }));
    Outcome::Completed { result, artifacts: Vec::new() }
}

/// The owner cancels.
#[must_use]
pub const fn cancel() -> Command {
    Command::Cancel { reason: CancelReason::Requested }
}

/// The owner closes.
#[must_use]
pub const fn close() -> Command {
    Command::Close { reason: CloseReason::Requested }
}

/// A start of the runtime is ready.
#[must_use]
pub const fn ready(generation: u64) -> Command {
    Command::RuntimeReady { generation: Generation(generation) }
}

/// A start of the runtime is gone.
#[must_use]
pub const fn lost(generation: u64, reason: LossReason) -> Command {
    Command::RuntimeLost { generation: Generation(generation), reason }
}
