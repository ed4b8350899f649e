//! What a network policy may say. One that can't be understood is refused when it is given, not when it is needed.

use std::net::Ipv6Addr;

use eventlog::event::instance::NetworkPolicy;

use super::POLICY_HOSTS_MAX;

/// Entries of `allow` that name no host: frames may show documents of this scheme, which a page brings itself.
pub(crate) const INLINE_SCHEMES: [&str; 2] = ["data:", "blob:"];

/// The longest host name, RFC 1035 section 2.3.4.
const HOST_BYTES_MAX: usize = 253;

/// Whether each entry is `host` or `host:port` and the bounds are sensible.
///
/// # Errors
/// What is wrong, in words of ours: the entry itself is not quoted.
pub(super) fn check_policy(policy: &NetworkPolicy) -> Result<(), &'static str> {
    if policy.allow.len() > POLICY_HOSTS_MAX || policy.deny.len() > POLICY_HOSTS_MAX {
        return Err("names too many hosts");
    }
    let is_scheme = |entry: &&String| INLINE_SCHEMES.contains(&entry.as_str());
    let hosts = policy.allow.iter().filter(|entry| !is_scheme(entry)).chain(&policy.deny);
    if !hosts.into_iter().all(|entry| is_host_and_port(entry)) {
        return Err("has an entry that is not of the form host or host:port");
    }
    if policy.max_bytes == Some(0) || policy.max_connections == Some(0) {
        return Err("has a limit of 0");
    }
    Ok(())
}

/// Whether it is what it should look like, and the wall can go by it.
pub(crate) fn is_host_and_port(entry: &str) -> bool {
    looks_like_host_and_port(entry) && entry.parse::<egress::Entry>().is_ok()
}

fn looks_like_host_and_port(entry: &str) -> bool {
    if let Some(rest) = entry.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return address.parse::<Ipv6Addr>().is_ok()
            && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    match entry.split_once(':') {
        None => is_host(entry),
        Some((host, port)) if is_port(port) => is_host(host),
        Some(_) => entry.parse::<Ipv6Addr>().is_ok(),
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port != 0)
}

fn is_host(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.len() <= HOST_BYTES_MAX && text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_can_not_be_understood_is_refused() {
        for good in
            ["example.org", "example.org:8443", "127.0.0.1:80", "[::1]:8080", "[fd00::1]", "::1", "a_b"]
        {
            assert!(is_host_and_port(good), "{good}");
        }
        for bad in
            ["", "*", "a b", "http://a", "a:0", "a:65536", "a:+1", "a:", "[::1", "[x]:1", "a..b", "a/b"]
        {
            assert!(!is_host_and_port(bad), "{bad}");
        }
        // What ends in a number is an address, and these are none: no wall could be built of them.
        for bad in ["1.2.3.4.5", "1.2.3.4.5:80", "256.1.1.1", "a.1"] {
            assert!(!is_host_and_port(bad), "{bad}");
        }
        let entries = |allow: &[&str], deny: &[&str]| NetworkPolicy {
            allow: allow.iter().map(ToString::to_string).collect(),
            deny: deny.iter().map(ToString::to_string).collect(),
            ..NetworkPolicy::default()
        };
        assert!(check_policy(&entries(&["data:", "blob:", "a"], &[])).is_ok());
        for unclear in [entries(&[], &["data:"]), entries(&["file:"], &[]), entries(&["1.2.3.4.5"], &[])] {
            assert!(check_policy(&unclear).is_err(), "{unclear:?}");
        }
        let zero = NetworkPolicy { max_bytes: Some(0), ..NetworkPolicy::default() };
        assert!(check_policy(&zero).is_err());
        let many =
            NetworkPolicy { deny: vec!["a".to_owned(); POLICY_HOSTS_MAX + 1], ..NetworkPolicy::default() };
        assert!(check_policy(&many).is_err());
        assert!(check_policy(&NetworkPolicy::default()).is_ok());
    }
}
