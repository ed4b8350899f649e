//! A Space as a client sees it, with one method per route.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{Answer, Client, Script, Sse, wait::eventually};

/// How long [`Space::run`] lets the server wait for a task's end.
pub const TASK_WAIT_SECONDS: u64 = 60;

/// The capabilities that the tests ask for by default.
pub const USUAL_CAPABILITIES: [&str; 12] = [
    "navigate",
    "snapshot",
    "click",
    "fill",
    "type",
    "press",
    "wait",
    "screenshot",
    "get_content",
    "get_url",
    "get_title",
    "tab_list",
];

/// Whether a task's status says that nothing follows.
#[must_use]
pub fn is_terminal(task: &Value) -> bool {
    matches!(task["status"].as_str(), Some("completed" | "failed" | "cancelled"))
}

/// A request for a Space.
#[derive(Debug, Clone)]
pub struct SpaceRequest {
    /// In which Workspace.
    pub workspace: String,
    /// On which instance.
    pub instance: String,
    owner: (&'static str, String),
    granted: Vec<String>,
    extra: Value,
}

impl SpaceRequest {
    /// A Space of the operator in `workspace`, with the usual capabilities.
    #[must_use]
    pub fn new(workspace: &str, instance: &str) -> Self {
        Self {
            workspace: workspace.to_owned(),
            instance: instance.to_owned(),
            owner: ("operator", "operator".to_owned()),
            granted: USUAL_CAPABILITIES.map(str::to_owned).to_vec(),
            extra: json!({}),
        }
    }

    /// For an agent.
    #[must_use]
    pub fn agent(mut self, owner_id: &str) -> Self {
        self.owner = ("runtime_agent", owner_id.to_owned());
        self
    }

    /// With these capabilities only.
    #[must_use]
    pub fn granting(mut self, capabilities: &[&str]) -> Self {
        self.granted = capabilities.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// With one more field.
    #[must_use]
    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.extra[field] = value;
        self
    }

    /// Where it is sent.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/workspaces/{}/browser-spaces", self.workspace)
    }

    /// What is sent.
    #[must_use]
    pub fn body(&self) -> Value {
        let (owner_type, owner_id) = &self.owner;
        let mut body = json!({
            "browser_instance_id": self.instance, "owner_type": owner_type, "owner_id": owner_id,
            "granted_capabilities": self.granted
        });
        for (field, value) in self.extra.as_object().into_iter().flatten() {
            body[field] = value.clone();
        }
        body
    }
}

/// A Space, through one client.
#[derive(Clone)]
pub struct Space {
    client: Client,
    /// Its Workspace.
    pub workspace: String,
    /// Its id.
    pub id: String,
    /// What it holds.
    pub instance: String,
}

impl Space {
    pub(crate) fn new(client: Client, workspace: &str, id: &str, instance: &str) -> Self {
        Self { client, workspace: workspace.to_owned(), id: id.to_owned(), instance: instance.to_owned() }
    }

    /// The same Space through another client.
    #[must_use]
    pub fn through(&self, client: &Client) -> Self {
        Self { client: client.clone(), ..self.clone() }
    }

    /// The client it is seen through.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Its own path, and what follows.
    #[must_use]
    pub fn path(&self, rest: &str) -> String {
        format!("/workspaces/{}/browser-spaces/{}{rest}", self.workspace, self.id)
    }

    /// Itself.
    pub async fn show(&self) -> Answer {
        self.client.get(&self.path("")).await
    }

    /// Its status.
    pub async fn status(&self) -> String {
        self.show().await.expect(200).field("status")
    }

    /// Waits until it has a status.
    pub async fn becomes(&self, status: &str) {
        let what = format!("the Space becomes {status}");
        eventually(&what, || async { (self.status().await == status).then_some(()) }).await;
    }

    /// Submits a task and returns as soon as it is accepted.
    pub async fn submit(&self, request_id: &str, capability: &str, args: Value) -> Answer {
        self.client.post(&self.path("/tasks"), &task_body(request_id, capability, args)).await
    }

    /// Submits a task and waits for its end.
    pub async fn run(&self, request_id: &str, capability: &str, args: Value) -> Answer {
        let body = task_body(request_id, capability, args);
        let wait = format!("wait={TASK_WAIT_SECONDS}");
        self.client.post_with(&self.path("/tasks"), &body, "prefer", &wait).await
    }

    /// Submits a task, waits for its end, checks that it completed, and gives its result.
    ///
    /// # Panics
    /// When it did not complete.
    pub async fn complete(&self, request_id: &str, capability: &str, args: Value) -> Value {
        let answer = self.run(request_id, capability, args).await.expect(200);
        assert_eq!(answer.field("status"), "completed", "{}", answer.text());
        answer.data()["result"].clone()
    }

    /// Submits a task that plays a script.
    pub async fn play(&self, request_id: &str, script: &Script) -> Answer {
        self.submit(request_id, "navigate", script.args()).await
    }

    /// Submits a task that plays a script, and waits for its end.
    pub async fn play_out(&self, request_id: &str, script: &Script) -> Answer {
        self.run(request_id, "navigate", script.args()).await
    }

    /// One of its tasks.
    pub async fn task(&self, task: &str) -> Answer {
        self.client.get(&self.path(&format!("/tasks/{task}"))).await
    }

    /// Waits until a task is terminal, and gives it.
    pub async fn ended(&self, task: &str) -> Value {
        let what = format!("task {task} ends");
        eventually(&what, || async {
            let shown = self.task(task).await.expect(200).data().clone();
            is_terminal(&shown).then_some(shown)
        })
        .await
    }

    /// Waits until a task runs.
    pub async fn runs(&self, task: &str) {
        let what = format!("task {task} runs");
        eventually(&what, || async {
            (self.task(task).await.expect(200).field("status") == "running").then_some(())
        })
        .await;
    }

    /// All its tasks, newest first.
    pub async fn tasks(&self) -> Vec<Value> {
        let mut tasks = Vec::new();
        let mut path = self.path("/tasks?limit=100");
        loop {
            let page = self.client.get(&path).await.expect(200);
            tasks.extend_from_slice(page.list());
            match page.json["next"].as_str() {
                Some(cursor) => path = self.path(&format!("/tasks?limit=100&cursor={cursor}")),
                None => return tasks,
            }
        }
    }

    /// Asks its active task to stop.
    pub async fn cancel(&self) -> Answer {
        self.client.post(&self.path("/cancel"), &json!({})).await
    }

    /// Asks for its end.
    pub async fn close(&self) -> Answer {
        self.client.post(&self.path("/close"), &json!({})).await
    }

    /// One page of its events.
    pub async fn events_page(&self, query: &str) -> Answer {
        self.client.get(&self.path(&format!("/events?{query}"))).await
    }

    /// All its events.
    ///
    /// # Panics
    /// When a page is over its bound.
    pub async fn events(&self) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        loop {
            let after = events.last().and_then(|event| event["sequence"].as_u64()).unwrap_or(0);
            let page = self.events_page(&format!("after_sequence={after}&limit=100")).await.expect(200);
            assert!(page.list().len() <= 100, "at most 100 a page");
            if page.list().is_empty() {
                return events;
            }
            events.extend_from_slice(page.list());
        }
    }

    /// The kinds of its events, in order.
    pub async fn kinds(&self) -> Vec<String> {
        let kind = |event: &Value| event["kind"].as_str().expect("an event has a kind").to_owned();
        self.events().await.iter().map(kind).collect()
    }

    /// Its events, live.
    pub async fn follow(&self, last_event_id: Option<u64>) -> Sse {
        self.client.stream(&self.path("/events"), last_event_id).await
    }

    /// An artifact's bytes.
    pub async fn artifact(&self, artifact: &str) -> Answer {
        self.client
            .send(self.client.request(Method::GET, &self.path(&format!("/artifacts/{artifact}"))))
            .await
    }
}

fn task_body(request_id: &str, capability: &str, args: Value) -> Value {
    let mut body = json!({ "request_id": request_id, "capability": capability });
    body["args"] = args;
    body
}
