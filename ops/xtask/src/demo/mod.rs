//! `demo`: the main job on a real browser and a real page, each step shown as a person wants to read it.

mod client;
mod interrupt;
mod server;
mod shop;
mod story;

use std::{
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::Args;

pub(crate) use self::interrupt::Interrupt;
use self::{client::Client, server::Server, story::Story};
use crate::{
    run::{run, target},
    setup,
};

const TICK: Duration = Duration::from_millis(100);
const LOG_LINES_SHOWN: usize = 20;

/// What `demo` can be told.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The page to work on; without it, the demo's own shop.
    url: Option<String>,
    /// Ends everything when the job is done, and leaves nothing but the picture.
    #[arg(long)]
    once: bool,
}

/// Sets up, builds, starts, runs the job, and leaves the server running until Ctrl-C (or ends it with `--once`).
///
/// Ctrl-C at any moment ends it in order: nothing is left but the picture, if it was made.
pub(crate) fn demo(options: &Options) -> Result<()> {
    let interrupt = Interrupt::catch()?;
    let outcome = run_all(options, &interrupt);
    // Whatever else went wrong then, went wrong by it.
    if outcome.is_err() {
        interrupt.check()?;
    }
    outcome
}

fn run_all(options: &Options, interrupt: &Interrupt) -> Result<()> {
    setup::chromium()?;
    let program = program()?;
    interrupt.check()?;
    let (page, allowed, is_shop) = match &options.url {
        Some(url) => (url.clone(), host_of(url)?, false),
        None => {
            let shop = shop::open()?;
            (format!("http://{shop}/"), shop.to_string(), true)
        }
    };
    let server = Server::start(&program, interrupt)?;
    println!("\nbrowserspace listens on {}", server.address());
    println!("The page: {page}");
    let picture = target().join("demo").join(if is_shop { "shop.png" } else { "page.png" });
    let told = tell(&server, interrupt, &page, &allowed, is_shop, &picture);
    finish(server, told, options.once, interrupt)?;
    println!("The server has stopped and its folder is gone. The picture stays: {}", shown(&picture));
    Ok(())
}

/// The program to show: the one that `BROWSERSPACE_BIN` names, else a fresh build.
fn program() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("BROWSERSPACE_BIN") {
        return Ok(PathBuf::from(named));
    }
    run("cargo", &["build", "--locked", "--package", "api"])?;
    Ok(target().join("debug/browserspace"))
}

/// Tells the story on a thread of its own, so that Ctrl-C does not wait for the step that is under way.
fn tell(
    server: &Server,
    interrupt: &Interrupt,
    page: &str,
    allowed: &str,
    is_shop: bool,
    picture: &Path,
) -> Result<()> {
    let token = std::fs::read_to_string(server.token_file()).context("the operator's token is not there")?;
    let client = Client::new(server.address(), token.trim());
    let story = Story::new(client, interrupt.clone());
    let (page, allowed, picture) = (page.to_owned(), allowed.to_owned(), picture.to_owned());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(story.tell(&page, &allowed, is_shop, &picture)));
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(told) => return told,
            Err(RecvTimeoutError::Timeout) => interrupt.check()?,
            Err(RecvTimeoutError::Disconnected) => bail!("the story broke off"),
        }
    }
}

/// Ends what is running, however the story ended; the server's log is shown only where it may hold the reason.
fn finish(mut server: Server, told: Result<()>, once: bool, interrupt: &Interrupt) -> Result<()> {
    if told.is_err() {
        if !interrupt.has_come() {
            show_log(&server);
        }
    } else if !once {
        how_to_go_on(&server);
        while !interrupt.has_come() && !server.has_ended() {
            thread::sleep(TICK);
        }
        if !interrupt.has_come() {
            show_log(&server);
            server.stop()?;
            bail!("the server has ended by itself");
        }
        println!("\nStopping.");
    }
    let stopped = server.stop();
    told.and(stopped)
}

fn show_log(server: &Server) {
    let log = server.log_text();
    let tail: Vec<&str> = log.lines().rev().take(LOG_LINES_SHOWN).collect();
    eprintln!("\nThe last lines of the server's log:");
    tail.iter().rev().for_each(|line| eprintln!("  {line}"));
}

fn how_to_go_on(server: &Server) {
    let base = server.address();
    println!("\nThe server is still running. Ctrl-C stops it and removes its folder.");
    println!("  address  {base}    (API description: {base}/docs)");
    println!("  token    {}", server.token_file().display());
    println!("  log      {}", server.log().display());
    println!("\nGo on from another terminal:\n");
    println!("  T=\"Authorization: Bearer $(cat {})\"", server.token_file().display());
    println!("  curl -H \"$T\" {base}/api/v1/browser-instances");
    println!("  curl -H \"$T\" {base}/api/v1/workspaces/default/browser-spaces");
    println!("  curl -N -H \"$T\" -H 'Accept: text/event-stream' '{base}/api/v1/log?after_position=0'");
}

/// `host:port` of an http or https URL.
fn host_of(url: &str) -> Result<String> {
    let (port, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(rest), _) => (80, rest),
        (_, Some(rest)) => (443, rest),
        _ => bail!("{url} does not begin with http:// or https://"),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() {
        bail!("{url} names no host");
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Ok(if has_port { host.to_owned() } else { format!("{host}:{port}") })
}

/// The path as one types it: from where the caller stands, if it lies below.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}
