//! `bench task`: from the submit over HTTP to the result, on a runtime that does nothing, with every event durable.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use browserspace_tests::{Server, ServerOptions, SpaceRequest};
use futures::future::try_join_all;

use crate::{
    disk::{Disk, median, milliseconds},
    figure::{Bar, Figure},
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
pub(crate) fn figures() -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> Result<Vec<Figure>> {
    let server = Server::start(ServerOptions::default().arg("--log-filter").arg("warn"));
    let mut disk = Disk::new(server.data_dir())?;
    let mut lanes = Vec::with_capacity(SPACES);
    for _ in 0..SPACES {
        lanes.push(Lane::open(&server).await?);
    }
    // Each block of tasks stands beside a block of bare syncs, so that a disk whose mood changes spoils neither alone.
    let mut samples = Vec::with_capacity(BLOCKS * TASKS_PER_BLOCK);
    for _ in 0..BLOCKS {
        for _ in 0..TASKS_PER_BLOCK {
            let begun = Instant::now();
            lanes[0].task().await?;
            samples.push(begun.elapsed());
        }
        disk.measure(TASKS_PER_BLOCK)?;
    }
    let rate = rate(&mut lanes).await?;
    let (task, sync) = (milliseconds(median(&samples)), milliseconds(disk.p50()));
    Ok(vec![
        Figure::new("task", "task_p50_ms", task, "ms", Some(Bar::AtMost(3.0 * sync + 1.0))),
        Figure::new("task", "fdatasync_p50_ms", sync, "ms", None),
        Figure::new("task", "tasks_per_s_64", rate, "1/s", Some(Bar::AtLeast(5_000.0))),
    ])
}

/// Finished tasks a second of all Spaces at once.
async fn rate(lanes: &mut [Lane]) -> Result<f64> {
    let begun = Instant::now();
    let (from, until) = (begun + WARM_UP, begun + WARM_UP + MEASURED);
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
    Ok(f64::from(finished) / MEASURED.as_secs_f64())
}
