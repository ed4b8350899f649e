//! Places outside of the data folder that checkpoints are carried to. One that does not take them now gets the newest one
//! later: it speaks of everything that the ones before it spoke of.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};
use tokio::runtime::Handle;
use tracing::warn;
use url::Url;

use super::{CheckpointsConfig, store::append_note};

const HTTP_TIMEOUT: Duration = Duration::from_secs(10);

enum Place {
    /// A file in a folder, named after the log.
    File(PathBuf),
    /// An address.
    Http(Box<Url>),
    Stdout,
}

struct Sink {
    place: Place,
    /// The newest checkpoint that it has not taken yet.
    owed: Option<String>,
}

/// All of them.
pub(super) struct Sinks {
    sinks: Vec<Sink>,
    http: reqwest::Client,
    runtime: Handle,
}

impl Sinks {
    /// Those that are configured, for the log of this name.
    pub(super) fn new(config: &CheckpointsConfig, name: &str, runtime: Handle) -> Result<Self> {
        let file = config.folder.as_ref().map(|folder| Place::File(folder.join(format!("{name}.txt"))));
        let http = config.url.clone().map(|url| Place::Http(Box::new(url)));
        let stdout = config.stdout.then_some(Place::Stdout);
        let places = [file, http, stdout].into_iter().flatten();
        let sinks = places.map(|place| Sink { place, owed: None }).collect();
        let client = reqwest::Client::builder().timeout(HTTP_TIMEOUT);
        let client = client.redirect(reqwest::redirect::Policy::none()).build();
        Ok(Self { sinks, http: client.context("an HTTP client can not be made")?, runtime })
    }

    /// Carries a checkpoint to each.
    pub(super) fn carry(&mut self, note: &str) {
        for sink in &mut self.sinks {
            sink.owed = Some(note.to_owned());
        }
        self.try_again();
    }

    /// Carries what a sink did not take before.
    pub(super) fn try_again(&mut self) {
        for sink in &mut self.sinks {
            let Some(note) = &sink.owed else { continue };
            match carry_to(&sink.place, note, &self.http, &self.runtime) {
                Ok(()) => sink.owed = None,
                Err(error) => {
                    metrics::counter!("browserspace_checkpoint_sink_failures_total").increment(1);
                    warn!(sink = sink.place.word(), error = %format!("{error:#}"), "A checkpoint was not taken; it is tried again.");
                }
            }
        }
    }

    /// Whether some sink has not taken the newest checkpoint.
    pub(super) fn are_owed(&self) -> bool {
        self.sinks.iter().any(|sink| sink.owed.is_some())
    }
}

impl Place {
    const fn word(&self) -> &'static str {
        match self {
            Self::File(_) => "folder",
            Self::Http(_) => "url",
            Self::Stdout => "stdout",
        }
    }
}

fn carry_to(place: &Place, note: &str, http: &reqwest::Client, runtime: &Handle) -> Result<()> {
    match place {
        Place::File(path) => {
            append_note(path, note).with_context(|| format!("{} can not be written", path.display()))
        }
        Place::Http(url) => runtime.block_on(async {
            let request = http.post((**url).clone()).header("content-type", "text/plain; charset=utf-8");
            // The address may carry a key, so it is in no message.
            let answer = request.body(note.to_owned()).send().await.map_err(reqwest::Error::without_url)?;
            if !answer.status().is_success() {
                bail!("the answer was {}", answer.status());
            }
            Ok(())
        }),
        Place::Stdout => crate::cli::print_to_stdout(&format!("{note}\n")),
    }
}
