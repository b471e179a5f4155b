//! Tests of the packages that `make dist` makes: `xtask/dist/test_dist.py`, with a small program in place of the server.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;

#[test]
fn packages_of_a_small_program_install_and_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dist");
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let mut tests = Command::new(python);
    tests.args(["-m", "unittest", "-v", "test_dist"]).current_dir(folder).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = tests.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
