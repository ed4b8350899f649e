//! The supervisor's promises, on paused time and scripted starts.

use eventlog::{
    Fence, Position, Redacted,
    event::instance::{Bundle, InstanceKind, NetworkPolicy},
    id::{InstanceId, SpaceId},
};
use futures::stream::{self, BoxStream};
use parking_lot::Mutex;
use uuid::Uuid;

use super::*;
use crate::{
    clock::testing::TestIds,
    runtime::{Outcome, Step},
};

/// One line of what happened, with the milliseconds since the test began.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Starting(u64),
    Ready(u64),
    Lost(u64, LossReason),
    CircuitOpened(u32, StartFault),
    Stopped(u64),
    Noticed(String),
    StopBegan(u64),
    StopEnded(u64),
}

struct Trace {
    began: Instant,
    lines: Mutex<Vec<(u128, Seen)>>,
    generation: Mutex<Generation>,
}

impl Trace {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            lines: Mutex::default(),
            generation: Mutex::new(Generation::ZERO),
        })
    }

    fn note(&self, seen: Seen) {
        self.lines.lock().push((self.began.elapsed().as_millis(), seen));
    }

    fn starts(&self) -> Vec<u128> {
        let lines = self.lines.lock();
        lines.iter().filter(|(_, seen)| matches!(seen, Seen::Starting(_))).map(|(at, _)| *at).collect()
    }
}

#[async_trait]
impl Reports for Trace {
    async fn starting(&self) -> Option<Generation> {
        let generation = self.generation.lock().next();
        *self.generation.lock() = generation;
        self.note(Seen::Starting(generation.0));
        Some(generation)
    }
    async fn ready(&self, generation: Generation) {
        self.note(Seen::Ready(generation.0));
    }
    async fn lost(&self, generation: Generation, reason: LossReason) {
        self.note(Seen::Lost(generation.0, reason));
    }
    async fn circuit_opened(&self, losses: u32, _: Duration, fault: StartFault) {
        self.note(Seen::CircuitOpened(losses, fault));
    }
    async fn noticed(&self, notice: Notice) {
        let Notice::Blocked { rule, .. } = notice else { panic!("none other is told") };
        if rule == "slow" {
            sleep(Duration::from_secs(1_000)).await;
        }
        self.note(Seen::Noticed(rule));
    }
    async fn stopped(&self, generation: Generation) {
        self.note(Seen::Stopped(generation.0));
    }
}

/// Runtimes that live for so long each, and whose `stop` takes longer than the first pauses.
struct Mortal {
    trace: Arc<Trace>,
    lives: Mutex<Vec<Option<Duration>>>,
}

struct MortalRuntime {
    trace: Arc<Trace>,
    generation: Generation,
    ended: watch::Receiver<Option<End>>,
}

#[async_trait]
impl RuntimeFactory for Mortal {
    async fn start(&self, spec: RuntimeSpec) -> Result<Arc<dyn Runtime>, RuntimeStartError> {
        let life = match self.lives.lock().pop() {
            Some(Some(life)) => life,
            Some(None) => return Err(StartFault::EndedEarly.into()),
            None => Duration::from_secs(1_000_000),
        };
        let (sender, ended) = watch::channel(None);
        tokio::spawn(async move {
            sleep(life).await;
            sender.send_replace(Some(End::Lost(LossReason::Crashed)));
            sender.closed().await;
        });
        Ok(Arc::new(MortalRuntime { trace: Arc::clone(&self.trace), generation: spec.generation, ended }))
    }

    async fn end_orphans(&self) -> std::io::Result<usize> {
        Ok(0)
    }
}

#[async_trait]
impl Runtime for MortalRuntime {
    async fn execute(&self, _: Step, _: CancellationToken) -> Outcome {
        Outcome::Cancelled
    }
    fn ended(&self) -> watch::Receiver<Option<End>> {
        self.ended.clone()
    }
    fn notices(&self) -> BoxStream<'static, Notice> {
        let rules = if self.generation.0 == 1 { ["first", "second"] } else { ["slow", "never"] };
        let notice =
            |rule: &str| Notice::Blocked { rule: rule.to_owned(), target: Redacted::own("x"), count: None };
        stream::iter(rules.map(notice)).boxed()
    }
    async fn stop(&self) {
        self.trace.note(Seen::StopBegan(self.generation.0));
        sleep(Duration::from_millis(900)).await;
        self.trace.note(Seen::StopEnded(self.generation.0));
    }
}

/// `lives` are taken from the end; `None` is a start that fails.
fn supervise(lives: Vec<Option<Duration>>) -> (Supervisor, Arc<Trace>) {
    let trace = Trace::new();
    let spec = RuntimeSpec {
        desk: crate::download::Desk::default(),
        space: SpaceId::from_uuid(Uuid::from_u128(1)),
        instance: InstanceId::from_uuid(Uuid::from_u128(2)),
        kind: InstanceKind::Scripted,
        bundle: Bundle::Standard,
        network_policy: NetworkPolicy::default(),
        headless: true,
        generation: Generation::ZERO,
        fence: Fence(Position(1)),
        environment: eventlog::event::environment::Environment::default(),
    };
    let factory = Arc::new(Mortal { trace: Arc::clone(&trace), lives: Mutex::new(lives) });
    let ids = Arc::new(TestIds::default());
    let supervisor = Supervisor::start(None, spec, factory, trace.clone(), ids, RestartPolicy::default());
    (supervisor, trace)
}

#[tokio::test(start_paused = true)]
async fn the_next_start_waits_until_nothing_of_the_last_is_left() {
    let (supervisor, trace) = supervise(vec![Some(Duration::from_millis(10)); 3]);
    sleep(Duration::from_secs(10)).await;
    supervisor.stop().await;
    let mut alive = 0;
    for (_, seen) in trace.lines.lock().iter() {
        match seen {
            Seen::Starting(_) => {
                assert_eq!(alive, 0, "two incarnations at once");
                alive += 1;
            }
            Seen::StopEnded(_) => alive -= 1,
            _ => {}
        }
    }
    assert_eq!(alive, 0);
    assert!(supervisor.live().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_told_before_the_cleaning_up() {
    let (supervisor, trace) = supervise(vec![Some(Duration::from_millis(10))]);
    sleep(Duration::from_secs(2)).await;
    supervisor.stop().await;
    let lines = trace.lines.lock();
    let place = |wanted: &Seen| lines.iter().position(|(_, seen)| seen == wanted).unwrap();
    assert!(place(&Seen::Lost(1, LossReason::Crashed)) < place(&Seen::StopBegan(1)));
    assert_eq!(lines[place(&Seen::Lost(1, LossReason::Crashed))].0, 10);
}

#[tokio::test(start_paused = true)]
async fn pauses_double_and_the_fifth_loss_in_the_window_opens_the_circuit_for_one_probe() {
    let (supervisor, trace) = supervise(vec![None; 6]);
    sleep(Duration::from_secs(60 + 60 + 10)).await;
    supervisor.stop().await;
    let starts = trace.starts();
    assert_eq!(&starts[..5], [0, 100, 300, 700, 1500], "100, 200, 400, 800 ms");
    assert_eq!(starts[5], 61_500, "the probe");
    assert_eq!(starts[6], 121_500, "a probe that fails opens the circuit again at once");
    let told = Seen::CircuitOpened(5, StartFault::EndedEarly);
    assert_eq!(trace.lines.lock().iter().filter(|(_, seen)| *seen == told).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_window_slides() {
    // One loss each 20 s: never more than three in any 60 s, so it never gives up.
    let (supervisor, trace) = supervise(vec![Some(Duration::from_secs(20)); 12]);
    sleep(Duration::from_secs(300)).await;
    supervisor.stop().await;
    assert!(!trace.lines.lock().iter().any(|(_, seen)| matches!(seen, Seen::CircuitOpened(..))));
    assert_eq!(trace.starts().len(), 13);
}

#[tokio::test(start_paused = true)]
async fn a_condemned_runtime_is_replaced_and_a_stale_condemnation_is_not_heard() {
    let (supervisor, trace) = supervise(Vec::new());
    sleep(Duration::from_millis(5)).await;
    supervisor.condemn(Generation(1));
    sleep(Duration::from_secs(2)).await;
    supervisor.condemn(Generation(1));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(supervisor.live().unwrap().generation, Generation(2));
    supervisor.stop().await;
    let lines = trace.lines.lock();
    assert!(lines.iter().any(|(_, seen)| *seen == Seen::Lost(1, LossReason::Wedged)));
    assert_eq!(lines.last().unwrap().1, Seen::Stopped(2));
}

#[tokio::test(start_paused = true)]
async fn stopping_twice_is_stopping_once() {
    let (supervisor, trace) = supervise(Vec::new());
    sleep(Duration::from_millis(5)).await;
    tokio::join!(supervisor.stop(), supervisor.stop());
    let stops = trace.lines.lock().iter().filter(|(_, seen)| matches!(seen, Seen::StopBegan(_))).count();
    assert_eq!(stops, 1);
}

#[tokio::test(start_paused = true)]
async fn notices_are_told_in_order_and_a_slow_listener_does_not_delay_the_news_of_an_end() {
    let (supervisor, trace) = supervise(vec![Some(Duration::from_millis(10)); 2]);
    sleep(Duration::from_secs(5)).await;
    supervisor.stop().await;
    let lines: Vec<_> = trace.lines.lock().iter().map(|(_, seen)| seen.clone()).collect();
    let place = |wanted: &Seen| lines.iter().position(|seen| seen == wanted);
    let first = place(&Seen::Noticed("first".to_owned())).expect("told");
    assert!(first > place(&Seen::Ready(1)).expect("ready"));
    assert!(place(&Seen::Noticed("second".to_owned())) > Some(first));
    assert!(place(&Seen::Lost(2, LossReason::Crashed)).is_some(), "{lines:?}");
}
