//! What tests and tasks start.

use crate::Result;
use crate::process::{cargo, run, step};

/// Builds the programs that tests and tasks start, all in the dev profile: the server, the examples of the Rust client and
/// the tasks' own. Of the whole workspace, so that dependencies have the features that `cargo test --workspace` gives them
/// and are compiled once.
pub(crate) fn programs() -> Result {
    step("programs", || run(cargo(&["build", "--workspace", "--locked", "--bins", "--examples"])))
}
