//! `export`, `import`, `backup`, `restore`: the log moved, checked on the way, byte for byte.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use eventlog::{
    Position, StreamId,
    id::SpaceId,
    transfer::{self, Backup, Format, Moved, Selection},
};

use super::output;
use crate::{
    checkpoints,
    config::{Config, FolderFlags},
    offline,
};

pub(super) const EXPORT_HELP: &str = "\
Checks the log, then writes it to the standard output or to --to FILE. Works beside a running server; it ends at the last
batch that was whole when it began. `lines` is one JSON object a line: what each event says, the hash before it, its own
hash, and its bytes; `binary` is the segments as they are, in one file. A whole export can be imported; one of a stream,
or from a later position on, is for reading.
An export holds what the log holds: args are sealed in it, under keys that are not part of it.

Examples:
  browserspace export > log.ndjson
  browserspace export --format binary --to log.bin
  browserspace export --stream spc_01jdz… | jq 'select(.type == \"event\").kind'";

pub(super) const IMPORT_HELP: &str = "\
Reads an export of a whole log, from a file or from the standard input (-), checks everything, and only then puts it in
place. A data folder that has a log is refused. The result is byte for byte the log that was exported.";

pub(super) const BACKUP_HELP: &str = "\
Also beside a running server. The log is checked first; sealed segments and artifacts are linked where the disk allows
it, else copied; the segment that grows is copied up to its last whole batch; checkpoints are copied. Then the copy is
checked. Neither the keys of args, nor the signing key, nor tokens' texts are part of it. A backup is laid out as a data
folder: `browserspace verify --data-dir BACKUP` checks it, `browserspace restore` makes a data folder of it.";

pub(super) const RESTORE_HELP: &str = "\
Makes the data folder (--data-dir, which must not be there or be empty) of a backup: everything is copied, checked, and
then put in place. With --to-position the log ends at the last batch that ends at or before it. Views and index are made
anew at the next start. The signing key is not in a backup: the checkpoints so far are put aside with their public key, and
the next one begins with a new key. A log that was cut on purpose contradicts the checkpoints of what was cut off: they stay with the
backup.";

/// How an export is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// One JSON object a line.
    Lines,
    /// The segments as they are.
    Binary,
}

/// What `export` is told.
#[derive(Debug, Args)]
pub(super) struct ExportOptions {
    #[command(flatten)]
    folder: FolderFlags,
    /// How it is written
    #[arg(long, value_enum, default_value_t = FormatName::Lines)]
    format: FormatName,
    /// The file to write; it must not be there [default: the standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Only this stream: spc_…, or as in workspace/default
    #[arg(long, value_name = "STREAM", value_parser = stream)]
    stream: Option<StreamId>,
    /// From this position on
    #[arg(long, value_name = "N", default_value_t = 1)]
    from_position: u64,
    /// Up to this position [default: the end]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    to_position: u64,
}

/// What `import` is told.
#[derive(Debug, Args)]
pub(super) struct ImportOptions {
    /// The file that `export` wrote; - is the standard input
    file: PathBuf,
    #[command(flatten)]
    folder: FolderFlags,
}

/// What `backup` is told.
#[derive(Debug, Args)]
pub(super) struct BackupOptions {
    /// The folder to make; it must not be there, or be empty
    target: PathBuf,
    #[command(flatten)]
    folder: FolderFlags,
}

/// What `restore` is told.
#[derive(Debug, Args)]
pub(super) struct RestoreOptions {
    /// The folder that `backup` made
    backup: PathBuf,
    #[command(flatten)]
    folder: FolderFlags,
    /// Only up to the last batch that ends at or before this position
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    to_position: u64,
}

fn stream(text: &str) -> Result<StreamId, String> {
    let space = text.parse::<SpaceId>().map(StreamId::Space);
    space.or_else(|_| text.parse()).map_err(|_| "wanted spc_…, or as in workspace/default".to_owned())
}

/// Writes an export.
pub(super) fn export(options: &ExportOptions) -> Result<ExitCode> {
    let config = Config::load_for(&options.folder)?;
    let log = offline::existing_log(&config)?;
    let selection = Selection {
        from: Position(options.from_position),
        to: Position(options.to_position),
        stream: options.stream.clone(),
    };
    let format = match options.format {
        FormatName::Lines => Format::Lines,
        FormatName::Binary => Format::Binary,
    };
    let exported = match &options.to {
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            transfer::export(&log, format, &selection, &mut out).map_err(reader_gone)?
        }
        Some(path) => {
            let shown = path.display();
            let file = File::create_new(path).with_context(|| format!("{shown} can not be made"))?;
            let mut out = BufWriter::new(&file);
            let exported = transfer::export(&log, format, &selection, &mut out)?;
            out.flush()
                .and_then(|()| file.sync_all())
                .with_context(|| format!("{shown} can not be written"))?;
            exported
        }
    };
    let kind = if exported.whole { "the whole log" } else { "a part of the log" };
    super::say(&format!("exported {} events of {kind} up to position {}\n", exported.events, exported.head));
    Ok(ExitCode::SUCCESS)
}

/// Whoever read our output has gone: no failure.
fn reader_gone(error: transfer::TransferError) -> anyhow::Error {
    match &error {
        transfer::TransferError::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => {
            output::ReaderGone.into()
        }
        _ => error.into(),
    }
}

/// Takes an export in.
pub(super) fn import(options: &ImportOptions) -> Result<ExitCode> {
    let config = Config::load_for(&options.folder)?;
    let log = offline::log_folder(&config.data_dir);
    let moved = if options.file == Path::new("-") {
        transfer::import(&mut io::stdin().lock(), &log)?
    } else {
        let shown = options.file.display();
        let file = File::open(&options.file).with_context(|| format!("{shown} can not be read"))?;
        transfer::import(&mut BufReader::with_capacity(256 * 1024, file), &log)?
    };
    tell("imported", moved)
}

/// Makes a backup.
pub(super) fn backup(options: &BackupOptions) -> Result<ExitCode> {
    let config = Config::load_for(&options.folder)?;
    let log = offline::existing_log(&config)?;
    let artifacts = config.data_dir.join(actors::audit::ARTIFACTS_FOLDER);
    let store = checkpoints::CheckpointStore::new(&config.data_dir, None);
    let (notes, key) = (store.notes_file(), store.public_file());
    let from = Backup {
        log: &log,
        beside: vec![(actors::audit::ARTIFACTS_FOLDER, &artifacts)],
        files: vec![("checkpoints/checkpoints.txt", &notes), ("checkpoints/public.key", &key)],
    };
    tell("backed up", transfer::backup(&from, &options.target)?)
}

/// Makes a data folder of a backup.
pub(super) fn restore(options: &RestoreOptions) -> Result<ExitCode> {
    let config = Config::load_for(&options.folder)?;
    if !offline::log_folder(&options.backup).is_dir() {
        bail!("{} is no backup: it has no log", options.backup.display());
    }
    let moved = transfer::restore(&options.backup, &config.data_dir, Position(options.to_position))?;
    let key_file = config.checkpoints.key_file.as_deref();
    let store = checkpoints::CheckpointStore::new(&config.data_dir, key_file);
    // Those of what was cut off would say that the log is another one, which is what was wanted.
    if options.to_position > 0 {
        checkpoints::keep_up_to(&store, moved.head)?;
    }
    tell("restored", moved)?;
    if let Some((notes, key)) = checkpoints::put_aside_foreign(&store)? {
        // A backup has no signing key: what it signed stays good, and what comes is signed by another.
        super::say(&format!(
            "The signing key was not in the backup. The checkpoints so far are kept: browserspace verify --checkpoints \
             {} --key {}\nThe next checkpoint begins with a new key. To go on with the old one, put its signing.key into \
             checkpoints/, and both files back under their names, before the first start.\n",
            notes.display(),
            key.display()
        ));
    }
    super::say(
        "Tokens are as they were; the file operator.token was not in the backup: put it back, or make one with \
         browserspace token create.\n",
    );
    Ok(ExitCode::SUCCESS)
}

fn tell(what: &str, moved: Moved) -> Result<ExitCode> {
    output::line(&format!("{what} the log up to position {}\nglobal   {}", moved.head, moved.global))?;
    Ok(ExitCode::SUCCESS)
}
