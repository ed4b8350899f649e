//! What the clients know: what they asked, what they were answered, and what follows from that.

use std::collections::{BTreeMap, BTreeSet};

use actors::{Rejection, space::summary::TaskStatus};
use eventlog::{
    Position,
    id::{SpaceId, TaskId},
};

/// A create and all of its repeats.
#[derive(Debug, Default)]
pub(crate) struct Create {
    pub(crate) instance: usize,
    pub(crate) space: Option<SpaceId>,
    /// Asked and not answered with certainty.
    pub(crate) open: bool,
}

/// A submit and all that was asked under its request id.
#[derive(Debug, Default)]
pub(crate) struct Submit {
    /// Every meaning that was sent under this id.
    pub(crate) scripts: BTreeSet<String>,
    /// The one that was accepted, and the task that it made.
    pub(crate) accepted: Option<(String, TaskId)>,
    pub(crate) open: bool,
}

/// An acknowledgement: at this position, told while the log was durable up to `head`.
#[derive(Debug, Clone)]
pub(crate) struct Ack {
    pub(crate) position: Position,
    pub(crate) head: Position,
    pub(crate) of: Acknowledged,
}

/// What was acknowledged.
#[derive(Debug, Clone)]
pub(crate) enum Acknowledged {
    Space(SpaceId),
    Task(SpaceId, TaskId),
    Ended(TaskId, TaskStatus),
    Closing(SpaceId),
    /// Another meaning under a known request id was answered with the first task. A closed Space has no key any more to
    /// tell meanings apart by; an open one has.
    Taken(SpaceId),
}

/// The name of a submit.
pub(crate) type RequestName = (SpaceId, u64);

/// Everything.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) creates: BTreeMap<u64, Create>,
    pub(crate) submits: BTreeMap<RequestName, Submit>,
    /// In the order in which they were first asked.
    pub(crate) order: Vec<RequestName>,
    /// Spaces in the order in which clients heard of them.
    pub(crate) spaces: Vec<SpaceId>,
    /// Not looked at yet.
    pub(crate) acks: Vec<Ack>,
    pub(crate) acked: u64,
    pub(crate) refused: u64,
    pub(crate) broken: Vec<String>,
}

impl Ledger {
    pub(crate) fn space(&self, number: usize) -> Option<SpaceId> {
        self.spaces.get(number.checked_rem(self.spaces.len())?).copied()
    }

    pub(crate) fn request(&self, number: usize) -> Option<RequestName> {
        self.order.get(number.checked_rem(self.order.len())?).copied()
    }

    pub(crate) fn ack(&mut self, position: Position, head: Position, of: Acknowledged) {
        self.acked += 1;
        self.acks.push(Ack { position, head, of });
    }

    pub(crate) fn created(&mut self, key: u64, space: SpaceId) {
        let create = self.creates.entry(key).or_default();
        create.open = false;
        match create.space.replace(space) {
            Some(first) if first != space => {
                self.broken.push(format!("I7: create {key} made {first} and {space}"));
            }
            Some(_) => {}
            None => self.spaces.push(space),
        }
    }

    pub(crate) fn accepted(&mut self, name: RequestName, script: &str, task: TaskId, head: Position) {
        let submit = self.submits.entry(name).or_default();
        submit.open = false;
        match &submit.accepted {
            Some((first, made)) if *made != task => {
                self.broken.push(format!("I7: {name:?} made {made} by {first}, and {task} by {script}"));
            }
            Some((first, _)) if first != script => {
                self.ack(Position::ZERO, head, Acknowledged::Taken(name.0));
            }
            Some(_) => {}
            None => submit.accepted = Some((script.to_owned(), task)),
        }
    }

    /// Whatever was refused: a conflict needs two meanings.
    pub(crate) fn refused(&mut self, name: RequestName, script: &str, rejection: &Rejection) {
        self.refused += 1;
        let submit = self.submits.entry(name).or_default();
        if *rejection == Rejection::RequestIdConflict {
            let first = submit.accepted.as_ref().map(|(first, _)| first.as_str());
            if submit.scripts.len() < 2 || first == Some(script) {
                self.broken.push(format!("I7: {name:?} was refused as a conflict, and is none"));
            }
        }
    }
}
