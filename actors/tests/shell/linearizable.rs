//! Concurrent creates and closes of one instance, with and without the same idempotency keys, and concurrent submits of
//! few request ids, on real threads: each history must be one that a single lock could have given (Wing and Gong's
//! search, with memory of dead ends).

use std::{
    collections::HashSet,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use actors::Rejection;
use eventlog::id::{InstanceId, SpaceId, TaskId};

use crate::harness::{Server, workspace};

/// One call: when it began and ended, and what was asked and answered.
#[derive(Debug, Clone)]
struct Call<C> {
    began: u64,
    ended: u64,
    call: C,
}

/// Whether some order of the calls, true to their times, is one that `apply` accepts from `initial`.
fn is_linearizable<C, S: Clone + Eq + Hash>(
    calls: &[Call<C>],
    initial: &S,
    apply: impl Fn(&S, &C) -> Option<S>,
) -> bool {
    assert!(calls.len() < 64);
    let all = (1u64 << calls.len()) - 1;
    let mut dead_ends: HashSet<(u64, S)> = HashSet::new();
    let mut open = vec![(0u64, initial.clone())];
    while let Some((done, state)) = open.pop() {
        if done == all {
            return true;
        }
        if !dead_ends.insert((done, state.clone())) {
            continue;
        }
        let left = || (0..calls.len()).filter(|index| done & (1 << index) == 0);
        let first_end = left().map(|index| calls[index].ended).min().unwrap_or(u64::MAX);
        for index in left().filter(|index| calls[*index].began <= first_end) {
            if let Some(next) = apply(&state, &calls[index].call) {
                open.push((done | (1 << index), next));
            }
        }
    }
    false
}

#[derive(Debug, Clone, Copy)]
enum Reservation {
    Won(SpaceId),
    Lost,
    Closed(SpaceId),
}

fn reserve(holder: &Option<SpaceId>, call: &Reservation) -> Option<Option<SpaceId>> {
    match (call, holder) {
        (Reservation::Won(space), None) => Some(Some(*space)),
        (Reservation::Lost, Some(holder)) => Some(Some(*holder)),
        (Reservation::Closed(space), Some(holder)) if space == holder => Some(None),
        (Reservation::Won(_) | Reservation::Closed(_), _) | (Reservation::Lost, None) => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn creates_and_closes_of_one_instance_are_linearizable() {
    let server = Arc::new(Server::start().await);
    let instance = server.instance().await;
    let clock = Arc::new(AtomicU64::new(0));
    let clients = (0..4).map(|_| {
        let (server, clock) = (Arc::clone(&server), Arc::clone(&clock));
        tokio::spawn(async move {
            let mut calls = Vec::new();
            for _ in 0..6 {
                let began = clock.fetch_add(1, Ordering::SeqCst);
                let created = server.create(instance, None).await;
                let ended = clock.fetch_add(1, Ordering::SeqCst);
                let Ok(created) = created else {
                    calls.push(Call { began, ended, call: Reservation::Lost });
                    continue;
                };
                let space = created.space.space;
                calls.push(Call { began, ended, call: Reservation::Won(space) });
                let began = clock.fetch_add(1, Ordering::SeqCst);
                server.spaces.close(&server.system(), &workspace(), space).await.unwrap();
                let ended = clock.fetch_add(1, Ordering::SeqCst);
                calls.push(Call { began, ended, call: Reservation::Closed(space) });
            }
            calls
        })
    });
    let mut history = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        history.extend(client.await.unwrap());
    }
    assert!(is_linearizable(&history, &None, reserve), "{history:#?}");
}

/// A create with a key, or a close.
#[derive(Debug, Clone, Copy)]
enum Keyed {
    /// Key and body; which Space was made or found.
    Made(usize, usize, SpaceId),
    Found(usize, usize, SpaceId),
    /// Refused: the key belongs to another body.
    Other(usize, usize),
    /// Refused: a Space of another key holds the instance.
    InUse(usize),
    Closed(SpaceId),
}

/// Who holds the instance, and what each key made with which body.
type Keys = (Option<SpaceId>, Vec<Option<(usize, SpaceId)>>);

fn remember_key((holder, keys): &Keys, call: &Keyed) -> Option<Keys> {
    let mut next = (*holder, keys.clone());
    match *call {
        Keyed::Made(key, body, space) if keys[key].is_none() && holder.is_none() => {
            next.0 = Some(space);
            next.1[key] = Some((body, space));
        }
        Keyed::Found(key, body, space) if keys[key] == Some((body, space)) => {}
        Keyed::Other(key, body) if keys[key].is_some_and(|(first, _)| first != body) => {}
        Keyed::InUse(key) if keys[key].is_none() && holder.is_some() => {}
        Keyed::Closed(space) if *holder == Some(space) => next.0 = None,
        Keyed::Made(..) | Keyed::Found(..) | Keyed::Other(..) | Keyed::InUse(_) | Keyed::Closed(_) => {
            return None;
        }
    }
    Some(next)
}

async fn create_keyed(server: &Server, instance: InstanceId, key: usize, body: usize) -> Keyed {
    let mut create = crate::harness::create(instance, Some(&format!("key-{key}")));
    create.idle_timeout = Some(std::time::Duration::from_secs(3600 + body as u64));
    match server.spaces.create(&server.system(), create).await {
        Ok(created) if created.repeated => Keyed::Found(key, body, created.space.space),
        Ok(created) => Keyed::Made(key, body, created.space.space),
        Err(Rejection::RequestIdConflict) => Keyed::Other(key, body),
        Err(Rejection::BrowserInstanceInUse) => Keyed::InUse(key),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn creates_with_the_same_idempotency_keys_are_linearizable() {
    const KEYS: usize = 4;
    for _ in 0..8 {
        let server = Arc::new(Server::start().await);
        let instance = server.instance().await;
        let clock = Arc::new(AtomicU64::new(0));
        let clients = (0..4).map(|client| {
            let (server, clock) = (Arc::clone(&server), Arc::clone(&clock));
            tokio::spawn(async move {
                let mut calls = Vec::new();
                for key in 0..KEYS {
                    let began = clock.fetch_add(1, Ordering::SeqCst);
                    // One of the four says something else with the same key.
                    let call = create_keyed(&server, instance, key, usize::from(client == 3)).await;
                    calls.push(Call { began, ended: clock.fetch_add(1, Ordering::SeqCst), call });
                    let Keyed::Made(_, _, space) = call else { continue };
                    let began = clock.fetch_add(1, Ordering::SeqCst);
                    server.spaces.close(&server.system(), &workspace(), space).await.unwrap();
                    let ended = clock.fetch_add(1, Ordering::SeqCst);
                    calls.push(Call { began, ended, call: Keyed::Closed(space) });
                }
                calls
            })
        });
        let mut history = Vec::new();
        for client in clients.collect::<Vec<_>>() {
            history.extend(client.await.unwrap());
        }
        assert!(is_linearizable(&history, &(None, vec![None; KEYS]), remember_key), "{history:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_create_that_is_retried_while_the_first_is_on_its_way_is_answered_with_the_first_space() {
    let server = Arc::new(Server::start().await);
    for round in 0..20 {
        let instance = server.instance().await;
        let clients = (0..8).map(|client| {
            let server = Arc::clone(&server);
            // One of the eight says something else with the same key.
            tokio::spawn(async move {
                (client, create_keyed(&server, instance, round, usize::from(client == 7)).await)
            })
        });
        let mut spaces = HashSet::new();
        let (mut made, mut refused) = (0, Vec::new());
        for client in clients.collect::<Vec<_>>() {
            let (client, answer) = client.await.unwrap();
            match answer {
                Keyed::Made(_, _, space) => {
                    made += 1;
                    spaces.insert(space);
                }
                Keyed::Found(_, _, space) => {
                    spaces.insert(space);
                }
                Keyed::Other(..) => refused.push(client),
                Keyed::InUse(_) | Keyed::Closed(_) => panic!("client {client}: {answer:?}"),
            }
        }
        assert_eq!((made, spaces.len()), (1, 1), "round {round}");
        let odd_one_won = refused.len() == 7 && !refused.contains(&7);
        assert!(odd_one_won || refused == [7], "round {round}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tokens_that_are_issued_at_once_in_a_new_workspace_are_all_issued() {
    let server = Arc::new(Server::start().await);
    for round in 0..10 {
        let clients = (0..8).map(|client| {
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                let issue = actors::spaces::IssueToken {
                    workspace: format!("new-{round}").parse().unwrap(),
                    all_workspaces: false,
                    role: eventlog::Role::RuntimeAgent,
                    owner_id: format!("agent-{client}").parse().unwrap(),
                    expires_at: None,
                };
                let issued = server.spaces.issue_token(&server.system(), issue).await.unwrap();
                server.spaces.authenticate(&issued.token).unwrap();
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
    }
}

#[derive(Debug, Clone)]
struct Submitted {
    request: usize,
    task: TaskId,
    first: bool,
}

#[allow(clippy::ptr_arg, reason = "the state of the history is the vector")]
fn remember(known: &Vec<Option<TaskId>>, call: &Submitted) -> Option<Vec<Option<TaskId>>> {
    let mut next = known.clone();
    match (known[call.request], call.first) {
        (None, true) => next[call.request] = Some(call.task),
        (Some(task), false) if task == call.task => {}
        (None | Some(_), _) => return None,
    }
    Some(next)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn submits_of_the_same_request_ids_are_linearizable() {
    let server = Arc::new(Server::start().await);
    let instance = server.instance().await;
    let space = server.create(instance, None).await.unwrap().space.space;
    let clock = Arc::new(AtomicU64::new(0));
    let clients = (0..4).map(|_| {
        let (server, clock) = (Arc::clone(&server), Arc::clone(&clock));
        tokio::spawn(async move {
            let mut calls = Vec::new();
            for round in 0..10 {
                let request = round % 5;
                let began = clock.fetch_add(1, Ordering::SeqCst);
                let submitted = server.submit(space, &request.to_string(), "").await;
                let ended = clock.fetch_add(1, Ordering::SeqCst);
                // Busy: nothing was done, so it has no place in the history.
                if let Ok(submitted) = submitted {
                    let call = Submitted { request, task: submitted.task.task, first: !submitted.repeated };
                    calls.push(Call { began, ended, call });
                }
            }
            calls
        })
    });
    let mut history = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        history.extend(client.await.unwrap());
    }
    assert!(is_linearizable(&history, &vec![None; 5], remember), "{history:#?}");
}

#[test]
fn the_checker_sees_two_holders_at_once() {
    let [one, two] = [1, 2].map(|number| SpaceId::from_uuid(uuid::Uuid::from_u128(number)));
    let call = |began, ended, call| Call { began, ended, call };
    let honest = [
        call(0, 3, Reservation::Won(one)),
        call(1, 2, Reservation::Lost),
        call(4, 5, Reservation::Closed(one)),
    ];
    assert!(is_linearizable(&honest, &None, reserve));
    let shared = [call(0, 1, Reservation::Won(one)), call(2, 3, Reservation::Won(two))];
    assert!(!is_linearizable(&shared, &None, reserve));
    let stale = [
        call(0, 1, Reservation::Won(one)),
        call(2, 3, Reservation::Closed(one)),
        call(4, 5, Reservation::Lost),
    ];
    assert!(!is_linearizable(&stale, &None, reserve));
}
