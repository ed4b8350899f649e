//! A host as somebody spelled it, and as it is meant.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Names under which clouds offer their metadata, besides the addresses.
const METADATA_NAMES: [&str; 8] = [
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.azure.com",
    "metadata.packet.net",
    "instance-data",
    "instance-data.ec2.internal",
];

/// A host: a name in lower case without a dot at its end, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name, in ASCII.
    Name(String),
    /// An address, whichever way it was written: `127.1`, `0x7f000001` and `2130706433` are 127.0.0.1.
    Address(IpAddr),
}

impl Host {
    /// Reads a host as the URL standard does; an IPv6 address stands in brackets, or alone.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Some(Self::Address(IpAddr::V6(address)));
        }
        match url::Host::parse(text).ok()? {
            url::Host::Ipv4(address) => Some(Self::Address(IpAddr::V4(address))),
            url::Host::Ipv6(address) => Some(Self::Address(IpAddr::V6(address))),
            url::Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(&name).to_ascii_lowercase();
                // A resolver takes `a..` for `a.`, and no rule would know it.
                if name.split('.').any(str::is_empty) {
                    return None;
                }
                // With the dot gone it may read as an address after all.
                match url::Host::parse(&name).ok()? {
                    url::Host::Ipv4(address) => Some(Self::Address(IpAddr::V4(address))),
                    url::Host::Ipv6(_) => None,
                    url::Host::Domain(_) => Some(Self::Name(name)),
                }
            }
        }
    }

    /// The addresses of a name that no resolver is asked for (RFC 6761 section 6.3).
    pub(crate) fn is_localhost(&self) -> bool {
        matches!(self, Self::Name(name) if name == "localhost" || name.ends_with(".localhost"))
    }

    pub(crate) fn names_metadata(&self) -> bool {
        matches!(self, Self::Name(name) if METADATA_NAMES.contains(&name.as_str()))
    }

    /// Whether this is `other`, or a name below it.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Name(name), Self::Name(parent)) => {
                name.strip_suffix(parent.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            (Self::Address(address), Self::Address(other)) => address.to_canonical() == other.to_canonical(),
            (Self::Name(_), Self::Address(_)) | (Self::Address(_), Self::Name(_)) => false,
        }
    }

    /// What `localhost` means.
    pub(crate) const fn loopback() -> [IpAddr; 2] {
        [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c08_every_spelling_of_an_address_is_that_address() {
        let loopback = Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));
        for spelling in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "017700000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "127.0.0.0x1",
            "１２７.0.0.1",
            "127%2e0.0.1",
        ] {
            assert_eq!(Host::parse(spelling), Some(loopback.clone()), "{spelling}");
        }
        let mapped = Host::parse("[::ffff:169.254.169.254]").expect("an address");
        assert!(mapped.is_within(&Host::parse("169.254.169.254").expect("an address")));
        assert_eq!(Host::parse("EXAMPLE.org."), Some(Host::Name("example.org".to_owned())));
        for bad in [
            "",
            "a b",
            "[::1",
            "1.2.3.4.5",
            "256.1.1.1",
            "a/b",
            "[fe80::1%eth0]",
            "evil.test..",
            "evil.test%2e%2e",
            "a..b",
            ".a",
        ] {
            assert_eq!(Host::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_name_is_within_itself_and_its_parents_only() {
        let host = |text: &str| Host::parse(text).expect("a host");
        assert!(host("a.example").is_within(&host("a.example")));
        assert!(host("b.a.example").is_within(&host("a.example")));
        assert!(!host("ba.example").is_within(&host("a.example")));
        assert!(host("LOCALHOST").is_localhost() && host("x.localhost.").is_localhost());
        assert!(!host("localhost.example").is_localhost());
    }
}
