//! The one way out of a browser: a proxy that decides on the address it connects to; knows no Space, event or actor.
//!
//! ```text
//! browser ─► door ─► proxy ─► policy: host, port, lists ─► one resolution ─► policy: each address ─► dial
//!                      │            │ refused                                   │ refused
//!                      │            └──────────────► ledger ◄───────────────────┘
//!                    meter                             │ bounded
//!                (bytes, connections)                  ▼
//!                                                   reports
//! ```
//!
//! What must stay true: nothing is connected to but an address that the policy was asked about; a name is resolved once
//! for each connection, so between the check and the connect there is nothing to rebind; a refused request fails at once
//! and as a network error, whatever asked for it; how much a page can make us record is bounded.

mod dial;
mod door;
mod floor;
mod forward;
mod host;
mod ledger;
mod meter;
mod policy;
mod proxy;
mod tunnel;

pub use dial::{Resolver, SystemResolver};
pub use door::Door;
pub use floor::floor;
pub use host::Host;
pub use ledger::{Report, Why};
pub use meter::Meter;
pub use policy::{Entry, EntryError, Limits, Policy, Rule};
pub use proxy::Proxy;
