//! What a Space can be asked to do: the catalogue, one table.
//!
//! A capability is a name, the schema of its args, the schema of its result, the bundle that loads it, and what is
//! sensitive about it. Whoever needs any of that asks the [`Catalogue`]; nobody keeps a list of their own.

pub mod catalogue;
mod problem;
pub mod standard;

pub use self::catalogue::{Catalogue, CatalogueError, CheckError, Effects, Row, Sensitivity, row};
pub use self::standard::standard;
