//! The rules: values in, values out. What is asked for is judged twice, as it was named and as it was resolved.
//!
//! ```text
//! named:     deny list ─► allow list ─► metadata name ─► port
//! resolved:  deny list ─► allow list (not for metadata) ─► floor
//! ```

use std::{net::IpAddr, str::FromStr};

use crate::{floor::floor, host::Host};

/// The ports of the web, which need no entry.
const PORTS: [u16; 2] = [80, 443];

/// Why something is not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// The instance's policy denies it.
    Denied,
    /// It is not 80 or 443, and no entry allows it.
    Port,
    /// The host can not be understood.
    Host,
    /// A cloud hands out credentials there.
    Metadata,
    /// The machine itself.
    Loopback,
    /// One of the machine's own addresses.
    OwnAddress,
    /// A private network.
    Private,
    /// The network link.
    LinkLocal,
    /// A provider's inner network (RFC 6598).
    Cgnat,
    /// Many receivers.
    Multicast,
    /// No address at all.
    Unspecified,
    /// Set aside for something else than hosts.
    Reserved,
    /// The browser asks it for itself, and no page needs it.
    Background,
    /// Neither a web page nor a tunnel to one.
    Protocol,
    /// All bytes that the policy grants are spent.
    Bytes,
    /// All connections that the policy grants are in use.
    Connections,
}

impl Rule {
    /// Its name, as events and errors tell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Port => "port",
            Self::Host => "host",
            Self::Metadata => "metadata",
            Self::Loopback => "loopback",
            Self::OwnAddress => "own_address",
            Self::Private => "private",
            Self::LinkLocal => "link_local",
            Self::Cgnat => "cgnat",
            Self::Multicast => "multicast",
            Self::Unspecified => "unspecified",
            Self::Reserved => "reserved",
            Self::Background => "background",
            Self::Protocol => "protocol",
            Self::Bytes => "bytes",
            Self::Connections => "connections",
        }
    }
}

/// One entry of a list: a host, on one port or on all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    host: Host,
    port: Option<u16>,
}

/// The entry is not of the form `host` or `host:port`; an IPv6 address with a port stands in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an entry is not of the form host or host:port")]
pub struct EntryError;

impl FromStr for Entry {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, EntryError> {
        if let Some(host @ Host::Address(IpAddr::V6(_))) = Host::parse(text) {
            return Ok(Self { host, port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            None => (text, None),
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                let port: u16 = port.parse().map_err(|_| EntryError)?;
                (host, Some(port).filter(|port| *port != 0).ok_or(EntryError).map(Some)?)
            }
            Some(_) => return Err(EntryError),
        };
        Ok(Self { host: Host::parse(host).ok_or(EntryError)?, port })
    }
}

impl Entry {
    fn is_for(&self, port: u16) -> bool {
        self.port.is_none_or(|of| of == port)
    }
}

/// How much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Bytes, both ways together; none: without a bound.
    pub bytes_max: Option<u64>,
    /// Connections at once; none: as many as the proxy itself takes.
    pub connections_max: Option<u32>,
}

/// What may be reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// Reached although the floor or the port denies it: this host exactly.
    pub allow: Vec<Entry>,
    /// Never reached: this host, names below it, and whatever resolves to it. Wins over `allow`.
    pub deny: Vec<Entry>,
    /// Hosts that the browser asks for itself: refused unless they are allowed, and not told, as it asks all the time.
    pub background: Vec<Entry>,
    /// How much.
    pub limits: Limits,
}

impl Policy {
    /// Reads both lists.
    ///
    /// # Errors
    /// [`EntryError`]: a list that can't be understood in full is no list.
    pub fn parse(
        allow: impl IntoIterator<Item = impl AsRef<str>>,
        deny: impl IntoIterator<Item = impl AsRef<str>>,
        limits: Limits,
    ) -> Result<Self, EntryError> {
        let allow = allow.into_iter().map(|entry| entry.as_ref().parse()).collect::<Result<_, _>>()?;
        let deny = deny.into_iter().map(|entry| entry.as_ref().parse()).collect::<Result<_, _>>()?;
        Ok(Self { allow, deny, background: Vec::new(), limits })
    }

    /// Whether what was named may be resolved at all.
    ///
    /// # Errors
    /// The rule that says no.
    pub fn may_resolve(&self, host: &Host, port: u16) -> Result<(), Rule> {
        if self.denies(host, port) {
            return Err(Rule::Denied);
        }
        if self.allows(host, port) {
            return Ok(());
        }
        match host {
            host if self.background.iter().any(|entry| entry.host == *host) => Err(Rule::Background),
            host if host.names_metadata() => Err(Rule::Metadata),
            host if host.is_localhost() => Err(Rule::Loopback),
            // An address is told by its own rule, also on a port that would be refused anyway.
            Host::Address(address) if floor(*address).is_some() => Ok(()),
            _ if PORTS.contains(&port) => Ok(()),
            _ => Err(Rule::Port),
        }
    }

    /// Whether an address to which `host` was resolved may be connected to.
    ///
    /// An entry that names a host lifts the floor for what it resolves to, but not for metadata: that needs an entry
    /// which says so, by its name or its address. An entry that names an address is for who asks for that address;
    /// otherwise a name that resolves to it would be let in with it, and could read what the address answers.
    ///
    /// # Errors
    /// The rule that says no.
    pub fn may_connect(&self, host: &Host, address: IpAddr, port: u16) -> Result<(), Rule> {
        if self.denies(&Host::Address(address), port) {
            return Err(Rule::Denied);
        }
        let rule = match floor(address) {
            None => return Ok(()),
            Some(rule) => rule,
        };
        let says_metadata = matches!(host, Host::Address(_)) || host.names_metadata();
        if self.allows(host, port) && (rule != Rule::Metadata || says_metadata) {
            return Ok(());
        }
        Err(rule)
    }

    /// Whether an entry names this host.
    #[must_use]
    pub fn allows(&self, host: &Host, port: u16) -> bool {
        let is_it = |entry: &&Entry| match (&entry.host, host) {
            (Host::Name(name), Host::Name(asked)) => name == asked,
            (of, asked) => asked.is_within(of),
        };
        self.allow.iter().filter(is_it).any(|entry| entry.is_for(port))
    }

    fn denies(&self, host: &Host, port: u16) -> bool {
        self.deny.iter().any(|entry| entry.is_for(port) && host.is_within(&entry.host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allow: &[&str], deny: &[&str]) -> Policy {
        Policy::parse(allow, deny, Limits::default()).expect("a policy")
    }

    fn verdict(policy: &Policy, host: &str, address: &str, port: u16) -> Result<(), Rule> {
        let host = Host::parse(host).expect("a host");
        policy.may_resolve(&host, port)?;
        policy.may_connect(&host, address.parse().expect("an address"), port)
    }

    #[test]
    fn c08_without_an_entry_only_the_public_web_is_reached() {
        let none = policy(&[], &[]);
        assert_eq!(verdict(&none, "a.example", "8.8.8.8", 443), Ok(()));
        assert_eq!(verdict(&none, "a.example", "8.8.8.8", 22), Err(Rule::Port));
        assert_eq!(verdict(&none, "a.example", "10.0.0.1", 443), Err(Rule::Private));
        assert_eq!(verdict(&none, "a.example", "::ffff:127.0.0.1", 80), Err(Rule::Loopback));
        assert_eq!(verdict(&none, "localhost", "127.0.0.1", 80), Err(Rule::Loopback));
        assert_eq!(verdict(&none, "10.0.0.1", "10.0.0.1", 8080), Err(Rule::Private));
        assert_eq!(verdict(&none, "metadata.google.internal.", "8.8.8.8", 80), Err(Rule::Metadata));
    }

    #[test]
    fn c08_an_entry_opens_its_host_and_port_and_nothing_beside_them() {
        let some = policy(&["127.0.0.1:8080", "intra.example", "[::1]:81"], &[]);
        assert_eq!(verdict(&some, "127.0.0.1", "127.0.0.1", 8080), Ok(()));
        assert_eq!(verdict(&some, "127.1", "127.0.0.1", 8080), Ok(()));
        assert_eq!(verdict(&some, "::1", "::1", 81), Ok(()));
        assert_eq!(verdict(&some, "127.0.0.1", "127.0.0.1", 8081), Err(Rule::Loopback));
        assert_eq!(verdict(&some, "intra.example", "10.0.0.1", 9000), Ok(()));
        assert_eq!(verdict(&some, "www.intra.example", "10.0.0.1", 80), Err(Rule::Private));
        // A name of an attacker's that resolves to the allowed address is not that address.
        assert_eq!(verdict(&some, "evil.example", "127.0.0.1", 80), Err(Rule::Loopback));
        assert_eq!(
            verdict(&policy(&["127.0.0.1"], &[]), "evil.example", "127.0.0.1", 80),
            Err(Rule::Loopback)
        );
    }

    #[test]
    fn c08_metadata_is_reached_only_where_an_entry_says_metadata() {
        let name = policy(&["intra.example"], &[]);
        assert_eq!(verdict(&name, "intra.example", "169.254.169.254", 80), Err(Rule::Metadata));
        let address = policy(&["169.254.169.254:80", "metadata.google.internal"], &[]);
        assert_eq!(verdict(&address, "169.254.169.254", "169.254.169.254", 80), Ok(()));
        assert_eq!(verdict(&address, "metadata.google.internal", "169.254.169.254", 80), Ok(()));
    }

    #[test]
    fn c08_what_is_denied_is_denied_by_name_below_it_and_by_address_also_if_it_is_allowed() {
        let some = policy(&["a.example"], &["a.example:443", "1.2.3.4", "b.example"]);
        assert_eq!(verdict(&some, "a.example", "8.8.8.8", 443), Err(Rule::Denied));
        assert_eq!(verdict(&some, "a.example", "8.8.8.8", 80), Ok(()));
        assert_eq!(verdict(&some, "www.b.example", "8.8.8.8", 80), Err(Rule::Denied));
        assert_eq!(verdict(&some, "c.example", "1.2.3.4", 80), Err(Rule::Denied));
        assert_eq!(verdict(&some, "c.example", "::ffff:1.2.3.4", 80), Err(Rule::Denied));
    }

    #[test]
    fn c08_what_the_browser_asks_for_itself_is_refused_unless_it_is_allowed() {
        let background = vec!["update.example".parse().expect("an entry")];
        let some = Policy { background: background.clone(), ..Policy::default() };
        assert_eq!(verdict(&some, "update.example", "8.8.8.8", 443), Err(Rule::Background));
        assert_eq!(verdict(&some, "www.update.example", "8.8.8.8", 443), Ok(()));
        let allowed = Policy { background, ..policy(&["update.example"], &[]) };
        assert_eq!(verdict(&allowed, "update.example", "8.8.8.8", 443), Ok(()));
    }

    #[test]
    fn an_entry_is_a_host_with_or_without_a_port() {
        for good in ["a.example", "a.example:1", "[::1]:80", "::1", "[fd00::1]", "1.2.3.4:65535"] {
            assert!(good.parse::<Entry>().is_ok(), "{good}");
        }
        for bad in ["", ":80", "a:0", "a:65536", "a:x", "a:", "http://a", "a:1:2"] {
            assert!(bad.parse::<Entry>().is_err(), "{bad}");
        }
    }
}
