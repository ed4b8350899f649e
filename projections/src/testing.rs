//! A log and a store in a temporary folder, and the words in which the tests below speak.

use std::{
    mem::ManuallyDrop,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use eventlog::{
    Append, AppendError, Appended, Event, EventLog, InstanceEvent, Json, Metadata, Part, Position, Principal,
    ReadError, Redacted, Redactor, Sequence, SpaceEvent, Stored, StreamId, Timestamp, TraceId,
    WorkspaceEvent,
    event::{
        instance::{Bundle, InstanceKind, NetworkPolicy},
        space::{ArtifactRecord, CloseReason, Owner, OwnerKind, TaskError},
    },
    id::{
        ArtifactId, BindingId, BootId, CommandId, InstanceId, OperationId, SpaceId, TaskId, TokenId,
        WorkspaceId,
    },
    log::Events,
    memory::MemoryLog,
    number::{ExpectedSequence, Fence, Generation},
    sealing::{Fingerprint, KeyId, Sealed},
};
use futures::StreamExt;
use own_postgres::Cluster;
use tempfile::TempDir;
use tokio::sync::watch;
use url::Url;
use uuid::Uuid;

use crate::{Place, Projector, ProjectorError, Store, Views, projection::Projection};

/// Long enough for a slow machine; nothing waits so long unless the test fails.
pub(crate) const SOON: Duration = Duration::from_secs(30);

macro_rules! ids {
    ($($make:ident -> $id:ident;)*) => {$(
        pub(crate) fn $make(n: u64) -> $id {
            $id::from_uuid(from_number(n))
        }
    )*};
}

ids! {
    space -> SpaceId;
    task -> TaskId;
    instance -> InstanceId;
    binding -> BindingId;
    token -> TokenId;
    artifact -> ArtifactId;
    operation -> OperationId;
    command -> CommandId;
    boot -> BootId;
}

fn from_number(n: u64) -> Uuid {
    Uuid::from_u64_pair(0, n)
}

pub(crate) fn workspace(name: &str) -> WorkspaceId {
    name.parse().expect("a test's name is a name")
}

pub(crate) fn owner(name: &str) -> Owner {
    Owner { kind: OwnerKind::RuntimeAgent, id: name.parse().expect("a test's name is a name") }
}

pub(crate) fn redacted(value: Json) -> Redacted<Json> {
    Redactor::new().json(value)
}

/// What happened, in short; each word stands with its stream.
pub(crate) type Fact = (StreamId, Event);

fn of_space(n: u64, event: SpaceEvent) -> Fact {
    (StreamId::Space(space(n)), event.into())
}

pub(crate) fn of_instance(n: u64, event: InstanceEvent) -> Fact {
    (StreamId::Instance(instance(n)), event.into())
}

pub(crate) fn of_workspace(name: &str, event: WorkspaceEvent) -> Fact {
    (StreamId::Workspace(workspace(name)), event.into())
}

pub(crate) fn opened_by(n: u64, in_workspace: &str, by: &str) -> Fact {
    let event = SpaceEvent::Opened {
        workspace: workspace(in_workspace),
        instance: instance(n),
        binding: None,
        owner: owner(by),
        granted_capabilities: vec!["click".parse().expect("a name")],
        idle_timeout_seconds: 1800,
        fingerprint_key: KeyId { file: 0, slot: 0 },
        idempotency: None,
        environment: None,
    };
    of_space(n, event)
}

pub(crate) fn opened(n: u64) -> Fact {
    opened_by(n, "default", "ann")
}

fn queued_with(n: u64, of_task: u64, sealed_args: Option<Sealed>) -> Fact {
    let event = SpaceEvent::TaskQueued {
        task: task(of_task),
        operation: operation(of_task),
        request_id: format!("request {of_task}").parse().expect("a name"),
        capability: "click".parse().expect("a name"),
        arg_keys: vec![Redacted::own("ref")],
        fingerprint: Fingerprint([0; 32]),
        timeout_seconds: 60,
        sealed_args,
    };
    of_space(n, event)
}

pub(crate) fn queued(n: u64, of_task: u64) -> Fact {
    let sealed = Sealed { key: KeyId { file: 0, slot: 1 }, nonce: vec![0; 24], ciphertext: vec![1, 2, 3] };
    queued_with(n, of_task, Some(sealed))
}

pub(crate) fn refused(n: u64, of_task: u64) -> Fact {
    queued_with(n, of_task, None)
}

pub(crate) fn started(n: u64, of_task: u64) -> Fact {
    let event =
        SpaceEvent::TaskStarted { task: task(of_task), generation: Generation(1), deadline: Timestamp(1) };
    of_space(n, event)
}

pub(crate) fn completed(n: u64, of_task: u64, artifacts: &[u64]) -> Fact {
    let record = |n: &u64| ArtifactRecord {
        id: artifact(*n),
        kind: "screenshot".to_owned(),
        media_type: "image/png".to_owned(),
        bytes: 7,
        sha256: "ab".repeat(32),
    };
    let event = SpaceEvent::TaskCompleted {
        task: task(of_task),
        result: redacted(serde_json::json!({ "title": "Shop" })),
        artifacts: artifacts.iter().map(record).collect(),
    };
    of_space(n, event)
}

pub(crate) fn error(code: &str) -> TaskError {
    TaskError {
        code: code.to_owned(),
        message: Redacted::own("it did not work"),
        retryable: true,
        may_have_run: false,
        details: Some(redacted(serde_json::json!({ "ref": "e1" }))),
    }
}

pub(crate) fn failed(n: u64, of_task: u64, code: &str) -> Fact {
    of_space(n, SpaceEvent::TaskFailed { task: task(of_task), error: error(code) })
}

pub(crate) fn cancel_requested(n: u64, of_task: u64) -> Fact {
    let reason = eventlog::event::space::CancelReason::Requested;
    of_space(n, SpaceEvent::CancelRequested { task: task(of_task), reason })
}

pub(crate) fn cancelled(n: u64, of_task: u64) -> Fact {
    of_space(n, SpaceEvent::TaskCancelled { task: task(of_task) })
}

pub(crate) fn close_requested(n: u64) -> Fact {
    of_space(n, SpaceEvent::CloseRequested { reason: CloseReason::Requested })
}

pub(crate) fn closed(n: u64) -> Fact {
    of_space(n, SpaceEvent::Closed { reason: CloseReason::Requested })
}

pub(crate) fn faulted(n: u64, code: &str) -> Fact {
    of_space(n, SpaceEvent::Faulted { code: code.to_owned(), generation: None })
}

pub(crate) fn recovered(n: u64) -> Fact {
    of_space(n, SpaceEvent::Recovered { generation: Generation(2) })
}

pub(crate) fn registered(n: u64, workspaces: &[&str]) -> Fact {
    let event = InstanceEvent::Registered {
        instance_kind: InstanceKind::Chromium,
        name: Some(format!("browser {n}").parse().expect("a name")),
        workspaces: workspaces.iter().map(|name| workspace(name)).collect(),
        bundle: Bundle::Standard,
        network_policy: NetworkPolicy {
            allow: vec!["shop.example:443".to_owned()],
            ..NetworkPolicy::default()
        },
        headless: true,
    };
    of_instance(n, event)
}

pub(crate) fn reserved(n: u64) -> Fact {
    of_instance(n, InstanceEvent::Reserved { space: space(n), workspace: workspace("default") })
}

pub(crate) fn released(n: u64) -> Fact {
    let event = InstanceEvent::Released {
        space: space(n),
        fence: Fence(Position(1)),
        reason: CloseReason::Requested,
    };
    of_instance(n, event)
}

pub(crate) fn granted(n: u64, to: &str, on_instance: u64) -> Fact {
    let event = WorkspaceEvent::BindingGranted {
        binding: binding(n),
        instance: instance(on_instance),
        owner_id: None,
        capabilities: Some(vec!["click".parse().expect("a name")]),
    };
    of_workspace(to, event)
}

/// The databases that views may lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

/// Makes each promise a test on SQLite and a test on PostgreSQL.
macro_rules! on_both {
    ($($promise:ident,)*) => {$(
        mod $promise {
            #[tokio::test]
            async fn in_sqlite() {
                super::$promise(crate::testing::Engine::Sqlite).await;
            }

            #[tokio::test]
            async fn in_postgresql() {
                super::$promise(crate::testing::Engine::Postgres).await;
            }
        }
    )*};
}
pub(crate) use on_both;

/// A schema of its own in the one cluster of this process, or in the one that the run has made.
fn fresh_schema() -> Place {
    static URL: OnceLock<String> = OnceLock::new();
    let url = URL.get_or_init(|| {
        std::env::var(own_postgres::SHARED).unwrap_or_else(|_| {
            // Held until the process ends; its keeper sees that.
            let cluster = ManuallyDrop::new(Cluster::start().expect("a PostgreSQL starts"));
            cluster.url()
        })
    });
    let schema = format!("t_{}", Uuid::now_v7().simple());
    let url = Url::parse_with_params(url, [("schema", schema)]).expect("a URL");
    Place::postgres(&url).expect("it is on this machine")
}

/// A log, the store that is fed from it, and its place.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) place: Place,
    pub(crate) log: Arc<MemoryLog>,
    pub(crate) store: Store,
    appended: u64,
}

impl World {
    pub(crate) async fn new(on: Engine) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let place = match on {
            Engine::Sqlite => Place::Sqlite(folder.path().join("views.db")),
            Engine::Postgres => fresh_schema(),
        };
        let store = Store::open(&place).await.expect("the store opens");
        Self { folder, place, log: Arc::new(MemoryLog::new()), store, appended: 0 }
    }

    /// Another process over the same place.
    pub(crate) async fn second_store(&self) -> Store {
        Store::open(&self.place).await.expect("the store opens twice")
    }

    /// Each fact is recorded at its position in seconds.
    pub(crate) async fn happen(&mut self, facts: impl IntoIterator<Item = Fact>) -> Position {
        for (stream, event) in facts {
            self.appended += 1;
            let append = Append {
                id: command(self.appended),
                metadata: metadata(self.appended),
                parts: vec![Part { stream, expected: ExpectedSequence::Any, events: vec![event] }],
            };
            let appended = self.log.append(append).await.expect("it is appended");
            assert!(matches!(appended, Appended::Stored(_)), "{appended:?}");
        }
        Position(self.appended)
    }

    pub(crate) async fn projector(&self) -> Projector {
        Projector::open(self.store.clone(), self.log.clone()).await.expect("the projector opens")
    }

    pub(crate) async fn projector_of(&self, projections: Vec<Box<dyn Projection>>) -> Projector {
        let projector = Projector::with(projections, self.store.clone(), self.log.clone()).await;
        projector.expect("the projector opens")
    }

    pub(crate) async fn catch_up(&self) -> Result<Position, ProjectorError> {
        self.projector().await.catch_up().await
    }

    pub(crate) async fn dump(&self) -> crate::Dump {
        self.store.dump().await.expect("the store can be read")
    }
}

/// The views after these facts; the world must be kept as long as they are read.
pub(crate) async fn given(on: Engine, facts: impl IntoIterator<Item = Fact>) -> (World, Views) {
    let mut world = World::new(on).await;
    world.happen(facts).await;
    world.catch_up().await.expect("the facts fit");
    let views = world.store.views();
    (world, views)
}

pub(crate) fn at(position: u64) -> Timestamp {
    Timestamp(i64::try_from(position).expect("a test is short") * 1_000_000)
}

fn metadata(position: u64) -> Metadata {
    Metadata {
        principal: Principal::System,
        workspace: None,
        recorded_at: at(position),
        trace_id: TraceId::default(),
        causation: None,
        boot: boot(1),
    }
}

/// A history in which everything happens, over several Spaces at once.
pub(crate) fn long_history(rounds: u64) -> Vec<Fact> {
    let mut facts = vec![
        of_workspace("default", WorkspaceEvent::Created {}),
        of_workspace("other", WorkspaceEvent::Created {}),
        granted(1, "other", 1),
    ];
    for n in 1..=3 {
        facts.extend([registered(n, &["default"]), opened(n), reserved(n)]);
    }
    for round in 0..rounds {
        for n in 1..=3 {
            let id = 10 * round + n;
            facts.extend([queued(n, id), started(n, id)]);
        }
        facts.extend([completed(1, 10 * round + 1, &[round]), failed(2, 10 * round + 2, "task_timeout")]);
        facts.extend([
            cancel_requested(3, 10 * round + 3),
            faulted(2, "runtime_crashed"),
            refused(2, 10 * round + 4),
        ]);
        facts.extend([
            cancelled(3, 10 * round + 3),
            failed(2, 10 * round + 4, "runtime_not_ready"),
            recovered(2),
        ]);
    }
    facts.extend([
        close_requested(1),
        closed(1),
        released(1),
        of_workspace("other", WorkspaceEvent::BindingRevoked { binding: binding(1) }),
    ]);
    facts
}

/// A log that reads back without one of its positions, as no log may.
pub(crate) struct LogWithGap {
    pub(crate) log: Arc<MemoryLog>,
    pub(crate) missing: Position,
}

#[async_trait]
impl EventLog for LogWithGap {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        self.log.append(append).await
    }

    fn read_stream(&self, stream: &StreamId, from: Sequence) -> Events {
        self.log.read_stream(stream, from)
    }

    fn read_all(&self, from: Position) -> Events {
        let missing = self.missing;
        let is_there = move |event: &Result<eventlog::RecordedEvent, ReadError>| {
            std::future::ready(event.as_ref().map_or(true, |event| event.position != missing))
        };
        self.log.read_all(from).filter(is_there).boxed()
    }

    fn follow(&self, from: Position) -> Events {
        self.log.follow(from)
    }

    fn follow_stream(&self, stream: &StreamId, from: Sequence) -> Events {
        self.log.follow_stream(stream, from)
    }

    async fn find_append(&self, id: CommandId) -> Result<Option<Stored>, ReadError> {
        self.log.find_append(id).await
    }

    async fn stream_head(&self, stream: &StreamId) -> Result<Sequence, ReadError> {
        self.log.stream_head(stream).await
    }

    fn durable_head(&self) -> watch::Receiver<Position> {
        self.log.durable_head()
    }

    fn check_writable(&self) -> Result<(), AppendError> {
        self.log.check_writable()
    }

    fn damaged_streams(&self) -> Vec<StreamId> {
        self.log.damaged_streams()
    }

    async fn close(&self) {
        self.log.close().await;
    }
}
