//! Random appends against a model of what a log is: a list, and a rule for what joins it.

use std::collections::HashMap;

use eventlog::{
    Append, Appended, EventLog, ExpectedSequence, Position, SegmentLog, Sequence, Stored, StreamId,
    fixture::{command, metadata, part, recovered, space},
};
use futures::TryStreamExt;
use proptest::prelude::*;
use support::{all, tiny};

mod support;

#[derive(Debug, Clone)]
enum Step {
    Append { id: u64, parts: Vec<(u64, Expecting, usize)> },
    Reopen,
}

#[derive(Debug, Clone, Copy)]
enum Expecting {
    Any,
    NoStream,
    Head,
    Exact(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let expecting = prop_oneof![
        4 => Just(Expecting::Any),
        1 => Just(Expecting::NoStream),
        4 => Just(Expecting::Head),
        1 => (0u64..6).prop_map(Expecting::Exact),
    ];
    let parts = prop::collection::vec((0u64..5, expecting, 1usize..5), 1..4);
    prop_oneof![
        20 => (0u64..200, parts).prop_map(|(id, parts)| Step::Append { id, parts }),
        1 => Just(Step::Reopen),
    ]
}

/// Which numbers went to which stream, in order.
type Meaning = Vec<(u64, Vec<u64>)>;

/// What a log is.
#[derive(Default)]
struct Model {
    events: Vec<(StreamId, Sequence, eventlog::Event)>,
    heads: HashMap<StreamId, Sequence>,
    appends: HashMap<u64, (Stored, Meaning)>,
    next_number: u64,
}

impl Model {
    /// The append of this step, and what must come of it.
    fn append(&mut self, id: u64, parts: &[(u64, Expecting, usize)]) -> (Append, Appended) {
        let mut seen = Vec::new();
        let mut asked = Vec::new();
        let mut meaning = Vec::new();
        for (stream, expecting, count) in parts {
            if seen.contains(stream) {
                continue;
            }
            seen.push(*stream);
            let actual = self.head(&space(*stream));
            let expected = match expecting {
                Expecting::Any => ExpectedSequence::Any,
                Expecting::NoStream => ExpectedSequence::NoStream,
                Expecting::Head => ExpectedSequence::Exact(actual),
                Expecting::Exact(sequence) => ExpectedSequence::Exact(Sequence(*sequence)),
            };
            let numbers: Vec<u64> = (0..*count as u64).map(|n| self.next_number + n).collect();
            self.next_number += *count as u64;
            meaning.push((*stream, numbers.clone()));
            asked.push(part(space(*stream), expected, numbers.into_iter().map(recovered).collect()));
        }
        let append = Append { id: command(id), metadata: metadata(1), parts: asked };
        let answer = self.answer(id, &append, &meaning);
        (append, answer)
    }

    fn head(&self, stream: &StreamId) -> Sequence {
        self.heads.get(stream).copied().unwrap_or_default()
    }

    fn answer(&mut self, id: u64, append: &Append, meaning: &Meaning) -> Appended {
        if let Some((stored, known)) = self.appends.get(&id) {
            return Appended::Duplicate { stored: *stored, same: known == meaning };
        }
        for part in &append.parts {
            let actual = self.head(&part.stream);
            if !part.expected.is_met_by(actual) {
                return Appended::Conflict { stream: part.stream.clone(), actual };
            }
        }
        let first = Position(self.events.len() as u64 + 1);
        for part in &append.parts {
            for event in &part.events {
                let sequence = self.head(&part.stream).next();
                self.heads.insert(part.stream.clone(), sequence);
                self.events.push((part.stream.clone(), sequence, event.clone()));
            }
        }
        let stored = Stored { first, last: Position(self.events.len() as u64) };
        self.appends.insert(id, (stored, meaning.clone()));
        Appended::Stored(stored)
    }
}

async fn play(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Append { id, parts } => {
                let (append, expected) = model.append(id, &parts);
                prop_assert_eq!(log.append(append).await.expect("it answers"), expected);
            }
            Step::Reopen => {
                log.close().await;
                log = SegmentLog::open(tiny(folder.path())).expect("it opens");
            }
        }
    }
    check(&log, &model).await?;
    log.close().await;
    let verified = eventlog::segment::verify(folder.path()).expect("it is whole");
    prop_assert_eq!(verified.head.0, model.events.len() as u64);
    check(&SegmentLog::open(tiny(folder.path())).expect("it opens"), &model).await
}

async fn check(log: &SegmentLog, model: &Model) -> Result<(), TestCaseError> {
    let events = all(log).await;
    prop_assert_eq!(events.len(), model.events.len());
    for (event, (stream, sequence, fact)) in events.iter().zip(&model.events) {
        prop_assert_eq!((&event.stream, event.sequence, &event.event), (stream, *sequence, fact));
    }
    for (stream, head) in &model.heads {
        prop_assert_eq!(log.stream_head(stream).await.expect("it reads"), *head);
        let of_stream: Vec<_> = log.read_stream(stream, Sequence(1)).try_collect().await.expect("it reads");
        let expected: Vec<_> = events.iter().filter(|event| event.stream == *stream).cloned().collect();
        prop_assert_eq!(of_stream, expected);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_log_answers_and_reads_as_the_model_does(steps in prop::collection::vec(step(), 1..150)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(play(steps))?;
    }
}
