//! The power fails at every write and every sync, and of what was not synced any part is lost: what was acknowledged is
//! there, nothing is there in part, and no crash is taken for tampering. Also when a process was killed before.
//!
//! `BROWSERSPACE_POWER_CUT_SEEDS` sets how often each moment is tried (default 2).

use std::{collections::BTreeMap, path::Path, sync::Arc};

use eventlog::{
    Appended, EventLog, OpenOptions, SegmentLog,
    fixture::{append, command, recovered, space},
    segment::verify,
    sim_disk::{CutCounts, DiskFault, SimDisk},
};
use support::{all, ask, tiny};

mod support;

/// So many appends in each try; every few of them seal a segment.
const APPENDS: u64 = 40;

fn on(disk: &SimDisk, folder: &Path) -> OpenOptions {
    OpenOptions { disk: Arc::new(disk.clone()), ..tiny(folder) }
}

/// In memory where there is such a place: the disk that matters here is the simulated one.
fn temporary() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary folder")
}

/// Appends until the power is off; answers what was acknowledged: by its id, its first position.
async fn work(log: &SegmentLog, from: u64, disk: &SimDisk) -> BTreeMap<u64, u64> {
    let mut acknowledged = BTreeMap::new();
    for n in from..from + APPENDS {
        // Long ones lie over many sectors.
        let events = (0..1 + n % 5 * 8).map(recovered).collect();
        if let Ok(Appended::Stored(stored)) = log.append(append(command(n), space(n % 3), events)).await {
            acknowledged.insert(n, stored.first.0);
        }
        if disk.is_off() {
            break;
        }
    }
    acknowledged
}

async fn check(folder: &Path, disk: &SimDisk, acknowledged: &BTreeMap<u64, u64>, place: &str) {
    if let Err(damage) = verify(folder) {
        panic!("{place}: a crash is taken for tampering: {damage}");
    }
    let log = SegmentLog::open(on(disk, folder)).unwrap_or_else(|error| panic!("{place}: {error}"));
    let events = all(&log).await;
    for (n, first) in acknowledged {
        let at = usize::try_from(first - 1).expect("small");
        let whole = usize::try_from(1 + n % 5 * 8).expect("small");
        let there = events
            .get(at..at + whole)
            .is_some_and(|all| all.iter().all(|event| event.command == command(*n)));
        assert!(there, "{place}: append {n} was acknowledged at {first} and is not there");
    }
    // It goes on, and what it takes now is durable as well.
    let next = ask(&log, 9_000).await;
    assert!(matches!(next, Ok(Appended::Stored(_) | Appended::Duplicate { .. })), "{place}: {next:?}");
    log.close().await;
    verify(folder).unwrap_or_else(|damage| panic!("{place}: {damage}"));
}

#[tokio::test]
async fn a_power_cut_at_any_write_or_sync_loses_nothing_that_was_acknowledged() {
    let seeds =
        std::env::var("BROWSERSPACE_POWER_CUT_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let (mut cases, mut acked, mut lost) = (0_u64, 0, CutCounts::default());
    for seed in 0..seeds {
        for nth in 1.. {
            let folder = temporary();
            let disk = SimDisk::seeded(seed * 1_000 + nth);
            let place = format!("seed {seed}, cut at operation {nth}");
            disk.fail(nth, DiskFault::PowerCut);
            let mut acknowledged = BTreeMap::new();
            if let Ok(log) = SegmentLog::open(on(&disk, folder.path())) {
                acknowledged = work(&log, 0, &disk).await;
            }
            if !disk.is_off() {
                break;
            }
            cases += 1;
            acked += acknowledged.len();
            disk.power_cut().expect("the folder can be written");
            check(folder.path(), &disk, &acknowledged, &place).await;
            let counts = disk.counts();
            lost.sectors_kept += counts.sectors_kept;
            lost.sectors_lost += counts.sectors_lost;
            lost.names_lost += counts.names_lost;
        }
    }
    println!(
        "{cases} power cuts, {acked} acknowledged, 0 lost; unsynced: {} sectors kept, {} lost, {} names lost",
        lost.sectors_kept, lost.sectors_lost, lost.names_lost
    );
    assert!(lost.sectors_lost > 0 && lost.sectors_kept > 0 && lost.names_lost > 0, "{lost:?}");
}

/// A killed process leaves what it wrote in the cache. The next one tells it as durable, and so must make it so.
#[tokio::test]
async fn what_a_killed_process_left_in_the_cache_is_durable_before_the_next_one_tells_it() {
    let (mut cases, mut told) = (0_u64, 0);
    for seed in 0..8 {
        for nth in (2..60).step_by(2) {
            let folder = temporary();
            let disk = SimDisk::seeded(seed);
            let log = SegmentLog::open(on(&disk, folder.path())).expect("it opens");
            // It fails there, and the process is killed: what it wrote is in the cache only.
            disk.fail(nth, DiskFault::Broken);
            let _ = work(&log, 0, &disk).await;
            log.close().await;
            drop(log);
            disk.process_killed();
            let log = SegmentLog::open(on(&disk, folder.path())).expect("it opens");
            let seen = all(&log).await;
            disk.turn_off();
            drop(log);
            disk.power_cut().expect("the folder can be written");
            let log = SegmentLog::open(on(&disk, folder.path())).expect("it opens");
            let kept = all(&log).await;
            let place = format!("seed {seed}, failed at operation {nth}");
            assert!(
                kept.len() >= seen.len() && kept[..seen.len()] == seen[..],
                "{place}: what was told is lost"
            );
            (cases, told) = (cases + 1, told + seen.len());
        }
    }
    println!("{cases} kills and power cuts, {told} events told, 0 lost");
}

/// A full disk cuts the half-written batch off; what follows it must not lie behind a half one.
#[tokio::test]
async fn a_full_disk_leaves_no_half_of_a_batch_before_what_is_taken_later() {
    for nth in 1..40 {
        let folder = temporary();
        let disk = SimDisk::seeded(nth);
        let log = SegmentLog::open(on(&disk, folder.path())).expect("it opens");
        disk.fail(nth, DiskFault::Full);
        let acknowledged = work(&log, 0, &disk).await;
        log.close().await;
        drop(log);
        disk.process_killed();
        check(folder.path(), &disk, &acknowledged, &format!("full at operation {nth}")).await;
    }
}
