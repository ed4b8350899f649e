//! `demo`: the main job on a real browser and a real page, each step shown as a person wants to read it.

mod client;
mod server;
mod shop;
mod story;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::Args;

use self::{client::Client, server::Server, story::Story};
use crate::{
    run::{run, target},
    setup,
};

const TICK: Duration = Duration::from_millis(200);

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
pub(crate) fn demo(options: &Options) -> Result<()> {
    setup::chromium()?;
    run("cargo", &["build", "--locked", "--package", "api"])?;
    // Ctrl-C reaches the server as well; this program stays until the server has drained.
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let (page, allowed, is_shop) = match &options.url {
        Some(url) => (url.clone(), host_of(url)?, false),
        None => {
            let shop = shop::open()?;
            (format!("http://{shop}/"), shop.to_string(), true)
        }
    };
    let mut server = Server::start()?;
    let token = std::fs::read_to_string(server.token_file()).context("the operator's token is not there")?;
    let client = Client::new(server.address(), token.trim());
    println!("\nbrowserspace listens on {}", server.address());
    println!("The page: {page}");
    let picture = target().join("demo").join(if is_shop { "shop.png" } else { "page.png" });
    let told = Story::new(&client, &interrupted).tell(&page, &allowed, is_shop, &picture);
    if let Err(error) = told {
        let log = std::fs::read_to_string(server.log()).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(20).collect();
        eprintln!("\nThe last lines of the server's log:");
        tail.iter().rev().for_each(|line| eprintln!("  {line}"));
        return Err(error);
    }
    if !options.once {
        how_to_go_on(&server);
        while !interrupted.load(Ordering::Relaxed) && !server.has_ended() {
            std::thread::sleep(TICK);
        }
        println!("\nStopping.");
    }
    server.stop()?;
    println!("The server has stopped and its folder is gone. The picture stays: {}", shown(&picture));
    Ok(())
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
