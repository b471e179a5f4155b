//! Tests of the packages that `make dist` makes: `xtask/dist/test_dist.py`, with a small program in place of the server.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// `$PYTHON`, or the first Python 3.11 or later on the path.
fn python() -> OsString {
    const RECENT: &str = "import sys; sys.exit(sys.version_info < (3, 11))";
    let known = ["python3", "python3.14", "python3.13", "python3.12", "python3.11"].map(OsString::from);
    let recent =
        |python: &OsString| Command::new(python).args(["-c", RECENT]).status().is_ok_and(|done| done.success());
    std::env::var_os("PYTHON").into_iter().chain(known).find(recent).unwrap()
}

#[test]
fn packages_of_a_small_program_install_and_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dist");
    let mut tests = Command::new(python());
    tests.args(["-m", "unittest", "-v", "test_dist"]).current_dir(folder).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = tests.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
