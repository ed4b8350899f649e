//! One life of the server: from its start on what the disk holds to its end, in order or not.

use std::{path::Path, sync::Arc, time::Duration};

use actors::{
    Config, Parts, Spaces,
    clock::{Clock, testing::TestIds},
    fleet::Factories,
    runtime::{RuntimeFactory, journal::Journal, scripted::ScriptedFactory},
    spaces::RegisterInstance,
};
use eventlog::{
    EventLog, Position, ReadError, RecordedEvent,
    event::instance::{Bundle, InstanceKind, NetworkPolicy},
    sealing::KeyStore,
};
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use crate::{
    clients::{Desk, workspace},
    clock::SimClock,
    ledger::Ledger,
    log::{SimLog, block_on},
    plan::{Asked, INSTANCES},
    runtime::{Living, Seen, SimFactory},
};

/// So many attempts to register an instance; a fault may meet each.
const ATTEMPTS: usize = 4;
/// The longest drain.
const DRAIN: Duration = Duration::from_secs(5);

/// What outlives the server besides its log.
#[derive(Clone)]
pub(crate) struct Outside {
    pub(crate) keys: Arc<KeyStore>,
    pub(crate) seen: Arc<Mutex<Seen>>,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
}

/// A running server.
pub(crate) struct Life {
    runtime: Runtime,
    desk: Desk,
    factory: Arc<SimFactory>,
}

/// The server died meanwhile.
#[derive(Debug)]
pub(crate) struct Died;

fn config() -> Config {
    Config {
        allow_scripted_runtime: true,
        // So that actors are put to sleep and woken again in every run.
        passivate_after: Duration::from_secs(2),
        live_actors_max: 4,
        ..Config::default()
    }
}

impl Life {
    /// Starts on this log. `None` if it died in its start, or refused to start.
    pub(crate) fn start(
        log: SimLog,
        outside: &Outside,
        data_dir: &Path,
        number: u32,
        before: Duration,
    ) -> (Option<Self>, Duration) {
        let runtime =
            Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let catalogue = actors::capability::standard();
        let (started, clock, factory) = runtime.block_on(async {
            let clock = SimClock::after(before);
            let shared: Arc<dyn Clock> = Arc::new(clock);
            let factory = Arc::new(SimFactory {
                scripted: ScriptedFactory::new(Arc::clone(&shared), Journal::none(), None, &catalogue),
                log: log.clone(),
                seen: Arc::clone(&outside.seen),
                living: Living::default(),
            });
            let parts = Parts {
                log: Arc::new(log.clone()),
                data_dir: data_dir.to_owned(),
                config: config(),
                catalogue,
                factories: Factories::new()
                    .with(InstanceKind::Scripted, Arc::clone(&factory) as Arc<dyn RuntimeFactory>),
                clock: shared,
                ids: Arc::new(TestIds::seeded(number)),
                keys: Some(Arc::clone(&outside.keys)),
            };
            let started = tokio::select! {
                biased;
                () = log.died() => None,
                started = Spaces::start(parts) => started.ok(),
            };
            (started, clock, factory)
        });
        let passed = runtime.block_on(async { clock.passed() });
        let Some(spaces) = started else {
            drop(runtime);
            log.die();
            return (None, passed);
        };
        let desk = Desk { spaces, log, clock, ledger: Arc::clone(&outside.ledger) };
        (Some(Self { runtime, desk, factory }), passed)
    }

    /// Runs the server until `work` has ended, or the power fails.
    fn until<T>(&self, work: impl Future<Output = T>) -> Result<T, Died> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.desk.log.died() => Err(Died),
                done = work => Ok(done),
            }
        })
    }

    pub(crate) fn log(&self) -> &SimLog {
        &self.desk.log
    }

    /// Every event from this position on.
    pub(crate) fn events(&self, from: Position) -> Vec<Result<RecordedEvent, ReadError>> {
        block_on(self.desk.log.read_all(from).collect())
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, time: Duration) -> Result<(), Died> {
        self.until(async { tokio::time::sleep(time).await })
    }

    /// Does something for a client, and waits for it.
    pub(crate) fn wait_for<T>(&self, work: impl Future<Output = T>) -> Result<T, Died> {
        self.until(work)
    }

    /// Has a client ask, and does not wait.
    pub(crate) fn ask(&self, asked: Asked) -> Result<(), Died> {
        // From inside: what comes from outside waits in another line, and is taken from there at moments of its own.
        self.until(async {
            tokio::spawn(self.desk.clone().carry_out(asked));
            tokio::task::yield_now().await;
        })
    }

    /// Registers what is missing of the instances.
    pub(crate) fn equip(&self) -> Result<(), Died> {
        let register = || RegisterInstance {
            kind: InstanceKind::Scripted,
            name: None,
            workspaces: Some(vec![workspace()]),
            bundle: Bundle::Standard,
            network_policy: NetworkPolicy::default(),
            headless: true,
        };
        for _ in 0..ATTEMPTS * INSTANCES {
            if self.desk.spaces.instances().len() >= INSTANCES {
                break;
            }
            let _ = self.until(self.desk.spaces.register_instance(&self.desk.context(), register()))?;
        }
        Ok(())
    }

    /// Scripts the next starts of browsers.
    pub(crate) fn script_starts(&self, starts: Vec<actors::runtime::scripted::StartScript>) {
        self.factory.scripted.script_starts(starts);
    }

    /// Lets the browsers of an instance end by themselves.
    pub(crate) fn lose(&self, instance: usize) {
        let Some(id) = self.desk.spaces.instances().get(instance).copied() else { return };
        let living = self.factory.living.lock().get(&id).cloned().unwrap_or_default();
        living.iter().for_each(|runtime| runtime.lose());
    }

    /// Ends in order.
    pub(crate) fn drain(&self) -> Result<(), Died> {
        self.until(self.desk.spaces.drain(DRAIN))
    }

    /// Closes the log, after a drain.
    pub(crate) fn close(self) -> Duration {
        let passed = self.runtime.block_on(async {
            self.desk.log.close().await;
            self.desk.clock.passed()
        });
        drop(self.runtime);
        // Its files are let go; nothing is lost by that, for it is closed.
        self.desk.log.let_go();
        passed
    }

    /// Is gone from one moment to the next.
    pub(crate) fn die(self) -> Duration {
        let passed = self.runtime.block_on(async { self.desk.clock.passed() });
        self.desk.log.die();
        drop(self.runtime);
        passed
    }
}
