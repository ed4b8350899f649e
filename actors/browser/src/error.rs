//! Why a capability failed: one closed list, with the codes that every door of the product uses.

use serde::Serialize;
use serde_json::{Value, json};

use crate::connection::{CallError, Gone};
use crate::reference::{ElementRef, TabId};
use crate::tab::{DialogInfo, TabInfo};

/// The check that an element failed before input was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// It has a size and is not hidden.
    Visible,
    /// It has stopped moving.
    Stable,
    /// It is not disabled.
    Enabled,
    /// It takes text and is not read-only.
    Editable,
    /// A click on it would reach it: it is in view and nothing covers it.
    ReceivesEvents,
}

/// Why a capability failed.
///
/// Messages may hold text of the page (never a path, endpoint or process id of ours): redact before recording.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The args do not make sense; change them.
    #[error("{message}")]
    InvalidArgs {
        /// What is wrong with them.
        message: String,
    },
    /// The cursor belongs to a text that is no longer kept; begin again without it.
    #[error("the cursor is unknown or no longer valid")]
    InvalidCursor,
    /// The ref was never given out; take a snapshot.
    #[error("there is no element {reference}")]
    ElementNotFound {
        /// The ref.
        reference: ElementRef,
    },
    /// The element is gone; take a new snapshot. No input was sent.
    #[error("the element {reference} is gone from the page")]
    StaleRef {
        /// The ref.
        reference: ElementRef,
    },
    /// The element did not become ready in time. No input was sent.
    #[error("the element {reference} is not ready: {check:?} was not reached{}", covered(.covered_by.as_deref()))]
    ElementNotActionable {
        /// The ref.
        reference: ElementRef,
        /// The check that failed last.
        check: Check,
        /// What covers it, if something does.
        covered_by: Option<String>,
    },
    /// A dialog is open; answer it first.
    #[error("a dialog is open in tab {tab}")]
    DialogOpen {
        /// The tab that shows it.
        tab: TabId,
        /// The dialog.
        dialog: DialogInfo,
    },
    /// The address could not be shown.
    #[error("the navigation failed: {reason}")]
    NavigationFailed {
        /// The browser's reason, like `net::ERR_CONNECTION_REFUSED`.
        reason: String,
    },
    /// The address is not allowed.
    #[error("blocked by policy ({rule})")]
    BlockedByPolicy {
        /// The rule that blocks.
        rule: &'static str,
    },
    /// The tab is gone; choose another.
    #[error("the tab is closed")]
    TabClosed {
        /// The tab, if one was meant.
        tab: Option<TabId>,
        /// The tabs that there are.
        tabs: Vec<TabInfo>,
        /// Whether input had been sent.
        sent: bool,
    },
    /// The page crashed; navigate to revive the tab.
    #[error("the page in tab {tab} crashed")]
    TabCrashed {
        /// The tab.
        tab: TabId,
        /// Whether input had been sent.
        sent: bool,
    },
    /// Time is up.
    #[error("the time for this step is up")]
    TaskTimeout {
        /// Whether input had been sent.
        sent: bool,
    },
    /// The caller cancelled.
    #[error("the step was cancelled")]
    Cancelled {
        /// Whether input had been sent.
        sent: bool,
    },
    /// The browser is gone; a new one has to be started.
    #[error("the browser ended")]
    RuntimeCrashed {
        /// Whether input had been sent.
        sent: bool,
    },
    /// The browser was shut down on purpose.
    #[error("the browser was shut down")]
    RuntimeStopped,
    /// The page is too large to be read whole; narrow it with `root` or `ref`.
    #[error("the result is too large")]
    ResultTooLarge,
    /// The browser answered something unexpected.
    #[error("the browser gave an unexpected answer")]
    Internal {
        /// Its answer.
        #[source]
        source: Box<CallError>,
        /// Whether input had been sent.
        sent: bool,
    },
}

fn covered(by: Option<&str>) -> String {
    by.map_or_else(String::new, |by| format!(", covered by {by}"))
}

impl Error {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidArgs { message: message.into() }
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidArgs { .. } => "invalid_args",
            Self::InvalidCursor => "invalid_cursor",
            Self::ElementNotFound { .. } => "element_not_found",
            Self::StaleRef { .. } => "stale_ref",
            Self::ElementNotActionable { .. } => "element_not_actionable",
            Self::DialogOpen { .. } => "dialog_open",
            Self::NavigationFailed { .. } => "navigation_failed",
            Self::BlockedByPolicy { .. } => "blocked_by_policy",
            Self::TabClosed { .. } => "tab_closed",
            Self::TabCrashed { .. } => "tab_crashed",
            Self::TaskTimeout { .. } => "task_timeout",
            Self::Cancelled { .. } => "cancelled",
            Self::RuntimeCrashed { .. } => "runtime_crashed",
            Self::RuntimeStopped => "runtime_stopped",
            Self::ResultTooLarge => "result_too_large",
            Self::Internal { .. } => "internal",
        }
    }

    /// Whether the same call may well succeed later.
    pub fn retryable(&self) -> bool {
        match self {
            Self::ElementNotActionable { .. }
            | Self::NavigationFailed { .. }
            | Self::TaskTimeout { .. }
            | Self::RuntimeCrashed { .. }
            | Self::RuntimeStopped => true,
            Self::InvalidArgs { .. }
            | Self::InvalidCursor
            | Self::ElementNotFound { .. }
            | Self::StaleRef { .. }
            | Self::DialogOpen { .. }
            | Self::BlockedByPolicy { .. }
            | Self::TabClosed { .. }
            | Self::TabCrashed { .. }
            | Self::Cancelled { .. }
            | Self::ResultTooLarge
            | Self::Internal { .. } => false,
        }
    }

    /// False only if it is certain that no input reached the page.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::TabClosed { sent, .. }
            | Self::TabCrashed { sent, .. }
            | Self::TaskTimeout { sent }
            | Self::Cancelled { sent }
            | Self::RuntimeCrashed { sent }
            | Self::Internal { sent, .. } => *sent,
            Self::NavigationFailed { .. } => true,
            Self::InvalidArgs { .. }
            | Self::InvalidCursor
            | Self::ElementNotFound { .. }
            | Self::StaleRef { .. }
            | Self::ElementNotActionable { .. }
            | Self::DialogOpen { .. }
            | Self::BlockedByPolicy { .. }
            | Self::RuntimeStopped
            | Self::ResultTooLarge => false,
        }
    }

    /// What an agent needs to go on, as JSON; may hold text of the page.
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::ElementNotFound { reference } | Self::StaleRef { reference } => {
                Some(json!({ "ref": reference }))
            }
            Self::ElementNotActionable { reference, check, covered_by } => {
                Some(json!({ "ref": reference, "check": check, "covered_by": covered_by }))
            }
            Self::DialogOpen { tab, dialog } => Some(json!({ "tab": tab, "dialog": dialog })),
            Self::NavigationFailed { reason } => Some(json!({ "reason": reason })),
            Self::BlockedByPolicy { rule } => Some(json!({ "rule": rule })),
            Self::TabClosed { tab, tabs, .. } => Some(json!({ "tab": tab, "tabs": tabs })),
            Self::TabCrashed { tab, .. } => Some(json!({ "tab": tab })),
            Self::InvalidArgs { .. }
            | Self::InvalidCursor
            | Self::TaskTimeout { .. }
            | Self::Cancelled { .. }
            | Self::RuntimeCrashed { .. }
            | Self::RuntimeStopped
            | Self::ResultTooLarge
            | Self::Internal { .. } => None,
        }
    }

    /// The same error, with what is known about input that was sent.
    pub(crate) fn after(mut self, was_sent: bool) -> Self {
        match &mut self {
            Self::TabClosed { sent, .. }
            | Self::TabCrashed { sent, .. }
            | Self::TaskTimeout { sent }
            | Self::Cancelled { sent }
            | Self::RuntimeCrashed { sent }
            | Self::Internal { sent, .. } => *sent |= was_sent,
            _ => {}
        }
        self
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Gone(Gone::Closed) => Self::RuntimeCrashed { sent: false },
            CallError::Overdue { .. } => Self::TaskTimeout { sent: false },
            CallError::TooLarge { .. } => Self::ResultTooLarge,
            other => Self::Internal { source: Box::new(other), sent: false },
        }
    }
}
