//! Downloads: what a page made the browser download is hostile until a person releases it.
//!
//! ```text
//!   page ─► landing folder ─► quarantine ──────────────► artifacts/downloads/<space>/
//!           the browser's     ours, 0600, named by id     <id> · <id>.json · <id>.approval.json
//!           started           captured: the receipt       approved, then released
//! ```
//!
//! The rules are pure, as everywhere: [`decide`](decide::decide), [`evolve`](evolve::evolve), [`due`](effect::due), over a
//! stream beside that of the Space, because it goes on when the Space is closed. An approval is durable before any file is
//! published, so the first one stands wherever a crash falls, and what it owes the disk is carried out again. No path
//! leaves this module but to the runtime that fills the quarantine.

mod decide;
pub(crate) mod desk;
pub(crate) mod effect;
pub(crate) mod evolve;
pub(crate) mod keeper;
mod media;
pub(crate) mod publish;
pub(crate) mod quarantine;
mod state;

pub use self::{
    desk::Desk,
    keeper::{Rejected, Released, ReleasedFile},
    state::{Item, Shelf, Stage},
};

/// The most bytes of one download. A constant: nothing that a page or a setting says lifts it (Q1).
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// So many refusals of one Space are recorded; what a page does beyond that says nothing new.
pub const REFUSALS_MAX: u64 = 1_000;
