//! A process killed at a random moment: everything acknowledged is there, and nothing is there in part.
//!
//! The test binary starts itself again as the process to be killed. `BROWSERSPACE_CRASH_ROUNDS` sets how often (default 8).

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use eventlog::{
    Append, Appended, EventLog, ExpectedSequence, Position, SegmentLog,
    fixture::{command, instance, metadata, part, ready, recovered, space},
    segment::verify,
};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use support::all;

mod support;

const FOLDER: &str = "CRASH_TEST_FOLDER";
const WRITERS: u64 = 8;

fn options(folder: &Path) -> eventlog::OpenOptions {
    eventlog::OpenOptions { segment_bytes: 64 * 1024, ..support::options(folder) }
}

/// The process to be killed: appends to two streams at once and says each acknowledged position, until it dies.
#[test]
fn the_process_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    runtime.block_on(async {
        let log = Arc::new(SegmentLog::open(options(Path::new(&folder))).expect("it opens"));
        let start = log.durable_head().borrow().0;
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| tokio::spawn(write(Arc::clone(&log), start, writer))).collect();
        for writer in writers {
            let _ = writer.await;
        }
    });
}

async fn write(log: Arc<SegmentLog>, start: u64, writer: u64) {
    for n in 0.. {
        let id = (start << 32) + n * WRITERS + writer;
        let any = ExpectedSequence::Any;
        let parts =
            vec![part(instance(writer), any, vec![ready(n)]), part(space(writer), any, vec![recovered(n)])];
        let append = Append { id: command(id), metadata: metadata(1), parts };
        let Ok(Appended::Stored(stored)) = log.append(append).await else { return };
        let line = format!("acked {} {id}\n", stored.first);
        // One write per line: a kill may not tear it.
        let _ = std::io::stdout().write_all(line.as_bytes());
    }
}

#[test]
fn everything_acknowledged_is_there_after_a_kill_at_any_moment() {
    let rounds = std::env::var("BROWSERSPACE_CRASH_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(8u64);
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut acked = Vec::new();
    for _ in 0..rounds {
        acked.extend(run_and_kill(folder.path(), 1 + random.next_u64() % 1_500));
        verify(folder.path()).expect("a kill is no damage");
        check(folder.path(), &acked);
    }
    assert!(acked.len() as u64 > rounds);
}

/// Lets the process run until it has acknowledged so many, kills it, and answers what it had acknowledged.
fn run_and_kill(folder: &Path, acks: u64) -> Vec<(u64, u64)> {
    let mut child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["the_process_that_is_killed", "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
    let parse = |line: String| {
        let mut words = line.split(' ').skip_while(|word| *word != "acked").skip(1);
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    let mut acked = Vec::new();
    while (acked.len() as u64) < acks
        && let Some(line) = lines.next()
    {
        acked.extend(parse(line));
    }
    child.kill().expect("it is killed");
    // What it said before it died, and we had not read yet, was acknowledged as well.
    acked.extend(lines.filter_map(parse));
    child.wait().expect("it has ended");
    acked
}

fn check(folder: &Path, acked: &[(u64, u64)]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let log = SegmentLog::open(options(folder)).expect("it opens");
        let events = all(&log).await;
        for (event, position) in events.iter().zip(1..) {
            assert_eq!(event.position, Position(position));
        }
        for (first, id) in acked {
            let at = usize::try_from(*first - 1).expect("small");
            let both = &events[at..at + 2];
            assert!(
                both.iter().all(|event| event.command == command(*id)),
                "append {id} at {first} is not whole"
            );
        }
        assert!(events.len().is_multiple_of(2), "an append is there in part");
        log.close().await;
    });
}
