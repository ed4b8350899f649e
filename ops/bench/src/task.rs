//! `bench task`: from the submit over HTTP to the result, on a runtime that does nothing, with every event durable.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use browserspace_tests::{Server, ServerOptions, SpaceRequest};
use futures::future::try_join_all;

use crate::{
    Options,
    disk::{Disk, Place, milliseconds},
    figure::{Bar, Figure, median},
    keepalive::KeepAlive,
};

const SPACES: usize = 64;
const BLOCKS: usize = 40;
const TASKS_PER_BLOCK: usize = 50;
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(5);

/// A Space with a connection of its own.
struct Lane {
    connection: KeepAlive,
    path: String,
    submits: u64,
}

impl Lane {
    async fn open(server: &Server) -> Result<Self> {
        let operator = server.operator();
        let instance = operator.scripted_instance(&["default"]).await;
        let space = operator.open(&SpaceRequest::new("default", &instance)).await;
        space.becomes("idle").await;
        let connection = KeepAlive::connect(&server.address(), &server.operator_token()).await?;
        Ok(Self { connection, path: format!("/api/v1{}", space.path("/tasks")), submits: 0 })
    }

    async fn task(&mut self) -> Result<()> {
        self.submits += 1;
        let body = format!(r#"{{"request_id":"r{}","capability":"get_url","args":{{}}}}"#, self.submits);
        let answer = self.connection.post(&self.path, &body).await?;
        ensure!(answer.shows_completed(), "a task did not complete: {} {}", answer.status, answer.text());
        Ok(())
    }
}

/// Measures.
pub(crate) fn run(options: &Options) -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(options))
}

async fn measure(options: &Options) -> Result<Vec<Figure>> {
    let place = Place::new(options)?;
    let server_options = ServerOptions::default().data_dir(&place.data_dir()).arg("--log-filter").arg("warn");
    let server = Server::start(server_options);
    let mut disk = Disk::new(place.path())?;
    let mut lanes = Vec::with_capacity(SPACES);
    for _ in 0..SPACES {
        lanes.push(Lane::open(&server).await?);
    }
    // Each block of tasks stands beside a block of bare syncs, so that a disk whose mood changes spoils neither alone.
    let mut samples = Vec::with_capacity(BLOCKS * TASKS_PER_BLOCK);
    for _ in 0..if options.quick { 2 } else { BLOCKS } {
        for _ in 0..TASKS_PER_BLOCK {
            let begun = Instant::now();
            lanes[0].task().await?;
            samples.push(milliseconds(begun.elapsed()));
        }
        disk.measure(TASKS_PER_BLOCK)?;
    }
    let rate = rate(&mut lanes, if options.quick { MEASURED / 5 } else { MEASURED }).await?;
    let sync = disk.p50_ms();
    let figure = |figure, value, unit, bar| Figure { bench: "task", figure, value, unit, bar };
    Ok(vec![
        figure("task_p50_ms", median(samples), "ms", Bar::AtMost(3.0 * sync + 1.0)),
        figure("fdatasync_p50_ms", sync, "ms", Bar::None),
        figure("tasks_per_s_64", rate, "1/s", Bar::AtLeast(5_000.0)),
    ])
}

/// Finished tasks a second of all Spaces at once.
async fn rate(lanes: &mut [Lane], measured: Duration) -> Result<f64> {
    let begun = Instant::now();
    let (from, until) = (begun + WARM_UP, begun + WARM_UP + measured);
    let work = async |lane: &mut Lane| -> Result<u32> {
        let mut finished = 0;
        while Instant::now() < until {
            lane.task().await?;
            let now = Instant::now();
            finished += u32::from(from <= now && now < until);
        }
        Ok(finished)
    };
    let finished: u32 = try_join_all(lanes.iter_mut().map(work)).await?.into_iter().sum();
    Ok(f64::from(finished) / measured.as_secs_f64())
}
