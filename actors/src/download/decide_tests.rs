//! The rules of downloads, promise by promise.

use eventlog::{Position, Redactor, Sequence, Timestamp, id::SpaceId};
use uuid::Uuid;

use super::*;
use crate::{
    download::{FILE_BYTES_MAX, evolve::evolve},
    place::Place,
    space::scenario::{NOW, caller, workspace_id},
};

fn id(number: u128) -> DownloadId {
    DownloadId::from_uuid(Uuid::from_u128(number))
}

fn given(events: &[DownloadEvent]) -> Shelf {
    let empty = Shelf::empty(SpaceId::from_uuid(Uuid::from_u128(9)));
    events.iter().zip(1..).fold(empty, |shelf, (event, number)| {
        let place = Place { sequence: Sequence(number), position: Position(number), recorded_at: NOW };
        evolve(shelf, event, place)
    })
}

fn started(number: u128) -> DownloadEvent {
    DownloadEvent::Started {
        download: id(number),
        url: Redactor::new().text("https://example.org/report"),
        suggested_filename: Redactor::new().text("report.pdf"),
        workspace: workspace_id(),
        generation: Generation(1),
    }
}

fn receipt(bytes: u64) -> Box<Receipt> {
    Box::new(Receipt {
        url: Redactor::new().text("https://example.org/report"),
        suggested_filename: Redactor::new().text("report.pdf"),
        bytes,
        sha256: "aa".to_owned(),
        claimed_media_type: "application/pdf".to_owned(),
        sniffed_media_type: "application/pdf".to_owned(),
        workspace: workspace_id(),
        captured_at: NOW,
    })
}

fn captured(number: u128) -> DownloadEvent {
    DownloadEvent::Captured { download: id(number), receipt: receipt(10) }
}

fn approval(name: &str, sha256: &str) -> Box<Approval> {
    Box::new(Approval {
        sha256: sha256.to_owned(),
        bytes: 10,
        approved_at: Timestamp(NOW.0 + 1),
        authorized_principal: "operator-1".parse().expect("it is an id"),
        authorized_principal_scope: "*".to_owned(),
        declared_operator: Redactor::new().text(name),
    })
}

fn approve(number: u128, name: &str) -> Command {
    Command::Approve { download: id(number), approval: approval(name, "aa") }
}

fn begin(number: u128) -> Command {
    let DownloadEvent::Started { download, url, suggested_filename, workspace, generation } = started(number)
    else {
        unreachable!("that is what it makes")
    };
    Command::Begin { download, url, suggested_filename, workspace, generation }
}

fn reject(number: u128) -> Command {
    let text = |text| Redactor::new().text(text);
    Command::Reject { download: id(number), reason: text("not asked for"), declared_operator: text("Alice") }
}

fn ask(shelf: &Shelf, command: &Command, caller: &Caller) -> Result<Vec<DownloadEvent>, Rejection> {
    let config = DownloadsConfig {
        space_files_max: 2,
        space_bytes_max: 25,
        workspace_day_bytes_max: 100,
        ..DownloadsConfig::default()
    };
    decide(shelf, command, &Facts { caller, config: &config, workspace_bytes_today: 0 })
}

fn server(shelf: &Shelf, command: &Command) -> Vec<DownloadEvent> {
    ask(shelf, command, &Caller::system()).expect("the server may")
}

fn operator() -> Caller {
    caller(Role::Operator, "op", &["team"])
}

#[test]
fn q1_a_budget_counts_what_is_under_way_and_gives_back_what_was_refused() {
    let two = given(&[started(1), started(2)]);
    assert_eq!(server(&two, &begin(3)), [started(3), refused(id(3), RefusedReason::SpaceFiles, 0)]);
    let one = given(&[started(1), started(2), refused(id(2), RefusedReason::Stalled, 1)]);
    assert_eq!(server(&one, &begin(3)), [started(3)]);
}

#[test]
fn q1_bytes_over_a_budget_are_not_captured() {
    let shelf = given(&[started(1), captured(1), started(2)]);
    let capture = |bytes| Command::Capture { download: id(2), receipt: receipt(bytes) };
    assert_eq!(
        server(&shelf, &capture(15)),
        [DownloadEvent::Captured { download: id(2), receipt: receipt(15) }]
    );
    assert_eq!(server(&shelf, &capture(16)), [refused(id(2), RefusedReason::SpaceBytes, 16)]);
    let large = FILE_BYTES_MAX + 1;
    assert_eq!(server(&shelf, &capture(large)), [refused(id(2), RefusedReason::TooLarge, large)]);
    let config = DownloadsConfig { workspace_day_bytes_max: 100, ..DownloadsConfig::default() };
    let facts = Facts { caller: &Caller::system(), config: &config, workspace_bytes_today: 99 };
    let over = decide(&shelf, &capture(2), &facts).expect("the server may");
    assert_eq!(over, [refused(id(2), RefusedReason::WorkspaceBytes, 2)]);
}

#[test]
fn q1_an_end_is_told_once_and_a_start_ends_what_nobody_goes_on_with() {
    let shelf = given(&[started(1), captured(1), started(2)]);
    let late = Command::Refuse { download: id(1), reason: RefusedReason::Stalled, bytes: 0 };
    assert_eq!(server(&shelf, &late), []);
    assert_eq!(server(&shelf, &Command::Capture { download: id(1), receipt: receipt(10) }), []);
    assert_eq!(server(&shelf, &Command::EndAll), [refused(id(2), RefusedReason::BrowserEnded, 0)]);
}

#[test]
fn q3_what_was_read_again_must_be_what_was_captured() {
    let shelf = given(&[started(1), captured(1), started(2)]);
    let tampered = Command::Approve { download: id(1), approval: approval("Alice", "bb") };
    assert_eq!(ask(&shelf, &tampered, &operator()), Err(Rejection::DownloadTampered));
    for (what, number) in [("incomplete", 2), ("unknown", 3)] {
        assert_eq!(
            ask(&shelf, &approve(number, "Alice"), &operator()),
            Err(Rejection::DownloadGone),
            "{what}"
        );
    }
}

#[test]
fn q4_nobody_but_an_operator_releases_or_rejects_and_nobody_but_the_server_captures() {
    let shelf = given(&[started(1), captured(1)]);
    for role in [Role::RuntimeAgent, Role::Auditor] {
        let caller = caller(role, "other", &["team"]);
        assert!(ask(&shelf, &approve(1, "Mallory"), &caller).is_err(), "{role:?}");
        assert!(ask(&shelf, &reject(1), &caller).is_err(), "{role:?}");
    }
    assert!(ask(&shelf, &begin(2), &operator()).is_err());
    assert!(ask(&shelf, &Command::NotePublished { download: id(1) }, &operator()).is_err());
}

#[test]
fn q6_the_first_approval_stands_and_what_is_released_is_not_rejected() {
    let first = DownloadEvent::Approved { download: id(1), approval: approval("Alice", "aa") };
    let shelf = given(&[started(1), captured(1)]);
    assert_eq!(ask(&shelf, &approve(1, "Alice"), &operator()), Ok(vec![first.clone()]));
    let second = DownloadEvent::Approved { download: id(1), approval: approval("Bob", "aa") };
    let shelf = given(&[started(1), captured(1), first, second]);
    assert_eq!(ask(&shelf, &approve(1, "Bob"), &operator()), Ok(Vec::new()));
    let Some(Stage::Approved(_, approval)) = shelf.stage(id(1)) else { panic!("it is approved") };
    assert_eq!(approval.declared_operator.get(), "Alice");
    assert_eq!(ask(&shelf, &reject(1), &operator()), Err(Rejection::DownloadConflict));
    // Its bytes may not be published yet.
    assert_eq!(server(&shelf, &Command::Expire { download: id(1) }), []);
}

#[test]
fn a_rejected_or_expired_download_is_never_released() {
    let over = [
        ask(&given(&[started(1), captured(1)]), &reject(1), &operator()).expect("an operator may"),
        server(&given(&[started(1), captured(1)]), &Command::Expire { download: id(1) }),
    ];
    for events in over {
        let shelf = given(&[&[started(1), captured(1)], events.as_slice()].concat());
        assert_eq!(ask(&shelf, &approve(1, "Alice"), &operator()), Err(Rejection::DownloadGone));
        assert_eq!(server(&shelf, &Command::Expire { download: id(1) }), []);
    }
}
