//! Where the browser comes in, and nobody else.
//!
//! A door in the browser's own network namespace is out of reach for every other process. One on the machine's loopback
//! is not: there each connection has to belong to the browser's user, as the kernel's table of sockets tells it.

use std::{
    io,
    net::{SocketAddr, TcpListener as StdListener},
};

use tokio::net::{TcpListener, TcpStream};

/// A listener, and who may come in.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    only_uid: Option<u32>,
}

impl Door {
    /// A door that nobody but the browser can reach.
    ///
    /// # Errors
    /// The listener can't be watched.
    pub fn secluded(listener: StdListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener: TcpListener::from_std(listener)?, only_uid: None })
    }

    /// A door on a free port of the machine's loopback, for processes of this user.
    ///
    /// # Errors
    /// No port is free.
    pub async fn on_loopback(uid: u32) -> io::Result<Self> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        Ok(Self { listener, only_uid: Some(uid) })
    }

    /// Where it is.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next connection that may come in; others are closed without a word.
    pub(crate) async fn next(&self) -> io::Result<TcpStream> {
        loop {
            let (stream, peer) = self.listener.accept().await?;
            let Some(uid) = self.only_uid else { return Ok(stream) };
            let here = stream.local_addr()?;
            let table = tokio::fs::read_to_string("/proc/net/tcp").await?;
            if owner(&table, peer, here) == Some(uid) {
                return Ok(stream);
            }
            tracing::warn!("A connection to a browser's proxy that is not the browser's was closed.");
        }
    }
}

/// The user of a connection's other end (proc(5), `/proc/net/tcp`): addresses are hexadecimal, the address in the
/// machine's own byte order.
fn owner(table: &str, from: SocketAddr, to: SocketAddr) -> Option<u32> {
    let written = |address: SocketAddr| match address {
        SocketAddr::V4(address) => {
            Some(format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port()))
        }
        SocketAddr::V6(_) => None,
    };
    let (from, to) = (written(from)?, written(to)?);
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = fields.get(1) == Some(&from.as_str()) && fields.get(2) == Some(&to.as_str());
        if is_it { fields.get(7)?.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn own_uid() -> u32 {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata("/proc/self").expect("it is there").uid()
    }

    #[tokio::test]
    async fn c08_a_door_on_the_loopback_opens_for_its_user_only() {
        let ours = Door::on_loopback(own_uid()).await.expect("a port");
        let _client = TcpStream::connect(ours.address().expect("an address")).await.expect("connected");
        ours.next().await.expect("it is ours");
        let other = Door::on_loopback(own_uid() + 1).await.expect("a port");
        let client = TcpStream::connect(other.address().expect("an address")).await.expect("connected");
        assert!(timeout(Duration::from_millis(200), other.next()).await.is_err(), "it stays out");
        let mut one = [0; 1];
        client.readable().await.expect("closed");
        assert!(matches!(client.try_read(&mut one), Ok(0) | Err(_)));
    }
}
