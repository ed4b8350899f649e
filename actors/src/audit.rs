//! What an auditor asks of a log besides its bytes: whether every history in it can be replayed, and whether the files
//! that it names are still those that were made.
//!
//! Pure folds and plain reads; nothing is decided here and nothing is changed.

use std::{
    collections::HashMap,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use eventlog::{
    RecordedEvent, Sequence, StreamId,
    event::space::ArtifactRecord,
    id::{InstanceId, SpaceId, WorkspaceId},
};
use sha2::{Digest, Sha256};

use crate::{
    artifact,
    download::{Shelf, evolve::evolve_recorded},
    instance::{self, InstanceState},
    space::{self, SpaceState},
    workspace::{self, WorkspaceState},
};

/// Where a data folder keeps artifacts.
pub const ARTIFACTS_FOLDER: &str = artifact::FOLDER;

/// An event that the rules could never have led to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// A stream begins with something else than its beginning.
    #[error("the stream does not begin with the event that begins one of its kind")]
    NotBegun,
    /// A closed Space goes on.
    #[error("an event follows the end of a closed Space")]
    AfterEnd,
    /// The fold is not where the log is: one of both has lost an event.
    #[error("the fold is at sequence {0}, and the log elsewhere")]
    OutOfStep(Sequence),
}

/// A Space while it is folded. Of a closed one nothing is kept but that it is closed.
enum Folded {
    Living(SpaceState),
    Closed,
}

/// Folds every stream of a log through its `evolve`, event by event in the order of the log. Memory: the state of what is
/// open.
#[derive(Default)]
pub struct Replay {
    spaces: HashMap<SpaceId, Folded>,
    instances: HashMap<InstanceId, InstanceState>,
    workspaces: HashMap<WorkspaceId, WorkspaceState>,
    downloads: HashMap<SpaceId, Shelf>,
    events: u64,
    unknown: u64,
}

impl Replay {
    /// Takes the next event of the log.
    ///
    /// # Errors
    /// [`Misfit`]: no command leads to this event in this place.
    pub fn take(&mut self, recorded: &RecordedEvent) -> Result<(), Misfit> {
        self.events += 1;
        // What a newer program wrote can begin a stream in ways that this one does not know.
        let is_known = !matches!(recorded.event, eventlog::Event::Unknown(_));
        self.unknown += u64::from(!is_known);
        let revision = match &recorded.stream {
            StreamId::Space(id) => self.space(*id, recorded)?,
            StreamId::Instance(id) => {
                let state = self.instances.remove(id).unwrap_or(InstanceState::Absent(*id));
                let state = instance::evolve_recorded(state, recorded);
                let revision = state.revision();
                self.instances.insert(*id, state);
                revision
            }
            StreamId::Workspace(id) => {
                let state = self.workspaces.remove(id).unwrap_or_else(|| WorkspaceState::Absent(id.clone()));
                let state = workspace::evolve_recorded(state, recorded);
                let revision = state.revision();
                self.workspaces.insert(id.clone(), state);
                revision
            }
            StreamId::Downloads(id) => {
                let shelf = self.downloads.remove(id).unwrap_or_else(|| Shelf::empty(*id));
                let shelf = evolve_recorded(shelf, recorded);
                let revision = shelf.revision;
                self.downloads.insert(*id, shelf);
                revision
            }
            StreamId::Server => recorded.sequence,
        };
        match revision {
            revision if revision == recorded.sequence || !is_known => Ok(()),
            Sequence::ZERO => Err(Misfit::NotBegun),
            revision => Err(Misfit::OutOfStep(revision)),
        }
    }

    fn space(&mut self, id: SpaceId, recorded: &RecordedEvent) -> Result<Sequence, Misfit> {
        let state = match self.spaces.remove(&id) {
            None => SpaceState::Absent(id),
            Some(Folded::Living(state)) => state,
            Some(Folded::Closed) => return Err(Misfit::AfterEnd),
        };
        let state = space::evolve_recorded(state, recorded);
        let revision = state.revision();
        let is_closed = matches!(state, SpaceState::Closed(_));
        self.spaces.insert(id, if is_closed { Folded::Closed } else { Folded::Living(state) });
        Ok(revision)
    }

    /// How many events were taken.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// How many of them are of a kind that this program does not know; they were written by a newer one.
    #[must_use]
    pub const fn unknown(&self) -> u64 {
        self.unknown
    }

    /// How many streams were folded, the server's own not counted.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.spaces.len() + self.instances.len() + self.workspaces.len() + self.downloads.len()
    }
}

/// What became of a file that the log names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactState {
    /// It has the recorded size and SHA-256.
    Whole,
    /// It is not there.
    Missing,
    /// It is another one.
    Changed,
}

/// Holds the file of an artifact against its record, and answers where it should lie.
///
/// # Errors
/// The file is there and can not be read.
pub fn check_artifact(
    data_dir: &Path,
    space: SpaceId,
    record: &ArtifactRecord,
) -> io::Result<(ArtifactState, PathBuf)> {
    let path = data_dir.join(artifact::FOLDER).join(space.to_string()).join(record.id.to_string());
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((ArtifactState::Missing, path)),
        Err(error) => return Err(error),
    };
    if file.metadata()?.len() != record.bytes {
        return Ok((ArtifactState::Changed, path));
    }
    let mut hasher = Sha256::new();
    io::copy(&mut file, &mut hasher)?;
    let is_whole = hex::encode(hasher.finalize()) == record.sha256;
    Ok((if is_whole { ArtifactState::Whole } else { ArtifactState::Changed }, path))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use eventlog::{
        Event, Hash, Position, SpaceEvent,
        event::space::CloseReason,
        fixture::{command, metadata, space as nth_space},
    };
    use uuid::Uuid;

    use super::*;
    use crate::space::scenario;

    fn recorded(sequence: u64, event: impl Into<Event>) -> RecordedEvent {
        RecordedEvent {
            position: Position(sequence),
            stream: nth_space(1),
            sequence: Sequence(sequence),
            event: event.into(),
            metadata: Arc::new(metadata(1)),
            command: command(sequence),
            hash: Hash::default(),
        }
    }

    #[test]
    fn a_history_that_no_command_leads_to_is_named() {
        let mut replay = Replay::default();
        let closed = SpaceEvent::Closed { reason: CloseReason::Requested };
        assert_eq!(replay.take(&recorded(1, closed.clone())), Err(Misfit::NotBegun));
        let mut replay = Replay::default();
        replay.take(&recorded(1, scenario::opened())).unwrap();
        assert_eq!(replay.take(&recorded(2, closed.clone())), Ok(()));
        assert_eq!(replay.take(&recorded(3, closed)), Err(Misfit::AfterEnd));
        assert_eq!((replay.events(), replay.unknown(), replay.streams()), (3, 0, 0));
    }

    #[test]
    fn an_artifact_is_whole_missing_or_changed() {
        let folder = tempfile::tempdir().unwrap();
        let space = SpaceId::from_uuid(Uuid::from_u64_pair(1, 1));
        let record = ArtifactRecord {
            id: eventlog::id::ArtifactId::from_uuid(Uuid::from_u64_pair(1, 2)),
            kind: "screenshot".to_owned(),
            media_type: "image/png".to_owned(),
            bytes: 7,
            sha256: hex::encode(Sha256::digest(b"picture")),
        };
        let state = || check_artifact(folder.path(), space, &record).unwrap();
        let (missing, path) = state();
        assert_eq!(missing, ArtifactState::Missing);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for (bytes, wanted) in [
            (&b"picture"[..], ArtifactState::Whole),
            (b"pictures", ArtifactState::Changed),
            (b"Picture", ArtifactState::Changed),
        ] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(state().0, wanted);
        }
    }
}
