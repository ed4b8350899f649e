//! What an audit came to: the body of the route's answer, and of `verify --json`.

use std::time::Duration;

use eventlog::verify::{self, Fault, Known};
use serde::Serialize;
use utoipa::ToSchema;

/// The whole in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing is wrong.
    Whole,
    /// The log is whole up to its last acknowledged batch; a crash left a part of another one behind it.
    TornTail,
    /// The log is whole, and something beside it (index, views, artifacts) is not what the log says.
    Beside,
    /// The log is not what was written.
    Broken,
}

impl Verdict {
    /// The exit code of `verify`.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Whole => 0,
            Self::Broken => 3,
            Self::TornTail => 4,
            Self::Beside => 5,
        }
    }
}

/// What of the data folder is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The segments.
    Log,
    /// The index of the log; made anew at will.
    Index,
    /// The views; made anew at will.
    Views,
    /// The files that tasks made.
    Artifacts,
    /// The history that the events tell.
    Replay,
}

/// One place that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Finding {
    /// What it is a part of.
    #[schema(inline)]
    pub part: Part,
    /// What is wrong, in one word: `frame`, `position_gap`, `stream_chain`, `rewritten`, `cut_tail`, `artifact_changed`, …
    #[schema(example = "frame")]
    pub kind: String,
    /// What can have led to it: `damage` (bytes changed), `edit` (good checksums, content that contradicts itself),
    /// `removal` (events are gone) or `rewrite` (whole in itself, and not what was signed).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "damage")]
    pub cause: Option<String>,
    /// The file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The first bad byte in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The position in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Whose event it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// The same in words.
    pub message: String,
}

/// What a crash left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TornTailReport {
    /// The last segment.
    pub file: String,
    /// The end of its last whole batch.
    pub offset: u64,
}

/// What signed checkpoints came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CheckpointsReport {
    /// How many the log was held against.
    pub checked: usize,
    /// The highest position that one of them speaks of; nothing behind it is proved by them.
    pub newest: u64,
}

/// What the index came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct IndexReport {
    /// Sealed segments that it holds.
    pub segments: usize,
    /// Sealed segments that there are.
    pub sealed: usize,
    /// Its entries, each held against the log.
    pub entries: usize,
}

/// What the views came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ViewsReport {
    /// The position up to which they were folded anew and compared.
    pub position: u64,
    /// Rows that were compared.
    pub rows: usize,
}

/// What the artifacts came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ArtifactsReport {
    /// Files that the log names, each held against its recorded SHA-256.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// What the deep check came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReplayReport {
    /// Events that were decoded and brought into today's shape.
    pub events: u64,
    /// Of them, those of a kind that this program does not know.
    pub unknown: u64,
    /// Streams that were folded from their first event to their last.
    pub streams: usize,
}

/// What an audit came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LogReport {
    /// The whole in one word.
    #[schema(inline)]
    pub verdict: Verdict,
    /// The last position; where the log is broken, the last one before the first bad place.
    pub head: u64,
    /// The hash of the whole log there, in hex.
    pub global_hash: String,
    /// The root of the Merkle tree there, in base64, as in a checkpoint of this size.
    pub root_hash: String,
    /// How many streams there are.
    pub streams: usize,
    /// How many segment files there are.
    pub segments: usize,
    /// How many bytes they have.
    pub bytes: u64,
    /// Whether a server was writing meanwhile, so that its last batch may look unfinished.
    pub in_use: bool,
    /// What a crash left of a batch that was never acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torn_tail: Option<TornTailReport>,
    /// What is wrong; of the log, the first bad place first.
    pub findings: Vec<Finding>,
    /// Null: no checkpoints were given.
    pub checkpoints: Option<CheckpointsReport>,
    /// Null: not looked at, or not there.
    pub index: Option<IndexReport>,
    /// Null: not looked at, or not there.
    pub views: Option<ViewsReport>,
    /// Null: not looked at.
    pub artifacts: Option<ArtifactsReport>,
    /// Null: the check was not a deep one.
    pub replay: Option<ReplayReport>,
    /// How long it took.
    pub took_ms: u64,
}

impl LogReport {
    pub(super) fn of(report: &verify::Report, in_use: bool, checkpoints: &[Known]) -> Self {
        let newest = checkpoints.iter().map(|known| known.position.0).max();
        let root = report.root.unwrap_or_default();
        Self {
            verdict: Verdict::Whole,
            head: report.head.0,
            global_hash: report.global.to_string(),
            root_hash: base64::Engine::encode(&base64::prelude::BASE64_STANDARD, root.0),
            streams: report.streams,
            segments: report.segments,
            bytes: report.bytes,
            in_use,
            torn_tail: report
                .torn_tail
                .as_ref()
                .map(|torn| TornTailReport { file: name_of(&torn.file), offset: torn.offset }),
            findings: report.faults.iter().map(Finding::from).collect(),
            checkpoints: newest.map(|newest| CheckpointsReport { checked: checkpoints.len(), newest }),
            index: None,
            views: None,
            artifacts: None,
            replay: None,
            took_ms: 0,
        }
    }

    pub(super) fn index(&mut self, found: verify::IndexReport) {
        match found {
            verify::IndexReport::Absent => {}
            verify::IndexReport::Fits { segments, of, entries } => {
                self.index = Some(IndexReport { segments, sealed: of, entries });
            }
            verify::IndexReport::Wrong(what) => {
                let message =
                    format!("{what}; it is derived: the next start makes it anew where it does not fit");
                self.findings.push(Finding::beside(Part::Index, "index", message));
            }
        }
    }

    pub(super) fn views(&mut self, found: Option<Result<ViewsReport, String>>) {
        match found {
            None => {}
            Some(Ok(report)) => self.views = Some(report),
            Some(Err(what)) => {
                let message = format!("{what}; they are derived: `browserspace rebuild` makes them anew");
                self.findings.push(Finding::beside(Part::Views, "views", message));
            }
        }
    }

    pub(super) fn artifacts(&mut self, (report, findings): (ArtifactsReport, Vec<Finding>)) {
        self.artifacts = Some(report);
        self.findings.extend(findings);
    }

    pub(super) fn replay(&mut self, found: Result<ReplayReport, Finding>) {
        match found {
            Ok(report) => self.replay = Some(report),
            Err(finding) => self.findings.push(finding),
        }
    }

    pub(super) fn finish(&mut self, took: Duration) {
        let is_of_log = |finding: &Finding| matches!(finding.part, Part::Log | Part::Replay);
        self.verdict = if self.findings.iter().any(is_of_log) {
            Verdict::Broken
        } else if !self.findings.is_empty() {
            Verdict::Beside
        } else if self.torn_tail.is_some() && !self.in_use {
            Verdict::TornTail
        } else {
            Verdict::Whole
        };
        self.took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    }
}

impl Finding {
    pub(super) fn beside(part: Part, kind: &str, message: String) -> Self {
        let kind = kind.to_owned();
        Self { part, kind, cause: None, file: None, offset: None, position: None, stream: None, message }
    }
}

impl From<&Fault> for Finding {
    fn from(fault: &Fault) -> Self {
        Self {
            part: Part::Log,
            kind: word(&fault.kind),
            cause: Some(word(&fault.kind.cause())),
            file: Some(name_of(&fault.file)),
            offset: Some(fault.offset),
            position: Some(fault.position.0),
            stream: fault.stream.as_ref().map(ToString::to_string),
            message: fault.what.clone(),
        }
    }
}

/// A variant without fields, as it is written.
pub(crate) fn word(variant: &impl Serialize) -> String {
    let text = serde_json::to_value(variant).expect("a variant is a text");
    text.as_str().unwrap_or_default().to_owned()
}

fn name_of(path: &std::path::Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
