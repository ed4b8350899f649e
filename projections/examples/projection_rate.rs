//! How fast views are fed: `cargo run --release -p projections --example projection_rate [EVENTS]`.
//!
//! Feeds a log in memory of tasks of 64 Spaces (queued, started, completed) into a fresh SQLite file and into a fresh
//! PostgreSQL, in full batches, and one event at a time with a reader who waits for each.

use std::{env, error::Error, sync::Arc, time::Instant};

use eventlog::{
    Append, Event, EventLog, Metadata, Part, Position, Principal, Redacted, Redactor, SpaceEvent, StreamId,
    Timestamp, TraceId,
    event::space::{Owner, OwnerKind},
    id::{BootId, CommandId, InstanceId, OperationId, SpaceId, TaskId},
    memory::MemoryLog,
    number::{ExpectedSequence, Generation},
    sealing::{Fingerprint, KeyId, Sealed},
};
use projections::{Place, Projector, Store};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const SPACES: u64 = 64;
const SINGLES: u64 = 300;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let events: u64 = env::args().nth(1).map_or(Ok(100_000), |count| count.parse())?;
    let folder = tempfile::TempDir::new()?;
    measure("sqlite", &Place::Sqlite(folder.path().join("views.db")), events).await?;
    let cluster = own_postgres::Cluster::start()?;
    measure("postgres", &Place::postgres(&cluster.url().parse()?)?, events).await
}

async fn measure(name: &str, place: &Place, events: u64) -> Result<(), Box<dyn Error>> {
    let log = Arc::new(MemoryLog::new());
    let mut next = 0;
    for space in 0..SPACES {
        append(&log, &mut next, space, vec![opened(space)?]).await?;
    }
    let mut task = 0;
    while next < events {
        append(&log, &mut next, task % SPACES, finished_task(task)?).await?;
        task += 1;
    }
    let store = Store::open(place).await?;
    let mut projector = Projector::open(store.clone(), log.clone()).await?;
    let begin = Instant::now();
    let end = projector.catch_up().await?;
    let seconds = begin.elapsed().as_secs_f64();
    println!("{name}: {end} events in {seconds:.2} s: {:.0} events/s", end.0 as f64 / seconds);

    let stop = CancellationToken::new();
    let running = tokio::spawn(projector.run(stop.clone()));
    let views = store.views();
    let mut waits = Vec::new();
    for task in task..task + SINGLES {
        append(&log, &mut next, task % SPACES, finished_task(task)?).await?;
        let begin = Instant::now();
        views.wait_for(Position(next), std::time::Duration::from_secs(5)).await?;
        waits.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    waits.sort_by(f64::total_cmp);
    let at = |part: usize| waits[waits.len() * part / 100];
    println!("{name}: read your write: p50 {:.2} ms, p99 {:.2} ms", at(50), at(99));
    stop.cancel();
    running.await??;
    store.close().await;
    Ok(())
}

async fn append(
    log: &MemoryLog,
    next: &mut u64,
    space: u64,
    events: Vec<Event>,
) -> Result<(), Box<dyn Error>> {
    *next += events.len() as u64;
    let stream = StreamId::Space(SpaceId::from_uuid(Uuid::from_u64_pair(1, space)));
    let metadata = Metadata {
        principal: Principal::System,
        workspace: None,
        recorded_at: Timestamp(i64::try_from(*next)?),
        trace_id: TraceId::default(),
        causation: None,
        boot: BootId::from_uuid(Uuid::nil()),
    };
    let parts = vec![Part { stream, expected: ExpectedSequence::Any, events }];
    log.append(Append { id: CommandId::from_uuid(Uuid::from_u64_pair(2, *next)), metadata, parts }).await?;
    Ok(())
}

fn opened(space: u64) -> Result<Event, Box<dyn Error>> {
    let event = SpaceEvent::Opened {
        workspace: "default".parse()?,
        instance: InstanceId::from_uuid(Uuid::from_u64_pair(3, space)),
        binding: None,
        owner: Owner { kind: OwnerKind::RuntimeAgent, id: "agent".parse()? },
        granted_capabilities: vec!["click".parse()?],
        idle_timeout_seconds: 1800,
        fingerprint_key: KeyId { file: 0, slot: 0 },
        idempotency: None,
        environment: None,
    };
    Ok(event.into())
}

fn finished_task(n: u64) -> Result<Vec<Event>, Box<dyn Error>> {
    let task = TaskId::from_uuid(Uuid::from_u64_pair(4, n));
    let key = KeyId { file: 0, slot: n };
    let queued = SpaceEvent::TaskQueued {
        task,
        operation: OperationId::from_uuid(Uuid::from_u64_pair(5, n)),
        request_id: format!("request-{n}").parse()?,
        capability: "click".parse()?,
        arg_keys: vec![Redacted::own("ref")],
        fingerprint: Fingerprint([0; 32]),
        timeout_seconds: 60,
        sealed_args: Some(Sealed { key, nonce: vec![0; 24], ciphertext: vec![0; 64] }),
    };
    let started = SpaceEvent::TaskStarted { task, generation: Generation(1), deadline: Timestamp(0) };
    let result = Redactor::new().json(serde_json::json!({ "ok": true, "url": "https://shop.example/cart" }));
    let completed = SpaceEvent::TaskCompleted { task, result, artifacts: Vec::new() };
    Ok(vec![queued.into(), started.into(), completed.into()])
}
