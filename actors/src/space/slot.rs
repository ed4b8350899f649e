//! What outlives the incarnations of a Space's actor: where the live one is, when it was used, what runs outside it,
//! and who waits for its task.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
};

use eventlog::{
    Position, Timestamp,
    event::space::Owner,
    id::{OperationId, SpaceId, TaskId, WorkspaceId},
};
use kameo::actor::ActorRef;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{actor::SpaceActor, summary::TaskSummary};
use crate::world::Origin;

/// How a task ended and where that is recorded, once it has.
pub(crate) type Ended = Option<(TaskSummary, Position)>;

/// One known Space. Small, for there may be very many.
pub(crate) struct Slot {
    pub(crate) space: SpaceId,
    /// Held while an actor is woken or put to sleep: so there is never a second one.
    pub(crate) incarnation: tokio::sync::Mutex<Incarnation>,
    /// The last use by its owner, which leaves no event (S14); microseconds as in [`Timestamp`].
    used_at: AtomicI64,
    /// When its actor was last asked, in milliseconds of the directory's clock.
    pub(crate) asked_at_ms: AtomicU64,
    /// Whether it has a task: then its actor stays.
    pub(crate) busy: AtomicBool,
    /// Whether it is over: then its slot goes with its actor.
    pub(crate) closed: AtomicBool,
    owner: OnceLock<(WorkspaceId, Owner)>,
    hands: Mutex<Hands>,
}

/// Where a Space's actor is.
#[derive(Default)]
pub(crate) enum Incarnation {
    /// Asleep.
    #[default]
    None,
    /// Awake.
    Live(ActorRef<SpaceActor>),
    /// The slot was taken out of the directory; who still holds it must look again.
    Retired,
}

/// What is in the world's hands for a Space.
#[derive(Default)]
struct Hands {
    execution: Option<Execution>,
    waiters: Option<(TaskId, watch::Sender<Ended>)>,
    asked: Option<(TaskId, Origin)>,
}

struct Execution {
    operation: OperationId,
    cancel: CancellationToken,
    cancel_signalled: bool,
}

impl Slot {
    pub(crate) fn new(space: SpaceId, now: Timestamp) -> Self {
        Self {
            space,
            incarnation: tokio::sync::Mutex::default(),
            used_at: AtomicI64::new(now.0),
            asked_at_ms: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            owner: OnceLock::new(),
            hands: Mutex::default(),
        }
    }

    /// Whose it is, where that is known here.
    pub(crate) fn owner(&self) -> Option<&(WorkspaceId, Owner)> {
        self.owner.get()
    }

    pub(crate) fn set_owner(&self, workspace: WorkspaceId, owner: Owner) {
        self.owner.get_or_init(|| (workspace, owner));
    }

    pub(crate) fn used(&self, now: Timestamp) {
        self.used_at.fetch_max(now.0, Ordering::Relaxed);
    }

    pub(crate) fn used_at(&self) -> Timestamp {
        Timestamp(self.used_at.load(Ordering::Relaxed))
    }

    /// The dispatch that runs outside the actor, and the one whose cancel was fired.
    pub(crate) fn executing(&self) -> (Option<OperationId>, Option<OperationId>) {
        let hands = self.hands.lock();
        let executing = hands.execution.as_ref().map(|execution| execution.operation);
        let signalled = hands.execution.as_ref().filter(|execution| execution.cancel_signalled);
        (executing, signalled.map(|execution| execution.operation))
    }

    /// Notes that a dispatch runs; answers with its cancel token.
    pub(crate) fn begin(&self, operation: OperationId) -> CancellationToken {
        let cancel = CancellationToken::new();
        let execution = Execution { operation, cancel: cancel.clone(), cancel_signalled: false };
        self.hands.lock().execution = Some(execution);
        cancel
    }

    /// Notes that a dispatch has reported and was heard.
    pub(crate) fn finish(&self, operation: OperationId) {
        self.hands.lock().execution.take_if(|execution| execution.operation == operation);
    }

    /// Fires the cancel token of a dispatch.
    pub(crate) fn cancel(&self, operation: OperationId) {
        if let Some(execution) = &mut self.hands.lock().execution
            && execution.operation == operation
        {
            execution.cancel_signalled = true;
            execution.cancel.cancel();
        }
    }

    /// Notes in which trace the active task was asked for: what the server does for it later belongs there too.
    pub(crate) fn remember_origin(&self, task: TaskId, origin: Origin) {
        self.hands.lock().asked = Some((task, origin));
    }

    /// In which trace this task was asked for, if this server heard it.
    pub(crate) fn origin_of(&self, task: TaskId) -> Option<Origin> {
        self.hands.lock().asked.as_ref().filter(|(asked, _)| *asked == task).map(|(_, origin)| origin.clone())
    }

    /// Lets go of a trace whose task has ended; its spans end with it.
    pub(crate) fn forget_origin(&self) {
        self.hands.lock().asked = None;
    }

    /// A wait for the end of the active task.
    pub(crate) fn wait_for(&self, task: TaskId) -> watch::Receiver<Ended> {
        let mut hands = self.hands.lock();
        match &hands.waiters {
            Some((waited, sender)) if *waited == task => sender.subscribe(),
            _ => {
                let (sender, receiver) = watch::channel(None);
                hands.waiters = Some((task, sender));
                receiver
            }
        }
    }

    /// The task that somebody waits for.
    pub(crate) fn awaited(&self) -> Option<TaskId> {
        self.hands.lock().waiters.as_ref().map(|(task, _)| *task)
    }

    /// Tells who waits that the task has ended.
    pub(crate) fn publish(&self, summary: TaskSummary, position: Position) {
        let mut hands = self.hands.lock();
        if let Some((_, sender)) = hands.waiters.take_if(|(task, _)| *task == summary.task) {
            sender.send_replace(Some((summary, position)));
        }
    }
}
