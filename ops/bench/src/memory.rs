//! `bench memory`: how much the server takes up, idle and with a long history, and how large the program is.

use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};
use browserspace_tests::{Server, ServerOptions, SpaceRequest, binary, eventually_within};
use futures::future::try_join_all;
use serde_json::json;

use crate::{
    Options,
    disk::Place,
    figure::{Bar, Figure},
    keepalive::KeepAlive,
};

const KNOWN_SPACES: usize = 100_000;
const LANES: usize = 64;
const KIB_PER_MIB: f64 = 1024.0;
const VIEWS_TIMEOUT: Duration = Duration::from_secs(300);

/// Measures.
pub(crate) fn run(options: &Options) -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(options))
}

async fn measure(options: &Options) -> Result<Vec<Figure>> {
    let place = Place::new(options)?;
    let server_options = ServerOptions::default().data_dir(&place.data_dir()).arg("--log-filter").arg("warn");
    let mut server = Server::start(server_options);
    ready(&server).await;
    let idle = resident_mib(server.pid())?;
    live_and_close(&server, if options.quick { KNOWN_SPACES / 100 } else { KNOWN_SPACES }).await?;
    ready(&server).await;
    // A start of its own: what is measured is what knowing them costs, not what making them cost.
    server.restart();
    ready(&server).await;
    let known = resident_mib(server.pid())? - idle;
    let figure =
        |figure, value, bar| Figure { bench: "memory", figure, value, unit: "MiB", bar: Bar::AtMost(bar) };
    Ok(vec![
        figure("idle_rss_mib", idle, 40.0),
        figure("known_100k_rss_mib", known, 100.0),
        figure("binary_mib", binary_mib()?, 40.0),
    ])
}

/// Opens and closes Spaces until so many are known.
async fn live_and_close(server: &Server, count: usize) -> Result<()> {
    let operator = server.operator();
    let mut instances = Vec::with_capacity(LANES);
    for _ in 0..LANES {
        instances.push(operator.scripted_instance(&["default"]).await);
    }
    let (address, token) = (server.address(), server.operator_token());
    let lane = async |instance: &String| -> Result<()> {
        let mut connection = KeepAlive::connect(&address, &token).await?;
        let request = SpaceRequest::new("default", instance).granting(&["get_url"]);
        let (path, body) = (format!("/api/v1{}", request.path()), request.body().to_string());
        for _ in 0..count.div_ceil(LANES) {
            let opened = connection.post(&path, &body).await?;
            ensure!(opened.status == 201, "a create failed: {} {}", opened.status, opened.text());
            let opened = opened.json()?;
            let space = opened["data"]["space_id"].as_str().context("a Space has an id")?;
            let closed = connection.post(&format!("{path}/{space}/close"), "{}").await?;
            ensure!(closed.status == 200, "a close failed: {} {}", closed.status, closed.text());
            ensure!(closed.json()?["data"]["status"] == json!("closed"), "an idle Space closes at once");
        }
        Ok(())
    };
    try_join_all(instances.iter().map(lane)).await?;
    Ok(())
}

/// Waits until the views have caught up, so that nothing is at work any more.
async fn ready(server: &Server) {
    let operator = server.operator();
    eventually_within(VIEWS_TIMEOUT, "the server is ready", || async {
        (operator.get("/readyz").await.status == 200).then_some(())
    })
    .await;
}

/// Resident memory of one process, its own and shared pages together.
fn resident_mib(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("a process has a VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / KIB_PER_MIB)
}

fn binary_mib() -> Result<f64> {
    let kib = fs::metadata(binary())?.len() / 1024;
    Ok(f64::from(u32::try_from(kib)?) / KIB_PER_MIB)
}
