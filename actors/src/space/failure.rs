//! The task failures that the rules themselves record: one table of code, message and advice.

use eventlog::{
    Redacted,
    event::{instance::LossReason, space::TaskError},
};

/// Why the rules end a task as failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The Space was not granted the capability; the refusal is recorded for auditors.
    CapabilityNotGranted,
    /// There is no runtime, and none will be started for a while.
    RuntimeNotReady,
    /// The runtime was lost under the task.
    RuntimeCrashed,
    /// The runtime stopped working on the task though nobody had asked it to.
    RuntimeStopped,
    /// The server ended while the task ran.
    Interrupted,
    /// The runtime did not acknowledge a cancel.
    CancelTimeout,
    /// The runtime neither finished nor stopped at the deadline.
    TaskTimeout,
}

impl Failure {
    /// The stable code.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::CapabilityNotGranted => "capability_not_granted",
            Self::RuntimeNotReady => "runtime_not_ready",
            Self::RuntimeCrashed => "runtime_crashed",
            Self::RuntimeStopped => "runtime_stopped",
            Self::Interrupted => "interrupted",
            Self::CancelTimeout => "cancel_timeout",
            Self::TaskTimeout => "task_timeout",
        }
    }

    /// The failure as it is recorded.
    pub(super) fn error(self) -> TaskError {
        let message = match self {
            Self::CapabilityNotGranted => "this Space was not granted that capability",
            Self::RuntimeNotReady => "the browser is not ready",
            Self::RuntimeCrashed => "the browser ended while the task ran",
            Self::RuntimeStopped => "the browser stopped the task though nobody had asked for it",
            Self::Interrupted => "the server ended while the task ran",
            Self::CancelTimeout => "the browser did not acknowledge the cancel in time and was ended",
            Self::TaskTimeout => "the browser did not stop at the task's deadline and was ended",
        };
        let refused = matches!(self, Self::CapabilityNotGranted | Self::RuntimeNotReady);
        TaskError {
            code: self.code().to_owned(),
            message: Redacted::own(message),
            retryable: self != Self::CapabilityNotGranted,
            may_have_run: !refused,
            details: None,
        }
    }
}

/// The code under which a lost runtime puts its Space in error.
pub(super) const fn fault_code(reason: LossReason) -> &'static str {
    match reason {
        LossReason::StartFailed => Failure::RuntimeNotReady.code(),
        LossReason::Crashed | LossReason::Wedged | LossReason::Orphaned => Failure::RuntimeCrashed.code(),
    }
}

/// Whether a runtime that reports this failure is itself unusable (S9).
pub(super) fn means_runtime_is_gone(error: &TaskError) -> bool {
    matches!(error.code.as_str(), "runtime_crashed" | "runtime_disconnected")
}
