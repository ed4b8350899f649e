//! Drives one Chromium over a byte stream; knows no Space, event or actor.
//!
//! ```text
//! Browser ─ a method per capability
//!    │
//!   act ──── one call on one tab: deadline, cancel, dialog, crash       action/ ─ what each capability does
//!    │                                                                  snapshot/ ─ the page as text, with refs
//! element · frame ── nodes and documents, in our isolated worlds
//!    │
//! session ── connection ── wire          observer ──► state (tabs, dialogs, frames, refs)
//!    │                        │
//! launch · process · sandbox · namespace · flags · executable        the process tree
//! ```
//!
//! What must stay true: no future of this crate outlasts its [`Call`] by more than a few seconds; no input is sent
//! before the checks pass; a ref never leads to another node than the one that it was given for; nothing that a
//! caller sends is run as script; nothing of a browser is left when it has ended.

mod act;
mod action;
mod appearance;
mod browser;
mod call;
mod connection;
mod download;
mod element;
mod error;
mod executable;
mod flags;
mod frame;
mod gate;
mod handover;
mod launch;
mod namespace;
mod notice;
mod observer;
mod policy;
mod probe;
mod process;
mod reference;
mod sandbox;
mod screencast;
mod secrets;
mod session;
mod snapshot;
mod state;
mod tab;
mod wire;

pub use action::args;
pub use action::results;
pub use appearance::{Appearance, ColourScheme};
pub use browser::Browser;
pub use call::Call;
pub use connection::{CallError, Connection, Event, Gone, Listener};
pub use download::{DownloadSeen, Landing};
pub use error::{Check, Error};
pub use executable::find_executable;
pub use gate::{Gate, Refusal};
pub use handover::OutsideFile;
pub use launch::{Exit, LaunchError, LaunchSpec, Network, PROFILE_PATH_BYTES_MAX};
pub use namespace::try_seclusion;
pub use notice::Notice;
pub use probe::{Probe, probe};
pub use process::{ProcessIdentity, adopt_orphans, end_orphan, leftovers, remove_profile};
pub use reference::ElementRef;
pub use screencast::ScreencastFrame;
pub use session::Session;
pub use tab::{DialogInfo, DownloadNote, DownloadState, TabId, TabInfo, TabState};
