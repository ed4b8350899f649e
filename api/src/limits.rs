//! What an operator may set about the HTTP surface, and the counters that keep those bounds (C16).

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use eventlog::id::TokenId;
use governor::{
    DefaultKeyedRateLimiter, Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::problem::{Code, Problem};

/// Beyond so many remembered peers or tokens, those that have been quiet are forgotten.
const KEYS_REMEMBERED_MAX: usize = 10_000;

/// The bounds of the HTTP surface. Each field has its unit in its name and a default that suits one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Host names, beside `localhost`, `127.0.0.1` and `[::1]`, under which this server may be asked; no port.
    /// Default: none.
    pub allowed_hosts: Vec<String>,
    /// Origins, beside the server's own, whose pages may ask; exactly as a browser sends them: `https://a.example:8443`.
    /// Default: none.
    pub allowed_origins: Vec<String>,
    /// Whether a proxy in front ends TLS, so that the server's own origin begins with `https`. Default: false.
    pub tls_terminated: bool,
    /// Connections at once; the next is answered `overloaded` and closed. Never more than half of the files that the
    /// process may open. Default: 512. Range: 1 to 65 536.
    pub connections_max: u32,
    /// Seconds that a request's head may take from its first byte on. Default: 10. Range: 1 to 300.
    pub header_read_seconds: u64,
    /// Seconds that a connection may stay without a request, or with an answer that its peer does not take. Default: 75.
    /// Range: 1 to 3 600.
    pub keep_alive_seconds: u64,
    /// Bytes of a request body. Default: 262 144. Range: 1 024 to 16 777 216.
    pub body_bytes_max: usize,
    /// Bytes of a task's body, whose args may be a long text. Default: 2 097 152. Range: 1 024 to 16 777 216.
    pub task_body_bytes_max: usize,
    /// Bytes of all request headers together. Default: 16 384. Range: 1 024 to 65 536.
    pub header_bytes_max: usize,
    /// Bytes of a request's path and query. Default: 8 192. Range: 256 to 32 768.
    pub uri_bytes_max: usize,
    /// Requests per second and token, in the long run. Default: 1 000. Range: 1 to 1 000 000.
    pub rate_per_second: u32,
    /// Requests at once and token, after a pause. Default: 2 000. Range: 1 to 1 000 000.
    pub burst: u32,
    /// Failed authentications per minute and peer address. Default: 120. Range: 1 to 100 000.
    pub failures_per_minute: u32,
    /// Open event streams per token. Default: 32. Range: 1 to 10 000.
    pub streams_per_principal_max: u32,
    /// Seconds after which a reader of a stream that takes nothing is cut. Default: 20. Range: 1 to 600.
    pub stream_stall_seconds: u64,
    /// Seconds between two heartbeats of a quiet stream. Default: 15. Range: 1 to 300.
    pub heartbeat_seconds: u64,
    /// Seconds that a request may take, its `Prefer: wait` not counted. Default: 30. Range: 1 to 600.
    pub request_timeout_seconds: u64,
    /// Milliseconds that a read waits for the views to have what is asked. Default: 2 000. Range: 1 to 60 000.
    pub view_wait_ms: u64,
    /// Whether `/metrics` needs no token when asked from this machine. Default: false.
    pub metrics_public: bool,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            tls_terminated: false,
            connections_max: 512,
            header_read_seconds: 10,
            keep_alive_seconds: 75,
            body_bytes_max: 256 * 1024,
            task_body_bytes_max: 2 * 1024 * 1024,
            header_bytes_max: 16 * 1024,
            uri_bytes_max: 8 * 1024,
            rate_per_second: 1_000,
            burst: 2_000,
            failures_per_minute: 120,
            streams_per_principal_max: 32,
            stream_stall_seconds: 20,
            heartbeat_seconds: 15,
            request_timeout_seconds: 30,
            view_wait_ms: 2_000,
            metrics_public: false,
        }
    }
}

/// A field of [`HttpConfig`] that is out of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("http.{field} must be {wanted}")]
pub struct HttpConfigError {
    /// Which field.
    pub field: &'static str,
    /// What it may be.
    pub wanted: String,
}

impl HttpConfig {
    /// Every whole number, with the least and the most that it may be; in the order in which they are checked.
    pub(crate) const RANGES: [(&str, u64, u64); 15] = [
        ("connections_max", 1, 65_536),
        ("header_read_seconds", 1, 300),
        ("keep_alive_seconds", 1, 3_600),
        ("body_bytes_max", 1_024, 16 * 1024 * 1024),
        ("task_body_bytes_max", 1_024, 16 * 1024 * 1024),
        ("header_bytes_max", 1_024, 64 * 1024),
        ("uri_bytes_max", 256, 32 * 1024),
        ("rate_per_second", 1, 1_000_000),
        ("burst", 1, 1_000_000),
        ("failures_per_minute", 1, 100_000),
        ("streams_per_principal_max", 1, 10_000),
        ("stream_stall_seconds", 1, 600),
        ("heartbeat_seconds", 1, 300),
        ("request_timeout_seconds", 1, 600),
        ("view_wait_ms", 1, 60_000),
    ];

    /// Whether every field is in its range; ask before [`crate::http::router`].
    ///
    /// # Errors
    /// The first field that is not.
    pub fn validate(&self) -> Result<(), HttpConfigError> {
        let numbers = [
            self.connections_max.into(),
            self.header_read_seconds,
            self.keep_alive_seconds,
            self.body_bytes_max as u64,
            self.task_body_bytes_max as u64,
            self.header_bytes_max as u64,
            self.uri_bytes_max as u64,
            self.rate_per_second.into(),
            self.burst.into(),
            self.failures_per_minute.into(),
            self.streams_per_principal_max.into(),
            self.stream_stall_seconds,
            self.heartbeat_seconds,
            self.request_timeout_seconds,
            self.view_wait_ms,
        ];
        for ((field, least, most), value) in Self::RANGES.into_iter().zip(numbers) {
            if !(least..=most).contains(&value) {
                return Err(HttpConfigError { field, wanted: format!("from {least} to {most}") });
            }
        }
        let bad_host =
            |host: &String| host.is_empty() || host.contains(['/', '@', ' ']) || host.ends_with(':');
        if self.allowed_hosts.iter().any(bad_host) {
            return Err(HttpConfigError {
                field: "allowed_hosts",
                wanted: "host names without scheme and port".to_owned(),
            });
        }
        let is_origin = |text: &String| {
            url::Url::parse(text)
                .is_ok_and(|url| url.origin().ascii_serialization() == *text && url.has_host())
        };
        if !self.allowed_origins.iter().all(is_origin) {
            return Err(HttpConfigError {
                field: "allowed_origins",
                wanted: "origins as a browser sends them, as https://a.example".to_owned(),
            });
        }
        Ok(())
    }
}

/// The counters behind the bounds. One per server.
pub(crate) struct Limits {
    requests: DefaultKeyedRateLimiter<TokenId>,
    failures: DefaultKeyedRateLimiter<Option<IpAddr>>,
    streams: Arc<Mutex<HashMap<TokenId, u32>>>,
    streams_max: u32,
    clock: DefaultClock,
}

impl Limits {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        let at_least_one = |value: u32| NonZeroU32::new(value).unwrap_or(NonZeroU32::MIN);
        let requests =
            Quota::per_second(at_least_one(config.rate_per_second)).allow_burst(at_least_one(config.burst));
        let failures = Quota::per_minute(at_least_one(config.failures_per_minute));
        Self {
            requests: RateLimiter::keyed(requests),
            failures: RateLimiter::keyed(failures),
            streams: Arc::default(),
            streams_max: config.streams_per_principal_max,
            clock: DefaultClock::default(),
        }
    }

    /// Counts one request of this token. By token and not by owner, whose id another Workspace may use as well.
    pub(crate) fn admit(&self, token: TokenId) -> Result<(), Problem> {
        forget_the_quiet(&self.requests);
        self.requests.check_key(&token).map_err(|until| limited(until.wait_time_from(self.clock.now())))
    }

    /// Counts one failed authentication of this peer, and says how to answer it.
    pub(crate) fn refuse(&self, peer: Option<IpAddr>) -> Problem {
        forget_the_quiet(&self.failures);
        match self.failures.check_key(&peer.map(neighbourhood)) {
            Ok(()) => Problem::new(Code::Unauthenticated),
            Err(until) => limited(until.wait_time_from(self.clock.now())),
        }
    }

    /// Takes one of the token's streams; it is given back when the answer is dropped.
    pub(crate) fn open_stream(&self, token: TokenId) -> Result<OpenStream, Problem> {
        let mut streams = self.streams.lock();
        let open = streams.entry(token).or_default();
        if *open >= self.streams_max {
            return Err(Problem::new(Code::Overloaded)
                .saying("this token has as many open streams as it may have")
                .detail("streams_max", self.streams_max));
        }
        *open += 1;
        Ok(OpenStream { streams: Arc::clone(&self.streams), token })
    }
}

/// One open stream of a token.
#[derive(Debug)]
pub(crate) struct OpenStream {
    streams: Arc<Mutex<HashMap<TokenId, u32>>>,
    token: TokenId,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut streams = self.streams.lock();
        if let Some(open) = streams.get_mut(&self.token) {
            *open -= 1;
            if *open == 0 {
                streams.remove(&self.token);
            }
        }
    }
}

fn limited(wait: Duration) -> Problem {
    Problem::new(Code::RateLimited).retry_after(wait)
}

fn forget_the_quiet<K: std::hash::Hash + Eq + Clone>(limiter: &DefaultKeyedRateLimiter<K>) {
    if limiter.len() > KEYS_REMEMBERED_MAX {
        limiter.retain_recent();
    }
}

/// A household may hold a whole /64, so IPv6 peers are counted by it.
fn neighbourhood(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => IpAddr::V4(address),
            None => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u8) -> TokenId {
        format!("tok_0000000000000000000000000{number}").parse().expect("an id")
    }

    #[test]
    fn the_defaults_are_in_their_ranges_and_what_is_not_is_named() {
        HttpConfig::default().validate().expect("the defaults are valid");
        let field = |config: HttpConfig| config.validate().expect_err("it is out of range").field;
        assert_eq!(field(HttpConfig { burst: 0, ..HttpConfig::default() }), "burst");
        let origins =
            |text: &str| HttpConfig { allowed_origins: vec![text.to_owned()], ..HttpConfig::default() };
        origins("https://a.example:8443").validate().expect("an origin");
        for bad in
            ["*", "null", "https://a.example/", "https://A.example", "https://a.example:443", "a.example"]
        {
            assert_eq!(field(origins(bad)), "allowed_origins", "{bad}");
        }
    }

    #[test]
    fn a_token_over_its_rate_is_told_when_to_come_back_and_others_go_on() {
        let limits = Limits::new(&HttpConfig { rate_per_second: 1, burst: 2, ..HttpConfig::default() });
        limits.admit(token(1)).expect("first");
        limits.admit(token(1)).expect("second");
        assert_eq!(limits.admit(token(1)).expect_err("third").code(), Code::RateLimited);
        limits.admit(token(2)).expect("another token");
    }

    #[test]
    fn failures_are_limited_per_neighbourhood() {
        let limits = Limits::new(&HttpConfig { failures_per_minute: 1, ..HttpConfig::default() });
        let peer = |text: &str| Some(text.parse().expect("an address"));
        assert_eq!(limits.refuse(peer("2001:db8::1")).code(), Code::Unauthenticated);
        assert_eq!(limits.refuse(peer("2001:db8::2")).code(), Code::RateLimited);
        assert_eq!(limits.refuse(peer("192.0.2.1")).code(), Code::Unauthenticated);
        assert_eq!(limits.refuse(peer("::ffff:192.0.2.1")).code(), Code::RateLimited);
    }

    #[test]
    fn a_stream_is_given_back_when_it_is_dropped() {
        let limits = Limits::new(&HttpConfig { streams_per_principal_max: 1, ..HttpConfig::default() });
        let open = limits.open_stream(token(1)).expect("the first");
        assert_eq!(limits.open_stream(token(1)).expect_err("the second").code(), Code::Overloaded);
        drop(open);
        limits.open_stream(token(1)).expect("the first is gone");
        assert!(limits.streams.lock().is_empty());
    }
}
