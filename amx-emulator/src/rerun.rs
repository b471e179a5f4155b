//! Tests of a program that uses tiles, run once more with emulated tiles.

use std::env;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::Command;

use super::{Unsupported, install};

/// Set in the process in which tests run once more.
const REQUEST: &str = "AMX_EMULATOR_RERUN";

/// Whether this process was started by [`rerun`]; then instructions are emulated from now on. Tests that run only there, or only
/// elsewhere, ask it, and whoever looks for AMX.
pub fn is_rerun() -> bool {
    env::var_os(REQUEST).is_some() && install().is_ok()
}

/// Says on standard error that the test which runs is skipped, or a part of it, and why: also where the test harness captures
/// what tests print.
pub fn skipped(why: impl Display) {
    let line = format!("\nskipped: {why}\n");
    // Without standard error there is nobody to tell.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// What became of the tests in the other process.
#[derive(Clone, Debug)]
pub struct Rerun {
    /// Whether all passed.
    pub success: bool,
    /// How many passed.
    pub passed: usize,
    /// What the process printed.
    pub output: String,
}

/// Runs those tests of this test program whose names contain one of `filters` in another process, in which [`is_rerun`].
///
/// # Errors
/// Where tile instructions can't be emulated.
pub fn rerun(filters: &[&str]) -> Result<Rerun, Unsupported> {
    super::support()?;
    let mut child = Command::new(env::current_exe().map_err(|_| Unsupported::Process)?);
    let output = child.args(filters).env(REQUEST, "1").output().map_err(|_| Unsupported::Process)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let passed = text.lines().find_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok());
    Ok(Rerun { success: output.status.success(), passed: passed.unwrap_or(0), output: text })
}
