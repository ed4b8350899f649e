//! Who stands between the browser and the network, as far as the browser wants to know it.

use std::fmt;
use std::time::Instant;

use url::Url;

/// Why an address was not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A rule of this name forbids it.
    Blocked(&'static str),
    /// It failed, for a reason like `net::ERR_CONNECTION_REFUSED`. Behind a proxy the browser itself can't tell.
    Failed(&'static str),
}

/// Knows why addresses were not reached.
pub trait Gate: Send + Sync {
    /// Why this address was not reached since then; `None` if nothing is known of it.
    fn why(&self, address: &Url, since: Instant) -> Option<Refusal>;
}

impl fmt::Debug for dyn Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}
