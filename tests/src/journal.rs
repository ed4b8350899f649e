//! What the scripted runtimes were really asked: read from their own journal, never from a task's status.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;
use serde_json::{Value, json};

/// What a scripted step shall do; it stands in the URL of a `navigate`.
#[derive(Debug, Clone, Default)]
pub struct Script(Vec<(&'static str, String)>);

impl Script {
    /// A step that succeeds at once.
    #[must_use]
    pub fn ok() -> Self {
        Self::default()
    }

    /// A step with this outcome: `fail`, `hang`, `crash`, `late`, `slow_cancel`.
    #[must_use]
    pub fn outcome(outcome: &str) -> Self {
        Self::default().and("outcome", outcome)
    }

    /// A step that works for so long first.
    #[must_use]
    pub fn delay_ms(milliseconds: u64) -> Self {
        Self::default().and("delay_ms", milliseconds.to_string())
    }

    /// The same step, with one more parameter.
    #[must_use]
    pub fn and(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// The args of the `navigate` that plays it.
    #[must_use]
    pub fn args(&self) -> Value {
        let query: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        json!({ "url": format!("http://scripted.invalid/?{}", query.join("&")) })
    }
}

#[derive(Debug, Clone, Deserialize)]
struct Line {
    moment: String,
    at_us: i64,
    monotonic_us: u64,
    space: String,
    generation: u64,
    fence: u64,
    #[serde(default)]
    task: Option<String>,
    #[serde(default)]
    outcome: Option<String>,
}

/// How a call ended, as the runtime saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnd {
    /// Its place among the lines of the journal.
    pub line: usize,
    /// When, on the clock that [`Call::begun_us`] is of.
    pub at_us: u64,
    /// When, in microseconds of the wall clock.
    pub wall_us: i64,
    /// `completed`, `cancelled`, or an error's code.
    pub outcome: String,
}

/// One call of a runtime.
#[derive(Debug, Clone)]
pub struct Call {
    /// Of which task.
    pub task: String,
    /// For which Space.
    pub space: String,
    /// In which start of the runtime.
    pub generation: u64,
    /// Under which reservation.
    pub fence: u64,
    /// Its place among the lines of the journal.
    pub line: usize,
    /// When it began, on a clock that does not jump; comparable within one start of the server.
    pub begun_us: u64,
    /// Where among the lines its cancel arrived, if one did.
    pub cancel_line: Option<usize>,
    /// How it ended; `None` while it runs, or if its server was killed.
    pub end: Option<CallEnd>,
}

impl Call {
    /// Whether both were in work at the same time, in one start of the server.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let end = |call: &Self| call.end.as_ref().map_or(u64::MAX, |end| end.at_us);
        self.begun_us < end(other) && other.begun_us < end(self)
    }
}

/// The journal, read once.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    /// Every call, in the order in which they began.
    pub calls: Vec<Call>,
    /// How many runtimes were started, by Space.
    pub starts: BTreeMap<String, usize>,
}

impl Journal {
    /// Reads the journal of the server on `data_dir`; an absent one is empty.
    ///
    /// # Panics
    /// When a line is not as the runtime writes it.
    #[must_use]
    pub fn read(data_dir: &Path) -> Self {
        let text = fs::read_to_string(data_dir.join("runtime/scripted.jsonl")).unwrap_or_default();
        // Each line is one write; what follows the last line feed is one that is being written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let mut journal = Self::default();
        for (place, line) in whole.lines().map(parse).enumerate() {
            journal.take(place, line);
        }
        journal
    }

    fn take(&mut self, place: usize, line: Line) {
        match line.moment.as_str() {
            "runtime_started" => *self.starts.entry(line.space).or_default() += 1,
            "begin" => self.calls.push(Call {
                task: line.task.expect("a step has a task"),
                space: line.space,
                generation: line.generation,
                fence: line.fence,
                line: place,
                begun_us: line.monotonic_us,
                cancel_line: None,
                end: None,
            }),
            "cancel" => self.open(&line).cancel_line = Some(place),
            "end" => {
                let outcome = line.outcome.clone().expect("an end says its outcome");
                let end = CallEnd { line: place, at_us: line.monotonic_us, wall_us: line.at_us, outcome };
                self.open(&line).end = Some(end);
            }
            _ => {}
        }
    }

    fn open(&mut self, line: &Line) -> &mut Call {
        let same = |call: &&mut Call| call.end.is_none() && Some(&call.task) == line.task.as_ref();
        self.calls.iter_mut().rev().find(same).expect("what ends has begun")
    }

    /// The calls of one task.
    #[must_use]
    pub fn of_task(&self, task: &str) -> Vec<&Call> {
        self.calls.iter().filter(|call| call.task == task).collect()
    }

    /// The calls of one Space.
    #[must_use]
    pub fn of_space(&self, space: &str) -> Vec<&Call> {
        self.calls.iter().filter(|call| call.space == space).collect()
    }

    /// Checks that no task was called twice.
    ///
    /// # Panics
    /// When one was.
    #[track_caller]
    pub fn at_most_once(&self) {
        let mut counts = BTreeMap::<&str, usize>::new();
        for call in &self.calls {
            *counts.entry(&call.task).or_default() += 1;
        }
        let twice: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 1).collect();
        assert!(twice.is_empty(), "called more than once: {twice:?}");
    }
}
