//! One run: the steps of a plan, one after the other, with everything checked after each of them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use eventlog::{EventLog, OpenError, Position, RecordedEvent, sealing::KeyStore, segment, sim_disk::SimDisk};
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::{
    ledger::Ledger,
    life::{Died, Life, Outside},
    log::SimLog,
    monitor::Monitor,
    plan::Step,
    runtime::Seen,
    views::SimViews,
};

/// How long everything may take to come to its end: more than any time-out of the server.
const QUIET: Duration = Duration::from_secs(400);
/// So many starts in a row may fail before it counts as broken.
const STARTS_MAX: usize = 20;

/// What a run came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Events in the log.
    pub events: u64,
    /// Lives of the server.
    pub lives: u64,
    /// Ends of it by a kill.
    pub kills: u64,
    /// Ends of it by a power cut.
    pub power_cuts: u64,
    /// What clients were told, and found again.
    pub acknowledged: u64,
    /// Refusals that clients heard.
    pub refused: u64,
    /// Tasks that browsers were told.
    pub calls: u64,
    /// BLAKE3 over the files of the log.
    pub digest: String,
}

impl Outcome {
    /// Adds another run's numbers.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.lives += other.lives;
        self.kills += other.kills;
        self.power_cuts += other.power_cuts;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.calls += other.calls;
    }
}

/// A promise that was broken, and by which step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The index of the step; the number of steps if it was in the end.
    pub step: usize,
    /// Which promise, and how.
    pub what: String,
}

/// How a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    PowerCut,
    Stopped,
}

struct Run {
    seed: u64,
    folder: TempDir,
    disk: SimDisk,
    outside: Outside,
    monitor: Monitor,
    views: Option<SimViews>,
    life: Option<Life>,
    passed: Duration,
    outcome: Outcome,
}

/// Runs the steps. `with_views` also folds the views, which takes about twice as long.
///
/// # Errors
/// [`Broken`]: the first promise that was broken.
pub fn run(seed: u64, steps: &[Step], with_views: bool) -> Result<Outcome, Broken> {
    let at = |step: usize| move |what: String| Broken { step, what };
    let mut run = Run::new(seed, with_views).map_err(at(0))?;
    for (index, step) in steps.iter().enumerate() {
        run.step(step).map_err(at(index))?;
    }
    run.finish().map_err(at(steps.len()))
}

/// Where the folders of runs are made: in memory, where there is such a place.
fn temporary() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

impl Run {
    fn new(seed: u64, with_views: bool) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("bs-sim-").tempdir_in(temporary());
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        let views = with_views.then(|| SimViews::new(folder.path().join("views.sqlite")));
        let outside = Outside {
            keys: Arc::new(KeyStore::seeded(seed)),
            seen: Arc::new(Mutex::new(Seen::default())),
            ledger: Arc::new(Mutex::new(Ledger::default())),
        };
        let mut run = Self {
            seed,
            disk: SimDisk::seeded(seed),
            outside,
            monitor: Monitor::default(),
            views,
            life: None,
            passed: Duration::ZERO,
            outcome: Outcome::default(),
            folder,
        };
        run.begin()?;
        Ok(run)
    }

    fn log_folder(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// The next life, on what the disk holds.
    fn begin(&mut self) -> Result<(), String> {
        for _ in 0..STARTS_MAX {
            self.outcome.lives += 1;
            let known = self.views.as_mut().map_or(Ok(Position::ZERO), SimViews::open)?;
            // Somebody has been told of all that was durable; the log may be asked to know it.
            let known = known.max(Position(self.monitor.events()));
            let number = u32::try_from(self.outcome.lives).unwrap_or(u32::MAX);
            let log =
                match SimLog::open(&self.log_folder(), &self.disk, self.seed + self.outcome.lives, known) {
                    Ok(log) => log,
                    // A disk that fails refuses the open; what is damaged was made so by nobody.
                    Err(OpenError::Io { .. }) => {
                        self.after(if self.disk.is_off() { End::PowerCut } else { End::Killed })?;
                        continue;
                    }
                    Err(refused) => {
                        return Err(format!("I9: after a crash the log does not open: {refused}"));
                    }
                };
            let before = self.passed;
            let (life, passed) = Life::start(log, &self.outside, self.folder.path(), number, before);
            self.passed = passed;
            let Some(life) = life else {
                self.after(if self.disk.is_off() { End::PowerCut } else { End::Killed })?;
                continue;
            };
            let equipped = life.equip();
            self.life = Some(life);
            if equipped.is_err() {
                self.end(End::PowerCut)?;
                continue;
            }
            self.check_kept()?;
            return self.check();
        }
        Err(format!("the server did not start in {STARTS_MAX} attempts"))
    }

    /// Ends the life, and makes the disk what the next one finds.
    fn end(&mut self, end: End) -> Result<(), String> {
        if let Some(life) = self.life.take() {
            self.passed = match end {
                End::Stopped => life.close(),
                End::Killed | End::PowerCut => life.die(),
            };
        }
        self.after(end)
    }

    fn after(&mut self, end: End) -> Result<(), String> {
        match end {
            End::Stopped => {}
            End::Killed => {
                self.outcome.kills += 1;
                self.disk.process_killed();
            }
            End::PowerCut => {
                self.outcome.power_cuts += 1;
                self.disk.power_cut().map_err(|error| error.to_string())?;
            }
        }
        if !self.log_folder().exists() {
            return Ok(());
        }
        match segment::verify(&self.log_folder()) {
            Ok(_) => Ok(()),
            Err(damage) => Err(format!("C15: a crash is taken for tampering: {damage}")),
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let Some(life) = &self.life else { return Err("there is no server".into()) };
        let lived = match step {
            Step::Ask(asked) => life.ask(asked.clone()),
            Step::Pass(milliseconds) => life.pass(Duration::from_millis(*milliseconds)),
            Step::Disk(nth, fault) => {
                self.disk.fail(*nth, *fault);
                Ok(())
            }
            Step::Free(bytes) => {
                self.disk.set_free_bytes(*bytes);
                Ok(())
            }
            Step::Starts(starts) => {
                life.script_starts(starts.clone());
                Ok(())
            }
            Step::Lose(instance) => {
                life.lose(*instance);
                life.pass(Duration::ZERO)
            }
            Step::Kill => return self.reborn(End::Killed),
            Step::PowerCut => return self.reborn(End::PowerCut),
            Step::Restart => match life.drain() {
                Ok(()) => return self.reborn(End::Stopped),
                Err(died) => Err(died),
            },
        };
        match lived {
            Ok(()) => self.check(),
            Err(Died) => self.reborn(End::PowerCut),
        }
    }

    fn reborn(&mut self, end: End) -> Result<(), String> {
        self.check()?;
        self.end(end)?;
        // Nobody starts a server on a full disk for ever: somebody makes room.
        self.disk.set_free_bytes(u64::MAX);
        self.begin()
    }

    fn events(&self, from: Position) -> Result<Vec<RecordedEvent>, String> {
        let Some(life) = &self.life else { return Ok(Vec::new()) };
        let events = life.events(from);
        events
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|error| format!("I9: the log does not read: {error}"))
    }

    fn check_kept(&self) -> Result<(), String> {
        self.monitor.check_kept(&self.events(Position(1))?)
    }

    /// Every promise, on what is new. A dead server answers no reads: what it did last is looked at in the next life.
    fn check(&mut self) -> Result<(), String> {
        if self.life.as_ref().is_none_or(|life| life.log().is_dead()) {
            return Ok(());
        }
        for event in self.events(self.monitor.next())? {
            self.monitor.take(&event)?;
        }
        self.monitor.check_seen(&self.outside.seen.lock())?;
        let mut ledger = self.outside.ledger.lock();
        if let Some(broken) = ledger.broken.first() {
            return Err(broken.clone());
        }
        std::mem::take(&mut ledger.acks).iter().try_for_each(|ack| self.monitor.check_ack(ack))?;
        drop(ledger);
        match (&self.views, &self.life) {
            (Some(views), Some(life)) => views.catch_up(life.log()),
            _ => Ok(()),
        }
    }

    /// No more faults: everything comes to its end, and then the server stops.
    fn finish(mut self) -> Result<Outcome, String> {
        self.disk.heal();
        self.disk.set_free_bytes(u64::MAX);
        if self.life.as_ref().is_some_and(|life| life.log().check_writable().is_err()) {
            self.reborn(End::Killed)?;
        }
        self.quiet()?;
        self.ask_again()?;
        self.quiet()?;
        let asked: BTreeSet<_> =
            self.outside.ledger.lock().creates.values().filter_map(|create| create.space).collect();
        self.monitor.check_quiet(&asked)?;
        self.check_answers()?;
        self.check_repeats()?;
        let life = self.life.as_ref().ok_or("there is no server")?;
        life.drain().map_err(|Died| "it died in peace".to_owned())?;
        self.check()?;
        self.monitor.check_stopped()?;
        if let (Some(views), Some(life)) = (&self.views, &self.life) {
            views.check_rebuilt(life.log())?;
        }
        self.end(End::Stopped)?;
        self.summary()
    }

    fn quiet(&mut self) -> Result<(), String> {
        if let Some(life) = &self.life {
            life.pass(QUIET).map_err(|Died| "it died in peace".to_owned())?;
        }
        self.check()
    }

    /// Clients repeat what they have no certain answer to.
    fn ask_again(&mut self) -> Result<(), String> {
        let (creates, submits): (Vec<_>, Vec<_>) = {
            let ledger = self.outside.ledger.lock();
            let creates = ledger.creates.iter().filter(|(_, create)| create.open);
            let submits =
                ledger.submits.iter().filter(|(_, submit)| submit.open && submit.accepted.is_none());
            (
                creates.map(|(key, create)| (*key, create.instance)).collect(),
                submits.filter_map(|(name, submit)| Some((*name, submit.scripts.first()?.clone()))).collect(),
            )
        };
        let died = |Died| "it died in peace".to_owned();
        let life = self.life.as_ref().ok_or("there is no server")?;
        for (key, instance) in creates {
            life.wait_for(life.desk().create(key, instance)).map_err(died)?;
        }
        for (name, script) in submits {
            life.wait_for(life.desk().submit(name, script)).map_err(died)?;
        }
        self.check()
    }

    /// I9: what the server answers about its open Spaces is what the log says.
    fn check_answers(&mut self) -> Result<(), String> {
        let life = self.life.as_ref().ok_or("there is no server")?;
        let creates: Vec<_> = {
            let ledger = self.outside.ledger.lock();
            let made = ledger.creates.iter();
            made.filter_map(|(key, create)| Some((*key, create.instance, create.space?))).collect()
        };
        for (key, instance, space) in creates {
            let created = life.wait_for(life.desk().create_in_peace(key, instance));
            let created = created.map_err(|Died| "it died in peace".to_owned())?;
            let created = created.map_err(|refused| format!("I7: create {key} again: {refused}"))?;
            let summary = created.space;
            if summary.space != space || !created.repeated {
                return Err(format!("I7: create {key} again is another Space"));
            }
            let told = self.monitor.open_spaces().into_iter().find(|(id, _)| *id == space);
            if told.is_some_and(|(_, revision)| revision != summary.revision.0) {
                return Err(format!("I9: {space} is told at {}, and is elsewhere", summary.revision));
            }
        }
        Ok(())
    }

    /// I7: whoever repeats a submit hears of the task that it made.
    fn check_repeats(&mut self) -> Result<(), String> {
        let life = self.life.as_ref().ok_or("there is no server")?;
        let submits: Vec<_> = {
            let ledger = self.outside.ledger.lock();
            ledger
                .submits
                .iter()
                .filter_map(|(name, submit)| Some((*name, submit.accepted.clone()?)))
                .collect()
        };
        for (name, (script, made)) in submits {
            let told = life.wait_for(life.desk().submit_in_peace(name, &script));
            match told.map_err(|Died| "it died in peace".to_owned())? {
                Ok(task) if task == made => {}
                told => return Err(format!("I7: {name:?} made {made}, and its repeat hears {told:?}")),
            }
        }
        Ok(())
    }

    fn summary(mut self) -> Result<Outcome, String> {
        segment::verify(&self.log_folder()).map_err(|damage| format!("C15: {damage}"))?;
        let mut hasher = blake3::Hasher::new();
        let entries = std::fs::read_dir(self.log_folder()).map_err(|error| error.to_string())?;
        let names: BTreeSet<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        for path in names.iter().filter(|path| path.extension().is_some_and(|is| is == "log")) {
            hasher.update(&std::fs::read(path).map_err(|error| error.to_string())?);
        }
        if let Some(kept) = std::env::var_os(crate::KEEP) {
            self.folder.disable_cleanup(true);
            println!("{}: {}", kept.display(), self.folder.path().display());
        }
        self.outcome.digest = hasher.finalize().to_hex().to_string();
        self.outcome.events = self.monitor.events();
        let ledger = self.outside.ledger.lock();
        (self.outcome.acknowledged, self.outcome.refused) = (ledger.acked, ledger.refused);
        self.outcome.calls = self.outside.seen.lock().called.len() as u64;
        drop(ledger);
        Ok(self.outcome)
    }
}
