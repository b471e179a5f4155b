//! Runs other programs, and returns paths of the repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Result;

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Returns the folder of fetched and generated files.
pub(crate) fn cache() -> Result<PathBuf> {
    let dir = root().join(".cache");
    std::fs::create_dir_all(&dir).map_err(|e| format!("create {}: {e}", dir.display()))?;
    Ok(dir)
}

/// Returns the folder that cargo builds into.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// Returns a command that runs in the root of the repository.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// Returns a command for the cargo that built this program. Variables that `cargo run` sets for this program's package
/// are removed, because some other packages are rebuilt when they change.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), args);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Runs a command to completion; its output goes to the terminal.
pub(crate) fn run(mut command: Command) -> Result {
    let status = command.status().map_err(|e| format!("start {}: {e}", describe(&command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed ({status})", describe(&command))) }
}

/// Returns whether a command runs and succeeds; its output is discarded.
pub(crate) fn succeeds(mut command: Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs a named step and prints how long it took.
pub(crate) fn step(name: &str, body: impl FnOnce() -> Result) -> Result {
    eprintln!("\n==> {name}");
    let started = Instant::now();
    body()?;
    eprintln!("    {name}: {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn describe(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}
