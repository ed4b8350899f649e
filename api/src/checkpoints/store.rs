//! The folder of checkpoints in a data folder: the signing key, its public half, and every checkpoint so far.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use eventlog::{
    Hash, Position,
    checkpoint::{Checkpoint, PublicKey, Signer, notes},
    verify::Known,
};

/// The folder in the data folder.
pub const FOLDER: &str = "checkpoints";
const KEY_FILE: &str = "signing.key";
const PUBLIC_FILE: &str = "public.key";
const NOTES_FILE: &str = "checkpoints.txt";
/// The longest file of checkpoints that is read: more than a million of them.
const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// A checkpoint as it was read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCheckpoint {
    /// Its text.
    pub note: String,
    /// What it says.
    pub checkpoint: Checkpoint,
    /// Where it stands, for people.
    pub source: String,
}

/// Where a data folder keeps its checkpoints.
#[derive(Debug, Clone)]
pub struct CheckpointStore {
    folder: PathBuf,
    key_file: PathBuf,
}

impl CheckpointStore {
    /// Of this data folder; the key may lie elsewhere.
    #[must_use]
    pub fn new(data_dir: &Path, key_file: Option<&Path>) -> Self {
        let folder = data_dir.join(FOLDER);
        let key_file = key_file.map_or_else(|| folder.join(KEY_FILE), Path::to_owned);
        Self { folder, key_file }
    }

    /// The file of all checkpoints.
    #[must_use]
    pub fn notes_file(&self) -> PathBuf {
        self.folder.join(NOTES_FILE)
    }

    /// The file of the public key.
    #[must_use]
    pub fn public_file(&self) -> PathBuf {
        self.folder.join(PUBLIC_FILE)
    }

    /// The signing key; made where there is none yet. `first` is the hash of the log's first event, which names it.
    ///
    /// # Errors
    /// The key can not be read or written, or is that of another log.
    pub fn signer(&self, first: Hash) -> Result<Signer> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .with_context(|| format!("{} can not be made", self.folder.display()))?;
        let path = self.key_file.display();
        let signer = match Signer::load(&self.key_file) {
            Ok(signer) => signer,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A key in the place of another would make every checkpoint so far worthless.
                if self.notes_file().exists() && self.public_file().exists() {
                    bail!(
                        "the checkpoints in {} were signed by a key that is not in {path}: put it back there, or move \
                         {NOTES_FILE} and {PUBLIC_FILE} aside to begin anew with another",
                        self.folder.display()
                    );
                }
                let signer = Signer::new(Signer::name_of(first), &rand::random());
                signer.save(&self.key_file).with_context(|| format!("{path} can not be written"))?;
                signer
            }
            Err(error) => return Err(error).with_context(|| format!("{path} can not be used as a key")),
        };
        if signer.name() != Signer::name_of(first) {
            bail!(
                "the key in {path} is that of the log {}, and this log is {}",
                signer.name(),
                Signer::name_of(first)
            );
        }
        let public = format!("{}\n", signer.public_key());
        if fs::read_to_string(self.public_file()).ok().as_deref() != Some(&*public) {
            fs::write(self.public_file(), public)
                .with_context(|| format!("{} can not be written", self.public_file().display()))?;
        }
        Ok(signer)
    }

    /// The public key that lies beside the checkpoints. Whoever can change the log can change it as well.
    ///
    /// # Errors
    /// There is none yet.
    pub fn public_key(&self) -> Result<PublicKey> {
        read_key(&self.public_file())
    }

    /// Appends a checkpoint, durably.
    pub(super) fn append(&self, note: &str) -> io::Result<()> {
        append_note(&self.notes_file(), note)
    }

    /// Every checkpoint so far, all of them signed by `key`; none where there is no file yet.
    ///
    /// # Errors
    /// As [`read_notes`].
    pub fn read(&self, key: &PublicKey) -> Result<Vec<KeptCheckpoint>> {
        if self.notes_file().exists() { read_notes(&self.notes_file(), key) } else { Ok(Vec::new()) }
    }
}

/// Appends to a file of checkpoints, durably, with an empty line before each but the first.
pub(super) fn append_note(path: &Path, note: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let between = if file.metadata()?.len() == 0 { "" } else { "\n" };
    // One write: what a crash leaves of it is the end of a file, and is not read.
    file.write_all(format!("{between}{note}").as_bytes())?;
    file.sync_all()
}

/// Reads a public key from a file.
///
/// # Errors
/// It can not be read, or is none.
pub fn read_key(path: &Path) -> Result<PublicKey> {
    let text = text_of(path)?;
    text.trim().parse().with_context(|| format!("{} holds no public key", path.display()))
}

/// Reads a file of checkpoints, all of which must be signed by this key.
///
/// # Errors
/// It can not be read, or one of them is not good: then the file proves nothing.
pub fn read_notes(path: &Path, key: &PublicKey) -> Result<Vec<KeptCheckpoint>> {
    let shown = path.display();
    let text = text_of(path)?;
    let notes =
        notes(&text).map_err(|line| anyhow::anyhow!("{shown}, line {line}: this is no checkpoint"))?;
    let read = notes.into_iter().map(|note| {
        let source = format!("the checkpoint in line {} of {shown}", note.line);
        let checkpoint = key.check(&note.text).with_context(|| format!("{shown}, line {}", note.line))?;
        Ok(KeptCheckpoint { note: note.text, checkpoint, source })
    });
    read.collect()
}

/// Reads a file of checkpoints that somebody named, to hold a log against it: it must hold some, and nothing else.
///
/// # Errors
/// As [`read_notes`]; there is none in it, or its end is none: a copy that was cut or changed proves less than it seems to.
pub fn read_kept_notes(path: &Path, key: &PublicKey) -> Result<Vec<KeptCheckpoint>> {
    let (read, text) = (read_notes(path, key)?, text_of(path)?);
    let Some(last) = read.last() else { bail!("{} holds no checkpoint", path.display()) };
    if !text.trim_end().ends_with(last.note.trim_end()) {
        bail!(
            "{}: what follows {} is no checkpoint: the file was cut or changed",
            path.display(),
            last.source.split(" of ").next().unwrap_or(&last.source)
        );
    }
    Ok(read)
}

/// Puts the file of checkpoints aside if one of them speaks of more than `head` events; answers where it lies then.
///
/// # Errors
/// It can not be read or renamed.
pub fn put_aside_beyond(store: &CheckpointStore, head: Position) -> Result<Option<PathBuf>> {
    let file = store.notes_file();
    if !file.exists() {
        return Ok(None);
    }
    let kept = store.public_key().and_then(|key| store.read(&key));
    // What can not be read contradicts whatever comes.
    if kept.is_ok_and(|kept| kept.iter().all(|kept| kept.checkpoint.size <= head)) {
        return Ok(None);
    }
    let names = (1..).map(|number| file.with_file_name(format!("checkpoints.before-repair-{number}.txt")));
    let aside = { names }.find(|name| !name.exists()).expect("there are names enough");
    fs::rename(&file, &aside).with_context(|| format!("{} can not be put aside", file.display()))?;
    Ok(Some(aside))
}

/// Puts the checkpoints and their public key aside: they were signed by a key that is not here. Answers where they lie
/// then; `None` where there are none.
///
/// # Errors
/// They can not be renamed.
pub fn put_aside_foreign(store: &CheckpointStore) -> Result<Option<(PathBuf, PathBuf)>> {
    if store.key_file.exists() || !store.notes_file().exists() {
        return Ok(None);
    }
    let aside = |number: u32| {
        let in_folder = |name| store.notes_file().with_file_name(name);
        (
            in_folder(format!("checkpoints.restored-{number}.txt")),
            in_folder(format!("public.restored-{number}.key")),
        )
    };
    let free = (1..).map(aside).find(|(notes, key)| !notes.exists() && !key.exists());
    let (notes, key) = free.expect("there are names enough");
    for (from, to) in [(store.notes_file(), &notes), (store.public_file(), &key)] {
        fs::rename(&from, to).with_context(|| format!("{} can not be put aside", from.display()))?;
    }
    Ok(Some((notes, key)))
}

/// Leaves those checkpoints out that speak of more than `head` events.
///
/// # Errors
/// They can not be read or written.
pub fn keep_up_to(store: &CheckpointStore, head: Position) -> Result<()> {
    if !store.notes_file().exists() {
        return Ok(());
    }
    let kept = store.read(&store.public_key()?)?;
    fs::remove_file(store.notes_file()).context("the file of checkpoints can not be written")?;
    for kept in kept.iter().filter(|kept| kept.checkpoint.size <= head) {
        store.append(&kept.note).context("the file of checkpoints can not be written")?;
    }
    Ok(())
}

/// What checkpoints let a log be held against.
#[must_use]
pub fn known(read: &[KeptCheckpoint]) -> Vec<Known> {
    read.iter().map(|read| read.checkpoint.known(read.source.clone())).collect()
}

fn text_of(path: &Path) -> Result<String> {
    let mut text = String::new();
    let opened = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    let read = opened.with_context(|| format!("{} can not be read", path.display()))?;
    if read as u64 == FILE_BYTES_MAX {
        bail!("{} is too long for a file of checkpoints", path.display());
    }
    Ok(text)
}
