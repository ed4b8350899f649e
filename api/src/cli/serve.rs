//! `serve`: runs the server until a signal, then drains.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

use super::{block_on, output};
use crate::{
    config::{Config, ServeFlags},
    server,
    telemetry::Telemetry,
};

pub(super) const HELP: &str = "\
The first start on an empty folder makes the Workspace `default`, registers Chromium instances (--instances) and
writes the operator's token to DIR/operator.token.

The first SIGTERM or Ctrl-C is an orderly stop: no new work is taken, running tasks finish or are cancelled within
--drain-seconds, and every Space is closed (reason: drained), so that no browser is left. Every end is recorded.
A second signal, a second or more after the first, exits at once (code 143). That is like a crash: Spaces stay open,
what was acknowledged is kept, and the next start goes on with them.

POST /api/v1/server/drain does the same work, but leaves the server up for reads until a signal ends it.

Examples:
  browserspace serve
  browserspace serve --data-dir /var/lib/browserspace --listen 127.0.0.1:0
  browserspace serve --listen 0.0.0.0:7878 --tls-terminated --log-format json";

/// The exit code of a process that ended at once because of a signal: 128 + SIGTERM.
const EXIT_AT_ONCE: i32 = 143;

/// Signals within that time of the first are the same wish: a terminal tells the whole process group, and whoever
/// waits for us in it (`timeout`, a shell's script) passes the signal on.
const ONE_WISH: Duration = Duration::from_secs(1);

/// Runs until a signal and returns once everything has stopped in order.
pub(super) fn serve(flags: &ServeFlags) -> Result<ExitCode> {
    let config = Config::load(flags)?;
    block_on(async {
        let telemetry = Telemetry::start(&config)?;
        let outcome = run(config, &telemetry).await;
        telemetry.stop().await;
        outcome.map(|()| ExitCode::SUCCESS)
    })
}

async fn run(config: Config, telemetry: &Telemetry) -> Result<()> {
    // Before anything starts, so that no signal finds the default action while browsers are already running.
    let mut signals = Signals::catch()?;
    info!(configuration = %config.printable(), version = env!("CARGO_PKG_VERSION"), "Starting.");
    let starting = server::start(config, telemetry.metrics());
    let mut server = tokio::select! {
        server = starting => server?,
        () = signals.next() => {
            info!("Stopped before the start was complete.");
            return Ok(());
        }
    };
    greet(&server);
    info!(address = %server.address(), "Listening.");
    let outcome = tokio::select! {
        error = server.failed() => Err(error),
        () = signals.next() => Ok(()),
    };
    let first = Instant::now();
    info!("Draining, and closing every Space. A second signal exits at once.");
    tokio::spawn(async move {
        signals.after(first).await;
        warn!("Second signal: exiting at once.");
        std::process::exit(EXIT_AT_ONCE);
    });
    server.stop().await;
    info!("Stopped.");
    outcome
}

/// What whoever started us reads first. That nobody reads it is no reason to end.
fn greet(server: &server::Server) {
    let mut said = format!("listening on {}\n", server.address());
    if let Some(path) = server.new_token_file() {
        said.push_str(&format!("first start: {} is a new data folder\n", server.data_dir().display()));
        said.push_str(&format!("the operator's token is in {}\n", path.display()));
    }
    if output::write(&said).is_err() {
        warn!("Nobody reads the standard output.");
    }
}

/// The signals that ask for an end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn catch() -> Result<Self> {
        let catch = |kind| signal(kind).context("signals can not be caught");
        Ok(Self { terminate: catch(SignalKind::terminate())?, interrupt: catch(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// The next signal that is a wish of its own.
    async fn after(&mut self, first: Instant) {
        loop {
            self.next().await;
            if first.elapsed() >= ONE_WISH {
                return;
            }
            info!("Another signal with the first: counted as one.");
        }
    }
}
