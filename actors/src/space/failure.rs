//! The task failures that are ours to record: one table of code, message and advice. What a browser says of a page has
//! a table of its own, [`browser::Error`].

use eventlog::{
    Json, Redacted, Redactor,
    event::{instance::LossReason, space::TaskError},
};
use serde_json::json;

use super::start_fault::StartFault;

const RUNTIME_NOT_READY: &str = "runtime_not_ready";

/// Why a task ends as failed though no page is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The Space was not granted the capability; the refusal is recorded for auditors.
    CapabilityNotGranted,
    /// There is no runtime, and none will be started for a while.
    RuntimeNotReady(StartFault),
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
    /// There is no room for what the step made.
    ResultTooLarge,
    /// A bug of ours.
    Internal,
}

impl Failure {
    /// Every one; of the starts that failed, one stands for all.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) const ALL: [Self; 9] = [
        Self::CapabilityNotGranted,
        Self::RuntimeNotReady(StartFault::Overdue),
        Self::RuntimeCrashed,
        Self::RuntimeStopped,
        Self::Interrupted,
        Self::CancelTimeout,
        Self::TaskTimeout,
        Self::ResultTooLarge,
        Self::Internal,
    ];

    /// The stable code.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::CapabilityNotGranted => "capability_not_granted",
            Self::RuntimeNotReady(_) => RUNTIME_NOT_READY,
            Self::RuntimeCrashed => "runtime_crashed",
            Self::RuntimeStopped => "runtime_stopped",
            Self::Interrupted => "interrupted",
            Self::CancelTimeout => "cancel_timeout",
            Self::TaskTimeout => "task_timeout",
            Self::ResultTooLarge => "result_too_large",
            Self::Internal => "internal",
        }
    }

    /// Whether the same task may well complete later, though nobody does anything about it.
    const fn retryable(self) -> bool {
        match self {
            Self::RuntimeNotReady(fault) => fault.may_pass(),
            Self::RuntimeCrashed
            | Self::RuntimeStopped
            | Self::Interrupted
            | Self::CancelTimeout
            | Self::TaskTimeout => true,
            Self::CapabilityNotGranted | Self::ResultTooLarge | Self::Internal => false,
        }
    }

    /// The failure as it is recorded, in its own words.
    pub(crate) fn error(self) -> TaskError {
        let message = match self {
            Self::CapabilityNotGranted => "this Space was not granted that capability",
            Self::RuntimeNotReady(fault) => fault.message(),
            Self::RuntimeCrashed => "the browser ended while the task ran",
            Self::RuntimeStopped => "the browser stopped the task though nobody had asked for it",
            Self::Interrupted => "the server ended while the task ran",
            Self::CancelTimeout => "the browser did not acknowledge the cancel in time and was ended",
            Self::TaskTimeout => "the browser did not stop at the task's deadline and was ended",
            Self::ResultTooLarge => "there is no room for the result",
            Self::Internal => "the step ended in a bug",
        };
        let refused = matches!(self, Self::CapabilityNotGranted | Self::RuntimeNotReady(_));
        self.saying(message, !refused)
    }

    fn details(self) -> Option<Redacted<Json>> {
        let Self::RuntimeNotReady(fault) = self else { return None };
        Some(Redactor::new().json(json!({ "reason": fault.reason() })))
    }

    /// The same in other words, where more is known of what happened.
    pub(crate) fn saying(self, message: &'static str, may_have_run: bool) -> TaskError {
        TaskError {
            code: self.code().to_owned(),
            message: Redacted::own(message),
            retryable: self.retryable(),
            may_have_run,
            details: self.details(),
        }
    }
}

/// The code under which a lost runtime puts its Space in error.
pub(super) const fn fault_code(reason: LossReason) -> &'static str {
    match reason {
        LossReason::StartFailed => RUNTIME_NOT_READY,
        LossReason::Crashed | LossReason::Wedged | LossReason::Orphaned => Failure::RuntimeCrashed.code(),
    }
}

/// Whether a runtime that reports this failure is itself unusable (S9).
pub(super) fn means_runtime_is_gone(error: &TaskError) -> bool {
    matches!(error.code.as_str(), "runtime_crashed" | "runtime_disconnected")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What users are told of every code.
    const PAGE: &str = include_str!("../../../docs/errors.md");

    #[test]
    fn what_the_page_of_errors_says_of_a_code_is_what_is_recorded() {
        for failure in Failure::ALL {
            let (code, error) = (failure.code(), failure.error());
            let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{code}` |")));
            let row = row.unwrap_or_else(|| panic!("{code} is not explained"));
            let told: Vec<_> = row.split('|').map(str::trim).collect();
            assert_eq!(told[3] == "yes", error.retryable, "{code}: retry");
            assert!(told[4] == "perhaps" || !error.may_have_run, "{code}: may have run");
        }
    }

    #[test]
    fn a_browser_that_can_not_start_says_why_in_a_word_of_the_page_and_whether_waiting_can_help() {
        let row =
            PAGE.lines().find(|line| line.starts_with("| `runtime_not_ready` |")).expect("it is explained");
        let (in_vain, sensible) = row.split_once("helps: ").expect("those that pass come last");
        for fault in StartFault::ALL {
            let (error, reason) = (Failure::RuntimeNotReady(fault).error(), fault.reason());
            assert_eq!(error.details.map(|details| details.get()["reason"].clone()), Some(json!(reason)));
            assert_eq!(error.message.get(), fault.message());
            assert_eq!(error.retryable, fault.may_pass(), "{reason}");
            assert!(!error.may_have_run, "{reason}");
            let told = if fault.may_pass() { sensible } else { in_vain };
            assert!(
                told.split(['`', ',', ' ', ';', '.', '|']).any(|word| word == reason),
                "{reason} is explained"
            );
        }
    }
}
