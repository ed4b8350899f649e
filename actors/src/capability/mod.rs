//! What a Space can be asked to do: the catalogue, one table.

/// The closed catalogue.
pub struct Catalogue {}
