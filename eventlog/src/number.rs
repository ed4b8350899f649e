//! Numbers that must never be mixed: places in a stream, places in the log, and what is counted by them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! number {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Before the first one.
            pub const ZERO: Self = Self(0);

            /// The one after this.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }
    )*};
}

number! {
    /// Place in a stream: 1, 2, 3 … without gaps; 0 = the stream does not exist.
    Sequence;
    /// Place in the whole log: 1, 2, 3 … without gaps; 0 = before the first event.
    Position;
    /// Which start of a runtime; rises by 1 each start. A report of an older one is ignored.
    Generation;
}

/// The position of a reservation. A call that carries an older one is refused.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Fence(pub Position);

/// What a writer believes the last sequence of a stream to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedSequence {
    /// Whatever it is.
    Any,
    /// The stream has no event yet.
    NoStream,
    /// Exactly this one.
    Exact(Sequence),
}

impl ExpectedSequence {
    /// Whether a stream whose last sequence is `actual` (0 = none) is as expected.
    #[must_use]
    pub const fn is_met_by(self, actual: Sequence) -> bool {
        match self {
            Self::Any => true,
            Self::NoStream => actual.0 == 0,
            Self::Exact(expected) => expected.0 == actual.0,
        }
    }
}
