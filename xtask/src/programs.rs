//! Builds the programs that tests and tasks start.

use crate::Result;
use crate::process::{cargo, run, step};

/// Builds the server, the examples of the Rust client and the tasks' own programs, all in the dev profile. The whole
/// workspace is built, so that dependencies have the same features as in `cargo test --workspace` and are compiled only
/// once.
pub(crate) fn programs() -> Result {
    step("programs", || run(cargo(&["build", "--workspace", "--locked", "--bins", "--examples"])))
}
