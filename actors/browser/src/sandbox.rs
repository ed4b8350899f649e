//! The walls of the browser process: what happens between fork and exec, and proof that Chromium's sandbox is on.
//!
//! No death signal is set: it follows the *thread* that forked, and a pool thread may end long before the server.
//! Chromium ends itself when the debugging pipe closes, which the end of the server does.

// Code between fork and exec is unsafe by nature; it is kept to async-signal-safe system calls, here only.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use tokio::process::Command;

use crate::namespace::Seclusion;

/// Where Chromium reads commands and writes answers (`--remote-debugging-pipe`).
const READ_FD: i32 = 3;
const WRITE_FD: i32 = 4;

/// Makes the child lead its own session, unable to gain privileges, with `pipe` as its debugging pipe and no other
/// descriptor of ours. With a seclusion it also leaves our network, and becomes the seclusion's user.
///
/// `pipe` must be numbered above 4, so that it is not overwritten before it is copied.
pub(crate) fn wall_off(command: &mut Command, pipe: OwnedFd, seclusion: Option<Seclusion>) {
    // SAFETY: the closure makes async-signal-safe system calls only and allocates nothing; what it uses lives in it.
    unsafe {
        command.pre_exec(move || {
            if let Some(seclusion) = &seclusion {
                seclusion.enter()?;
            }
            check(libc::setsid())?;
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            check(libc::setrlimit(libc::RLIMIT_CORE, &no_core))?;
            check(libc::dup2(pipe.as_raw_fd(), READ_FD))?;
            check(libc::dup2(pipe.as_raw_fd(), WRITE_FD))?;
            // Closed at exec, not now: the standard library reports a failed exec over a descriptor of its own.
            check(libc::close_range(WRITE_FD as u32 + 1, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32))?;
            Ok(())
        });
    }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether the process is confined as Chromium confines a renderer: system call filter on, own pid namespace.
///
/// Source: proc(5), `/proc/pid/status`: `Seccomp` (2 = filter), `NSpid` (one number per namespace).
pub(crate) fn is_sandboxed(status: &str) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let filtered = field("Seccomp:") == Some("2");
    let namespaced = field("NSpid:").is_some_and(|pids| pids.split_whitespace().count() > 1);
    filtered && namespaced
}

#[cfg(test)]
mod tests {
    use super::is_sandboxed;

    #[test]
    fn only_a_filtered_process_in_its_own_pid_namespace_counts_as_sandboxed() {
        assert!(is_sandboxed("Name:\tx\nNSpid:\t812\t4\nSeccomp:\t2\n"));
        assert!(!is_sandboxed("Name:\tx\nNSpid:\t812\nSeccomp:\t2\n"));
        assert!(!is_sandboxed("Name:\tx\nNSpid:\t812\t4\nSeccomp:\t0\n"));
        assert!(!is_sandboxed(""));
    }
}
