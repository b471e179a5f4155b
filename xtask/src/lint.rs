//! Formatting, the wording of comments and messages, dependencies and lints.

use crate::Result;
use crate::process::{cargo, command, run, run_quietly, step, succeeds};

/// Checks everything, with clippy on every target.
pub(crate) fn lint() -> Result {
    sources()?;
    lints()
}

/// Checks formatting, the wording of comments and messages, and dependencies if the tool is there.
pub(crate) fn sources() -> Result {
    ensure_components();
    step("formatting", || run(cargo(&["fmt", "--all", "--check"])))?;
    let wording = ["test", "--package", "xtask", "--test", "architecture", "--locked", "--quiet", "--", "wording"];
    step("wording", || run(cargo(&wording)))?;
    dependencies()
}

/// Runs clippy on every target.
pub(crate) fn lints() -> Result {
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"];
    step("lints", || run_quietly(&mut cargo(&clippy)).map(drop))
}

/// Checks dependencies by `deny.toml`: advisories, licences, banned packages and sources.
fn dependencies() -> Result {
    if !succeeds(cargo(&["deny", "--version"])) {
        eprintln!("\n==> dependencies: not checked for advisories, since cargo-deny is not installed");
        return Ok(());
    }
    step("dependencies", || run(cargo(&["deny", "--locked", "check"])))
}

/// Adds rustfmt and clippy, which a minimal toolchain lacks, if rustup manages the toolchain.
fn ensure_components() {
    for (tool, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if !succeeds(cargo(&[tool, "--version"])) {
            let _ = run(command("rustup", &["component", "add", component]));
        }
    }
}
