//! Checked-in pages that are printed from code: the tests compare them, and rewrite them when asked.

use std::path::Path;

/// Set to `1`, the tests write the generated pages instead of comparing them.
const REWRITE: &str = "BROWSERSPACE_REWRITE_GENERATED";

/// Fails unless the repository's `path` holds exactly `expected`.
#[track_caller]
pub(crate) fn compare(path: &str, expected: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    if std::env::var_os(REWRITE).is_some_and(|value| value == "1") {
        std::fs::write(&file, expected).expect("the repository can be written");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "{path} is not what the code prints; run the tests with {REWRITE}=1");
}
