//! What a scripted runtime was really asked, line by line: "at most once" and "never two at once" are proved from
//! this and not from what the server says about itself.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
};

use eventlog::{
    Fence, Generation,
    id::{CapabilityName, InstanceId, OperationId, SpaceId, TaskId},
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// What happened in a scripted runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// A runtime was started.
    RuntimeStarted,
    /// Nothing of it is left.
    RuntimeEnded,
    /// A step arrived.
    Begin,
    /// Its token was cancelled.
    Cancel,
    /// The step was answered.
    End,
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// What happened.
    pub moment: Moment,
    /// Microseconds of the wall clock, so that the lines of two servers can be compared.
    pub at_us: i64,
    /// Microseconds of the monotonic clock since the factory was made.
    pub monotonic_us: u64,
    /// For which Space.
    pub space: SpaceId,
    /// On which instance.
    pub instance: InstanceId,
    /// In which start.
    pub generation: Generation,
    /// Under which reservation.
    pub fence: Fence,
    /// Of which task; `None` for the runtime itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Of which dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// What was invoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<CapabilityName>,
    /// What it came to: an error's code, `completed` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// Where the lines go. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Journal(Sink);

#[derive(Debug, Clone, Default)]
enum Sink {
    #[default]
    Nowhere,
    File(Arc<File>),
    Memory(Arc<Mutex<Vec<Line>>>),
}

impl Journal {
    /// Keeps nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Appends JSON lines to a file (0600), one write each, so that a killed server leaves whole lines.
    ///
    /// # Errors
    /// The file can't be opened.
    pub fn to_file(path: &Path) -> std::io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt;
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        Ok(Self(Sink::File(Arc::new(file))))
    }

    /// Keeps the lines in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self(Sink::Memory(Arc::default()))
    }

    /// The lines kept in memory so far.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        match &self.0 {
            Sink::Memory(lines) => lines.lock().clone(),
            Sink::Nowhere | Sink::File(_) => Vec::new(),
        }
    }

    /// Reads a journal file back.
    ///
    /// # Errors
    /// The file can't be read, or a line is not ours.
    pub fn read(path: &Path) -> std::io::Result<Vec<Line>> {
        let text = std::fs::read_to_string(path)?;
        text.lines().map(|line| serde_json::from_str(line).map_err(Into::into)).collect()
    }

    pub(crate) fn write(&self, line: Line) {
        match &self.0 {
            Sink::Nowhere => {}
            Sink::Memory(lines) => lines.lock().push(line),
            Sink::File(file) => {
                let mut text = serde_json::to_vec(&line).expect("a line holds only ids and numbers");
                text.push(b'\n');
                if let Err(error) = (&**file).write_all(&text) {
                    tracing::error!(%error, "The journal of the scripted runtime took no line.");
                }
            }
        }
    }
}
