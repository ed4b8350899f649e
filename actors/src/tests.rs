//! What the tests of several modules share.

use eventlog::event::instance::Bundle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capability::{Catalogue, Sensitivity, row};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArgs {}

#[derive(Serialize, JsonSchema)]
struct NoResult {}

/// `navigate` and `snapshot` in both bundles, `evaluate` in the trusted one.
pub(crate) fn catalogue() -> Catalogue {
    let row = |name, bundle| {
        row::<NoArgs, NoResult>(name, "Does it.", bundle, Sensitivity::ACTS, serde_json::json!({}))
    };
    Catalogue::new([
        row("navigate", Bundle::Standard),
        row("snapshot", Bundle::Standard),
        row("evaluate", Bundle::Trusted),
    ])
    .expect("the table is right")
}
