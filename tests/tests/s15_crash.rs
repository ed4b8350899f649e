//! Acceptance 15: kill -9 of the server at any moment: everything acknowledged is there after restart; no gap; no task
//! dispatched twice; no reservation leaked.
//!
//! Four clients work and write down what was acknowledged. The server is killed at a random moment, started again,
//! and checked against the clients' ledgers, the log, and the runtimes' own journal. `BROWSERSPACE_CRASH_ROUNDS` sets
//! the number of rounds, `BROWSERSPACE_CRASH_SEED` repeats a run's moments.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    time::Duration,
};

use browserspace_tests::{
    Answer, Client, Page, Pages, Script, Server, ServerOptions, SpaceRequest, eventually, is_terminal,
};
use futures::future::join_all;
use rand::{Rng, SeedableRng, rngs::StdRng};
use reqwest::Method;
use serde_json::{Value, json};

const ROUNDS: u32 = 20;
const CLIENTS: usize = 4;

/// What a client asked last, with the ids that make a repeat harmless.
#[derive(Debug, Clone)]
enum Asked {
    Create,
    Submit,
    Close,
}

/// One client: what it does next, and what the server acknowledged to it.
struct Worker {
    client: Client,
    instance: String,
    random: StdRng,
    creates: u32,
    submits: u32,
    space: Option<String>,
    pending: Option<Asked>,
    script: Script,
    spaces: BTreeSet<String>,
    closed: BTreeSet<String>,
    tasks: BTreeMap<String, Value>,
    position: u64,
}

/// The server is gone.
struct Gone;

impl Worker {
    fn path(&self, space: &str, rest: &str) -> String {
        format!("/workspaces/default/browser-spaces/{space}{rest}")
    }

    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<Value>,
        header: (&str, &str),
    ) -> Result<Answer, Gone> {
        let mut request = self.client.request(method, path).header(header.0, header.1);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = self.client.try_send(request).await.map_err(|_| Gone)?;
        self.position = self.position.max(answer.position());
        Ok(answer)
    }

    /// Works until the server is gone.
    async fn work(&mut self) {
        while self.step().await.is_ok() {}
    }

    async fn step(&mut self) -> Result<(), Gone> {
        let asked = self.pending.clone().unwrap_or_else(|| self.choose());
        self.pending = Some(asked.clone());
        let settled = match asked {
            Asked::Create => self.create().await?,
            Asked::Submit => self.submit().await?,
            Asked::Close => self.close().await?,
        };
        if settled {
            self.pending = None;
        }
        Ok(())
    }

    fn choose(&mut self) -> Asked {
        if self.space.is_none() {
            self.creates += 1;
            return Asked::Create;
        }
        if self.random.random_ratio(1, 12) {
            return Asked::Close;
        }
        self.submits += 1;
        let delay = self.random.random_range(0..25);
        self.script = match self.random.random_range(0..10) {
            0 => Script::outcome("fail"),
            1 => Script::outcome("crash"),
            _ => Script::delay_ms(delay),
        };
        Asked::Submit
    }

    async fn create(&mut self) -> Result<bool, Gone> {
        let request = SpaceRequest::new("default", &self.instance);
        let key = format!("{}-{}", self.instance, self.creates);
        let answer =
            self.ask(Method::POST, &request.path(), Some(request.body()), ("idempotency-key", &key)).await?;
        match answer.status.as_u16() {
            200 | 201 => {
                let space = answer.field("space_id");
                self.spaces.insert(space.clone());
                self.space = Some(space);
                Ok(true)
            }
            // The Space before it is still closing; the same key is sent again.
            409 => {
                answer.expect_error(409, "browser_instance_in_use");
                Ok(false)
            }
            _ => panic!("create: {}", answer.text()),
        }
    }

    async fn submit(&mut self) -> Result<bool, Gone> {
        let space = self.space.clone().expect("a Space is open");
        let mut body = json!({ "request_id": format!("r{}", self.submits), "capability": "navigate" });
        body["args"] = self.script.args();
        let wait = if self.submits.is_multiple_of(3) { "wait=0" } else { "wait=5" };
        let path = self.path(&space, "/tasks");
        let answer = self.ask(Method::POST, &path, Some(body), ("prefer", wait)).await?;
        match answer.status.as_u16() {
            200 | 202 => {
                self.acknowledge(answer.data());
                Ok(true)
            }
            // Recorded as a task that failed from the start; its id is used up.
            503 => {
                answer.expect_error(503, "runtime_not_ready");
                Ok(true)
            }
            409 => match answer.json["error"]["code"].as_str() {
                Some("space_task_in_progress" | "space_in_error") => Ok(false),
                _ => panic!("submit: {}", answer.text()),
            },
            _ => panic!("submit: {}", answer.text()),
        }
    }

    async fn close(&mut self) -> Result<bool, Gone> {
        let space = self.space.clone().expect("a Space is open");
        let path = self.path(&space, "/close");
        let answer = self.ask(Method::POST, &path, Some(json!({})), ("accept", "*/*")).await?.expect(200);
        let closed = answer.field("status") == "closed";
        if closed {
            self.closed.insert(space);
            self.space = None;
        }
        Ok(closed)
    }

    /// Writes down what was acknowledged, and checks it against what was before: nothing terminal changes.
    fn acknowledge(&mut self, task: &Value) {
        let id = task["task_id"].as_str().expect("a task has an id").to_owned();
        if let Some(before) = self.tasks.get(&id).filter(|before| is_terminal(before)) {
            assert_eq!(before, task, "a terminal task keeps its terminal state");
        }
        self.tasks.insert(id, task.clone());
    }

    /// Everything acknowledged to this client is still there.
    async fn check(&mut self) {
        for space in self.spaces.clone() {
            let shown = self.client.get(&self.path(&space, "")).await.expect(200);
            let closed = shown.field("status") == "closed";
            assert!(closed || !self.closed.contains(&space), "a closed Space stays closed");
        }
        for (id, before) in self.tasks.clone() {
            let space = before["space_id"].as_str().expect("a task has a Space");
            let shown = self.client.get(&self.path(space, &format!("/tasks/{id}"))).await.expect(200);
            self.acknowledge(shown.data());
        }
    }
}

/// What must hold of the whole server, whoever asked what.
async fn check_whole(server: &Server, acknowledged: u64) {
    let operator = server.operator();
    let log = operator.log_after(0).await;
    let positions: Vec<u64> =
        log.iter().map(|event| event["position"].as_u64().expect("a position")).collect();
    assert_eq!(positions, (1..=positions.len() as u64).collect::<Vec<_>>(), "no gap in the log");
    assert!(positions.len() as u64 >= acknowledged, "everything acknowledged up to {acknowledged} is there");
    let mut held = BTreeMap::<String, usize>::new();
    for space in every_space(&operator).await {
        if space["status"] != "closed" {
            *held.entry(space["browser_instance_id"].as_str().expect("an id").to_owned()).or_default() += 1;
        }
        let id = space["space_id"].as_str().expect("an id");
        check_history(&operator, id).await;
    }
    let instances = operator.get("/browser-instances").await.expect(200);
    for instance in instances.list() {
        let id = instance["browser_instance_id"].as_str().expect("an id");
        let spaces = held.get(id).copied().unwrap_or(0);
        assert!(spaces <= 1, "one Space on an instance: {id}");
        assert_eq!(instance["reserved"], spaces == 1, "no reservation leaked: {instance}");
    }
}

async fn every_space(operator: &Client) -> Vec<Value> {
    let mut spaces = Vec::new();
    let mut path = "/workspaces/default/browser-spaces?limit=100".to_owned();
    loop {
        let page = operator.get(&path).await.expect(200);
        spaces.extend_from_slice(page.list());
        match page.json["next"].as_str() {
            Some(cursor) => path = format!("/workspaces/default/browser-spaces?limit=100&cursor={cursor}"),
            None => return spaces,
        }
    }
}

/// A Space's stream is gap-free, and each of its tasks has its events in order and at most one end.
async fn check_history(operator: &Client, space: &str) {
    let mut after = 0;
    let mut open: Option<String> = None;
    loop {
        let path = format!("/workspaces/default/browser-spaces/{space}/events?after_sequence={after}");
        let page = operator.get(&path).await.expect(200);
        if page.list().is_empty() {
            return;
        }
        for event in page.list() {
            after += 1;
            assert_eq!(event["sequence"], after, "no gap in the stream of {space}");
            let task = event["task_id"].as_str().map(str::to_owned);
            match event["kind"].as_str().expect("a kind") {
                "queued" => {
                    assert_eq!(open.replace(task.expect("a task")), None, "one task at a time: {event}");
                }
                "started" => assert_eq!(open, task, "started after queued: {event}"),
                "completed" | "failed" | "cancelled" => {
                    assert_eq!(open.take(), task, "one end each: {event}");
                }
                _ => {}
            }
        }
    }
}

fn number_of(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let rounds = number_of("BROWSERSPACE_CRASH_ROUNDS").unwrap_or_else(|| ROUNDS.into());
    let seed = number_of("BROWSERSPACE_CRASH_SEED").unwrap_or_else(|| rand::rng().random_range(0..1_000_000));
    println!("seed {seed}, {rounds} rounds");
    let mut random = StdRng::seed_from_u64(seed);
    let mut server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let mut workers = Vec::new();
    for number in 0..CLIENTS as u64 {
        workers.push(Worker {
            client: operator.clone(),
            instance: operator.scripted_instance(&["default"]).await,
            random: StdRng::seed_from_u64(seed ^ (number + 1)),
            creates: 0,
            submits: 0,
            space: None,
            pending: None,
            script: Script::ok(),
            spaces: BTreeSet::new(),
            closed: BTreeSet::new(),
            tasks: BTreeMap::new(),
            position: 0,
        });
    }
    for round in 0..rounds {
        let moment = Duration::from_millis(random.random_range(5..300));
        let kill = async {
            // The random moment is the point of this test; nothing waits on it.
            tokio::time::sleep(moment).await;
            server.kill9();
        };
        tokio::join!(join_all(workers.iter_mut().map(Worker::work)), kill);
        server.again();
        for worker in &mut workers {
            worker.check().await;
        }
        let acknowledged = workers.iter().map(|worker| worker.position).max().unwrap_or(0);
        check_whole(&server, acknowledged).await;
        server.journal().at_most_once();
        println!("round {round}: killed after {moment:?}, {acknowledged} positions acknowledged");
    }
    settle(&server, &mut workers).await;
}

/// At the end each client repeats what was not answered; then every task has one end that agrees with the journal.
async fn settle(server: &Server, workers: &mut [Worker]) {
    for worker in workers.iter_mut() {
        while worker.pending.is_some() {
            assert!(worker.step().await.is_ok(), "the server runs");
        }
        let tasks = worker.tasks.clone();
        assert!(!tasks.is_empty(), "it did something");
        for (id, task) in tasks {
            let path = worker.path(task["space_id"].as_str().expect("a Space"), &format!("/tasks/{id}"));
            let client = worker.client.clone();
            let ended = eventually("every task ends", || async {
                let shown = client.get(&path).await.expect(200).data().clone();
                is_terminal(&shown).then_some(shown)
            })
            .await;
            agrees_with_journal(server, &id, &ended);
        }
    }
    let journal = server.journal();
    journal.at_most_once();
    let interrupted = workers.iter().flat_map(|worker| worker.tasks.keys());
    println!("{} tasks, {} calls", interrupted.count(), journal.calls.len());
}

fn agrees_with_journal(server: &Server, task: &str, ended: &Value) {
    let journal = server.journal();
    let calls = journal.of_task(task);
    let code = ended["error"]["code"].as_str();
    match ended["status"].as_str() {
        Some("completed") => {
            assert_eq!(calls.len(), 1, "what completed was called: {ended}");
            assert_eq!(calls[0].end.as_ref().map(|end| end.outcome.as_str()), Some("completed"));
        }
        Some("failed") if code == Some("interrupted") => {}
        Some("failed") if calls.is_empty() => {
            let never_ran = [Some("runtime_not_ready"), Some("runtime_crashed")];
            assert!(never_ran.contains(&code), "a failure without a call: {ended}");
        }
        Some("failed") => {
            assert_eq!(calls[0].end.as_ref().map(|end| end.outcome.as_str()), code, "{ended}");
        }
        _ => assert!(calls.len() <= 1, "{ended}"),
    }
}

#[tokio::test]
async fn s15_a_running_task_is_interrupted_and_never_dispatched_again() {
    let mut server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let task = space.play("r1", &Script::delay_ms(60_000)).await.expect(202).field("task_id");
    eventually("the runtime is at work", || async { server.journal().of_task(&task).first().map(|_| ()) })
        .await;
    server.kill9();
    server.again();
    let ended = space.ended(&task).await;
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&"failed".into(), &"interrupted".into()));
    let repeated = space.play("r1", &Script::delay_ms(60_000)).await.expect(200);
    assert_eq!(repeated.field("task_id"), task);
    space.becomes("idle").await;
    space.play_out("r2", &Script::ok()).await.expect(200);
    assert_eq!(server.journal().of_task(&task).len(), 1, "the browser saw it once");
}

#[tokio::test]
async fn s15_a_task_that_was_only_queued_runs_after_the_restart() {
    let mut server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    server.script_starts("delay_ms=60000");
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let submitted = space.play("r1", &Script::ok()).await.expect(202);
    assert_eq!(submitted.field("status"), "queued", "its runtime is not ready yet");
    let task = submitted.field("task_id");
    server.kill9();
    server.script_starts("");
    server.again();
    assert_eq!(space.ended(&task).await["status"], "completed");
    assert_eq!(server.journal().of_task(&task).len(), 1);
    assert_eq!(space.kinds().await, ["opened", "queued", "started", "completed"]);
}

#[tokio::test]
async fn s15_a_close_that_was_begun_is_finished_after_the_restart() {
    let mut server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let request = SpaceRequest::new("default", &instance);
    let space = operator.open(&request).await;
    let script = Script::outcome("slow_cancel").and("delay_ms", "60000").and("cancel_ms", "60000");
    let task = space.play("r1", &script).await.expect(202).field("task_id");
    eventually("the runtime is at work", || async { server.journal().of_task(&task).first().map(|_| ()) })
        .await;
    space.close().await.expect(200);
    server.kill9();
    server.again();
    space.becomes("closed").await;
    assert_eq!(space.ended(&task).await["error"]["code"], "interrupted");
    operator.open(&request).await;
}

#[tokio::test]
async fn s15_a_killed_server_leaves_no_browser_and_touches_no_other() {
    let pages = Pages::serve([("/", Page::html("<title>T</title>")), ("/never", Page::silent())]).await;
    let mut server = Server::start(ServerOptions::default());
    let other = Server::start(ServerOptions::default());
    let open = async |server: &Server| {
        let operator = server.operator();
        let instance = operator.chromium_instance(&["default"], &[pages.host()]).await;
        operator.open(&SpaceRequest::new("default", &instance)).await
    };
    let (space, neighbour) = (open(&server).await, open(&other).await);
    neighbour.complete("r0", "navigate", json!({ "url": pages.url("/") })).await;
    let neighbours = other.browsers();
    for round in 0..2 {
        space.complete(&format!("a{round}"), "navigate", json!({ "url": pages.url("/") })).await;
        let asked = pages.hits("/never");
        let never = json!({ "url": pages.url("/never") });
        let task = space.submit(&format!("b{round}"), "navigate", never).await.expect(202).field("task_id");
        eventually("the browser asks for the page", || async {
            (pages.hits("/never") > asked).then_some(())
        })
        .await;
        let orphans = server.browsers();
        assert!(!orphans.is_empty());
        server.kill9();
        server.again();
        let ended = space.ended(&task).await;
        assert_eq!((&ended["status"], &ended["error"]["code"]), (&"failed".into(), &"interrupted".into()));
        eventually("the orphans are gone", || async {
            let left = server.browsers();
            orphans.iter().all(|pid| !left.contains(pid)).then_some(())
        })
        .await;
        space.becomes("idle").await;
        assert_eq!(pages.hits("/never"), asked + 1, "not asked for again");
    }
    assert_eq!(other.browsers(), neighbours, "nobody else's browser was touched");
    neighbour.complete("r1", "get_title", json!({})).await;
}
