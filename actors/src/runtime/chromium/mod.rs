//! A Chromium of this machine: one process tree, one profile, one uid for each start of each Space.

mod downloads;
mod files;
mod home;
mod landing;
mod notices;
mod record;
mod steps;
mod uids;
mod wall;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use browser::{
    Appearance, Browser, Call, LaunchError, LaunchSpec,
    args::{LoadState, NavigateArgs},
    results::Annotated,
};
use egress::{Resolver, SystemResolver};
use eventlog::{
    Json, Redactor, Sensitive,
    event::{
        environment::{ColourScheme, Environment},
        instance::{Bundle, LossReason},
        space::TaskError,
    },
};
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub use self::home::{Uninhabitable, habitable};
use self::{
    downloads::Intake,
    files::Files,
    landing::LandingFolder,
    record::RuntimeRecord,
    steps::{Raw, StepError},
    uids::{Uid, Uids},
    wall::{Mason, Wall, WallError},
};
use super::{
    End, Notice, Outcome, Runtime, RuntimeFactory, RuntimeSpec, RuntimeStartError, ScreencastFrame,
    StartFault, Step,
    fence::{FenceGate, reservation_ended},
};
use crate::{
    artifact::{self, Limits},
    capability::{
        Catalogue,
        standard::{AnnotatedPicture, KeptFile, PdfFile, Picture, standard},
    },
    clock::IdSource,
    config::ChromiumConfig,
    space::{RESULT_BYTES_MAX, failure::Failure},
};

/// How long a browser is asked to end before it is ended.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// How long a start page may take before the browser counts as ready without it.
const START_PAGE_WAIT: Duration = Duration::from_secs(10);
/// How long an ended browser's last downloads may take to be captured.
const INTAKE_WAIT: Duration = Duration::from_secs(10);
/// How large a view is where the Space does not say, in CSS pixels.
const VIEWPORT: (u32, u32) = (1280, 800);
/// The longest message of an error.
const MESSAGE_BYTES_MAX: usize = 2_000;
/// The most that an error says besides.
const DETAILS_BYTES_MAX: usize = 16 * 1024;

/// Starts Chromium.
pub struct ChromiumFactory {
    data_dir: PathBuf,
    config: ChromiumConfig,
    ids: Arc<dyn IdSource>,
    uids: Arc<Uids>,
    mason: Mason,
}

impl ChromiumFactory {
    /// One that keeps profiles, records and artifacts below `data_dir`.
    ///
    /// # Errors
    /// The folder for profiles can't be made or passed through.
    pub fn new(data_dir: PathBuf, config: ChromiumConfig, ids: Arc<dyn IdSource>) -> std::io::Result<Self> {
        record::prepare(&data_dir)?;
        // Processes of ours whose parent has died come to us, so that they can be reaped.
        browser::adopt_orphans()?;
        let uids = Uids::new(config.uid_first, config.uid_count);
        let mason = Mason::new(Arc::new(SystemResolver), config.allow_no_network_namespace);
        Ok(Self { data_dir, config, ids, uids, mason })
    }

    /// One whose browsers see the network through another resolver than the machine's.
    #[must_use]
    pub fn with_resolver(self, resolver: Arc<dyn Resolver>) -> Self {
        Self { mason: Mason::new(resolver, self.config.allow_no_network_namespace), ..self }
    }

    fn refused(error: &std::io::Error) -> RuntimeStartError {
        let said = Redactor::new().bounded_text(&error.to_string(), MESSAGE_BYTES_MAX);
        RuntimeStartError { fault: StartFault::SystemRefused, said }
    }
}

#[async_trait]
impl RuntimeFactory for ChromiumFactory {
    async fn start(&self, spec: RuntimeSpec) -> Result<Arc<dyn Runtime>, RuntimeStartError> {
        let uid = if rustix::process::geteuid().is_root() {
            Some(self.uids.take().ok_or(StartFault::NoUserFree)?)
        } else {
            None
        };
        let name = hex::encode(&self.ids.secret()[..record::NAME_BYTES]);
        let folder = record::prepare(&self.data_dir).map_err(|error| Self::refused(&error))?;
        let (profile, path) = (folder.join(&name), folder.join(format!("{name}.json")));
        let mut record = RuntimeRecord {
            space: spec.space,
            generation: spec.generation,
            profile: profile.clone(),
            pid: None,
            start_ticks: None,
        };
        record.write(&path).map_err(|error| Self::refused(&error))?;
        let ids = uid.as_ref().map(|uid| (uid.number(), uid.number()));
        let landing = LandingFolder::beside(&profile);
        landing.make(ids.map(|(uid, _)| uid)).map_err(|error| Self::refused(&error))?;
        let launch = LaunchSpec {
            viewport: spec.environment.viewport.map_or(VIEWPORT, |size| (size.width, size.height)),
            appearance: appearance(&spec.environment),
            executable: self.config.executable.clone(),
            headless: spec.headless,
            allow_no_sandbox: self.config.allow_no_sandbox,
            landing: Some(landing.spec()),
            ..LaunchSpec::new(profile, ids)
        };
        let (browser, wall) = match self.mason.launch(launch, spec.space, &spec.network_policy).await {
            Ok(walled) => walled,
            Err(error) => {
                // A launch that failed leaves nothing behind, so its record has nothing to name.
                landing.remove();
                let _ = std::fs::remove_file(&path);
                return Err(start_error(&error));
            }
        };
        if let Some(page) = &spec.environment.start_page {
            open_first(&browser, page.get()).await;
        }
        let identity = browser.identity();
        (record.pid, record.start_ticks) = (Some(identity.pid), Some(identity.start_ticks));
        if let Err(error) = record.write(&path) {
            // The first one names the profile, and that is enough to find the process.
            warn!(%error, "A record of a runtime could not be renewed.");
        }
        info!(
            space.id = %spec.space,
            generation = spec.generation.0,
            sandbox = browser.is_sandboxed(),
            network_namespace = wall.has_namespace,
            "Chromium started."
        );
        let chromium = Chromium::new(browser, wall, &spec, path, uid, self);
        chromium.take_in(&spec, landing);
        Ok(chromium)
    }

    async fn end_orphans(&self) -> std::io::Result<usize> {
        let data_dir = self.data_dir.clone();
        tokio::task::spawn_blocking(move || record::end_recorded(&data_dir))
            .await
            .map_err(std::io::Error::other)?
    }
}

/// Opens the start page. What is wrong with it is the page's: the browser is ready all the same, and shows it.
async fn open_first(browser: &Browser, page: &str) {
    let navigate =
        NavigateArgs { url: page.to_owned(), wait: LoadState::DomContentLoaded, tab: None, timeout_ms: None };
    if let Err(error) = browser.navigate(&navigate, &Call::within(START_PAGE_WAIT)).await {
        warn!(code = error.code(), "A start page could not be opened.");
    }
}

fn appearance(environment: &Environment) -> Appearance {
    Appearance {
        timezone: environment.timezone.clone(),
        locale: environment.locale.clone(),
        device_scale: environment.device_scale.unwrap_or(1.0),
        colour_scheme: environment.colour_scheme.map(|scheme| match scheme {
            ColourScheme::Light => browser::ColourScheme::Light,
            ColourScheme::Dark => browser::ColourScheme::Dark,
        }),
        user_agent: environment.user_agent.as_ref().map(|agent| agent.get().clone()),
    }
}

fn start_error(error: &WallError) -> RuntimeStartError {
    let text = match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    RuntimeStartError { fault: fault(error), said: Redactor::new().bounded_text(&text, MESSAGE_BYTES_MAX) }
}

const fn fault(error: &WallError) -> StartFault {
    match error {
        WallError::Policy => StartFault::PolicyNotUnderstood,
        WallError::Launch(LaunchError::NoExecutable) => StartFault::NoExecutable,
        WallError::Launch(LaunchError::Root) => StartFault::RunsAsRoot,
        WallError::Launch(LaunchError::ProfilePathTooLong { .. }) => StartFault::ProfilePathTooLong,
        WallError::Launch(LaunchError::ProfileUnreachable) => StartFault::ProfileUnreachable,
        WallError::Launch(LaunchError::NoNetworkNamespace(_)) => StartFault::NoNetworkNamespace,
        WallError::Launch(LaunchError::NoSandbox) => StartFault::NoSandbox,
        WallError::Door(_) | WallError::Launch(LaunchError::Profile(_) | LaunchError::Spawn(_)) => {
            StartFault::SystemRefused
        }
        WallError::Launch(LaunchError::EndedEarly) => StartFault::EndedEarly,
        WallError::Launch(LaunchError::Overdue) => StartFault::Overdue,
        WallError::Launch(LaunchError::SetUp(_)) => StartFault::SetUpRefused,
    }
}

/// What was typed into fields that hide it, and what masks it.
#[derive(Default)]
struct Secrets {
    redactor: Redactor,
    texts: Vec<String>,
    version: u64,
}

impl Secrets {
    /// What masks all that is known by now.
    fn redactor(&mut self, browser: &Browser) -> Redactor {
        if let Some((texts, version)) = browser.typed_secrets(self.version) {
            *self = Self { redactor: Redactor::with_known(texts.iter().cloned()), texts, version };
        }
        self.redactor.clone()
    }
}

/// One start of Chromium.
struct Chromium {
    browser: Arc<Browser>,
    wall: Wall,
    gate: FenceGate,
    ended: watch::Receiver<Option<End>>,
    stopping: Arc<AtomicBool>,
    record: PathBuf,
    files: Files,
    catalogue: Arc<Catalogue>,
    /// Whether it carries out what only the trusted bundle has.
    is_trusted: bool,
    secrets: Arc<Mutex<Secrets>>,
    /// Takes in what is downloaded; ends with the browser.
    intake: Mutex<Option<tokio::task::JoinHandle<()>>>,
    /// Given back when the browser is gone and this is dropped.
    uid: Mutex<Option<Uid>>,
}

impl Chromium {
    fn new(
        browser: Browser,
        wall: Wall,
        spec: &RuntimeSpec,
        record: PathBuf,
        uid: Option<Uid>,
        factory: &ChromiumFactory,
    ) -> Arc<Self> {
        let (sender, ended) = watch::channel(None);
        let stopping = Arc::new(AtomicBool::new(false));
        let (mut exited, asked) = (browser.exited(), Arc::clone(&stopping));
        tokio::spawn(async move {
            // An error means that the browser's watcher is gone, and with it the browser.
            let _ = exited.wait_for(Option::is_some).await;
            let end =
                if asked.load(Ordering::Acquire) { End::Stopped } else { End::Lost(LossReason::Crashed) };
            sender.send_replace(Some(end));
        });
        Arc::new(Self {
            gate: FenceGate::new(spec.fence),
            browser: Arc::new(browser),
            wall,
            ended,
            stopping,
            record,
            files: Files {
                folder: factory.data_dir.join(artifact::FOLDER),
                space: spec.space,
                desk: spec.desk.clone(),
                limits: Limits {
                    bytes_max: factory.config.artifact_bytes_max,
                    space_bytes_max: factory.config.space_artifact_bytes_max,
                },
                ids: Arc::clone(&factory.ids),
            },
            catalogue: standard(),
            is_trusted: spec.bundle == Bundle::Trusted && factory.config.allow_trusted,
            secrets: Arc::default(),
            intake: Mutex::default(),
            uid: Mutex::new(uid),
        })
    }

    fn take_in(&self, spec: &RuntimeSpec, landing: LandingFolder) {
        let redactor = Arc::new(self.redactor_source());
        let intake = Intake::new(&self.browser, spec.desk.clone(), landing, spec.generation, redactor);
        *self.intake.lock() = Some(intake.start(&self.browser));
    }

    /// What masks all that is known by then. It must not keep the browser.
    fn redactor_source(&self) -> impl Fn() -> Redactor + Send + Sync + 'static {
        let (secrets, browser) = (Arc::clone(&self.secrets), Arc::downgrade(&self.browser));
        move || {
            let mut secrets = secrets.lock();
            match browser.upgrade() {
                Some(browser) => secrets.redactor(&browser),
                None => secrets.redactor.clone(),
            }
        }
    }

    async fn run(&self, step: &Step, call: Call) -> Outcome {
        match self.drive(step, call).await {
            Ok(Raw::Json(result)) => {
                let result = self.redactor().bounded_json(result, RESULT_BYTES_MAX);
                Outcome::Completed { result, artifacts: Vec::new() }
            }
            Ok(Raw::Picture(picture)) => {
                let file = (picture.bytes.clone(), picture.media_type);
                self.keep("screenshot", file, |kept| written(described(&picture, kept))).await
            }
            Ok(Raw::Annotated(Annotated { picture, legend })) => {
                let file = (picture.bytes.clone(), picture.media_type);
                let result = |kept| written(AnnotatedPicture { picture: described(&picture, kept), legend });
                self.keep("screenshot", file, result).await
            }
            Ok(Raw::Pdf(pdf)) => {
                let file = (pdf.bytes, "application/pdf");
                self.keep("pdf", file, |artifact| written(PdfFile { artifact })).await
            }
            Err(StepError::Browser(browser::Error::Cancelled { .. })) => Outcome::Cancelled,
            Err(StepError::Browser(error)) => Outcome::Failed(self.error(&error, &step.args)),
            Err(StepError::Bug) => Outcome::Failed(Failure::Internal.error()),
            Err(StepError::Shape(message)) => Outcome::Failed(Failure::Internal.saying(message, false)),
        }
    }

    /// The step as a task of its own: a caller that stops listening does not cut it in two, and a bug in it ends there.
    async fn drive(&self, step: &Step, call: Call) -> Result<Raw, StepError> {
        let (browser, capability) = (Arc::clone(&self.browser), step.capability.clone());
        let (args, files) = (step.args.clone(), self.files.clone());
        let driven =
            tokio::spawn(async move { steps::run(&browser, &capability, &args, &call, &files).await });
        driven.await.unwrap_or(Err(StepError::Bug))
    }

    /// Text that went into a field which hides it is masked wherever it turns up from now on.
    fn redactor(&self) -> Redactor {
        self.secrets.lock().redactor(&self.browser)
    }

    /// The page may say in its error what was just typed, and nobody knows yet whether that was secret.
    fn error(&self, error: &browser::Error, args: &Sensitive<Json>) -> TaskError {
        let _ = self.redactor();
        let known = self.secrets.lock().texts.clone();
        let redactor = Redactor::with_known(known.into_iter().chain(text_arg(args)));
        TaskError {
            code: error.code().to_owned(),
            message: redactor.bounded_text(&error.to_string(), MESSAGE_BYTES_MAX),
            retryable: error.retryable(),
            may_have_run: error.may_have_run(),
            details: error.details().map(|details| redactor.bounded_json(details, DETAILS_BYTES_MAX)),
        }
    }

    /// Keeps the file of a step, and gives the step's result.
    async fn keep(
        &self,
        kind: &'static str,
        (bytes, media_type): (bytes::Bytes, &'static str),
        result: impl FnOnce(KeptFile) -> Json,
    ) -> Outcome {
        match self.files.keep(kind, media_type, bytes).await {
            Ok(record) => {
                let result = result(files::described(&record));
                let result = self.redactor().bounded_json(result, RESULT_BYTES_MAX);
                Outcome::Completed { result, artifacts: vec![record] }
            }
            Err(error) => Outcome::Failed(error),
        }
    }
}

fn described(picture: &browser::results::Screenshot, artifact: KeptFile) -> Picture {
    Picture { artifact, width: picture.width, height: picture.height }
}

fn written(result: impl serde::Serialize) -> Json {
    serde_json::to_value(result).unwrap_or_default()
}

fn text_arg(args: &Sensitive<Json>) -> Option<String> {
    args.expose().get("text").and_then(Json::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

#[async_trait]
impl Runtime for Chromium {
    async fn execute(&self, step: Step, cancel: CancellationToken) -> Outcome {
        if !self.gate.admits(step.fence) {
            return Outcome::Failed(reservation_ended());
        }
        // The switch may have been turned off since the instance was registered and the Space opened.
        let is_usual = self.catalogue.get(&step.capability).is_some_and(|row| row.is_in(Bundle::Standard));
        if !is_usual && !self.is_trusted {
            let message = "the server's configuration does not allow capabilities of the trusted bundle";
            return Outcome::Failed(Failure::CapabilityNotGranted.saying(message, false));
        }
        let call = Call { deadline: Instant::from_std(step.deadline), cancel };
        self.run(&step, call).await
    }

    fn ended(&self) -> watch::Receiver<Option<End>> {
        self.ended.clone()
    }

    fn screencast(&self) -> Option<watch::Receiver<Option<ScreencastFrame>>> {
        Some(self.browser.screencast())
    }

    fn notices(&self) -> BoxStream<'static, Notice> {
        // A stream that nobody reads any more must not keep the browser.
        notices::of(self.browser.notices(), self.wall.reports(), self.redactor_source())
    }

    async fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.browser.shutdown(SHUTDOWN_GRACE).await;
        self.wall.remove().await;
        let intake = self.intake.lock().take();
        if let Some(intake) = intake
            && tokio::time::timeout(INTAKE_WAIT, intake).await.is_err()
        {
            warn!("What a browser had downloaded was not all taken in.");
        }
        match std::fs::remove_file(&self.record) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                warn!(%error, "The record of an ended runtime could not be removed.");
            }
            Ok(()) | Err(_) => {}
        }
        self.uid.lock().take();
    }
}
