//! The one door of this crate: everything that a caller may ask goes through [`Spaces`].

use std::{path::PathBuf, sync::Arc, time::Duration};

use eventlog::{
    EventLog, Position, Redacted, Redactor, Sensitive,
    event::{download::DownloadId, instance::InstanceKind, space::CloseReason},
    id::{ArtifactId, BindingId, InstanceId, OperationId, SpaceId, TaskId, TokenId, WorkspaceId},
    sealing::KeyStore,
};
use futures::stream::BoxStream;

pub use crate::request::{
    ArtifactFile, CreateSpace, Created, GrantBinding, IssueToken, IssuedToken, RegisterInstance, SubmitTask,
    Submitted, TaskEnd, Unauthenticated,
};
use crate::{
    StartError, artifact,
    caller::{Caller, Context},
    capability::Catalogue,
    clock::{Clock, IdSource, SystemClock, SystemIds},
    config::Config,
    create, download, drain,
    fleet::Factories,
    history,
    instance::{self, keeper::position_of},
    recovery,
    rejection::Rejection,
    repeat,
    runtime::{
        RuntimeFactory, ScreencastFrame, chromium::ChromiumFactory, journal::Journal,
        scripted::ScriptedFactory,
    },
    screencast,
    space::{
        Command,
        actor::{Ask, Asked, By, Granted, GrantedTask, Submission},
        summary::SpaceSummary,
    },
    tokens, workspace,
    world::{Origin, World},
};

/// When to look again for the browser of a Space that holds none.
const NOT_HELD_RETRY_MS: u64 = 1_000;
/// So many bytes of an arg's name are kept.
const ARG_KEY_BYTES_MAX: usize = 64;
/// So many names of args are kept.
const ARG_KEYS_MAX: usize = 64;

/// What [`Spaces`] is built from.
pub struct Parts {
    /// The log.
    pub log: Arc<dyn EventLog>,
    /// The data folder: profiles, artifacts, runtime records and keys lie in folders of their own below it.
    pub data_dir: PathBuf,
    /// The limits and time-outs.
    pub config: Config,
    /// What there is to be asked of a Space.
    pub catalogue: Arc<Catalogue>,
    /// What drives instances of each kind.
    pub factories: Factories,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where ids come from.
    pub ids: Arc<dyn IdSource>,
    /// The keys; those in the data folder where `None`.
    pub keys: Option<Arc<KeyStore>>,
}

impl Parts {
    /// What a server is built from: this machine's clock, its randomness, its Chromium, the keys in the data folder.
    ///
    /// Where the configuration allows scripted instances, their calls are journalled in `runtime/scripted.jsonl`, and
    /// their starts follow `runtime/scripted-start` (see [`crate::runtime::scripted`]).
    ///
    /// # Errors
    /// The data folder can't be used.
    pub fn new(log: Arc<dyn EventLog>, data_dir: PathBuf, config: Config) -> Result<Self, StartError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ids: Arc<dyn IdSource> = Arc::new(SystemIds);
        let runtime_dir = data_dir.join("runtime");
        std::fs::create_dir_all(&runtime_dir)?;
        let chromium = ChromiumFactory::new(data_dir.clone(), config.chromium.clone(), Arc::clone(&ids))?;
        let chromium: Arc<dyn RuntimeFactory> = Arc::new(chromium);
        let mut factories = Factories::new().with(InstanceKind::Chromium, chromium);
        if config.allow_scripted_runtime {
            let journal = Journal::to_file(&runtime_dir.join("scripted.jsonl"))?;
            let control = runtime_dir.join("scripted-start");
            let scripted = ScriptedFactory::new(
                Arc::clone(&clock),
                journal,
                Some(control),
                &crate::capability::standard(),
            );
            factories = factories.with(InstanceKind::Scripted, Arc::new(scripted) as Arc<dyn RuntimeFactory>);
        }
        Ok(Self {
            log,
            data_dir,
            config,
            catalogue: crate::capability::standard(),
            factories,
            clock,
            ids,
            keys: None,
        })
    }
}

/// The door. Cheap to clone.
#[derive(Clone)]
pub struct Spaces {
    world: Arc<World>,
}

impl Spaces {
    /// Recovers and starts: see `recovery.rs` for the order.
    ///
    /// # Errors
    /// [`StartError`]: the server must not go on.
    pub async fn start(parts: Parts) -> Result<Self, StartError> {
        recovery::start(parts).await.map(|world| Self { world })
    }

    /// Who bears this token.
    ///
    /// # Errors
    /// [`Unauthenticated`]: nobody does, not any more, or it is no token.
    pub fn authenticate(&self, token: &Sensitive<String>) -> Result<Caller, Unauthenticated> {
        self.world.tokens.bearer(token, self.world.clock.now()).ok_or(Unauthenticated)
    }

    /// Changes whenever a token was revoked: whoever serves one for long then asks anew whether it is still good.
    #[must_use]
    pub fn token_revocations(&self) -> tokio::sync::watch::Receiver<u64> {
        self.world.tokens.revocations()
    }

    /// Whether any token is valid: without one nobody can ask anything.
    #[must_use]
    pub fn has_valid_token(&self) -> bool {
        self.world.tokens.any_valid(self.world.clock.now())
    }

    /// Makes a Space: one atomic append reserves the instance and opens the Space (S1).
    ///
    /// # Errors
    /// [`Rejection`]: no Space was made, but for `outcome_unknown`: repeat it with the same idempotency key.
    pub async fn create(&self, context: &Context, create: CreateSpace) -> Result<Created, Rejection> {
        create::create(&self.world, context, create).await
    }

    /// Queues a task (S2, S5, S6, S7).
    ///
    /// # Errors
    /// [`Rejection`]: no task was queued, but for `outcome_unknown`: repeat it with the same request id.
    pub async fn submit(&self, context: &Context, submit: SubmitTask) -> Result<Submitted, Rejection> {
        let world = &self.world;
        let redactor = Redactor::new();
        let keys = submit.args.expose().as_object().into_iter().flat_map(|args| args.keys());
        let arg_keys =
            keys.take(ARG_KEYS_MAX).map(|key| redactor.bounded_text(key, ARG_KEY_BYTES_MAX)).collect();
        let submission = Submission {
            checked: world.catalogue.check(&submit.capability, submit.args.expose()),
            append: repeat::submit_id(submit.space, &submit.request_id),
            task: TaskId::from_uuid(world.ids.uuid()),
            operation: OperationId::from_uuid(world.ids.uuid()),
            request_id: submit.request_id,
            capability: submit.capability,
            args: submit.args,
            arg_keys,
            timeout: submit.timeout,
        };
        let by = By { caller: context.caller.clone(), workspace: submit.workspace };
        let asked = Asked::Submit(by, Arc::new(submission));
        let Granted { space, task } = self.ask(context, submit.space, asked).await?;
        match task.ok_or(Rejection::Internal)? {
            GrantedTask::Here { task, repeated, ended } => Ok(Submitted {
                task: *task,
                repeated,
                ended: TaskEnd { receiver: ended },
                position: space.position,
            }),
            GrantedTask::Older(task) => {
                let (task, position) = history::task(&*world.log, submit.space, task).await?;
                let ended = Some((task.clone(), position)).filter(|(task, _)| task.status.is_terminal());
                let (_, receiver) = tokio::sync::watch::channel(ended);
                Ok(Submitted { task, repeated: true, ended: TaskEnd { receiver }, position: space.position })
            }
        }
    }

    /// Cancels the active task; idempotent, answers with the Space as it stands when there is none.
    ///
    /// # Errors
    /// [`Rejection`]: nothing was done.
    pub async fn cancel(
        &self,
        context: &Context,
        workspace: &WorkspaceId,
        space: SpaceId,
    ) -> Result<SpaceSummary, Rejection> {
        let reason = eventlog::event::space::CancelReason::Requested;
        self.command(context, workspace, space, Command::Cancel { reason }).await
    }

    /// Closes the Space (S10); idempotent. Answers once the close is requested, and closed if it could be at once.
    ///
    /// # Errors
    /// [`Rejection`]: nothing was done.
    pub async fn close(
        &self,
        context: &Context,
        workspace: &WorkspaceId,
        space: SpaceId,
    ) -> Result<SpaceSummary, Rejection> {
        let reason = CloseReason::Requested;
        self.command(context, workspace, space, Command::Close { reason }).await
    }

    /// Renews the idle time-out of a Space that the caller read (S14). Cheap; never wakes an actor or appends.
    pub fn touch(&self, caller: &Caller, space: SpaceId) {
        let Some(slot) = self.world.directory.known(space) else { return };
        if slot.owner().is_some_and(|(workspace, owner)| caller.may_act(workspace, owner).is_ok()) {
            slot.used(self.world.clock.now());
        }
    }

    /// Registers an instance (operator).
    ///
    /// # Errors
    /// [`Rejection`]: nothing was registered.
    pub async fn register_instance(
        &self,
        context: &Context,
        register: RegisterInstance,
    ) -> Result<(InstanceId, Position), Rejection> {
        let id = InstanceId::from_uuid(self.world.ids.uuid());
        let command = instance::Command::Register(Box::new(instance::Register {
            kind: register.kind,
            name: register.name,
            workspaces: register.workspaces,
            bundle: register.bundle,
            network_policy: register.network_policy,
            headless: register.headless,
        }));
        let caller = context.caller.clone();
        let state = self.world.instances.ask(&self.world, id, command, caller, context.into()).await?;
        Ok((id, position_of(&state)))
    }

    /// Retires an instance (operator); a Space on it is closed.
    ///
    /// # Errors
    /// [`Rejection`]: nothing was done.
    pub async fn retire_instance(
        &self,
        context: &Context,
        instance: InstanceId,
    ) -> Result<Position, Rejection> {
        let (world, caller) = (&self.world, context.caller.clone());
        let command = instance::Command::Retire;
        let state = world.instances.ask(world, instance, command, caller, context.into()).await?;
        recovery::close_holder(world, &state, &Origin::from(context).on_behalf());
        Ok(position_of(&state))
    }

    /// Makes a token (operator).
    ///
    /// # Errors
    /// [`Rejection`]: none was made.
    pub async fn issue_token(&self, context: &Context, issue: IssueToken) -> Result<IssuedToken, Rejection> {
        let id = TokenId::from_uuid(self.world.ids.uuid());
        let token = tokens::text(&self.world.ids.secret());
        let command = workspace::Command::IssueToken(workspace::IssueToken {
            token: id,
            hash: tokens::hash(&token),
            role: issue.role,
            owner_id: issue.owner_id,
            all_workspaces: issue.all_workspaces,
            expires_at: issue.expires_at,
        });
        let position = self.ask_workspace(context, &issue.workspace, command, None).await?;
        Ok(IssuedToken { id, token, position })
    }

    /// Revokes a token (operator); idempotent.
    ///
    /// # Errors
    /// [`Rejection`]: nothing was done.
    pub async fn revoke_token(
        &self,
        context: &Context,
        workspace: &WorkspaceId,
        token: TokenId,
    ) -> Result<Position, Rejection> {
        self.ask_workspace(context, workspace, workspace::Command::RevokeToken { token }, None).await
    }

    /// Grants a binding (operator).
    ///
    /// # Errors
    /// [`Rejection`]: none was granted.
    pub async fn grant_binding(
        &self,
        context: &Context,
        grant: GrantBinding,
    ) -> Result<(BindingId, Position), Rejection> {
        let binding = BindingId::from_uuid(self.world.ids.uuid());
        let instance = match self.world.instances.look(&self.world, grant.instance).await {
            // The rules say it, after they have looked who asks.
            Err(Rejection::InstanceNotFound) => None,
            found => Some(found?),
        };
        let command = workspace::Command::GrantBinding(workspace::GrantBinding {
            binding,
            instance: grant.instance,
            owner_id: grant.owner_id,
            capabilities: grant.capabilities,
        });
        let position = self.ask_workspace(context, &grant.workspace, command, instance).await?;
        Ok((binding, position))
    }

    /// Revokes a binding (operator); idempotent.
    ///
    /// # Errors
    /// [`Rejection`]: nothing was done.
    pub async fn revoke_binding(
        &self,
        context: &Context,
        workspace: &WorkspaceId,
        binding: BindingId,
    ) -> Result<Position, Rejection> {
        self.ask_workspace(context, workspace, workspace::Command::RevokeBinding { binding }, None).await
    }

    /// Opens an artifact's bytes. Whoever asks this has checked that the caller may read the Space.
    ///
    /// # Errors
    /// [`Rejection::TaskNotFound`]: this Space has no such artifact.
    pub async fn open_artifact(
        &self,
        space: SpaceId,
        artifact: ArtifactId,
    ) -> Result<ArtifactFile, Rejection> {
        let folder = self.world.data_dir.join(artifact::FOLDER);
        tokio::task::spawn_blocking(move || artifact::open(&folder, space, artifact))
            .await
            .map_err(|_| Rejection::Internal)?
    }

    /// Lets a download of a Space out (operator). A repeat answers with the approval that was recorded first. Whoever asks
    /// this has checked that the Space is in a Workspace that the caller may enter.
    ///
    /// # Errors
    /// [`Rejection`]: it is not released, or its files are not all published yet: ask again.
    pub async fn release_download(
        &self,
        context: &Context,
        space: SpaceId,
        download: DownloadId,
        declared_operator: Redacted<String>,
    ) -> Result<download::Released, Rejection> {
        let (caller, origin) = (context.caller.clone(), context.into());
        download::keeper::release(&self.world, space, download, declared_operator, caller, origin).await
    }

    /// Does not let a download of a Space out (operator), and deletes its bytes. As [`Self::release_download`].
    ///
    /// # Errors
    /// [`Rejection`]: it was not rejected, or its bytes are still there: ask again.
    pub async fn reject_download(
        &self,
        context: &Context,
        space: SpaceId,
        download: DownloadId,
        reason: Redacted<String>,
        declared_operator: Redacted<String>,
    ) -> Result<download::Rejected, Rejection> {
        let (caller, origin) = (context.caller.clone(), context.into());
        let words = (reason, declared_operator);
        download::keeper::reject(&self.world, space, download, words, caller, origin).await
    }

    /// The downloads of a Space as they stand. Whoever asks this has checked that the caller may read the Space.
    ///
    /// # Errors
    /// [`Rejection`]: they can't be read.
    pub async fn downloads(&self, space: SpaceId) -> Result<download::Shelf, Rejection> {
        download::keeper::look(&self.world, space).await
    }

    /// Opens a released download. As [`Self::downloads`].
    ///
    /// # Errors
    /// [`Rejection::DownloadGone`] if it is not released; [`Rejection::DownloadConflict`] if its files are not what they were.
    pub async fn open_download(
        &self,
        space: SpaceId,
        download: DownloadId,
    ) -> Result<download::ReleasedFile, Rejection> {
        download::keeper::open(&self.world, space, download).await
    }

    /// The live view of a Space: its browser's newest picture, also over a restart of the browser; ends when the Space
    /// gives its browser back. The browser draws for it only while it lives, and a slow reader misses pictures.
    /// Whoever asks this has checked that the caller may read the Space.
    ///
    /// # Errors
    /// [`Rejection::NoLiveView`]: there is no picture of a runtime of this kind. [`Rejection::RuntimeNotReady`]: the
    /// Space holds no browser now.
    pub fn screencast(&self, space: SpaceId) -> Result<BoxStream<'static, ScreencastFrame>, Rejection> {
        let standing = self.world.fleet.watch(space);
        let none = Rejection::RuntimeNotReady { task: None, retry_after_ms: NOT_HELD_RETRY_MS, fault: None };
        screencast::follow(standing.ok_or(none)?)
    }

    /// Everything that a Space can be asked; also tells whether a task's args fit, without submitting it.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.world.catalogue
    }

    /// Every Workspace that exists.
    #[must_use]
    pub fn workspaces(&self) -> std::collections::BTreeSet<WorkspaceId> {
        self.world.workspaces.ids()
    }

    /// Every instance that is known, the retired ones too.
    #[must_use]
    pub fn instances(&self) -> Vec<InstanceId> {
        self.world.instances.ids()
    }

    /// Drains: no new Spaces or tasks; running tasks finish or are cancelled by `within`; every end is recorded,
    /// reservations are released, browsers ended. It begins at the call, and goes on if it is polled once; what is given
    /// waits for its end. Idempotent: a second drain waits for the first.
    pub fn drain(&self, within: Duration) -> impl Future<Output = ()> + use<> {
        drain::drain(&self.world, within)
    }

    /// Whether a drain has begun.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.world.is_draining()
    }

    async fn command(
        &self,
        context: &Context,
        workspace: &WorkspaceId,
        space: SpaceId,
        command: Command,
    ) -> Result<SpaceSummary, Rejection> {
        let by = By { caller: context.caller.clone(), workspace: workspace.clone() };
        self.ask(context, space, Asked::Caller(by, command)).await.map(|granted| granted.space)
    }

    async fn ask(&self, context: &Context, space: SpaceId, asked: Asked) -> Result<Granted, Rejection> {
        // Workspace entry comes before the question whether there is such a Space.
        if let Asked::Submit(by, _) | Asked::Caller(by, _) = &asked {
            by.caller.must_enter(&by.workspace)?;
        }
        if context.deadline <= self.world.clock.instant() {
            return Err(Rejection::Overloaded);
        }
        let granted = self.world.ask(space, Ask { asked, origin: context.into() }).await?;
        if let Some(slot) = self.world.directory.known(space) {
            slot.used(self.world.clock.now());
        }
        Ok(granted)
    }

    async fn ask_workspace(
        &self,
        context: &Context,
        workspace: &WorkspaceId,
        command: workspace::Command,
        instance: Option<instance::InstanceState>,
    ) -> Result<Position, Rejection> {
        let (world, caller) = (&self.world, context.caller.clone());
        world.workspaces.ask(world, workspace, command, instance, caller, context.into()).await
    }
}
