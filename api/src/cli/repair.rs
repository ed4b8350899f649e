//! `repair`: for a broken log without a good copy. Says what is lost; does it only when that is accepted, and records it.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use eventlog::{
    Position, ServerEvent,
    repair::{self, Loss},
    segment::is_held,
    verify::{self, FaultKind},
};
use projections::Store;

use super::{block_on, output, print};
use crate::{
    audit,
    checkpoints::{self, CheckpointStore},
    config::{Config, FolderFlags},
    offline::{self, Offline},
};

pub(super) const HELP: &str = "\
Try a good copy first: `browserspace restore`, or the one damaged segment from a backup in its place. A tail that a crash
has torn needs no repair: the next start cuts it off by itself.
Without --accept-loss this only says what would be lost, and changes nothing. With it, the log is cut behind the last
whole batch before the first bad place; everything that is cut off stays beside, in files that end in .damaged; the views
are made anew; and an event `repaired` in the log says what was lost. Checkpoints of what was cut off are put aside:
those that you kept elsewhere go on saying that this is another log than the one that was signed, and that is so.
Damage inside of a sealed segment keeps no server from starting: only the streams it is in are refused. To cut the log
there all the same, and lose everything behind it, say --cut-sealed too.

Exit codes: 0 nothing to repair, or repaired; 1 it could not be done; 3 events would be lost, and that was not accepted.";

const EXIT_NOT_ACCEPTED: u8 = 3;
/// Streams that are listed by name.
const STREAMS_SHOWN_MAX: usize = 20;

/// What `repair` is told.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    folder: FolderFlags,
    /// Cut the log before its first bad place, and lose what lies behind it
    #[arg(long)]
    accept_loss: bool,
    /// Also where a server would start with the damage as it is
    #[arg(long, requires = "accept_loss")]
    cut_sealed: bool,
}

/// Looks, and cuts if that was accepted.
pub(super) fn repair(options: &Options) -> Result<ExitCode> {
    let config = Config::load_for(&options.folder)?;
    let log = offline::existing_log(&config)?;
    if is_held(&log) {
        bail!("a server runs on {}: stop it first", config.data_dir.display());
    }
    let views = config.views();
    let known = audit::seen_by_views(&views).into_iter().collect();
    let Some(loss) = repair::survey(&log, known)? else {
        output::line("nothing to repair: the log is whole (a torn tail is cut by the next start)")?;
        return Ok(ExitCode::SUCCESS);
    };
    output::write(&describe(&loss))?;
    if !options.accept_loss || (loss.is_contained && !options.cut_sealed) {
        output::line(if loss.is_contained {
            "nothing was changed. A server starts with this damage and refuses only the streams it is in; put a good copy of \
             the file in its place. To cut here all the same: --accept-loss --cut-sealed"
        } else {
            "nothing was changed. If there is no good copy of the file: --accept-loss"
        })?;
        return Ok(ExitCode::from(EXIT_NOT_ACCEPTED));
    }
    let kept = repair::cut(&log, &loss)?;
    block_on(async { Ok(Store::remove(&views).await?) }).context("the views can not be removed")?;
    let store = CheckpointStore::new(&config.data_dir, None);
    let aside = checkpoints::put_aside_beyond(&store, loss.head)?;
    let kept: Vec<String> = kept
        .iter()
        .map(|path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned())
        .collect();
    let position = record(&config, &loss, &kept)?;
    for file in &kept {
        output::line(&format!("kept     {}", print::escaped(file)))?;
    }
    if let Some(aside) = aside {
        output::line(&format!("aside    {}", aside.display()))?;
    }
    output::line(&format!(
        "repaired; the event `repaired` at position {position} says so. The views are made anew at the next start."
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn record(config: &Config, loss: &Loss, kept: &[String]) -> Result<Position> {
    block_on(async {
        // What the views had seen is among what was given up.
        let offline = Offline::open_for_rebuild(config).context("the log was cut, and does not open")?;
        let boot = offline.boot();
        let file = loss.fault.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let recorded = offline.record(ServerEvent::Repaired {
            boot,
            damage: verify_word(loss.fault.kind),
            file,
            offset: loss.end.offset,
            first_lost: loss.head.next(),
            last_lost: loss.last_lost,
            kept: kept.to_vec(),
        });
        let recorded = recorded.await;
        offline.close().await;
        recorded
    })
}

fn verify_word(kind: FaultKind) -> String {
    audit::word(&kind)
}

fn describe(loss: &Loss) -> String {
    let verify::Fault { kind, file, offset, what, stream, .. } = &loss.fault;
    let (first, last) = (loss.head.next(), loss.last_lost);
    let mut said = format!(
        "first bad place: {} in {} at byte {offset}: {}\n",
        verify_word(*kind),
        print::escaped(&file.display().to_string()),
        print::escaped(what)
    );
    said.push_str(&if last >= first {
        format!("LOST     positions {first} to {last}, {} bytes of segments\n", loss.bytes)
    } else {
        format!(
            "LOST     {} bytes behind position {}, in which no event can be read\n",
            loss.bytes, loss.head
        )
    });
    if let Some(stream) = stream {
        said.push_str(&format!("         the broken one, of {stream} as far as its bytes tell\n"));
    }
    for (stream, count) in loss.streams.iter().take(STREAMS_SHOWN_MAX) {
        said.push_str(&format!("         {count} readable events of {stream}\n"));
    }
    if loss.streams.len() > STREAMS_SHOWN_MAX {
        said.push_str(&format!("         and of {} more streams\n", loss.streams.len() - STREAMS_SHOWN_MAX));
    }
    said
}
