//! The uids that browsers get while the server is root: no two browsers of this machine have one, whoever runs them.
//!
//! Browsers of one uid can read each other's profiles and end each other. Two servers on one machine take their uids
//! from the same range unless an operator says otherwise, so a uid is held by a lock that both see: a socket of that
//! name in the kernel's abstract namespace, which goes with the process however it ends. And a uid under which anything
//! runs, be it a browser whose server has died, is left alone.

use std::{
    collections::BTreeSet,
    io,
    os::{
        linux::{fs::MetadataExt, net::SocketAddrExt},
        unix::net::{SocketAddr, UnixListener},
    },
    sync::Arc,
};

use parking_lot::Mutex;

/// A range of uids.
pub(super) struct Uids {
    first: u32,
    count: u32,
    taken: Mutex<BTreeSet<u32>>,
}

/// One uid; free again when dropped.
pub(super) struct Uid {
    number: u32,
    uids: Arc<Uids>,
    _lock: UnixListener,
}

impl Uids {
    pub(super) fn new(first: u32, count: u32) -> Arc<Self> {
        Arc::new(Self { first, count, taken: Mutex::default() })
    }

    /// The first that nobody has; `None` where every one is taken.
    pub(super) fn take(self: &Arc<Self>) -> Option<Uid> {
        let running = running();
        let mut taken = self.taken.lock();
        let range = self.first..self.first.saturating_add(self.count);
        let free = range.filter(|uid| !taken.contains(uid) && !running.contains(uid));
        let (number, lock) = free.filter_map(|uid| lock(uid).ok().map(|lock| (uid, lock))).next()?;
        taken.insert(number);
        Some(Uid { number, uids: Arc::clone(self), _lock: lock })
    }
}

impl Uid {
    pub(super) const fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Uid {
    fn drop(&mut self) {
        self.uids.taken.lock().remove(&self.number);
    }
}

fn lock(uid: u32) -> io::Result<UnixListener> {
    let name = SocketAddr::from_abstract_name(format!("browserspace-browser-uid-{uid}"))?;
    UnixListener::bind_addr(&name)
}

/// Every uid under which a process runs.
fn running() -> BTreeSet<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes =
        processes.filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit));
    processes.filter_map(|entry| entry.metadata().ok()).map(|process| process.st_uid()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beyond what servers use, and another for each run of this test.
    fn first() -> u32 {
        3_000_000_000 + std::process::id() * 8
    }

    #[test]
    fn c18_two_servers_on_one_machine_give_no_two_browsers_the_same_uid() {
        let (one, other) = (Uids::new(first(), 3), Uids::new(first(), 3));
        let taken = [one.take(), other.take(), one.take()].map(|uid| uid.expect("a free one"));
        let numbers: BTreeSet<_> = taken.iter().map(Uid::number).collect();
        assert_eq!(numbers.len(), 3, "{numbers:?}");
        assert!(one.take().is_none() && other.take().is_none(), "a range ends");
        drop(taken);
        assert_eq!(other.take().map(|uid| uid.number()), Some(first()), "given back to everybody");
        assert_eq!(one.take().map(|uid| uid.number()), Some(first()), "and to the one who had it");
    }

    #[test]
    fn a_uid_under_which_something_runs_is_left_alone() {
        let own = rustix::process::geteuid().as_raw();
        let taken = Uids::new(own, 2).take();
        assert!(taken.is_none_or(|uid| uid.number() != own));
    }
}
