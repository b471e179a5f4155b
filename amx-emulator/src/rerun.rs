//! Runs the tests of a program that uses tiles once more, with emulated tiles.

use std::env;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::Command;

use super::{Unsupported, install};

/// Environment variable that is set in the process in which tests run once more.
const REQUEST: &str = "AMX_EMULATOR_RERUN";

/// Returns whether this process was started by [`rerun`]; if so, instructions are emulated from now on. Detection of
/// AMX calls it, and so do tests that run only in that process, or only elsewhere.
pub fn is_rerun() -> bool {
    env::var_os(REQUEST).is_some() && install().is_ok()
}

/// Writes to standard error that the running test, or a part of it, is skipped, and why. The line is visible even where
/// the test harness captures what tests print.
pub fn skipped(why: impl Display) {
    let line = format!("\nskipped: {why}\n");
    // Without standard error there is nobody to tell.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Result of the tests in the other process.
#[derive(Clone, Debug)]
pub struct Rerun {
    /// Whether all tests passed.
    pub success: bool,
    /// Number of tests that passed.
    pub passed: usize,
    /// Output of the process.
    pub output: String,
}

/// Runs those tests of this test program whose names contain one of `filters`, in another process where [`is_rerun`] is
/// true.
///
/// # Errors
/// Tile instructions can't be emulated on this machine.
pub fn rerun(filters: &[&str]) -> Result<Rerun, Unsupported> {
    super::support()?;
    let mut child = Command::new(env::current_exe().map_err(|_| Unsupported::Process)?);
    let output = child.args(filters).env(REQUEST, "1").output().map_err(|_| Unsupported::Process)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let passed = text.lines().find_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok());
    Ok(Rerun { success: output.status.success(), passed: passed.unwrap_or(0), output: text })
}
