//! An empty network around the browser: a namespace of its own whose loopback has one listener, which is ours.
//!
//! ```text
//! fork ─► new network namespace ─► loopback up ─► listener ─► handed to us ─► (root:) user and group ─► exec
//!              └ not allowed, after user and group: the same inside of a new user namespace
//! ```
//!
//! A socket stays in the namespace that it was made in. So the listener belongs to us and to the browser's network, and
//! it is the only thing in there: no route, no name server, no other process, and no link but one that leads nowhere. Source: namespaces(7),
//! user_namespaces(7), netdevice(7), unix(7).

// Code between fork and exec is unsafe by nature; it is kept to async-signal-safe system calls that allocate nothing.
#![allow(unsafe_code)]
// The kernel's structures have types of their own for small constants, and the sizes below are of four bytes.
#![allow(clippy::cast_possible_truncation)]

use std::ffi::CString;
use std::io::{self, IoSliceMut, Read};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

/// Where the browser finds the listener, in a network in which nothing else is.
pub(crate) const PORT: u16 = 3128;

/// So many connections wait while we are busy.
const BACKLOG: i32 = 128;

/// What the child needs; made before the fork.
pub(crate) struct Seclusion {
    tell: OwnedFd,
    ids: Option<(u32, u32)>,
    /// Lines for `uid_map` and `gid_map`: the same number inside as outside, and no other.
    uid_map: CString,
    gid_map: CString,
    /// Messages that make a dead link, in the order in which they are tried.
    links: [Vec<u8>; 2],
}

/// Where the listener comes out.
pub(crate) struct Handover(UnixStream);

/// A seclusion for a child that is to run as `ids`, or as we do.
pub(crate) fn prepare(ids: Option<(u32, u32)>) -> io::Result<(Seclusion, Handover)> {
    let (ours, theirs) = UnixStream::pair()?;
    // Numbered high, out of the way of the debugging pipe.
    let tell = rustix::io::fcntl_dupfd_cloexec(&theirs, 64)?;
    let own = || (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let (uid, gid) = ids.unwrap_or_else(own);
    let map = |id: u32| CString::new(format!("{id} {id} 1")).map_err(io::Error::other);
    Ok((
        Seclusion { tell, ids, uid_map: map(uid)?, gid_map: map(gid)?, links: ["dummy", "ifb"].map(link) },
        Handover(ours),
    ))
}

/// Tries whether a process that runs as `ids` can be secluded here; blocking.
///
/// # Errors
/// Why not.
pub fn try_seclusion(ids: Option<(u32, u32)>) -> io::Result<()> {
    let (seclusion, handover) = prepare(ids)?;
    let mut command = Command::new("true");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the closure only does what `enter` does, which is made for this place.
    unsafe {
        command.pre_exec(move || seclusion.enter());
    }
    let spawned = command.spawn();
    drop(command);
    match spawned {
        Ok(mut child) => {
            child.wait()?;
            handover.listener().map(drop)
        }
        Err(error) => Err(handover.failure().unwrap_or(error)),
    }
}

impl Seclusion {
    /// In the child, before anything else: leaves our network, hands the listener over, and becomes its user.
    ///
    /// # Safety
    /// Between fork and exec only, as it changes what the whole process is.
    pub(crate) unsafe fn enter(&self) -> io::Result<()> {
        // SAFETY: system calls on numbers and on memory that lives in `self`.
        unsafe {
            let is_apart = libc::unshare(libc::CLONE_NEWNET) == 0;
            if is_apart {
                self.furnish()?;
            }
            self.become_user()?;
            if !is_apart {
                if let Err(error) = self.unshare_as_user() {
                    self.tell_failure(&error);
                    return Err(error);
                }
                self.furnish()?;
            }
        }
        Ok(())
    }

    unsafe fn become_user(&self) -> io::Result<()> {
        let Some((uid, gid)) = self.ids else { return Ok(()) };
        // SAFETY: numbers only.
        unsafe {
            check(libc::setgroups(0, std::ptr::null()))?;
            check(libc::setresgid(gid, gid, gid))?;
            check(libc::setresuid(uid, uid, uid))
        }
    }

    unsafe fn unshare_as_user(&self) -> io::Result<()> {
        // SAFETY: as above; the paths are constants.
        unsafe {
            // Who has changed its user may not write to its own files in /proc otherwise; exec sets it back.
            check(libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0))?;
            check(libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET))?;
            write_to(c"/proc/self/setgroups", c"deny")?;
            write_to(c"/proc/self/uid_map", &self.uid_map)?;
            write_to(c"/proc/self/gid_map", &self.gid_map)
        }
    }

    /// Brings the loopback up, and opens the one listener on it.
    unsafe fn furnish(&self) -> io::Result<()> {
        // SAFETY: plain structures of the kernel's, zeroed and then filled; each descriptor is closed here.
        unsafe {
            let opened = (|| {
                let socket =
                    check_fd(libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0))?;
                raise_loopback(socket)?;
                self.pretend_a_link();
                let mut address: libc::sockaddr_in = std::mem::zeroed();
                address.sin_family = libc::AF_INET as libc::sa_family_t;
                address.sin_port = PORT.to_be();
                address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
                let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
                check(libc::bind(socket, (&raw const address).cast(), size))?;
                check(libc::listen(socket, BACKLOG))?;
                hand_over(self.tell.as_raw_fd(), socket)?;
                check(libc::close(socket))
            })();
            if let Err(error) = &opened {
                self.tell_failure(error);
            }
            opened
        }
    }

    /// Makes a link that leads nowhere. Chromium tells pages that they are offline where the loopback is all there is,
    /// and pages believe it. A kernel that has no such link costs that, and nothing else.
    unsafe fn pretend_a_link(&self) {
        // SAFETY: the messages live in `self`, the answer on this stack.
        unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
            let socket = libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE);
            for link in &self.links {
                let mut answer = [0u8; 512];
                libc::send(socket, link.as_ptr().cast(), link.len(), 0);
                let length = libc::recv(socket, answer.as_mut_ptr().cast(), answer.len(), 0);
                // Behind the header of an answer stands its error: 0 is done (netlink(7)).
                if length >= 20 && answer[16..20] == [0; 4] {
                    break;
                }
            }
            libc::close(socket);
        }
    }

    unsafe fn tell_failure(&self, error: &io::Error) {
        let code = error.raw_os_error().unwrap_or(0).to_ne_bytes();
        // SAFETY: the bytes live until the call returns. Nobody is left to hear of its failure.
        unsafe {
            libc::write(self.tell.as_raw_fd(), code.as_ptr().cast(), code.len());
        }
    }
}

impl Handover {
    /// The listener, once the child has been started.
    pub(crate) fn listener(self) -> io::Result<TcpListener> {
        let mut word = [0; 4];
        let mut into = [IoSliceMut::new(&mut word)];
        let mut space = nix::cmsg_space!(RawFd);
        let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<()>(self.0.as_raw_fd(), &mut into, Some(&mut space), flags)?;
        let handed = message.cmsgs()?.find_map(|sent| match sent {
            ControlMessageOwned::ScmRights(handed) => handed.first().copied(),
            _ => None,
        });
        let handed = handed.ok_or_else(|| io::Error::other("no listener came"))?;
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
        Ok(unsafe { TcpListener::from_raw_fd(handed) })
    }

    /// Why the child has no network of its own, where that is why it was not started.
    pub(crate) fn failure(mut self) -> Option<io::Error> {
        self.0.set_nonblocking(true).ok()?;
        let mut code = [0; 4];
        self.0.read_exact(&mut code).ok()?;
        Some(io::Error::from_raw_os_error(i32::from_ne_bytes(code)))
    }
}

/// A message that makes a link of this kind, up from the start: rtnetlink(7), `RTM_NEWLINK`.
fn link(kind: &str) -> Vec<u8> {
    let attribute = |number: u16, data: &[u8]| {
        let mut bytes = Vec::from((data.len() as u16 + 4).to_ne_bytes());
        bytes.extend(number.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let up = (libc::IFF_UP as u32).to_ne_bytes();
    // Family, padding, type and index are left open; then the flags, and which of them are meant.
    let mut body = [[0; 4], [0; 4], up, up].concat();
    body.extend(attribute(libc::IFLA_IFNAME, b"nowhere\0"));
    body.extend(attribute(libc::IFLA_LINKINFO, &attribute(libc::IFLA_INFO_KIND, kind.as_bytes())));
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let mut message = Vec::from((body.len() as u32 + 16).to_ne_bytes());
    message.extend(libc::RTM_NEWLINK.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([1u32, 0].map(u32::to_ne_bytes).concat());
    message.extend(body);
    message
}

unsafe fn raise_loopback(socket: RawFd) -> io::Result<()> {
    // SAFETY: an `ifreq` of zeros is valid; its name is shorter than the field.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (into, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *into = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        check(libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw mut request))
    }
}

/// Sends a descriptor: unix(7), `SCM_RIGHTS`.
unsafe fn hand_over(over: RawFd, descriptor: RawFd) -> io::Result<()> {
    // SAFETY: all memory is on this stack and outlives the call; the buffer is aligned for its header.
    unsafe {
        let mut word = *b"door";
        let mut part = libc::iovec { iov_base: word.as_mut_ptr().cast(), iov_len: word.len() };
        let mut space = [0u64; 8];
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = space.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as usize;
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_RIGHTS;
        (*head).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
        libc::CMSG_DATA(head).cast::<RawFd>().write_unaligned(descriptor);
        if libc::sendmsg(over, &raw const message, 0) < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

unsafe fn write_to(path: &std::ffi::CStr, text: &std::ffi::CStr) -> io::Result<()> {
    // SAFETY: both end in NUL and outlive the calls.
    unsafe {
        let file = check_fd(libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
        let bytes = text.to_bytes();
        let written = libc::write(file, bytes.as_ptr().cast(), bytes.len());
        let result = if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
        libc::close(file);
        result
    }
}

fn check(result: i32) -> io::Result<()> {
    check_fd(result).map(|_| ())
}

fn check_fd(result: i32) -> io::Result<RawFd> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c08_a_process_can_be_secluded_as_root_and_as_any_user() {
        try_seclusion(None).expect("as we are");
        if nix::unistd::geteuid().is_root() {
            try_seclusion(Some((64_322, 64_322))).expect("as another user");
        }
    }
}
