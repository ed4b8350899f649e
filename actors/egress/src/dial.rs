//! From a host to a connection: one resolution, each address judged, and only a judged one connected to.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{net::TcpStream, time::timeout};

use crate::{
    host::Host,
    ledger::Why,
    policy::{Policy, Rule},
};

/// How long one resolution may take.
const RESOLVE_WAIT: Duration = Duration::from_secs(10);
/// How long one address may take to answer.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// So many addresses of a host are tried.
const ADDRESSES_MAX: usize = 6;

/// Turns names into addresses.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// All addresses of a name; asked once for each connection.
    ///
    /// # Errors
    /// The name has none, or nobody can tell.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// As this machine resolves names.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Connects to a host, if the policy says so.
///
/// # Errors
/// Which rule forbids it, or how it failed, in Chromium's words.
pub(crate) async fn dial(
    policy: &Policy,
    resolver: &dyn Resolver,
    host: &Host,
    port: u16,
) -> Result<TcpStream, Why> {
    policy.may_resolve(host, port).map_err(Why::Blocked)?;
    let mut why = Why::Failed("net::ERR_NAME_NOT_RESOLVED");
    for address in addresses(resolver, host).await? {
        match reach(policy, host, address, port).await {
            Ok(stream) => return Ok(stream),
            // Of several reasons the rule is told: that an address was also not there is no news.
            Err(reason) if !matches!(why, Why::Blocked(_)) => why = reason,
            Err(_) => {}
        }
    }
    Err(why)
}

async fn addresses(resolver: &dyn Resolver, host: &Host) -> Result<Vec<IpAddr>, Why> {
    let Host::Name(name) = host else {
        let Host::Address(address) = host else { return Ok(Vec::new()) };
        return Ok(vec![address.to_canonical()]);
    };
    if host.is_localhost() {
        return Ok(Host::loopback().to_vec());
    }
    let mut found = match timeout(RESOLVE_WAIT, resolver.resolve(name)).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) => return Err(Why::Failed("net::ERR_NAME_NOT_RESOLVED")),
        Err(_) => return Err(Why::Failed("net::ERR_NAME_RESOLUTION_FAILED")),
    };
    found.iter_mut().for_each(|address| *address = address.to_canonical());
    found.dedup();
    found.truncate(ADDRESSES_MAX);
    Ok(found)
}

async fn reach(policy: &Policy, host: &Host, address: IpAddr, port: u16) -> Result<TcpStream, Why> {
    policy.may_connect(host, address, port).map_err(Why::Blocked)?;
    let address = SocketAddr::new(address, port);
    if is_own(address) && !policy.allows(host, port) {
        return Err(Why::Blocked(Rule::OwnAddress));
    }
    match timeout(CONNECT_WAIT, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => {
            // A proxy that gathers small writes is slower than none; a socket that can't be told so works as well.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) => Err(Why::Failed(failure(&error))),
        Err(_) => Err(Why::Failed("net::ERR_CONNECTION_TIMED_OUT")),
    }
}

/// Whether the machine would be talking to itself: to one of its own addresses it speaks from that same address.
///
/// Connecting a datagram socket asks the routing table, and sends nothing.
fn is_own(address: SocketAddr) -> bool {
    let any: SocketAddr = match address.ip() {
        IpAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        IpAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let local = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    local.is_ok_and(|local| local.ip() == address.ip())
}

fn failure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "net::ERR_CONNECTION_REFUSED",
        io::ErrorKind::ConnectionReset => "net::ERR_CONNECTION_RESET",
        io::ErrorKind::TimedOut => "net::ERR_CONNECTION_TIMED_OUT",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "net::ERR_ADDRESS_UNREACHABLE",
        _ => "net::ERR_CONNECTION_FAILED",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::net::TcpListener;

    use super::*;
    use crate::policy::Limits;

    /// Another answer each time it is asked, as an attacker's name server gives.
    struct Turning(Vec<Vec<IpAddr>>, AtomicUsize);

    #[async_trait]
    impl Resolver for Turning {
        async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            let turn = self.1.fetch_add(1, Ordering::SeqCst);
            Ok(self.0[turn.min(self.0.len() - 1)].clone())
        }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[tokio::test]
    async fn c08_a_name_is_resolved_once_and_the_judged_address_is_the_one_that_is_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        // Were it asked a second time, between the check and the connect, it would say another address.
        let resolver = Turning(vec![vec![ip("127.0.0.1")], vec![ip("127.0.0.2")]], AtomicUsize::default());
        let host = Host::parse("evil.example").expect("a host");
        let policy = Policy::parse(["evil.example"], [""; 0], Limits::default()).expect("a policy");
        let stream = dial(&policy, &resolver, &host, port).await.expect("it is allowed");
        assert_eq!(stream.peer_addr().expect("a peer").ip(), ip("127.0.0.1"));
        assert_eq!(resolver.1.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn c08_a_name_that_turns_inward_is_refused_each_time_it_does() {
        let resolver =
            Turning(vec![vec![ip("10.0.0.1"), ip("::ffff:169.254.169.254")], vec![]], AtomicUsize::default());
        let host = Host::parse("evil.example").expect("a host");
        let policy = Policy::default();
        let refused = dial(&policy, &resolver, &host, 80).await.expect_err("it is refused");
        assert_eq!(refused, Why::Blocked(Rule::Private));
        let gone = dial(&policy, &resolver, &host, 80).await.expect_err("there is nothing");
        assert_eq!(gone, Why::Failed("net::ERR_NAME_NOT_RESOLVED"));
    }

    #[test]
    fn c08_the_machines_own_addresses_are_known_whatever_they_are() {
        assert!(is_own(([127, 0, 0, 1], 80).into()));
        assert!(!is_own(([192, 0, 2, 1], 80).into()));
    }
}
