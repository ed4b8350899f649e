//! What it looks like: views folded from the log. They are disposable: dropped and rebuilt, they come out equal.
//!
//! ```text
//!                     one transaction per batch
//!   log ── follow ──► projector ─────────────────► store (rows + checkpoint) ◄── views ── api
//!                         │ publishes the checkpoint                              │ waits for it
//!                         └───────────────────────────────────────────────────────┘
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`projector`] | the loop that feeds projections |
//! | [`projection`] | what a projection is, and the list of them |
//! | [`space_list`], [`task_history`], [`instance_health`], [`workspace_access`], [`audit_trail`] | the folds, one file each |
//! | [`views`], [`cursor`] | what the routes read |
//! | [`store`], [`checkpoint`], `table`, `statement` | what is kept, and how it is written and read |
//! | [`origin`] | which log the views are of |
//! | `database` | where it is kept: SQLite or PostgreSQL, and all in which they differ |
//! | [`mod@rebuild`] | from position 0, and telling two builds apart |
//!
//! What it leaves to others: who may see which row (`api`), and what may happen (`actors`).

pub mod audit_trail;
pub mod checkpoint;
pub mod cursor;
mod database;
pub mod instance_health;
pub mod origin;
pub mod projection;
pub mod projector;
pub mod rebuild;
pub mod space_list;
mod statement;
pub mod store;
mod table;
pub mod task_history;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod views;
pub mod workspace_access;

pub use self::{
    audit_trail::AuditRow,
    database::{InvalidPlace, Place},
    instance_health::{Health, InstanceRow},
    origin::AnotherLog,
    projector::{Condition, Progress, Projector, ProjectorError},
    rebuild::rebuild,
    space_list::{SpaceRow, SpaceStatus},
    store::{Dump, Store, StoreError},
    task_history::{ArtifactRow, TaskRow, TaskStatus},
    views::{AuditFilter, Page, SpaceFilter, ViewError, Views, WaitError},
    workspace_access::{BindingRow, TokenRow, WorkspaceRow},
};
