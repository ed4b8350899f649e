//! `serve`: runs the server until a signal, then drains.

use std::process::ExitCode;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use super::block_on;
use crate::{
    config::{Config, ServeFlags},
    server,
    telemetry::Telemetry,
};

pub(super) const HELP: &str = "\
The first start on an empty folder makes the Workspace `default`, registers Chromium instances (--instances) and
writes the operator's token to DIR/operator.token. The first SIGTERM or Ctrl-C drains: no new work is taken, running
tasks finish or are cancelled within --drain-seconds, every end is recorded. A second one exits at once; what was
acknowledged is kept also then.

Examples:
  browserspace serve
  browserspace serve --data-dir /var/lib/browserspace --listen 127.0.0.1:0
  browserspace serve --listen 0.0.0.0:7878 --tls-terminated --log-format json";

/// The exit code of a process that ended at once because of a signal: 128 + SIGTERM.
const EXIT_AT_ONCE: i32 = 143;

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
    let mut terminate = signal(SignalKind::terminate()).context("signals can not be caught")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals can not be caught")?;
    info!(configuration = %config.printable(), version = env!("CARGO_PKG_VERSION"), "Starting.");
    let starting = server::start(config, telemetry.metrics());
    let mut server = tokio::select! {
        server = starting => server?,
        () = either(&mut terminate, &mut interrupt) => {
            info!("Stopped before the start was complete.");
            return Ok(());
        }
    };
    println!("listening on {}", server.address());
    if let Some(path) = server.new_token_file() {
        println!("the operator's token is in {}", path.display());
    }
    info!(address = %server.address(), "Listening.");
    let outcome = tokio::select! {
        error = server.failed() => Err(error),
        () = either(&mut terminate, &mut interrupt) => Ok(()),
    };
    info!("Draining. A second signal exits at once.");
    tokio::spawn(async move {
        either(&mut terminate, &mut interrupt).await;
        warn!("Second signal: exiting at once.");
        std::process::exit(EXIT_AT_ONCE);
    });
    server.stop().await;
    info!("Stopped.");
    outcome
}

async fn either(one: &mut tokio::signal::unix::Signal, other: &mut tokio::signal::unix::Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}
