//! The program `browserspace` as a person types it: one file per command, errors printed once, here.

// A `println!` panics when its reader has gone; `output` is the one way to the standard output.
#![deny(clippy::print_stdout)]

mod checkpoint;
mod client;
mod doctor;
mod output;
mod print;
mod rebuild;
mod repair;
mod replay;
mod serve;
mod token;
mod transfer;
mod verify;

use std::{ffi::OsString, io::Write, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::{
    config::{ConfigError, ServeFlags},
    identity::TOKEN_PREFIX,
};

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
  browserspace verify                      is the log what was written?
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
    /// Check every byte of the log and what lies beside it, and name the first bad place
    #[command(after_help = verify::HELP)]
    Verify(verify::Options),
    /// Make a signed checkpoint of the log, and print it
    #[command(after_help = checkpoint::HELP)]
    Checkpoint(checkpoint::Options),
    /// Print a proof that one event stands in the log
    #[command(after_help = checkpoint::PROVE_HELP)]
    Prove(checkpoint::ProveOptions),
    /// Check a proof with nothing but the public key of the log
    #[command(after_help = checkpoint::VERIFY_PROOF_HELP)]
    VerifyProof(checkpoint::VerifyProofOptions),
    /// Write the log, or a part of it, for other tools or for `import`
    #[command(after_help = transfer::EXPORT_HELP)]
    Export(transfer::ExportOptions),
    /// Make the log of a data folder from an export
    #[command(after_help = transfer::IMPORT_HELP)]
    Import(transfer::ImportOptions),
    /// Back the log, artifacts and checkpoints up, also while a server runs
    #[command(after_help = transfer::BACKUP_HELP)]
    Backup(transfer::BackupOptions),
    /// Make a data folder from a backup, up to a position where one is named
    #[command(after_help = transfer::RESTORE_HELP)]
    Restore(transfer::RestoreOptions),
    /// Cut a broken log before its first bad place, if what is lost is accepted
    #[command(after_help = repair::HELP)]
    Repair(repair::Options),
    /// Check this machine and data folder, and say what to do about what is wrong
    #[command(after_help = doctor::HELP)]
    Doctor(Box<ServeFlags>),
}

/// Runs what the command line asks.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return misunderstood(&error, &arguments),
    };
    let outcome = match cli.command {
        Command::Serve(flags) => serve::serve(&flags),
        Command::Replay(options) => replay::replay(&options),
        Command::Token(options) => token::token(&options),
        Command::Rebuild(options) => rebuild::rebuild(&options),
        Command::Verify(options) => verify::verify(&options),
        Command::Checkpoint(options) => checkpoint::checkpoint(&options),
        Command::Prove(options) => checkpoint::prove(&options),
        Command::VerifyProof(options) => checkpoint::verify_proof(&options),
        Command::Export(options) => transfer::export(&options),
        Command::Import(options) => transfer::import(&options),
        Command::Backup(options) => transfer::backup(&options),
        Command::Restore(options) => transfer::restore(&options),
        Command::Repair(options) => repair::repair(&options),
        Command::Doctor(flags) => doctor::doctor(&flags),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if output::is_reader_gone(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("browserspace: {}\n", print::escaped(&format!("{error:#}"))));
            let usage = error.downcast_ref::<ConfigError>().is_some();
            if usage { ExitCode::from(EXIT_USAGE) } else { ExitCode::FAILURE }
        }
    }
}

/// To the standard output, for those outside of the commands; an error if nobody reads it.
pub(crate) fn print_to_stdout(text: &str) -> anyhow::Result<()> {
    output::write(text)
}

/// To the standard error, which may be closed: then there is nobody to tell.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Help, version, or a command line that makes no sense: prints what clap says of it, but never a secret of ours.
fn misunderstood(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let secrets: Vec<String> = arguments.iter().filter_map(secret_in).collect();
    if secrets.is_empty() {
        // Whoever does not read it to its end has read enough.
        let _ = error.print();
    } else {
        let said = error.render().to_string();
        let masked = secrets.iter().fold(said, |said, secret| said.replace(secret, "bst_…"));
        say(&format!(
            "{masked}\nThat is a token's text, and a command line may be seen by others. Commands take a token's id \
             (tok_…): see `browserspace token list`.\n"
        ));
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The text of a token in an argument.
fn secret_in(argument: &OsString) -> Option<String> {
    let text = argument.to_string_lossy();
    let from = text.find(TOKEN_PREFIX)?;
    Some(text[from..].to_owned())
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
