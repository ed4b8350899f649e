//! A runtime without a browser, which plays what its args say: delays, failures, hangs, crashes and late answers.
//!
//! The script stands in the URL of a `navigate`, so that it can be driven over HTTP like any other step:
//! `http://scripted.invalid/?delay_ms=20&outcome=ok`. Parameters, all optional:
//!
//! | parameter | means |
//! |---|---|
//! | `delay_ms` | works for so long first |
//! | `outcome` | `ok` · `fail` (with `code`) · `hang` (never answers, not even a cancel) · `crash` (the runtime ends) · `late` (answers `completed` after its delay whatever happens meanwhile, even its own end) · `slow_cancel` (acknowledges a cancel only after `cancel_ms`) |
//! | `code` | the error's code for `fail`; default `navigation_failed` |
//! | `cancel_ms` | default 500 |
//! | `result_bytes` | pads the result's title to so many bytes |
//!
//! Every other capability answers at once with the smallest result that fits its schema. Every start, step, cancel
//! and end is a line of the [`Journal`].
//!
//! Starts are scripted by a control file, if one is named and exists: `fail`, `unusable` or `delay_ms=N`, one word.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use eventlog::{
    Json, Redacted, Redactor,
    event::{instance::LossReason, space::TaskError},
    id::CapabilityName,
};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    End, Outcome, Runtime, RuntimeFactory, RuntimeSpec, RuntimeStartError, StartFault, Step,
    fence::{FenceGate, reservation_ended},
    journal::{Journal, Line, Moment},
    sample::smallest,
};
use crate::{
    capability::{Catalogue, Row},
    clock::Clock,
    space::{RESULT_BYTES_MAX, failure::Failure},
};

/// The smallest result of each capability.
type Results = Arc<HashMap<CapabilityName, Json>>;

/// Starts scripted runtimes.
pub struct ScriptedFactory {
    clock: Arc<dyn Clock>,
    began: std::time::Instant,
    journal: Journal,
    control: Option<PathBuf>,
    results: Results,
    starts: Mutex<std::collections::VecDeque<StartScript>>,
}

/// How a start goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartScript {
    /// It succeeds after so long.
    After(Duration),
    /// It fails; the next may not.
    Fail,
    /// It fails, and so would every other.
    Unusable,
}

impl ScriptedFactory {
    /// One that writes to `journal` and reads `control` before every start.
    pub fn new(
        clock: Arc<dyn Clock>,
        journal: Journal,
        control: Option<PathBuf>,
        catalogue: &Catalogue,
    ) -> Self {
        let began = clock.instant();
        let smallest = |row: &Row| (row.name.clone(), smallest(&row.result_schema));
        let results = Arc::new(catalogue.rows().iter().map(smallest).collect());
        Self { clock, began, journal, control, results, starts: Mutex::default() }
    }

    /// Scripts the next starts, one each; those after them succeed at once.
    pub fn script_starts(&self, starts: impl IntoIterator<Item = StartScript>) {
        self.starts.lock().extend(starts);
    }

    fn next_start(&self) -> StartScript {
        if let Some(script) = self.starts.lock().pop_front() {
            return script;
        }
        let text = self.control.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
        match text.as_deref().map(str::trim) {
            Some("fail") => StartScript::Fail,
            Some("unusable") => StartScript::Unusable,
            Some(text) => {
                StartScript::After(milliseconds(text.strip_prefix("delay_ms=")).unwrap_or_default())
            }
            None => StartScript::After(Duration::ZERO),
        }
    }
}

#[async_trait]
impl RuntimeFactory for ScriptedFactory {
    async fn start(&self, spec: RuntimeSpec) -> Result<Arc<dyn Runtime>, RuntimeStartError> {
        match self.next_start() {
            StartScript::Fail => {
                return Err(StartFault::EndedEarly.into());
            }
            StartScript::Unusable => {
                return Err(StartFault::NoExecutable.into());
            }
            StartScript::After(Duration::ZERO) => {}
            StartScript::After(delay) => sleep(delay).await,
        }
        let fence = spec.fence;
        let scribe =
            Scribe { clock: Arc::clone(&self.clock), began: self.began, journal: self.journal.clone(), spec };
        scribe.write(Moment::RuntimeStarted, None, None);
        Ok(Arc::new(Scripted {
            scribe,
            results: Arc::clone(&self.results),
            ended: watch::channel(None).0,
            gate: FenceGate::new(fence),
        }))
    }

    async fn end_orphans(&self) -> std::io::Result<usize> {
        // A scripted runtime has no process; it ended with its server.
        Ok(0)
    }
}

/// Writes the journal's lines of one runtime.
struct Scribe {
    clock: Arc<dyn Clock>,
    began: std::time::Instant,
    journal: Journal,
    spec: RuntimeSpec,
}

impl Scribe {
    fn write(&self, moment: Moment, step: Option<&Step>, outcome: Option<&Outcome>) {
        let outcome = outcome.map(|outcome| match outcome {
            Outcome::Completed { .. } => "completed".to_owned(),
            Outcome::Failed(error) => error.code.clone(),
            Outcome::Cancelled => "cancelled".to_owned(),
        });
        let elapsed = self.clock.instant().saturating_duration_since(self.began);
        self.journal.write(Line {
            moment,
            at_us: self.clock.now().0,
            monotonic_us: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
            space: self.spec.space,
            instance: self.spec.instance,
            generation: self.spec.generation,
            fence: step.map_or(self.spec.fence, |step| step.fence),
            task: step.map(|step| step.task),
            operation: step.map(|step| step.operation),
            capability: step.map(|step| step.capability.clone()),
            outcome,
        });
    }
}

struct Scripted {
    scribe: Scribe,
    results: Results,
    ended: watch::Sender<Option<End>>,
    gate: FenceGate,
}

#[async_trait]
impl Runtime for Scripted {
    async fn execute(&self, step: Step, cancel: CancellationToken) -> Outcome {
        self.scribe.write(Moment::Begin, Some(&step), None);
        let outcome = if self.gate.admits(step.fence) {
            self.play(&step, &cancel).await
        } else {
            Outcome::Failed(reservation_ended())
        };
        self.scribe.write(Moment::End, Some(&step), Some(&outcome));
        outcome
    }

    fn ended(&self) -> watch::Receiver<Option<End>> {
        self.ended.subscribe()
    }

    async fn stop(&self) {
        let first = self.ended.send_if_modified(|ended| {
            let running = ended.is_none();
            ended.get_or_insert(End::Stopped);
            running
        });
        if first {
            self.scribe.write(Moment::RuntimeEnded, None, None);
        }
    }
}

impl Scripted {
    async fn play(&self, step: &Step, cancel: &CancellationToken) -> Outcome {
        let script = Script::of(step);
        match script.ending {
            Ending::Hang => self.hang(step, cancel).await,
            Ending::Late => {
                sleep(script.delay).await;
                self.completed(step, &script)
            }
            Ending::Ok | Ending::Fail | Ending::Crash | Ending::SlowCancel => {
                self.work(step, &script, cancel).await
            }
        }
    }

    /// Never answers: the caller has to live with that. Journals the cancel, and ends only with the runtime.
    async fn hang(&self, step: &Step, cancel: &CancellationToken) -> Outcome {
        cancel.cancelled().await;
        self.scribe.write(Moment::Cancel, Some(step), None);
        std::future::pending().await
    }

    async fn work(&self, step: &Step, script: &Script, cancel: &CancellationToken) -> Outcome {
        let mut ended = self.ended.subscribe();
        let ended = async { ended.wait_for(Option::is_some).await.is_ok() };
        tokio::select! {
            biased;
            _ = ended => gone(),
            () = cancel.cancelled() => {
                self.scribe.write(Moment::Cancel, Some(step), None);
                if matches!(script.ending, Ending::SlowCancel) {
                    sleep(script.cancel).await;
                }
                Outcome::Cancelled
            }
            () = sleep_until(Instant::from_std(step.deadline)) => {
                Outcome::Failed(Failure::TaskTimeout.saying("the step did not end in time", true))
            }
            () = passes(script.delay) => self.finish(step, script),
        }
    }

    fn finish(&self, step: &Step, script: &Script) -> Outcome {
        match script.ending {
            Ending::Crash => {
                self.ended.send_if_modified(|ended| {
                    ended.get_or_insert(End::Lost(LossReason::Crashed));
                    true
                });
                self.scribe.write(Moment::RuntimeEnded, None, None);
                gone()
            }
            Ending::Fail => Outcome::Failed(error(&script.code, "the script says so", true)),
            Ending::Ok | Ending::Hang | Ending::Late | Ending::SlowCancel => self.completed(step, script),
        }
    }

    fn completed(&self, step: &Step, script: &Script) -> Outcome {
        let mut result = self.results.get(&step.capability).cloned().unwrap_or_default();
        if let (Some(url), Some(fields)) = (&script.url, result.as_object_mut()) {
            fields.insert("url".to_owned(), Json::from(url.as_str()));
            fields.insert("title".to_owned(), Json::from("x".repeat(script.result_bytes)));
        }
        let result = Redactor::new().bounded_json(result, RESULT_BYTES_MAX);
        Outcome::Completed { result, artifacts: Vec::new() }
    }
}

/// Waits for so long. A timer of no length would still wait for the next millisecond.
async fn passes(delay: Duration) {
    if !delay.is_zero() {
        sleep(delay).await;
    }
}

fn gone() -> Outcome {
    Outcome::Failed(Failure::RuntimeCrashed.saying("the browser ended during the step", true))
}

fn error(code: &str, message: &'static str, may_have_run: bool) -> TaskError {
    TaskError {
        code: code.to_owned(),
        message: Redacted::own(message),
        retryable: true,
        may_have_run,
        details: None,
    }
}

#[derive(Debug, Clone, Copy, Default)]
enum Ending {
    #[default]
    Ok,
    Fail,
    Hang,
    Crash,
    Late,
    SlowCancel,
}

/// What a step's args ask for.
#[derive(Debug, Default)]
struct Script {
    url: Option<Url>,
    ending: Ending,
    delay: Duration,
    cancel: Duration,
    code: String,
    result_bytes: usize,
}

/// The most that a script may pad a result by: enough to pass the limit of a result.
const RESULT_PADDING_BYTES_MAX: usize = 1 << 20;

impl Script {
    fn of(step: &Step) -> Self {
        let url = step.args.expose().get("url").and_then(Json::as_str).and_then(|url| Url::parse(url).ok());
        let mut script = Self {
            cancel: Duration::from_millis(500),
            code: "navigation_failed".to_owned(),
            ..Self::default()
        };
        for (name, value) in url.iter().flat_map(Url::query_pairs) {
            match (&*name, &*value) {
                ("delay_ms", text) => script.delay = milliseconds(Some(text)).unwrap_or_default(),
                ("cancel_ms", text) => script.cancel = milliseconds(Some(text)).unwrap_or_default(),
                ("result_bytes", text) => {
                    script.result_bytes = text.parse().unwrap_or(0).min(RESULT_PADDING_BYTES_MAX);
                }
                ("code", code) if is_code(code) => code.clone_into(&mut script.code),
                ("outcome", "fail") => script.ending = Ending::Fail,
                ("outcome", "hang") => script.ending = Ending::Hang,
                ("outcome", "crash") => script.ending = Ending::Crash,
                ("outcome", "late") => script.ending = Ending::Late,
                ("outcome", "slow_cancel") => script.ending = Ending::SlowCancel,
                _ => {}
            }
        }
        script.url = url;
        script
    }
}

/// Codes come out of a URL here, so nothing but the alphabet of a code gets into an event.
fn is_code(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

fn milliseconds(text: Option<&str>) -> Option<Duration> {
    text?.parse().ok().map(Duration::from_millis)
}
