//! `trainyard demo`: the Python client's demonstration, with this program as the server.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package that contains the demonstration, which distinguishes it from others that are imported as `trainyard`.
const FIND: &str = "import importlib.metadata as m; m.version('trainyard-client')";

#[derive(Debug, clap::Args)]
pub(super) struct DemoFlags {
    /// Flags of the demonstration; `trainyard demo --help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// Replaces this process by the demonstration.
pub(super) fn demo(flags: &DemoFlags) -> Result<(), Box<dyn Error>> {
    let program = env::current_exe()?;
    let candidates = interpreters(&program);
    let Some(python) = candidates.iter().find(|python| has_client(python)) else {
        let names: Vec<_> = candidates.iter().map(|python| python.display().to_string()).collect();
        return Err(format!(
            "the demonstration is part of the Python package trainyard-client, which {} can't import: install its wheel \
             beside this program's, or run `make demo` in a checkout",
            names.join(" and ")
        )
        .into());
    };
    let error =
        Command::new(python).args(["-P", "-m", "trainyard.demo", "--binary"]).arg(&program).args(&flags.rest).exec();
    Err(format!("start {}: {error}", python.display()).into())
}

/// The interpreter of the environment that contains the program, then the one on the path.
fn interpreters(program: &Path) -> Vec<PathBuf> {
    let beside = program.parent().map(|folder| folder.join("python")).filter(|python| python.exists());
    beside.into_iter().chain([PathBuf::from("python3")]).collect()
}

fn has_client(python: &Path) -> bool {
    let mut find = Command::new(python);
    find.args(["-c", FIND]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    find.status().is_ok_and(|found| found.success())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_environment_of_the_program_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("trainyard");
        assert_eq!(interpreters(&program), [PathBuf::from("python3")]);
        std::fs::write(folder.path().join("python"), "").unwrap();
        assert_eq!(interpreters(&program), [folder.path().join("python"), PathBuf::from("python3")]);
    }

    #[test]
    fn an_interpreter_that_does_not_run_has_no_client() {
        assert!(!has_client(Path::new("/nonexistent/python")));
    }
}
