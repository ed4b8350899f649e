//! I9: the fold. Read back or lived through, the state is the same; and any history, however odd, gives a state.

use std::sync::Arc;

use eventlog::{
    Event, Hash, Metadata, Principal, RecordedEvent, SpaceEvent, StreamId, TraceId,
    event::{
        UnknownEvent,
        instance::LossReason,
        space::{CancelReason, CloseReason},
    },
    id::{BootId, CommandId},
};
use proptest::prelude::*;

use crate::{
    place::Place,
    runtime::Outcome,
    space::{
        Command, SpaceState, StartFault, TaskHistory, evolve, evolve_recorded,
        scenario::{self, *},
        summary::TaskStatus,
    },
};

fn recorded(event: impl Into<Event>, n: u64) -> RecordedEvent {
    let boot: BootId = format!("boot_{n:026}").parse().expect("it is an id");
    let command: CommandId = format!("cmd_{n:026}").parse().expect("it is an id");
    RecordedEvent {
        position: eventlog::Position(OPENED_AT.0 + n - 1),
        stream: StreamId::Space(space_id()),
        sequence: eventlog::Sequence(n),
        event: event.into(),
        metadata: Arc::new(Metadata {
            principal: Principal::System,
            workspace: Some(workspace_id()),
            recorded_at: NOW,
            trace_id: TraceId::default(),
            causation: None,
            boot,
        }),
        command,
        hash: Hash::default(),
    }
}

fn read_back(events: &[SpaceEvent]) -> SpaceState {
    (1..)
        .zip(events)
        .map(|(n, event)| recorded(event.clone(), n))
        .fold(SpaceState::Absent(space_id()), |state, event| evolve_recorded(state, &event))
}

fn commands() -> impl Strategy<Value = Command> {
    let n = 1..6u64;
    let generation = 1..4u64;
    prop_oneof![
        4 => n.clone().prop_map(|n| submit(n).into()),
        1 => n.clone().prop_map(|n| crate::space::Submit { capability: capability("fill"), ..submit(n) }.into()),
        3 => (n.clone(), generation.clone()).prop_map(|(n, g)| report(n, g, done()).into()),
        1 => (n.clone(), generation.clone()).prop_map(|(n, g)| report(n, g, Outcome::Cancelled).into()),
        2 => Just(cancel()),
        1 => Just(close()),
        2 => generation.clone().prop_map(ready),
        1 => generation.prop_map(|g| lost(g, LossReason::Crashed)),
        1 => n.prop_map(|n| Command::Overdue { operation: operation(n) }),
        1 => Just(Command::RuntimeUnavailable(StartFault::Overdue)),
        1 => Just(Command::Recover { executing: None }),
    ]
}

fn events() -> impl Strategy<Value = SpaceEvent> {
    let n = 1..4u64;
    let generation = 0..4u64;
    prop_oneof![
        Just(opened()),
        n.clone().prop_map(queued),
        (n.clone(), generation.clone()).prop_map(|(n, g)| started(n, g)),
        n.clone().prop_map(scenario::completed),
        n.clone().prop_map(|n| failed(n, "interrupted")),
        n.clone().prop_map(|n| cancel_requested(n, CancelReason::Requested)),
        n.prop_map(cancelled),
        Just(close_requested(CloseReason::Drained)),
        Just(closed(CloseReason::Drained)),
        generation.clone().prop_map(|g| faulted("runtime_crashed", g)),
        generation.prop_map(recovered),
    ]
}

proptest! {
    /// The live state has gone through decide and append; the other only reads the log.
    #[test]
    fn what_is_read_back_is_what_was_lived_through(commands in prop::collection::vec(commands(), 0..60)) {
        let mut live = given([]);
        live.state = evolve(live.state, &opened(), Place::from(&recorded(opened(), 1)));
        let mut history = vec![opened()];
        for command in commands {
            let when = live.when(command);
            history.extend(when.decided.iter().flat_map(|decision| decision.events.clone()));
            live = when.after();
        }
        prop_assert_eq!(&live.state, &read_back(&history));
        prop_assert_eq!(live.state.revision().0, history.len() as u64);
    }

    /// Nothing panics, and the place is always the last event's.
    #[test]
    fn any_history_gives_a_state(events in prop::collection::vec(events(), 0..40)) {
        let state = read_back(&events);
        let first = events.iter().position(|event| matches!(event, SpaceEvent::Opened { .. }));
        prop_assert_eq!(state.revision().0, first.map_or(0, |_| events.len() as u64));
        prop_assert_eq!(state.summary().is_some(), first.is_some());
        let closed = first.is_some_and(|first| {
            events[first..].iter().any(|event| matches!(event, SpaceEvent::Closed { .. }))
        });
        prop_assert_eq!(matches!(state, SpaceState::Closed(_)), closed);
    }
}

#[test]
fn an_event_of_a_newer_program_only_moves_the_place() {
    let known = [opened(), queued(1)];
    let before = read_back(&known);
    let newer = UnknownEvent { kind: "teleported".to_owned(), schema: 9, payload: Vec::new().into() };
    let after = evolve_recorded(before.clone(), &recorded(Event::Unknown(newer), 3));
    assert_eq!(after.revision(), eventlog::Sequence(3));
    assert_eq!(after.active_task().map(|active| active.task().task), Some(task(1)));
    assert_eq!(after.live_keys(), before.live_keys());
}

#[test]
fn an_old_task_is_told_by_its_own_events_as_the_state_told_it_then() {
    let events = [
        opened(),
        queued(1),
        started(1, 1),
        cancel_requested(1, CancelReason::Requested),
        cancelled(1),
        queued(2),
        started(2, 1),
        completed(2),
    ];
    let mut history = TaskHistory::new(space_id(), task(1));
    assert_eq!(history.summary(), None);
    let mut statuses = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let n = index + 1;
        history.apply(&recorded(event.clone(), n as u64));
        let then = read_back(&events[..n]).task(task(1));
        if n <= 5 {
            assert_eq!(history.summary(), then, "after event {n}");
        }
        statuses.extend(history.summary().map(|summary| summary.status));
    }
    assert!(history.has_ended());
    let expected = [TaskStatus::Queued, TaskStatus::Running, TaskStatus::Running];
    assert_eq!(statuses[..3], expected);
    assert!(statuses[3..].iter().all(|status| *status == TaskStatus::Cancelled));
    let last = read_back(&events);
    assert_eq!(last.task(task(1)), None, "the state keeps the last one only");
    assert_eq!(last.task(task(2)).map(|task| task.status), Some(TaskStatus::Completed));
}
