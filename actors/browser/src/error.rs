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
    #[error("the cursor is unknown or no longer valid; begin again without it")]
    InvalidCursor,
    /// The ref was never given out; take a snapshot.
    #[error("there is no element {reference}; take a snapshot for the refs that there are")]
    ElementNotFound {
        /// The ref.
        reference: ElementRef,
    },
    /// The element is gone; take a new snapshot. No input was sent.
    #[error("the element {reference} is gone from the page; take a new snapshot")]
    StaleRef {
        /// The ref.
        reference: ElementRef,
    },
    /// The element did not become ready in time. No press or text reached the page; the mouse may have been over it.
    #[error("{reference} {}", unready(*.check, .covered_by.as_deref()))]
    ElementNotActionable {
        /// The ref.
        reference: ElementRef,
        /// The check that failed last.
        check: Check,
        /// What covers it, if something does.
        covered_by: Option<String>,
    },
    /// A dialog is open; answer it first.
    #[error("a dialog ({}) is open in tab {tab}; answer it with the capability dialog", .dialog.kind)]
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
    #[error("blocked by the rule {rule}{}", allowed(.rule))]
    BlockedByPolicy {
        /// The rule that blocks.
        rule: &'static str,
        /// Whether another address had been asked before, or the page was left for it.
        sent: bool,
    },
    /// The tab is gone; choose another.
    #[error("the tab is closed; name one of those in the details, or open one with tab_new")]
    TabClosed {
        /// The tab, if one was meant.
        tab: Option<TabId>,
        /// The tabs that there are.
        tabs: Vec<TabInfo>,
        /// Whether input had been sent.
        sent: bool,
    },
    /// The page crashed; navigate to revive the tab.
    #[error("the page in tab {tab} crashed; navigate revives the tab")]
    TabCrashed {
        /// The tab.
        tab: TabId,
        /// Whether input had been sent.
        sent: bool,
    },
    /// The caller's script threw, or its value can not be written as JSON. It has run as far as that.
    #[error("the script failed: {message}")]
    ScriptFailed {
        /// What it threw, in the page's words.
        message: String,
    },
    /// The element was clicked, and the page opened no chooser for files.
    #[error("{reference} is no field for files, and no chooser opened when it was clicked")]
    NoFileChooser {
        /// The ref.
        reference: ElementRef,
    },
    /// The files could not be copied for the browser; the page was not touched. The server's log says why.
    #[error("the files could not be handed to the browser")]
    NotCopied,
    /// Time is up.
    #[error("the time for this step was up before it was done")]
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
    #[error("the result is too large; narrow it with root, ref or max_chars")]
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

/// What kept the element from being acted on, in words for who asked.
fn unready(check: Check, covered_by: Option<&str>) -> String {
    match (check, covered_by) {
        (Check::Visible, _) => "is not visible".to_owned(),
        (Check::Stable, _) => "does not stop moving".to_owned(),
        (Check::Enabled, _) => "is disabled".to_owned(),
        (Check::Editable, _) => "can not be edited: it is read-only, or no field for text".to_owned(),
        (Check::ReceivesEvents, Some(by)) => format!("is covered by {by}"),
        (Check::ReceivesEvents, None) => "can not be reached by the mouse".to_owned(),
    }
}

/// What the rule lets through, where that can be said in a few words.
fn allowed(rule: &str) -> &'static str {
    match rule {
        "scheme" => ": only http, https and about:blank may be opened",
        _ => "; the network policy of the browser's instance does not let it through",
    }
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
            Self::ScriptFailed { .. } => "script_failed",
            Self::NoFileChooser { .. } => "no_file_chooser",
            Self::NotCopied => "internal",
            Self::TaskTimeout { .. } => "task_timeout",
            Self::Cancelled { .. } => "cancelled",
            Self::RuntimeCrashed { .. } => "runtime_crashed",
            Self::RuntimeStopped => "runtime_stopped",
            Self::ResultTooLarge => "result_too_large",
            Self::Internal { .. } => "internal",
        }
    }

    /// Whether the same call may well succeed later, though nobody does anything about it.
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
            | Self::ScriptFailed { .. }
            | Self::NoFileChooser { .. }
            | Self::NotCopied
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
            | Self::BlockedByPolicy { sent, .. }
            | Self::Internal { sent, .. } => *sent,
            Self::NavigationFailed { .. } | Self::ScriptFailed { .. } | Self::NoFileChooser { .. } => true,
            Self::InvalidArgs { .. }
            | Self::InvalidCursor
            | Self::ElementNotFound { .. }
            | Self::StaleRef { .. }
            | Self::ElementNotActionable { .. }
            | Self::DialogOpen { .. }
            | Self::RuntimeStopped
            | Self::NotCopied
            | Self::ResultTooLarge => false,
        }
    }

    /// What an agent needs to go on, as JSON; may hold text of the page.
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::ElementNotFound { reference }
            | Self::StaleRef { reference }
            | Self::NoFileChooser { reference } => Some(json!({ "ref": reference })),
            Self::ElementNotActionable { reference, check, covered_by } => {
                Some(json!({ "ref": reference, "check": check, "covered_by": covered_by }))
            }
            Self::DialogOpen { tab, dialog } => Some(json!({ "tab": tab, "dialog": dialog })),
            Self::NavigationFailed { reason } => Some(json!({ "reason": reason })),
            Self::BlockedByPolicy { rule, .. } => Some(json!({ "rule": rule })),
            Self::TabClosed { tab, tabs, .. } => Some(json!({ "tab": tab, "tabs": tabs })),
            Self::TabCrashed { tab, .. } => Some(json!({ "tab": tab })),
            // The same shape as that of args which do not fit the schema.
            Self::InvalidArgs { message } => Some(json!({ "problems": [message] })),
            Self::InvalidCursor
            | Self::ScriptFailed { .. }
            | Self::NotCopied
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
            | Self::BlockedByPolicy { sent, .. }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What users are told of every code.
    const PAGE: &str = include_str!("../../../docs/errors.md");

    fn every_error(sent: bool) -> Vec<Error> {
        let (reference, tab) = ("e8".parse().expect("a ref"), "t1".parse().expect("a tab"));
        let dialog = DialogInfo {
            kind: "confirm".to_owned(),
            message: "Sure?".to_owned(),
            default_prompt: None,
            answered: false,
        };
        let unready = |check, by: Option<&str>| Error::ElementNotActionable {
            reference,
            check,
            covered_by: by.map(str::to_owned),
        };
        vec![
            Error::invalid("e4 takes no text; click it, or press keys in it"),
            Error::InvalidCursor,
            Error::ElementNotFound { reference },
            Error::StaleRef { reference },
            unready(Check::Visible, None),
            unready(Check::Stable, None),
            unready(Check::Enabled, None),
            unready(Check::Editable, None),
            unready(Check::ReceivesEvents, None),
            unready(Check::ReceivesEvents, Some("dialog \"Cookies\"")),
            Error::DialogOpen { tab, dialog },
            Error::NavigationFailed { reason: "net::ERR_CONNECTION_REFUSED".to_owned() },
            Error::BlockedByPolicy { rule: "scheme", sent: false },
            Error::TabClosed { tab: Some(tab), tabs: Vec::new(), sent },
            Error::TabCrashed { tab, sent },
            Error::ScriptFailed { message: "ReferenceError: x is not defined".to_owned() },
            Error::NoFileChooser { reference },
            Error::NotCopied,
            Error::TaskTimeout { sent },
            Error::Cancelled { sent },
            Error::RuntimeCrashed { sent },
            Error::RuntimeStopped,
            Error::ResultTooLarge,
            Error::Internal { source: Box::new(CallError::Gone(Gone::Closed)), sent },
        ]
    }

    /// The columns of a code in the page: HTTP, retry, may have run, meaning.
    fn columns(code: &str) -> Vec<&'static str> {
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{code}` |")));
        row.unwrap_or_else(|| panic!("{code} is not explained")).split('|').skip(2).map(str::trim).collect()
    }

    #[test]
    fn what_the_page_of_errors_says_of_a_code_is_what_the_browser_says() {
        for error in every_error(true).iter().chain(&every_error(false)) {
            let told = columns(error.code());
            assert_eq!(told[1] == "yes", error.retryable(), "{}: retry", error.code());
            assert!(told[2] == "perhaps" || !error.may_have_run(), "{}: may have run", error.code());
        }
    }

    #[test]
    fn a_message_says_what_is_wrong_and_what_to_do_in_words_of_the_catalogue() {
        let told: Vec<_> = every_error(false).iter().map(ToString::to_string).collect();
        for message in [
            "there is no element e8; take a snapshot for the refs that there are",
            "the element e8 is gone from the page; take a new snapshot",
            "e8 is not visible",
            "e8 does not stop moving",
            "e8 is disabled",
            "e8 can not be edited: it is read-only, or no field for text",
            "e8 can not be reached by the mouse",
            "e8 is covered by dialog \"Cookies\"",
            "a dialog (confirm) is open in tab t1; answer it with the capability dialog",
            "blocked by the rule scheme: only http, https and about:blank may be opened",
            "the page in tab t1 crashed; navigate revives the tab",
        ] {
            assert!(told.iter().any(|said| said == message), "{message}: {told:#?}");
        }
    }

    #[test]
    fn args_that_do_not_make_sense_are_detailed_as_those_that_do_not_fit() {
        let refused = Error::invalid("no dialog is open in tab t1");
        assert_eq!(refused.details(), Some(json!({ "problems": ["no dialog is open in tab t1"] })));
    }
}
