//! A server of actors on the log in memory, on paused time, with scripted runtimes.

use std::{sync::Arc, time::Duration};

use actors::{
    Caller, Config, Context, Parts, Rejection, Spaces,
    capability::{Catalogue, Sensitivity, row},
    clock::{
        Clock,
        testing::{TestClock, TestIds},
    },
    fleet::Factories,
    runtime::{
        RuntimeFactory,
        journal::{Journal, Line, Moment},
        scripted::ScriptedFactory,
    },
    space::summary::TaskSummary,
    spaces::{CreateSpace, Created, IssueToken, RegisterInstance, SubmitTask, Submitted},
};
use eventlog::{
    Event, EventLog, Position, RecordedEvent, Role, Sensitive, SpaceEvent, StreamId, TraceId,
    event::{
        instance::{Bundle, InstanceKind, NetworkPolicy},
        space::{Owner, OwnerKind},
    },
    id::{InstanceId, SpaceId, WorkspaceId},
    memory::MemoryLog,
    sealing::KeyStore,
};
use futures::StreamExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is used")]
struct NavigateArgs {
    url: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArgs {}

#[derive(Serialize, JsonSchema)]
struct Page {
    url: String,
    title: String,
}

/// A catalogue of two.
pub(crate) fn catalogue() -> Arc<Catalogue> {
    let rows = [
        row::<NavigateArgs, Page>(
            "navigate",
            "Goes to a page.",
            Bundle::Standard,
            Sensitivity::ACTS,
            serde_json::json!({ "url": "https://a.example" }),
        ),
        row::<NoArgs, Page>(
            "get_title",
            "Says a page's title.",
            Bundle::Standard,
            Sensitivity::READS,
            serde_json::json!({}),
        ),
    ];
    Arc::new(Catalogue::new(rows).unwrap())
}

/// What outlives a server.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) log: Arc<MemoryLog>,
    pub(crate) keys: Arc<KeyStore>,
    pub(crate) journal: Journal,
    pub(crate) folder: Arc<tempfile::TempDir>,
    pub(crate) seed: u32,
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self {
            log: Arc::new(MemoryLog::new()),
            keys: Arc::new(KeyStore::in_memory()),
            journal: Journal::in_memory(),
            folder: Arc::new(tempfile::tempdir().unwrap()),
            seed: 1,
        }
    }

    /// What a next server on this disk finds.
    pub(crate) fn reopened(&self) -> Self {
        Self { log: Arc::new(self.log.reopen()), seed: self.seed + 1, ..self.clone() }
    }

    /// Every event, in order.
    pub(crate) async fn events(&self) -> Vec<RecordedEvent> {
        let look = if self.log.is_dead() { self.log.reopen() } else { self.log.share() };
        look.read_all(Position(1)).map(Result::unwrap).collect().await
    }

    /// The kinds of the events of one Space, in order.
    pub(crate) async fn kinds(&self, space: SpaceId) -> Vec<String> {
        let stream = StreamId::Space(space);
        let events = self.events().await;
        events
            .iter()
            .filter(|recorded| recorded.stream == stream)
            .map(|recorded| recorded.event.kind().to_owned())
            .collect()
    }

    /// What the runtimes were asked.
    pub(crate) fn begun(&self) -> Vec<Line> {
        self.journal.lines().into_iter().filter(|line| line.moment == Moment::Begin).collect()
    }
}

/// A running server.
pub(crate) struct Server {
    pub(crate) spaces: Spaces,
    pub(crate) disk: Disk,
    pub(crate) scripted: Arc<ScriptedFactory>,
    clock: TestClock,
}

/// Short time-outs, long enough for paused time.
pub(crate) fn config() -> Config {
    Config { allow_scripted_runtime: true, ..Config::default() }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::on(Disk::new(), config()).await
    }

    pub(crate) async fn on(disk: Disk, config: Config) -> Self {
        Self::try_on(disk, config).await.unwrap()
    }

    pub(crate) async fn try_on(disk: Disk, config: Config) -> Result<Self, actors::StartError> {
        let clock = TestClock::start();
        let shared: Arc<dyn Clock> = Arc::new(clock);
        let scripted =
            Arc::new(ScriptedFactory::new(Arc::clone(&shared), disk.journal.clone(), None, &catalogue()));
        let factory: Arc<dyn RuntimeFactory> = scripted.clone();
        let spaces = Spaces::start(Parts {
            log: disk.log.clone(),
            data_dir: disk.folder.path().to_owned(),
            config,
            catalogue: catalogue(),
            factories: Factories::new().with(InstanceKind::Scripted, factory),
            clock: shared,
            ids: Arc::new(TestIds::seeded(disk.seed)),
            keys: Some(disk.keys.clone()),
        })
        .await?;
        Ok(Self { spaces, disk, scripted, clock })
    }

    /// A caller's context that waits for a minute.
    pub(crate) fn context(&self, caller: &Caller) -> Context {
        Context {
            caller: caller.clone(),
            trace_id: TraceId::default(),
            span: tracing::Span::none(),
            deadline: self.clock.instant() + Duration::from_secs(60),
        }
    }

    pub(crate) fn system(&self) -> Context {
        self.context(&Caller::system())
    }

    /// The Workspace `default` and a bearer in it.
    pub(crate) async fn caller(&self, role: Role, id: &str) -> Caller {
        let issue = IssueToken {
            workspace: workspace(),
            all_workspaces: false,
            role,
            owner_id: id.parse().unwrap(),
            expires_at: None,
        };
        let issued = self.spaces.issue_token(&self.system(), issue).await.unwrap();
        self.spaces.authenticate(&issued.token).unwrap()
    }

    pub(crate) async fn instance(&self) -> InstanceId {
        self.try_instance().await.unwrap()
    }

    pub(crate) async fn try_instance(&self) -> Result<InstanceId, Rejection> {
        let register = RegisterInstance {
            kind: InstanceKind::Scripted,
            name: None,
            workspaces: Some(vec![workspace()]),
            bundle: Bundle::Standard,
            network_policy: NetworkPolicy::default(),
            headless: true,
        };
        self.spaces.register_instance(&self.system(), register).await.map(|(id, _)| id)
    }

    pub(crate) async fn create(&self, instance: InstanceId, key: Option<&str>) -> Result<Created, Rejection> {
        self.spaces.create(&self.system(), create(instance, key)).await
    }

    /// A Space whose runtime is ready.
    pub(crate) async fn space(&self) -> SpaceId {
        let instance = self.instance().await;
        let space = self.create(instance, None).await.unwrap().space.space;
        settle().await;
        space
    }

    pub(crate) async fn submit(
        &self,
        space: SpaceId,
        request: &str,
        script: &str,
    ) -> Result<Submitted, Rejection> {
        self.spaces.submit(&self.system(), submit(space, request, script)).await
    }

    /// Submits and waits for the end.
    pub(crate) async fn run(&self, space: SpaceId, request: &str, script: &str) -> TaskSummary {
        let submitted = self.submit(space, request, script).await.unwrap();
        submitted.ended.within(Duration::from_secs(300)).await.expect("the task ends").0
    }

    pub(crate) async fn cancel(&self, space: SpaceId) -> actors::space::summary::SpaceSummary {
        self.spaces.cancel(&self.system(), &workspace(), space).await.unwrap()
    }

    pub(crate) async fn close(&self, space: SpaceId) -> actors::space::summary::SpaceSummary {
        self.spaces.close(&self.system(), &workspace(), space).await.unwrap()
    }
}

pub(crate) fn workspace() -> WorkspaceId {
    "default".parse().unwrap()
}

pub(crate) fn create(instance: InstanceId, key: Option<&str>) -> CreateSpace {
    CreateSpace {
        workspace: workspace(),
        instance,
        binding: None,
        owner: Owner { kind: OwnerKind::Operator, id: "ops".parse().unwrap() },
        granted_capabilities: vec!["navigate".parse().unwrap()],
        idle_timeout: Some(Duration::from_secs(3600)),
        idempotency_key: key.map(str::to_owned),
        environment: eventlog::event::environment::Environment::default(),
    }
}

pub(crate) fn submit(space: SpaceId, request: &str, script: &str) -> SubmitTask {
    SubmitTask {
        workspace: workspace(),
        space,
        request_id: request.parse().unwrap(),
        capability: "navigate".parse().unwrap(),
        args: Sensitive::new(json!({ "url": format!("http://scripted.invalid/?{script}") })),
        timeout: Duration::from_secs(60),
    }
}

/// Lets everything that is ready to run, run.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// The error code of an ended task.
pub(crate) fn code(task: &TaskSummary) -> &str {
    task.error.as_ref().map_or("", |error| &error.code)
}

/// The tasks that ended, by how often each did.
pub(crate) fn ends(events: &[RecordedEvent]) -> std::collections::HashMap<eventlog::id::TaskId, u32> {
    let mut ends = std::collections::HashMap::new();
    for recorded in events {
        if let Event::Space(
            SpaceEvent::TaskCompleted { task, .. }
            | SpaceEvent::TaskFailed { task, .. }
            | SpaceEvent::TaskCancelled { task },
        ) = &recorded.event
        {
            *ends.entry(*task).or_default() += 1;
        }
    }
    ends
}
