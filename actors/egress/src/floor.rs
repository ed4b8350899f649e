//! The floor: which addresses nothing reaches unless an operator says so.
//!
//! Source: the special-purpose address registries of IANA (RFC 6890 and its updates), and the addresses at which clouds
//! hand out credentials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::policy::Rule;

/// Where clouds hand out credentials to whoever asks from inside.
const METADATA_V4: [Ipv4Addr; 6] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// The rule by which an address is not reached; `None` for one of the public internet.
///
/// An IPv6 address that carries an IPv4 one (mapped, compatible, translated, NAT64, ISATAP) is judged by what it carries.
#[must_use]
pub fn floor(address: IpAddr) -> Option<Rule> {
    match address {
        IpAddr::V4(address) => floor_v4(address),
        IpAddr::V6(address) => floor_v6(address),
    }
}

fn floor_v4(address: Ipv4Addr) -> Option<Rule> {
    if METADATA_V4.contains(&address) {
        return Some(Rule::Metadata);
    }
    Some(match address.octets() {
        [0, ..] => Rule::Unspecified,
        [127, ..] => Rule::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Rule::Private,
        [169, 254, ..] => Rule::LinkLocal,
        [100, 64..=127, ..] => Rule::Cgnat,
        [224..=239, ..] => Rule::Multicast,
        // Protocol assignments, documentation, the old 6to4 relays, benchmarks, and all that was never given out.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18..=19, ..] => Rule::Reserved,
        [198, 51, 100, _] | [203, 0, 113, _] | [240..=255, ..] => Rule::Reserved,
        _ => return None,
    })
}

fn floor_v6(address: Ipv6Addr) -> Option<Rule> {
    if METADATA_V6.contains(&address) {
        return Some(Rule::Metadata);
    }
    if address.is_unspecified() {
        return Some(Rule::Unspecified);
    }
    if address.is_loopback() {
        return Some(Rule::Loopback);
    }
    let segments = address.segments();
    if let Some(carried) = carried(segments) {
        return floor_v4(carried);
    }
    Some(match segments {
        [0xfc00..=0xfdff, ..] => Rule::Private,
        [0xfe80..=0xfebf, ..] => Rule::LinkLocal,
        // Site-local: given up, and still routed here and there.
        [0xfec0..=0xfeff, ..] => Rule::Private,
        [0xff00..=0xffff, ..] => Rule::Multicast,
        // NAT64 of a network's own (RFC 8215).
        [0x64, 0xff9b, 1, ..] => Rule::Private,
        // Protocol assignments with Teredo, documentation, 6to4.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => {
            Rule::Reserved
        }
        [0x2000..=0x3fff, ..] => return None,
        _ => Rule::Reserved,
    })
}

/// The IPv4 address that an IPv6 one carries to a gateway or a socket.
fn carried(segments: [u16; 8]) -> Option<Ipv4Addr> {
    let at = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        // Compatible (RFC 4291 2.5.5.1), mapped (2.5.5.2), translated (RFC 2765), NAT64 (RFC 6052), ISATAP (RFC 5214).
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(at(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(address: &str) -> Option<Rule> {
        floor(address.parse().expect("an address"))
    }

    #[test]
    fn c08_nothing_but_the_public_internet_is_above_the_floor() {
        for (address, expected) in [
            ("0.0.0.0", Rule::Unspecified),
            ("0.1.2.3", Rule::Unspecified),
            ("127.0.0.1", Rule::Loopback),
            ("127.255.255.254", Rule::Loopback),
            ("10.0.0.1", Rule::Private),
            ("172.16.0.1", Rule::Private),
            ("172.31.255.255", Rule::Private),
            ("192.168.1.1", Rule::Private),
            ("169.254.0.1", Rule::LinkLocal),
            ("169.254.169.254", Rule::Metadata),
            ("169.254.170.2", Rule::Metadata),
            ("100.100.100.200", Rule::Metadata),
            ("168.63.129.16", Rule::Metadata),
            ("100.64.0.1", Rule::Cgnat),
            ("224.0.0.251", Rule::Multicast),
            ("255.255.255.255", Rule::Reserved),
            ("198.18.0.1", Rule::Reserved),
            ("192.0.2.1", Rule::Reserved),
            ("::", Rule::Unspecified),
            ("::1", Rule::Loopback),
            ("fd00:ec2::254", Rule::Metadata),
            ("fd12::1", Rule::Private),
            ("fe80::1", Rule::LinkLocal),
            ("fec0::1", Rule::Private),
            ("ff02::1", Rule::Multicast),
            ("2001:db8::1", Rule::Reserved),
            ("2001::1", Rule::Reserved),
            ("2002:7f00:1::", Rule::Reserved),
            ("64:ff9b:1::1", Rule::Private),
            ("::ffff:127.0.0.1", Rule::Loopback),
            ("::ffff:169.254.169.254", Rule::Metadata),
            ("::ffff:0:10.0.0.1", Rule::Private),
            ("::10.0.0.1", Rule::Private),
            ("64:ff9b::a00:1", Rule::Private),
            ("2606:4700::5efe:10.0.0.1", Rule::Private),
            ("100::1", Rule::Reserved),
            ("4000::1", Rule::Reserved),
        ] {
            assert_eq!(rule(address), Some(expected), "{address}");
        }
        for address in
            ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808"]
        {
            assert_eq!(rule(address), None, "{address}");
        }
    }
}
