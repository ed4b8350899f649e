//! The program `browserspace` as a person types it: one file per command, errors printed once, here.

mod client;
mod doctor;
mod print;
mod rebuild;
mod replay;
mod serve;
mod token;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{ConfigError, ServeFlags};

/// The command line or the configuration is wrong; nothing was tried.
const EXIT_USAGE: u8 = 2;

/// Gives every agent a browser of its own, and can prove what was done with it.
#[derive(Debug, Parser)]
#[command(name = "browserspace", version, max_term_width = 110, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  browserspace serve                       start here; the first start writes DIR/operator.token and says so
  browserspace doctor                      is everything there that a server needs?
  browserspace replay                      what happened, from the first event on
  browserspace replay spc_01j… --follow    what happens in one Space, live
  browserspace token create --role agent --workspace default --owner-id my-agent

DIR is `browserspace-data`, unless --data-dir, BROWSERSPACE_DATA_DIR or a configuration file says otherwise.
Every setting is also a variable (BROWSERSPACE_LISTEN=…) and a line of DIR/browserspace.toml (listen = \"…\").
A flag wins over a variable, a variable over the file.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server, until SIGTERM or Ctrl-C
    #[command(after_help = serve::HELP)]
    Serve(Box<ServeFlags>),
    /// Show recorded events: of one Space, or of the whole log; also beside a running server
    #[command(after_help = replay::HELP)]
    Replay(replay::Options),
    /// Make, list and revoke API tokens
    #[command(after_help = token::HELP)]
    Token(token::Options),
    /// Throw the views away and fold them again from the log; the server must be stopped
    #[command(after_help = rebuild::HELP)]
    Rebuild(rebuild::Options),
    /// Check this machine and data folder, and say what to do about what is wrong
    #[command(after_help = doctor::HELP)]
    Doctor(Box<ServeFlags>),
}

/// Runs what the command line asks.
#[must_use]
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(flags) => serve::serve(&flags),
        Command::Replay(options) => replay::replay(&options),
        Command::Token(options) => token::token(&options),
        Command::Rebuild(options) => rebuild::rebuild(&options),
        Command::Doctor(flags) => doctor::doctor(&flags),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("browserspace: {}", print::escaped(&format!("{error:#}")));
            let usage = error.downcast_ref::<ConfigError>().is_some();
            if usage { ExitCode::from(EXIT_USAGE) } else { ExitCode::FAILURE }
        }
    }
}

/// Whether the reader of our output has gone, as `head` does: that is no failure of ours.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// The async runtime of the commands that wait for something.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
