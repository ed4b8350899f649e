//! A submit, as the actor prepares it for the rules: repeats found, args sealed, keys that nobody needs destroyed.

use eventlog::{
    Position, SpaceEvent, StreamId,
    id::TaskId,
    sealing::{Fingerprint, KeyId, Sealed, args_context},
};
use futures::StreamExt;
use tokio::sync::watch;
use tracing::{error, warn};

use super::{By, GrantedTask, SpaceActor, Submission};
use crate::{
    rejection::Rejection,
    space::{Asker, Command, REQUEST_IDS_KEPT, Reply as Decided, SpaceState, Submit},
    world::Origin,
};

/// Stands for "nothing was sealed".
const NO_KEY: KeyId = KeyId { file: 0, slot: 0 };

impl SpaceActor {
    pub(super) async fn submit(
        &mut self,
        by: &By,
        submission: &Submission,
        origin: &Origin,
    ) -> Result<GrantedTask, Rejection> {
        if let Some(older) = self.find_older(by, submission).await? {
            return Ok(GrantedTask::Older(older));
        }
        let command = self.seal(submission).await?;
        let key = command.sealed_args.key;
        let asker = Asker::Caller { caller: &by.caller, workspace: &by.workspace };
        let command = Command::Submit(Box::new(command));
        let decided = self.command(&command, asker, origin, Some(submission.append)).await;
        // Whatever does not live in the state now is nobody's; but after an unknown outcome nobody can say.
        if !self.lost && key != NO_KEY && !self.state.live_keys().contains(&key) {
            self.world.keys.destroy(key);
        }
        match decided? {
            Decided::Queued(task) => {
                self.slot.remember_origin(task, origin.on_behalf());
                self.granted(task, false)
            }
            Decided::Repeated(task) => self.granted(task, true),
            Decided::Refused(rejection) => Err(rejection),
            Decided::Done => Err(Rejection::Internal),
        }
    }

    fn granted(&self, id: TaskId, repeated: bool) -> Result<GrantedTask, Rejection> {
        let Some(task) = self.state.task(id) else { return Ok(GrantedTask::Older(id)) };
        let position = self.state.space().map_or(Position::ZERO, |space| space.position);
        let ended = if task.status.is_terminal() {
            watch::channel(Some((task.clone(), position))).1
        } else {
            self.slot.wait_for(id)
        };
        Ok(GrantedTask::Here { task: Box::new(task), repeated, ended })
    }

    /// A repeat that the state has forgotten: the append's id is derived from the request's, so the log finds it.
    async fn find_older(&self, by: &By, submission: &Submission) -> Result<Option<TaskId>, Rejection> {
        let Some(space) = self.state.space() else { return Ok(None) };
        let forgets = space.requests.len() >= REQUEST_IDS_KEPT;
        let may = space.workspace == by.workspace && by.caller.may_act(&by.workspace, &space.owner).is_ok();
        if !forgets || !may || space.requests.get(&submission.request_id).is_some() {
            return Ok(None);
        }
        let found = self.world.log.find_append(submission.append).await;
        let Some(stored) = found.map_err(|_| Rejection::LogUnavailable)? else { return Ok(None) };
        let mut events = self.world.log.read_all(stored.first).take(1);
        let recorded = events.next().await.and_then(Result::ok).ok_or(Rejection::LogUnavailable)?;
        let eventlog::Event::Space(SpaceEvent::TaskQueued { task, fingerprint, .. }) = &recorded.event else {
            return Ok(None);
        };
        match self.fingerprint(submission)? {
            Some(shown) if shown != *fingerprint => Err(Rejection::RequestIdConflict),
            Some(_) | None => Ok(Some(*task)),
        }
    }

    /// `None` for a closed Space: its key is destroyed, so a repeat is known by its request id alone.
    fn fingerprint(&self, submission: &Submission) -> Result<Option<Fingerprint>, Rejection> {
        let SpaceState::Open(open) = &self.state else { return Ok(None) };
        self.world
            .keys
            .fingerprint(open.space.fingerprint_key, &submission.capability, submission.args.expose())
            .map(Some)
            .map_err(|failure| {
                error!(space.id = %self.slot.space, %failure, "A fingerprint could not be made.");
                Rejection::Internal
            })
    }

    /// The submit as the rules want it. Args are sealed only where they may be recorded.
    async fn seal(&self, submission: &Submission) -> Result<Submit, Rejection> {
        let remembered = self.state.space().and_then(|space| space.requests.get(&submission.request_id));
        let fingerprint = match (self.fingerprint(submission)?, remembered) {
            (Some(fingerprint), _) => fingerprint,
            (None, Some(first)) => first.fingerprint,
            (None, None) => Fingerprint([0; 32]),
        };
        let recordable = remembered.is_none()
            && submission.checked.is_ok()
            && matches!(self.state, SpaceState::Open(_))
            && self.state.active_task().is_none();
        let sealed_args = if recordable {
            self.seal_args(submission).await?
        } else {
            Sealed { key: NO_KEY, nonce: Vec::new(), ciphertext: Vec::new() }
        };
        Ok(Submit {
            task: submission.task,
            operation: submission.operation,
            request_id: submission.request_id.clone(),
            capability: submission.capability.clone(),
            checked: submission.checked.clone(),
            arg_keys: submission.arg_keys.clone(),
            fingerprint,
            timeout: submission.timeout,
            sealed_args,
        })
    }

    async fn seal_args(&self, submission: &Submission) -> Result<Sealed, Rejection> {
        let unavailable = |failure| {
            warn!(space.id = %self.slot.space, %failure, "Args could not be sealed.");
            Rejection::LogUnavailable
        };
        let key = tokio::time::timeout(self.world.config.append_timeout, self.world.keys.take())
            .await
            .map_err(|_| Rejection::LogUnavailable)?
            .map_err(unavailable)?;
        let plain = serde_json::to_vec(submission.args.expose()).map_err(|_| Rejection::Internal)?;
        let context = args_context(&StreamId::Space(self.slot.space), submission.task);
        self.world.keys.seal(key, &context, &plain).map_err(unavailable)
    }
}
