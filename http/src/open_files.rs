//! The limit on open files of a process.

use std::fs;
use std::path::Path;

/// Reads the soft limit as the kernel writes it, a number or `unlimited`; `own` is the process' folder in `/proc`.
pub fn limit(own: &Path) -> Option<String> {
    let limits = fs::read_to_string(own.join("limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next().map(str::to_owned)
}
