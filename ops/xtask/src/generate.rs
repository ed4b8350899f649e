//! `generate`: writes the checked-in files that come out of the code. Tests compare them with the code.

use anyhow::Result;

use crate::{
    console,
    run::{Steps, run_with},
    setup,
};

/// Writes them all.
pub(crate) fn generate() -> Result<()> {
    setup::nextest()?;
    let mut steps = Steps::default();
    let outcome = steps
        .step("docs/openapi.json and docs/errors.md", || {
            let args = ["nextest", "run", "--locked", "-p", "api", "--lib", "--no-tests", "pass"];
            run_with("cargo", &args, &[("BROWSERSPACE_REWRITE_GENERATED", "1")])
        })
        .and_then(|()| {
            steps.step("golden events (new kinds only)", || {
                let args = ["nextest", "run", "--locked", "-p", "eventlog", "--no-tests", "pass", "golden"];
                run_with("cargo", &args, &[("GOLDEN_WRITE", "1")])
            })
        })
        .and_then(|()| {
            let name = "api/console/src/api/schema.ts";
            if console::has_node() {
                return steps.step(name, console::generate_types);
            }
            steps.skip(name, "needs Node");
            Ok(())
        });
    steps.summary();
    outcome
}
