//! The clients: they ask, wait for answers as long as it takes, and write down what they were told.

use std::{sync::Arc, time::Duration};

use actors::{
    Caller, Context, Rejection, Spaces,
    clock::Clock,
    space::summary::SpaceStatus,
    spaces::{CreateSpace, Created, SubmitTask, Submitted},
};
use eventlog::{
    Sensitive, TraceId,
    event::{
        environment::Environment,
        space::{Owner, OwnerKind},
    },
    id::{SpaceId, TaskId, WorkspaceId},
};
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    clock::SimClock,
    ledger::{Acknowledged, Ledger, RequestName},
    log::SimLog,
    plan::Asked,
};

/// So often is tried in peace what meets a busy server; an actor that is in the way sleeps long before.
const PATIENCE: usize = 20;

/// Where a client asks.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) spaces: Spaces,
    pub(crate) log: SimLog,
    pub(crate) clock: SimClock,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
}

/// The one Workspace.
pub(crate) fn workspace() -> WorkspaceId {
    "default".parse().expect("it is a good name")
}

impl Desk {
    pub(crate) fn context(&self) -> Context {
        Context {
            caller: Caller::system(),
            trace_id: TraceId::default(),
            span: tracing::Span::none(),
            deadline: self.clock.instant() + Duration::from_secs(60),
        }
    }

    /// Asks, and notes what comes of it.
    pub(crate) async fn carry_out(self, asked: Asked) {
        match asked {
            Asked::Create { key, instance } => self.create(key, instance).await,
            Asked::Submit { space, request, script } => {
                let Some(space) = self.ledger.lock().space(space) else { return };
                self.submit((space, request), script).await;
            }
            Asked::SubmitNewest { request, script } => {
                let Some(space) = self.newest() else { return };
                self.submit((space, request), script).await;
            }
            Asked::Again(number) => self.again(number).await,
            Asked::Otherwise(number) => {
                let Some(name) = self.ledger.lock().request(number) else { return };
                self.submit(name, "outcome=ok&delay_ms=7".to_owned()).await;
            }
            Asked::Cancel(number) => {
                let Some(space) = self.ledger.lock().space(number) else { return };
                let _ = self.spaces.cancel(&self.context(), &workspace(), space).await;
            }
            Asked::CancelNewest => {
                let Some(space) = self.newest() else { return };
                let _ = self.spaces.cancel(&self.context(), &workspace(), space).await;
            }
            Asked::Close(number) => {
                let Some(space) = self.ledger.lock().space(number) else { return };
                self.close(space).await;
            }
        }
    }

    fn newest(&self) -> Option<SpaceId> {
        self.ledger.lock().spaces.last().copied()
    }

    pub(crate) async fn try_create(&self, key: u64, instance: usize) -> Result<Created, Rejection> {
        let instances = self.spaces.instances();
        let instance = instances.get(instance % instances.len().max(1)).copied();
        let create = CreateSpace {
            workspace: workspace(),
            instance: instance.ok_or(Rejection::InstanceNotFound)?,
            binding: None,
            owner: Owner { kind: OwnerKind::Operator, id: "ops".parse().expect("it is a good id") },
            granted_capabilities: vec!["navigate".parse().expect("it is a good name")],
            idle_timeout: Some(Duration::from_secs(if key.is_multiple_of(3) { 10 } else { 3_600 })),
            idempotency_key: Some(format!("key-{key}")),
            environment: Environment::default(),
        };
        self.spaces.create(&self.context(), create).await
    }

    /// As [`try_create`](Self::try_create), and again where only few actors may be awake.
    pub(crate) async fn create_in_peace(&self, key: u64, instance: usize) -> Result<Created, Rejection> {
        loop {
            match self.try_create(key, instance).await {
                Err(Rejection::Overloaded) => tokio::time::sleep(Duration::from_secs(2)).await,
                answer => return answer,
            }
        }
    }

    pub(crate) async fn create(&self, key: u64, instance: usize) {
        {
            let mut ledger = self.ledger.lock();
            let create = ledger.creates.entry(key).or_default();
            (create.instance, create.open) = (instance, true);
        }
        let answer = self.try_create(key, instance).await;
        let head = self.log.head();
        let mut ledger = self.ledger.lock();
        match answer {
            Ok(created) => {
                let space = created.space.space;
                ledger.created(key, space);
                ledger.ack(created.space.position, head, Acknowledged::Space(space));
            }
            // Passing trouble may stand behind an append of an earlier try, so only this is certain.
            Err(Rejection::BrowserInstanceInUse) => ledger.creates.entry(key).or_default().open = false,
            Err(_) => ledger.refused += 1,
        }
    }

    async fn try_submit(&self, (space, request): RequestName, script: &str) -> Result<Submitted, Rejection> {
        let submit = SubmitTask {
            workspace: workspace(),
            space,
            request_id: format!("r-{request}").parse().expect("it is a good id"),
            capability: "navigate".parse().expect("it is a good name"),
            args: Sensitive::new(json!({ "url": format!("http://scripted.invalid/?{script}") })),
            timeout: Duration::from_secs(60),
        };
        self.spaces.submit(&self.context(), submit).await
    }

    /// The task that a submit is answered with, where only few actors may be awake.
    pub(crate) async fn submit_in_peace(&self, name: RequestName, script: &str) -> Result<TaskId, Rejection> {
        for _ in 0..PATIENCE {
            match self.try_submit(name, script).await {
                Err(Rejection::Overloaded) => tokio::time::sleep(Duration::from_secs(2)).await,
                answer => return answer.map(|submitted| submitted.task.task),
            }
        }
        Err(Rejection::Overloaded)
    }

    pub(crate) async fn submit(&self, name: RequestName, script: String) {
        let (space, _) = name;
        {
            let mut ledger = self.ledger.lock();
            if !ledger.submits.contains_key(&name) {
                ledger.order.push(name);
            }
            let submit = ledger.submits.entry(name).or_default();
            submit.scripts.insert(script.clone());
            submit.open = true;
        }
        let answer = self.try_submit(name, &script).await;
        let head = self.log.head();
        let submitted = match answer {
            Ok(submitted) => submitted,
            Err(
                Rejection::RuntimeNotReady { task: Some(task), .. }
                | Rejection::CapabilityNotGranted { task: Some(task), .. },
            ) => return self.ledger.lock().accepted(name, &script, task, head),
            Err(rejection) => return self.ledger.lock().refused(name, &script, &rejection),
        };
        let task = submitted.task.task;
        {
            let mut ledger = self.ledger.lock();
            ledger.accepted(name, &script, task, head);
            ledger.ack(submitted.position, head, Acknowledged::Task(space, task));
        }
        if let Some((ended, position)) = submitted.ended.within(Duration::from_secs(1_000)).await {
            let head = self.log.head();
            self.ledger.lock().ack(position, head, Acknowledged::Ended(task, ended.status));
        }
    }

    async fn again(&self, number: usize) {
        let name = self.ledger.lock().request(number);
        let script = name.and_then(|name| {
            let ledger = self.ledger.lock();
            let submit = ledger.submits.get(&name)?;
            let accepted = submit.accepted.as_ref().map(|(script, _)| script);
            accepted.or_else(|| submit.scripts.first()).cloned()
        });
        if let (Some(name), Some(script)) = (name, script) {
            self.submit(name, script).await;
        }
        let create = {
            let ledger = self.ledger.lock();
            let count = ledger.creates.len().max(1);
            ledger.creates.iter().nth(number % count).map(|(key, create)| (*key, create.instance))
        };
        if let Some((key, instance)) = create {
            self.create(key, instance).await;
        }
    }

    async fn close(&self, space: SpaceId) {
        if let Ok(summary) = self.spaces.close(&self.context(), &workspace(), space).await {
            let head = self.log.head();
            let of = Acknowledged::Closing(space);
            let mut ledger = self.ledger.lock();
            ledger.ack(summary.position, head, of);
            if summary.status == SpaceStatus::Closed && ledger.spaces.len() > 1 {
                // New work goes to those that are open.
                ledger.spaces.retain(|known| *known != space);
            }
        }
    }
}
