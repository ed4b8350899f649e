//! The table of errors against itself, its page and the rules.

use actors::space::StartFault;

use super::*;

fn every_rejection() -> Vec<Rejection> {
    let id = actors_ids();
    vec![
        Rejection::Forbidden(Denial::Owner),
        Rejection::SpaceNotFound,
        Rejection::InstanceNotFound,
        Rejection::BindingNotFound,
        Rejection::TaskNotFound,
        Rejection::TokenNotFound,
        Rejection::BrowserInstanceInUse,
        Rejection::InstanceRetired,
        Rejection::SpaceClosed,
        Rejection::SpaceTaskInProgress { task: id.1 },
        Rejection::SpaceInError,
        Rejection::NoScreencast,
        Rejection::RequestIdConflict,
        Rejection::InvalidRequest { field: "limit", problem: "too large".to_owned() },
        Rejection::CapabilityUnknown { at: None },
        Rejection::CapabilityNotGranted { capability: "click".parse().expect("a name"), task: Some(id.1) },
        Rejection::InvalidArgs { problems: vec!["/url is missing".to_owned()] },
        Rejection::RuntimeNotReady {
            task: Some(id.1),
            retry_after_ms: 1500,
            fault: Some(StartFault::NoSandbox),
        },
        Rejection::Overloaded,
        Rejection::ShuttingDown,
        Rejection::LogUnavailable,
        Rejection::OutcomeUnknown,
        Rejection::CorruptStream { stream: StreamId::Space(id.0) },
        Rejection::CorruptStream { stream: StreamId::Server },
        Rejection::Internal,
    ]
}

fn actors_ids() -> (eventlog::id::SpaceId, eventlog::id::TaskId) {
    (
        "spc_00000000000000000000000001".parse().expect("an id"),
        "tsk_00000000000000000000000001".parse().expect("an id"),
    )
}

#[test]
fn every_rejection_is_answered_with_its_own_code() {
    for rejection in every_rejection() {
        let code = rejection.code();
        assert_eq!(Problem::from(rejection).code().as_str(), code);
    }
}

#[test]
fn an_answer_that_asks_to_come_back_says_when() {
    let problem = Problem::from(Rejection::RuntimeNotReady { task: None, retry_after_ms: 1500, fault: None });
    let response = problem.into_response();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()[header::RETRY_AFTER], "2");
    for code in Code::ALL.iter().filter(|code| matches!(code.status().map(|s| s.as_u16()), Some(429 | 503))) {
        assert!(Problem::new(*code).into_response().headers().contains_key(header::RETRY_AFTER), "{code:?}");
    }
}

#[test]
fn a_browser_that_nobody_can_start_is_not_worth_a_retry() {
    for (fault, retryable) in [(StartFault::NoExecutable, false), (StartFault::EndedEarly, true)] {
        let rejection = Rejection::RuntimeNotReady { task: None, retry_after_ms: 1500, fault: Some(fault) };
        let error = Problem::from(rejection).body()["error"].clone();
        assert_eq!(error["retryable"], retryable, "{fault:?}");
        assert_eq!(error["details"], json!({ "reason": fault.reason() }));
        assert_eq!(error["message"], fault.message());
    }
}

#[test]
fn a_code_stands_in_the_table_once_and_is_explained_in_one_line() {
    let mut seen = std::collections::BTreeSet::new();
    for code in Code::ALL {
        assert!(seen.insert(code.as_str()), "{} twice", code.as_str());
        assert!(code.meaning().ends_with('.') && !code.meaning().contains(['\n', '|']), "{}", code.as_str());
    }
}

#[test]
fn the_page_of_errors_is_the_table() {
    crate::generated::compare("docs/errors.md", &errors_markdown());
}

#[test]
fn a_refusal_by_the_catalogue_says_which_entry_and_where_the_names_are() {
    let unknown = |at| Problem::from(Rejection::CapabilityUnknown { at }).body()["error"].clone();
    let lists = "GET /api/v1/capabilities lists those that there are";
    assert_eq!(unknown(None)["message"], format!("there is no such capability; {lists}"));
    let listed = unknown(Some(("granted_capabilities", 3)));
    assert_eq!(listed["message"], format!("granted_capabilities: entry 3 is no capability; {lists}"));
    assert_eq!(listed["details"], json!({ "field": "granted_capabilities", "entry": 3 }));
    let click = || "click".parse().expect("a name");
    let narrow = Problem::from(Rejection::CapabilityNotGranted { capability: click(), task: None }).body();
    assert_eq!(narrow["error"]["details"], json!({ "capability": "click" }));
    let message = "click is not in the instance's bundle, or not in the binding";
    assert_eq!(narrow["error"]["message"], message);
}
