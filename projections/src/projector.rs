//! The loop that feeds projections.
//!
//! ```text
//!   log ── batch of at most BATCH_EVENTS_MAX ──► gap? ──► one transaction: checkpoints move, rows are folded ──► publish
//!                    ▲                            │            │ the database refuses: again, after a pause
//!                    └────────────────────────────│────────────┘
//!                                                 ▼
//!                       stopped, with the position: a gap, a misfit, a damaged log, a second projector
//! ```
//!
//! A stopped projector takes nothing else down: commands go on, and the views say how old they are.

use std::{borrow::Cow, sync::Arc, time::Duration};

use eventlog::{EventLog, Position, ReadError, RecordedEvent, log::Events};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug_span, error, warn};

use crate::{
    checkpoint::{self, Moved},
    origin::{self, AnotherLog},
    projection::{self, ApplyError, Misfit, Projection},
    store::Store,
};

/// At most so many events in one transaction.
pub const BATCH_EVENTS_MAX: usize = 1_000;
/// How long events are gathered for one transaction while no reader waits for them: a transaction for each event would
/// take the cores from the commands.
const GATHER_TIME: Duration = Duration::from_millis(50);
/// How soon a refused batch is tried again, at first and at most.
const RETRY_DELAY_MIN: Duration = Duration::from_millis(100);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(5);

/// How far the views are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Every view has absorbed all events up to this position.
    pub checkpoint: Position,
    /// What its projector does.
    pub condition: Condition,
}

impl Progress {
    pub(crate) const fn at(checkpoint: Position) -> Self {
        Self { checkpoint, condition: Condition::Idle }
    }
}

/// What the projector does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// None was started, or it ended in order.
    Idle,
    /// It follows the log.
    Running,
    /// The disk refused; it tries again.
    Retrying {
        /// Why.
        reason: Arc<str>,
    },
    /// It cannot go on; somebody must look.
    Stopped {
        /// The event that it could not absorb.
        position: Position,
        /// Why.
        reason: Arc<str>,
    },
}

/// Why a projector stopped.
#[derive(Debug, thiserror::Error)]
pub enum ProjectorError {
    /// The log skipped a position: some events would be missing from the views for ever.
    #[error("the log went from position {expected} to {found}")]
    Gap {
        /// What had to come.
        expected: Position,
        /// What came.
        found: Position,
    },
    /// The views have absorbed events that the log does not hold: it was replaced or cut. Rebuild them.
    #[error("the views are at position {checkpoint} and the log ends at {head}")]
    AheadOfLog {
        /// Of the views.
        checkpoint: Position,
        /// Of the log.
        head: Position,
    },
    /// The views were folded from another log. Name another place for them, or rebuild them.
    #[error(transparent)]
    AnotherLog(#[from] AnotherLog),
    /// An event does not fit what was folded before. All events before it are absorbed.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// Another projector is at work on this store.
    #[error(transparent)]
    Moved(#[from] Moved),
    /// The log could not be read.
    #[error("the projector could not read the log")]
    Log(#[from] ReadError),
    /// The database refused; the same batch may be applied again.
    #[error("the views could not be written")]
    Database(#[from] sqlx::Error),
}

impl ProjectorError {
    /// Whether the same may work later without anybody's help.
    const fn is_transient(&self) -> bool {
        match self {
            Self::Database(_) | Self::Log(ReadError::Io(_)) => true,
            Self::Gap { .. }
            | Self::AheadOfLog { .. }
            | Self::AnotherLog(_)
            | Self::Misfit(_)
            | Self::Moved(_)
            | Self::Log(ReadError::Damaged { .. }) => false,
        }
    }

    /// The position that could not be absorbed, where `next` was to come.
    const fn position(&self, next: Position) -> Position {
        match self {
            Self::Misfit(misfit) => misfit.position,
            Self::Log(ReadError::Damaged { position, .. }) => *position,
            Self::Gap { .. }
            | Self::AheadOfLog { .. }
            | Self::AnotherLog(_)
            | Self::Moved(_)
            | Self::Log(_)
            | Self::Database(_) => next,
        }
    }
}

impl From<ApplyError> for ProjectorError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Misfit(misfit) => Self::Misfit(misfit),
            ApplyError::Database(error) => Self::Database(error),
        }
    }
}

/// A projection and the position up to which it has come.
struct Fed {
    projection: Box<dyn Projection>,
    checkpoint: Position,
}

/// Feeds every projection from one log. One at a time per store; a second one stops at its first batch.
pub struct Projector {
    store: Store,
    log: Arc<dyn EventLog>,
    fed: Vec<Fed>,
}

impl Projector {
    /// Finds out where each projection stands. One that has changed since its tables were built starts from 0.
    ///
    /// # Errors
    /// [`ProjectorError::AheadOfLog`], [`ProjectorError::AnotherLog`]: rebuild the views, or name others. [`ProjectorError::Database`].
    pub async fn open(store: Store, log: Arc<dyn EventLog>) -> Result<Self, ProjectorError> {
        Self::with(projection::all(), store, log).await
    }

    pub(crate) async fn with(
        projections: Vec<Box<dyn Projection>>,
        store: Store,
        log: Arc<dyn EventLog>,
    ) -> Result<Self, ProjectorError> {
        let fed = projections.into_iter().map(|projection| Fed { projection, checkpoint: Position::ZERO });
        let mut projector = Self { store, log, fed: fed.collect() };
        projector.reload().await?;
        Ok(projector)
    }

    /// Follows the log until `stop` is cancelled or the log closes; then `Ok`.
    ///
    /// # Errors
    /// [`ProjectorError`], with everything before the position that it names absorbed. Readers see it in [`Progress`].
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), ProjectorError> {
        let mut delay = RETRY_DELAY_MIN;
        self.store.publish(|progress| progress.condition = Condition::Running);
        loop {
            let before = self.lowest();
            let Err(cause) = self.follow(&stop).await else {
                self.store.publish(|progress| progress.condition = Condition::Idle);
                return Ok(());
            };
            if !cause.is_transient() {
                return Err(self.stopped(cause));
            }
            warn!(position = %self.lowest().next(), cause = reason(&cause), "Views fall behind; trying again.");
            let reason: Arc<str> = reason(&cause).into();
            self.store.publish(|progress| progress.condition = Condition::Retrying { reason });
            delay = if self.lowest() > before { RETRY_DELAY_MIN } else { (delay * 2).min(RETRY_DELAY_MAX) };
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(delay) => {}
            }
        }
    }

    fn stopped(&self, cause: ProjectorError) -> ProjectorError {
        let position = cause.position(self.lowest().next());
        let reason: Arc<str> = reason(&cause).into();
        error!(%position, %reason, "The projector stopped; the views grow old from here on.");
        self.store.publish(|progress| progress.condition = Condition::Stopped { position, reason });
        cause
    }

    /// Absorbs what is durable now, and returns the position that the views have come to.
    ///
    /// # Errors
    /// [`ProjectorError`]; nothing is tried again.
    pub async fn catch_up(&mut self) -> Result<Position, ProjectorError> {
        let mut events = self.log.read_all(self.lowest().next());
        let stop = CancellationToken::new();
        while let Some(first) = next_event(&mut events, &stop).await {
            self.take_in(first, &mut events).await?;
        }
        Ok(self.lowest())
    }

    async fn follow(&mut self, stop: &CancellationToken) -> Result<(), ProjectorError> {
        // An answer that got lost on the way may have been a commit.
        self.reload().await?;
        let mut events = self.log.follow(self.lowest().next());
        self.report();
        while let Some(first) = next_event(&mut events, stop).await {
            if let Ok(first) = &first {
                self.gather(first.position, stop).await;
            }
            self.take_in(first, &mut events).await?;
            self.store.publish(|progress| progress.condition = Condition::Running);
        }
        Ok(())
    }

    /// Lets more events come, unless a reader waits for this one.
    async fn gather(&self, position: Position, stop: &CancellationToken) {
        let mut wanted = self.store.wanted();
        tokio::select! {
            () = stop.cancelled() => {}
            // The sender lives in the store, so this ends by a reader only.
            _ = wanted.wait_for(|wanted| *wanted >= position) => {}
            () = tokio::time::sleep(GATHER_TIME) => {}
        }
    }

    /// Absorbs the event and what is durable besides: big batches when behind. Then passes over damage, if that is what
    /// came next.
    async fn take_in(
        &mut self,
        first: Result<RecordedEvent, ReadError>,
        events: &mut Events,
    ) -> Result<(), ProjectorError> {
        let head = *self.log.durable_head().borrow();
        let mut batch = Vec::new();
        let mut next = Some(first);
        let mut failure = None;
        while let Some(item) = next.take() {
            match item {
                Ok(event) => {
                    let is_more = event.position < head && batch.len() + 1 < BATCH_EVENTS_MAX;
                    batch.push(event);
                    if is_more {
                        next = events.next().await;
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        self.absorb(&batch).await?;
        match failure {
            None => Ok(()),
            Some(ReadError::Damaged { position, last: Some(last), .. })
                if position == self.lowest().next() =>
            {
                self.pass_over(last).await
            }
            Some(failure) => Err(failure.into()),
        }
    }

    /// Goes on behind events that nobody can read any more. The log knows the streams that they were of, and of those
    /// nothing is folded from here on.
    async fn pass_over(&mut self, last: Position) -> Result<(), ProjectorError> {
        error!(first = %self.lowest().next(), %last, "The log is damaged; the views go on behind it.");
        self.commit(&[], last).await?;
        self.came_to(last);
        Ok(())
    }

    pub(crate) async fn absorb(&mut self, batch: &[RecordedEvent]) -> Result<(), ProjectorError> {
        let mut expected = self.lowest().next();
        for event in batch {
            if event.position != expected {
                return Err(ProjectorError::Gap { expected, found: event.position });
            }
            expected = expected.next();
        }
        match self.absorb_whole(batch).await {
            Err(ProjectorError::Misfit(misfit)) => {
                let fitting = batch.partition_point(|event| event.position < misfit.position);
                self.absorb_whole(&batch[..fitting]).await?;
                Err(misfit.into())
            }
            done => done,
        }
    }

    async fn absorb_whole(&mut self, batch: &[RecordedEvent]) -> Result<(), ProjectorError> {
        let Some(last) = batch.last().map(|event| event.position) else { return Ok(()) };
        let span = debug_span!("project", position = %last, events = batch.len());
        self.commit(batch, last).instrument(span).await?;
        self.came_to(last);
        metrics::counter!("browserspace_projection_events_total").increment(batch.len() as u64);
        Ok(())
    }

    fn came_to(&mut self, last: Position) {
        for fed in &mut self.fed {
            fed.checkpoint = fed.checkpoint.max(last);
        }
        self.store.publish(|progress| progress.checkpoint = last);
        self.report();
    }

    async fn commit(&self, batch: &[RecordedEvent], last: Position) -> Result<(), ProjectorError> {
        let batch = self.foldable(batch);
        let mut transaction = self.store.begin().await?;
        if let Some(first) = batch.first().filter(|event| event.position == Position(1)) {
            origin::hold(first.hash, &mut transaction).await??;
        }
        for Fed { projection, checkpoint } in &self.fed {
            // One that was built anew may be behind the others.
            let news = &batch[batch.partition_point(|event| event.position <= *checkpoint)..];
            if *checkpoint < last {
                checkpoint::advance(projection.name(), *checkpoint, last, &mut transaction).await??;
            }
            // Which events end a batch depends on when they came; so views that miss them differ from those made anew.
            let misses = eventlog::mutant::is("views_miss_the_end_of_a_batch") && news.len() > 1;
            let news = &news[..news.len() - usize::from(misses)];
            if !news.is_empty() {
                projection.apply(news, &mut transaction).await?;
            }
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Without the events of damaged streams: what is known of those is not the whole, and may fit nothing.
    fn foldable<'a>(&self, batch: &'a [RecordedEvent]) -> Cow<'a, [RecordedEvent]> {
        let damaged = self.log.damaged_streams();
        if damaged.is_empty() {
            return Cow::Borrowed(batch);
        }
        Cow::Owned(batch.iter().filter(|event| !damaged.contains(&event.stream)).cloned().collect())
    }

    async fn reload(&mut self) -> Result<(), ProjectorError> {
        let head = *self.log.durable_head().borrow();
        let origin = origin::of(self.log.as_ref()).await;
        let mut transaction = self.store.begin().await?;
        if let Some(origin) = origin {
            origin::hold(origin, &mut transaction).await??;
        }
        for fed in &mut self.fed {
            fed.checkpoint = checkpoint::load(fed.projection.as_ref(), &mut transaction).await?;
            if fed.checkpoint > head {
                return Err(ProjectorError::AheadOfLog { checkpoint: fed.checkpoint, head });
            }
        }
        transaction.commit().await?;
        let checkpoint = self.lowest();
        self.store.publish(|progress| progress.checkpoint = checkpoint);
        Ok(())
    }

    fn lowest(&self) -> Position {
        self.fed.iter().map(|fed| fed.checkpoint).min().unwrap_or_default()
    }

    #[allow(clippy::cast_precision_loss, reason = "a lag beyond 2^52 events is only ever shown")]
    fn report(&self) {
        let head = *self.log.durable_head().borrow();
        for Fed { projection, checkpoint } in &self.fed {
            let lag = head.0.saturating_sub(checkpoint.0);
            metrics::gauge!("browserspace_projection_lag_events", "projection" => projection.name())
                .set(lag as f64);
        }
    }
}

async fn next_event(
    events: &mut Events,
    stop: &CancellationToken,
) -> Option<Result<RecordedEvent, ReadError>> {
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        event = events.next() => event,
    }
}

/// The chain of causes in one line.
fn reason(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |line, cause| format!("{line}: {cause}"))
}
