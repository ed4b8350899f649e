//! The log as evidence, for operators and auditors: is it what was written, and a signed statement of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actors::Scope;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    App,
    answer::Answer,
    asked::Asked,
    body::{RawBody, flag},
};
use crate::{
    audit::{self, LogReport, audit},
    checkpoints::CheckpointsError,
    problem::{Code, Problem},
};

/// A signed statement of what the log holds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogCheckpoint)]
pub(crate) struct CheckpointBody {
    /// Up to which position it speaks.
    position: u64,
    /// The signed note (c2sp.org/tlog-checkpoint), to be kept as it is.
    checkpoint: String,
    /// The public key that it is checked with (c2sp.org/signed-note).
    public_key: String,
}

/// Tells a check that nobody waits for it any more.
struct EndsWithMe(Arc<AtomicBool>);

impl Drop for EndsWithMe {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `POST /log/verify`
pub(crate) async fn verify(
    State(app): State<App>,
    asked: Asked,
    body: RawBody,
) -> Result<Answer<LogReport>, Problem> {
    asked.must_oversee()?;
    let mut fields = body.fields_or_none()?;
    let deep = fields.optional("deep", flag)?.unwrap_or_default();
    fields.finish()?;
    let unavailable = || Problem::new(Code::LogUnavailable);
    let on_disk = app.log.on_disk().ok_or_else(|| unavailable().saying("the log lies on no disk"))?;
    let data_dir = on_disk.folder.parent().ok_or_else(unavailable)?.to_owned();
    let busy = || Problem::new(Code::Overloaded).saying("a check of the log is under way");
    let turn = Arc::clone(&app.verifying).try_lock_owned().map_err(|_| busy())?;
    let waited_for = EndsWithMe(Arc::default());
    let cancelled = Arc::clone(&waited_for.0);
    let checking = tokio::task::spawn_blocking(move || {
        // The turn ends with the check, and not with the wait for it.
        let _turn = turn;
        // One core is left to the commands.
        let scope = audit::Scope { deep, threads: 1, end: Some(on_disk.end), ..audit::Scope::default() };
        audit(&data_dir, &scope, audit::Progress { tell: None, cancelled: Some(&cancelled) })
    });
    let limit = Duration::from_secs(app.config.request_timeout_seconds);
    match tokio::time::timeout(limit, checking).await {
        Ok(Ok(Ok(report))) => Ok(Answer::ok(as_shown_to(&asked, report))),
        Ok(Ok(Err(error))) => {
            tracing::error!(error = %format!("{error:#}"), "The log could not be verified.");
            Err(unavailable())
        }
        Ok(Err(_)) => Err(Problem::new(Code::Internal)),
        Err(_) => Err(Problem::new(Code::Overloaded).saying(
            "the log is too large for a check in one request; `browserspace verify` works beside the server",
        )),
    }
}

/// That the log is whole or not is for every overseer; whose event is the bad one, only for who may enter every Workspace.
fn as_shown_to(asked: &Asked, mut report: LogReport) -> LogReport {
    if asked.caller.scope != Scope::All {
        for finding in &mut report.findings {
            finding.stream = None;
            if finding.part == audit::Part::Artifacts {
                (finding.file, finding.message) = (None, "an artifact is not what the log says".to_owned());
            }
        }
    }
    report
}

/// `POST /log/checkpoint`
pub(crate) async fn checkpoint(
    State(app): State<App>,
    asked: Asked,
    body: RawBody,
) -> Result<Answer<CheckpointBody>, Problem> {
    asked.must_oversee()?;
    body.nothing()?;
    let unavailable = || Problem::new(Code::LogUnavailable);
    let keeper = app.checkpoints.as_ref();
    let keeper = keeper.ok_or_else(|| unavailable().saying("the log lies on no disk"))?;
    match keeper.make().await {
        Ok(made) => Ok(Answer::ok(CheckpointBody {
            position: made.size.0,
            checkpoint: made.note,
            public_key: made.public_key,
        })
        .at(made.size)),
        Err(CheckpointsError::Stopping) => Err(Problem::new(Code::ShuttingDown)),
        Err(error @ CheckpointsError::Contradiction { .. }) => {
            tracing::error!(%error, "No checkpoint was made.");
            Err(unavailable()
                .saying("the log is not the one that was signed before; the server's own log says more"))
        }
        Err(error) => {
            tracing::error!(error = %format!("{:#}", anyhow::Error::new(error)), "No checkpoint was made.");
            Err(unavailable().saying("no checkpoint could be made; the server's own log says why"))
        }
    }
}
