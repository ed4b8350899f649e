//! The same promises on a real browser: one Space, from its first page to the last process.

use std::{path::Path, sync::Arc, time::Duration};

use actors::{
    Caller, Config, Context, Parts, Spaces,
    clock::{Clock, SystemClock},
    space::summary::{TaskStatus, TaskSummary},
    spaces::{CreateSpace, IssueToken, RegisterInstance, SubmitTask},
};
use eventlog::{
    Role, Sensitive, TraceId,
    event::{
        instance::{Bundle, InstanceKind, NetworkPolicy},
        space::{Owner, OwnerKind},
    },
    id::SpaceId,
    memory::MemoryLog,
};
use serde_json::{Value, json};

use crate::harness::{code, workspace};

fn context() -> Context {
    Context {
        caller: Caller::system(),
        trace_id: TraceId::default(),
        span: tracing::Span::none(),
        deadline: SystemClock.instant() + Duration::from_secs(60),
    }
}

async fn start(log: Arc<MemoryLog>, folder: &Path) -> Spaces {
    Spaces::start(Parts::new(log, folder.to_owned(), Config::default()).unwrap()).await.unwrap()
}

async fn space(spaces: &Spaces) -> SpaceId {
    let issue = IssueToken {
        workspace: workspace(),
        all_workspaces: false,
        role: Role::Operator,
        owner_id: "ops".parse().unwrap(),
        expires_at: None,
    };
    spaces.issue_token(&context(), issue).await.unwrap();
    let register = RegisterInstance {
        kind: InstanceKind::Chromium,
        name: None,
        workspaces: None,
        bundle: Bundle::Standard,
        network_policy: NetworkPolicy::default(),
        headless: true,
    };
    let (instance, _) = spaces.register_instance(&context(), register).await.unwrap();
    let create = CreateSpace {
        workspace: workspace(),
        instance,
        binding: None,
        owner: Owner { kind: OwnerKind::Operator, id: "ops".parse().unwrap() },
        granted_capabilities: ["navigate", "snapshot", "screenshot", "get_url", "wait"]
            .map(|name| name.parse().unwrap())
            .into(),
        idle_timeout: None,
        idempotency_key: None,
        environment: eventlog::event::environment::Environment::default(),
    };
    spaces.create(&context(), create).await.unwrap().space.space
}

async fn run(spaces: &Spaces, space: SpaceId, request: &str, capability: &str, args: Value) -> TaskSummary {
    let submit = SubmitTask {
        workspace: workspace(),
        space,
        request_id: request.parse().unwrap(),
        capability: capability.parse().unwrap(),
        args: Sensitive::new(args),
        timeout: Duration::from_secs(60),
    };
    let submitted = spaces.submit(&context(), submit).await.unwrap();
    submitted.ended.within(Duration::from_secs(90)).await.expect("it ends").0
}

/// The pid in the one record of a running browser.
fn recorded_pid(folder: &Path) -> Option<i32> {
    let entries = std::fs::read_dir(folder.join("runtime")).unwrap();
    entries.filter_map(|entry| std::fs::read(entry.unwrap().path()).ok()).find_map(|text| {
        let record: Value = serde_json::from_slice(&text).ok()?;
        record["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok())
    })
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder.join("runtime")).unwrap().next().is_none()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_a_space_on_a_real_browser_from_its_first_page_to_the_last_process() {
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(MemoryLog::new());
    let spaces = start(log.clone(), folder.path()).await;
    let space = space(&spaces).await;
    let navigated = run(&spaces, space, "1", "navigate", json!({ "url": "about:blank" })).await;
    assert_eq!(navigated.status, TaskStatus::Completed, "{navigated:?}");
    let snapshot = run(&spaces, space, "2", "snapshot", json!({})).await;
    assert_eq!(snapshot.status, TaskStatus::Completed, "{snapshot:?}");
    let refused = run(&spaces, space, "3", "navigate", json!({ "url": "file:///etc/passwd" })).await;
    assert_eq!(code(&refused), "blocked_by_policy");

    let picture = run(&spaces, space, "4", "screenshot", json!({})).await;
    let result = picture.result.expect("a picture").into_inner();
    let id = result["artifact"]["artifact_id"].as_str().unwrap().parse().unwrap();
    let mut kept = spaces.open_artifact(space, id).await.unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut kept.file, &mut bytes).unwrap();
    assert_eq!(&bytes[1..4], b"PNG");
    assert_eq!(bytes.len() as u64, kept.bytes);

    let pid = recorded_pid(folder.path()).expect("a record");
    let waiting = {
        let spaces = spaces.clone();
        tokio::spawn(async move { run(&spaces, space, "5", "wait", json!({ "ms": 20_000 })).await })
    };
    while !matches!(summary(&spaces, space).await, Some(TaskStatus::Running)) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let killed = std::time::Instant::now();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    let crashed = waiting.await.unwrap();
    assert_eq!(code(&crashed), "runtime_crashed");
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
    let back = async {
        while summary(&spaces, space).await.is_some()
            || spaces.cancel(&context(), &workspace(), space).await.unwrap().status
                == actors::space::summary::SpaceStatus::Error
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), back).await.expect("the Space comes back");
    let again = run(&spaces, space, "6", "get_url", json!({})).await;
    assert_eq!(again.status, TaskStatus::Completed, "{again:?}");

    spaces.drain(Duration::from_secs(10)).await;
    assert!(is_empty(folder.path()), "no profile and no record is left");
}

async fn summary(spaces: &Spaces, space: SpaceId) -> Option<TaskStatus> {
    // A submit of what was not granted is refused either way: busy comes first, and then the refusal is recorded.
    let submit = SubmitTask {
        workspace: workspace(),
        space,
        request_id: format!("look-{}", SystemClock.now().0).parse().unwrap(),
        capability: "get_title".parse().unwrap(),
        args: Sensitive::new(json!({})),
        timeout: Duration::from_secs(60),
    };
    match spaces.submit(&context(), submit).await {
        Err(actors::Rejection::SpaceTaskInProgress { .. }) => Some(TaskStatus::Running),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_the_browser_of_a_dead_server_is_ended_by_the_next_and_its_task_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(MemoryLog::new());
    let spaces = start(log.clone(), folder.path()).await;
    let space = space(&spaces).await;
    run(&spaces, space, "1", "navigate", json!({ "url": "about:blank" })).await;
    let pid = recorded_pid(folder.path()).expect("a record");
    // The first server is not stopped: its log is dead, its browser is not.
    let next = start(Arc::new(log.reopen()), folder.path()).await;
    // Ended it is; whoever started it (here the first server, which still lives) also has to reap it.
    let gone = async {
        while std::fs::metadata(format!("/proc/{pid}")).is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("the orphan is ended");
    let repeated = run(&next, space, "1", "navigate", json!({ "url": "about:blank" })).await;
    assert_eq!(repeated.status, TaskStatus::Completed, "the first answer stands");
    let again = run(&next, space, "2", "get_url", json!({})).await;
    assert_eq!(again.status, TaskStatus::Completed, "{again:?}");
    next.drain(Duration::from_secs(10)).await;
}
