//! `checkpoint`, `prove` and `verify-proof`: signed statements of the log, and that one event stands in it.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use eventlog::{
    Position, Sequence, StreamId,
    checkpoint::PublicKey,
    id::SpaceId,
    proof::{PROOF_BYTES_MAX, Proof, Which},
};
use serde_json::json;

use super::{block_on, client::Client, output, print};
use crate::{
    checkpoints::{CheckpointStore, Keeper, KeptCheckpoint, Made, read_kept_notes, read_key},
    config::{Config, FolderFlags},
    http::wire::event::EventBody,
    offline,
};

pub(super) const HELP: &str = "\
Says, signed, what the log holds now: how many events, the root of the Merkle tree over them, the hash of the whole log.
Printed, kept in DIR/checkpoints/checkpoints.txt, and carried to the places of the section [checkpoints]. A running
server makes them by itself; this makes one at once, by the server if it runs.
Keep them, and the public key, where whoever can write to the data folder can not reach them.

Examples:
  browserspace checkpoint > elsewhere/log.txt         and later: browserspace verify --checkpoints elsewhere/log.txt
  browserspace checkpoint --public-key > elsewhere/log.key";

pub(super) const PROVE_HELP: &str = "\
Writes a small file that shows, with the public key alone, that one event stands in the log: the event as it is stored,
the path from it to the root of the tree, and the signed checkpoint of that root. Uses the newest checkpoint.
An event is named by its position, or by its stream and its sequence there.

Examples:
  browserspace prove 17 > event.proof
  browserspace prove spc_01jdz…:3 > event.proof
  browserspace verify-proof event.proof --key log.key";

pub(super) const VERIFY_PROOF_HELP: &str = "\
Needs no data folder and no server: only the file and the public key, which must come from a place that you trust. Prints
the event. Exit codes: 0 it is proved; 1 the file or the key can not be read; 3 it is not proved.";

const EXIT_UNPROVED: u8 = 3;

/// What `checkpoint` is told.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    folder: FolderFlags,
    /// Print the public key of this log, and make nothing
    #[arg(long)]
    public_key: bool,
}

/// What `prove` is told.
#[derive(Debug, Args)]
pub(super) struct ProveOptions {
    /// The event: its position, or STREAM:SEQUENCE as in spc_…:3 or workspace/default:1
    #[arg(value_parser = which)]
    event: Which,
    #[command(flatten)]
    folder: FolderFlags,
    /// The file of checkpoints [default: DIR/checkpoints/checkpoints.txt]
    #[arg(long, value_name = "FILE")]
    checkpoints: Option<PathBuf>,
    /// The file of the public key [default: DIR/checkpoints/public.key]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

/// What `verify-proof` is told.
#[derive(Debug, Args)]
pub(super) struct VerifyProofOptions {
    /// The file that `prove` wrote
    proof: PathBuf,
    /// The file of the public key of the log, from a place that you trust
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The event as JSON
    #[arg(long)]
    json: bool,
}

fn which(text: &str) -> Result<Which, String> {
    let wanted = || "wanted a position, or STREAM:SEQUENCE as in spc_…:3".to_owned();
    let at_least_one = |text: &str| text.parse().ok().filter(|number: &u64| *number > 0).ok_or_else(wanted);
    let Some((stream, sequence)) = text.rsplit_once(':') else {
        return at_least_one(text).map(|position| Which::Position(Position(position)));
    };
    let space = stream.parse::<SpaceId>().map(StreamId::Space);
    let stream = space.or_else(|_| stream.parse()).map_err(|_| wanted())?;
    Ok(Which::Sequence(stream, Sequence(at_least_one(sequence)?)))
}

/// Makes a checkpoint and prints it.
pub(super) fn checkpoint(options: &Options) -> Result<ExitCode> {
    let config = Config::load_for(&options.folder)?;
    offline::existing_log(&config)?;
    let store = CheckpointStore::new(&config.data_dir, config.checkpoints.key_file.as_deref());
    if options.public_key {
        let key =
            store.public_key().context("there is no checkpoint yet: browserspace checkpoint makes one")?;
        output::line(&key.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let note = block_on(async {
        if let Some(client) = Client::of_running(&config.data_dir).await? {
            let answer = client.post("/log/checkpoint", &json!({})).await?;
            let note = answer["data"]["checkpoint"].as_str();
            return note.map(ToOwned::to_owned).context("the server's answer holds no checkpoint");
        }
        // Held by us, so that nobody adds to it meanwhile.
        let held = offline::Offline::open(&config).await?;
        let runtime = tokio::runtime::Handle::current();
        let (log, settings) = (offline::log_folder(&config.data_dir), config.checkpoints.clone());
        let head = held.head();
        let making = tokio::task::spawn_blocking(move || {
            let always = || true;
            Keeper::open(&log, store, &settings, head, runtime, &always)?.sign(head, &always)
        });
        let made = making.await;
        held.close().await;
        let Made { note, .. } = made??;
        Ok(note)
    })?;
    // One that goes to the standard output by the configuration is there already.
    if !config.checkpoints.stdout {
        output::write(&note)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The public key and the checkpoints that are meant: those that were named, else those of the data folder.
pub(super) fn key_and_checkpoints(
    config: &Config,
    key: Option<&Path>,
    checkpoints: Option<&Path>,
) -> Result<(PublicKey, Vec<KeptCheckpoint>)> {
    let store = CheckpointStore::new(&config.data_dir, None);
    let key = match key {
        Some(path) => read_key(path)?,
        None => store.public_key().context("the key of the log must be named with --key")?,
    };
    let kept = match checkpoints {
        Some(path) => read_kept_notes(path, &key)?,
        None => store.read(&key)?,
    };
    Ok((key, kept))
}

/// Makes a proof and prints it.
pub(super) fn prove(options: &ProveOptions) -> Result<ExitCode> {
    let config = Config::load_for(&options.folder)?;
    let log = offline::existing_log(&config)?;
    let (key, kept) = key_and_checkpoints(&config, options.key.as_deref(), options.checkpoints.as_deref())?;
    let newest = kept.into_iter().max_by_key(|kept| kept.checkpoint.size);
    let newest = newest.context("there is no checkpoint yet: browserspace checkpoint makes one")?;
    if let Which::Position(position) = options.event
        && position > newest.checkpoint.size
    {
        let head = offline::head(&config)?;
        if position > head {
            bail!("there is no position {position}: the log ends at position {head}");
        }
        bail!(
            "the newest checkpoint ends at position {}, before position {position}: make another one with browserspace \
             checkpoint",
            newest.checkpoint.size
        );
    }
    let proof = Proof::make(&log, &options.event, &newest.note, &newest.checkpoint)?;
    // What is printed was checked as its reader will check it.
    proof.check(&key).context("the proof does not hold")?;
    output::write(&proof.to_text())?;
    Ok(ExitCode::SUCCESS)
}

/// Checks a proof and prints what it proves.
pub(super) fn verify_proof(options: &VerifyProofOptions) -> Result<ExitCode> {
    let key = read_key(&options.key)?;
    let path = options.proof.display();
    let length = std::fs::metadata(&options.proof).with_context(|| format!("{path} can not be read"))?.len();
    if length > PROOF_BYTES_MAX as u64 {
        bail!("{path} is too long for a proof");
    }
    let bytes = std::fs::read(&options.proof).with_context(|| format!("{path} can not be read"))?;
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("{path} is no text"))?;
    let proved = match Proof::of_text(&text).and_then(|proof| proof.check(&key)) {
        Ok(proved) => proved,
        Err(error) => {
            let error = format!("{:#}", anyhow::Error::new(error));
            super::say(&format!("NOT PROVED: {}\n", print::escaped(&error)));
            return Ok(ExitCode::from(EXIT_UNPROVED));
        }
    };
    let body = EventBody::of_log(&proved.event);
    if options.json {
        output::line(&serde_json::to_string(&body)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let checkpoint = &proved.checkpoint;
    output::write(&format!(
        "PROVED   position {} of the log {}\n         {}  {}  {}  {}\n         signed at position {}, {}\n",
        body.position,
        print::escaped(&checkpoint.origin),
        body.recorded_at,
        proved.event.stream,
        print::escaped(&body.kind),
        print::fields(&body.payload),
        checkpoint.size,
        print::escaped(&checkpoint.time),
    ))?;
    Ok(ExitCode::SUCCESS)
}
