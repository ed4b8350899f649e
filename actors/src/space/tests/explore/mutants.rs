//! One rule broken at a time. Each break must be found, by the promise that it breaks.

use eventlog::SpaceEvent;

use super::{
    monitor::Broken,
    walk,
    world::{Decide, Due, Fold, Rules},
};
use crate::{
    place::Place,
    rejection::Rejection,
    space::{
        Command, Decision, Effect, Facts, InHand, RuntimeStatus, SpaceState, decide, due,
        effect::Execute,
        evolve_all, scenario,
        state::{ActiveTask, OpenSpace, Phase},
    },
};

type Decided = Result<Decision, Rejection>;

fn open(state: &SpaceState) -> Option<&OpenSpace> {
    match state {
        SpaceState::Open(open) => Some(open),
        SpaceState::Absent(_) | SpaceState::Closed(_) => None,
    }
}

fn recording(events: Vec<SpaceEvent>) -> Decided {
    Ok(Decision { events, ..Decision::nothing() })
}

/// Takes a task although one is active.
fn accepts_while_busy(state: &SpaceState, command: &Command, facts: &Facts<'_>) -> Decided {
    match (open(state), command) {
        (Some(busy), Command::Submit(_)) => {
            let idle = OpenSpace { phase: Phase::Idle, ..busy.clone() };
            decide(&SpaceState::Open(Box::new(idle)), command, facts)
        }
        _ => decide(state, command, facts),
    }
}

/// Keeps a runtime that did not stop.
fn keeps_a_wedged_runtime(state: &SpaceState, command: &Command, facts: &Facts<'_>) -> Decided {
    let mut decided = decide(state, command, facts);
    if let (Ok(decision), Command::Overdue { .. }) = (&mut decided, command) {
        decision.events.retain(|event| !matches!(event, SpaceEvent::Faulted { .. }));
    }
    decided
}

/// Hands a running task to the runtime whoever has recorded its start.
fn dispatches_again(state: &SpaceState, runtime: RuntimeStatus, in_hand: &InHand) -> Vec<Effect> {
    let started = state.active_task().map(|active| active.task().operation);
    due(state, runtime, &InHand { started, ..*in_hand })
}

/// Records the report of a task that has ended.
fn believes_late_reports(state: &SpaceState, command: &Command, facts: &Facts<'_>) -> Decided {
    match (decide(state, command, facts), command) {
        (Ok(decision), Command::Report(report)) if decision.events.is_empty() && open(state).is_some() => {
            recording(vec![SpaceEvent::TaskFailed {
                task: report.task,
                error: scenario::runtime_error("internal"),
            }])
        }
        (decided, _) => decided,
    }
}

/// Forgets who waits when the runtime is ready.
fn forgets_the_queue(state: &SpaceState, command: &Command, facts: &Facts<'_>) -> Decided {
    let mut decided = decide(state, command, facts);
    if let (Ok(decision), Command::RuntimeReady { .. }) = (&mut decided, command) {
        decision.events.retain(|event| !matches!(event, SpaceEvent::TaskStarted { .. }));
    }
    decided
}

/// Calls first and records later.
fn calls_before_it_records(state: &SpaceState, runtime: RuntimeStatus, in_hand: &InHand) -> Vec<Effect> {
    let (Some(open), RuntimeStatus::Ready(generation)) = (open(state), runtime) else {
        return due(state, runtime, in_hand);
    };
    match open.active_task() {
        Some(ActiveTask::Queued(task)) if in_hand.executing.is_none() => {
            vec![Effect::Execute(Box::new(Execute {
                task: task.task,
                operation: task.operation,
                generation,
                instance: open.space.instance,
                fence: open.space.fence,
                capability: task.capability.clone(),
                sealed_args: scenario::sealed(1),
                deadline: scenario::NOW,
            }))]
        }
        _ => due(state, runtime, in_hand),
    }
}

/// Says `cancelled` before the runtime does.
fn cancels_at_once(state: &SpaceState, command: &Command, facts: &Facts<'_>) -> Decided {
    let mut decided = decide(state, command, facts);
    if let (Ok(decision), Command::Cancel { .. }, Some(ActiveTask::Running(running))) =
        (&mut decided, command, state.active_task())
        && !decision.events.is_empty()
    {
        decision.events.push(SpaceEvent::TaskCancelled { task: running.task.task });
    }
    decided
}

/// Closes and keeps the instance.
fn forgets_the_instance(state: &SpaceState, command: &Command, facts: &Facts<'_>) -> Decided {
    decide(state, command, facts).map(|decision| Decision { release: None, ..decision })
}

/// Takes any repeat of a request id for the same.
fn looks_at_the_id_only(state: &SpaceState, command: &Command, facts: &Facts<'_>) -> Decided {
    let mut command = command.clone();
    if let (Command::Submit(asked), Some(space)) = (&mut command, state.space())
        && let Some(first) = space.requests.get(&asked.request_id)
    {
        asked.fingerprint = first.fingerprint;
    }
    decide(state, &command, facts)
}

/// Closes over the head of a running task.
fn closes_at_once(state: &SpaceState, command: &Command, facts: &Facts<'_>) -> Decided {
    match (open(state), command) {
        (Some(running), Command::Close { .. }) if running.closing.is_none() => {
            let idle = OpenSpace { phase: Phase::Idle, ..running.clone() };
            decide(&SpaceState::Open(Box::new(idle)), command, facts)
        }
        _ => decide(state, command, facts),
    }
}

/// Does not see that a task has completed.
fn overlooks_completions(state: SpaceState, events: &[SpaceEvent], first: Place) -> SpaceState {
    let completed = |event: &SpaceEvent| matches!(event, SpaceEvent::TaskCompleted { .. });
    let seen: Vec<_> = events.iter().filter(|event| !completed(event)).cloned().collect();
    evolve_all(state, &seen, first)
}

#[test]
fn each_rule_that_is_broken_is_found_by_the_promise_that_it_breaks() {
    let with = |decide: Decide| Rules { decide, ..Rules::REAL };
    let folding = |fold: Fold| Rules { fold, ..Rules::REAL };
    let owing = |due: Due| Rules { due, ..Rules::REAL };
    let mutants = [
        ("accepts_while_busy", with(accepts_while_busy), Broken::TwoActive),
        ("keeps_a_wedged_runtime", with(keeps_a_wedged_runtime), Broken::Overlap),
        ("dispatches_again", owing(dispatches_again), Broken::CalledTwice),
        ("believes_late_reports", with(believes_late_reports), Broken::EndedTwice),
        ("forgets_the_queue", with(forgets_the_queue), Broken::NeverEnds),
        ("calls_before_it_records", owing(calls_before_it_records), Broken::OutOfOrder),
        ("cancels_at_once", with(cancels_at_once), Broken::CancelledTooSoon),
        ("forgets_the_instance", with(forgets_the_instance), Broken::NotReleased),
        ("looks_at_the_id_only", with(looks_at_the_id_only), Broken::RequestId),
        ("closes_at_once", with(closes_at_once), Broken::CloseOrder),
        ("overlooks_completions", folding(overlooks_completions), Broken::StateDiffers),
    ];
    let mut caught = 0;
    for (name, rules, promise) in mutants {
        let walk = walk(rules, super::depth());
        let (broken, way) = walk.broken.unwrap_or_else(|| panic!("{name} was not found"));
        assert_eq!(broken, promise, "{name}: {way:#?}");
        eprintln!("{name}: {promise:?} after {} worlds, in {} steps", walk.worlds, way.len());
        caught += 1;
    }
    assert_eq!(caught, 11, "one broken rule for each promise of the monitor");
}
