//! What lies beside the log of a folder that nobody uses: the views, held against a fold of our own.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use eventlog::{EventLog, Position, verify::Known};
use projections::{Dump, Place, Projector, Store};

use super::{folder_log::FolderLog, report::ViewsReport};

/// A folder for copies, removed when it is not needed any more.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn make() -> Result<Self> {
        // The name is not to be guessed: what is put there is opened again.
        let name = format!("browserspace-verify-{:016x}", rand::random::<u64>());
        let path = std::env::temp_dir().join(name);
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("{} can not be made", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It holds copies only; that it stays is no reason to fail.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How far the views have seen the log: it was acknowledged at least so far.
#[must_use]
pub fn seen_by_views(views: &Place) -> Option<Known> {
    let seen = wait(Store::reached_in(views)).ok()?.ok().flatten()?;
    Some(Known { position: seen, global: None, root: None, source: "a view".to_owned() })
}

/// Folds the log anew and compares it, row by row, with the views. `None`: there are none.
///
/// A file is copied, and the copy brought up to `head`. A PostgreSQL is read in one transaction, and held against the log
/// up to where it has come.
pub(super) fn check_views(
    folder: &Path,
    views: &Place,
    scratch: &Path,
    head: Position,
) -> Result<Option<Result<ViewsReport, String>>> {
    let (kept, head) = match views {
        Place::Sqlite(file) if !file.exists() => return Ok(None),
        Place::Sqlite(file) => {
            let copy = copied(file, scratch)?;
            (wait(fold(&copy, folder, head))?.map(Some), head)
        }
        Place::Postgres { .. } => match wait(Store::look(views))?.map_err(anyhow::Error::from) {
            Ok(None) => return Ok(None),
            Ok(Some((seen, dump))) => (Ok(Some(dump)), seen.min(head)),
            Err(error) => (Err(error), head),
        },
    };
    let kept = match kept {
        Ok(kept) => kept.unwrap_or_default(),
        Err(error) => return Ok(Some(Err(format!("the views can not be read: {error:#}")))),
    };
    let fresh = Place::Sqlite(scratch.join("fresh.sqlite"));
    let wanted = wait(fold(&fresh, folder, head))?.context("the log can not be folded into views")?;
    Ok(Some(compare(&kept, &wanted, head)))
}

fn copied(file: &Path, scratch: &Path) -> Result<Place> {
    let copy = scratch.join("views.sqlite");
    for suffix in ["", "-wal"] {
        let with = |path: &Path| {
            let mut with = path.as_os_str().to_owned();
            with.push(suffix);
            PathBuf::from(with)
        };
        match fs::copy(with(file), with(&copy)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("{} can not be copied", file.display()));
            }
            _ => {}
        }
    }
    Ok(Place::Sqlite(copy))
}

async fn fold(place: &Place, folder: &Path, head: Position) -> Result<Dump> {
    let log: Arc<dyn EventLog> = Arc::new(FolderLog::new(folder.to_owned(), head));
    let store = Store::open(place).await?;
    Projector::open(store.clone(), log).await?.catch_up().await?;
    let dump = store.dump().await;
    store.close().await;
    Ok(dump?)
}

fn compare(kept: &Dump, wanted: &Dump, head: Position) -> Result<ViewsReport, String> {
    let mut rows = 0;
    for (table, wanted) in wanted {
        let kept = kept.get(table).map_or(&[][..], Vec::as_slice);
        if let Some(at) = (0..kept.len().max(wanted.len())).find(|at| kept.get(*at) != wanted.get(*at)) {
            return Err(format!("row {} of the view {table} is not what the log says", at + 1));
        }
        rows += kept.len();
    }
    Ok(ViewsReport { position: head.0, rows })
}

/// Runs what waits, on a thread that has no runtime.
fn wait<T>(work: impl Future<Output = T>) -> Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}
