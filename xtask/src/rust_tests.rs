//! Compiles the Rust tests of the workspace, and runs their programs.
//!
//! `cargo test` runs one program after the other. Here the scheduler's tests, which mostly wait for databases, run beside
//! all others, which compute.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use crate::Result;
use crate::process::{all, cargo, command, joined, lower_priority, root, run_quietly, step};

/// Folder of the crate whose tests mostly wait.
const WAITING: &str = "scheduler";

/// Niceness of the tests that run beside the waiting ones, whose time limits they must not break.
const BESIDE: u8 = 10;

/// A compiled program with tests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Executable {
    /// Folder of its crate, in which it runs.
    folder: PathBuf,
    /// Kind and name of the target, such as `test engine`.
    target: String,
    path: PathBuf,
}

/// Compiles the tests of the whole workspace.
pub(crate) fn compile() -> Result<Vec<Executable>> {
    let messages = ["--no-run", "--quiet", "--message-format", "json-render-diagnostics"];
    let mut build = cargo(&[&["test", "--workspace", "--locked"][..], &messages].concat());
    let mut tests = executables(&run_quietly(&mut build)?);
    if tests.is_empty() {
        return Err("cargo reported no test programs".to_owned());
    }
    tests.sort();
    Ok(tests)
}

/// Returns the test programs in the messages of `cargo test --no-run`.
fn executables(messages: &str) -> Vec<Executable> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_test = |message: Value| {
        let path = message["executable"].as_str().filter(|_| message["profile"]["test"] == true)?;
        let manifest = PathBuf::from(message["manifest_path"].as_str()?);
        let target = &message["target"];
        let target = format!("{} {}", target["kind"][0].as_str()?, target["name"].as_str()?);
        Some(Executable { folder: manifest.parent()?.to_owned(), target, path: path.into() })
    };
    messages.filter_map(of_test).collect()
}

/// Runs the programs, all of them even if some fail. `prepare` adds variables to each.
pub(crate) fn run(tests: &[Executable], prepare: impl Fn(&mut Command) -> Result + Sync) -> Result {
    let waits = |test: &&Executable| test.folder == root().join(WAITING);
    let (waiting, computing): (Vec<_>, Vec<_>) = tests.iter().partition(waits);
    let run_each = |tests: Vec<&Executable>| all(tests.into_iter().map(|test| test.run(&prepare)));
    thread::scope(|scope| {
        let waited = scope.spawn(|| run_each(waiting));
        let computed = scope.spawn(|| {
            lower_priority(BESIDE);
            run_each(computing)
        });
        all([joined(computed), joined(waited)])
    })
}

impl Executable {
    /// Runs the program; its output is shown only if it fails.
    fn run(&self, prepare: impl Fn(&mut Command) -> Result) -> Result {
        let mut test = command(&self.path, &[]);
        test.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder).stdin(Stdio::null());
        prepare(&mut test)?;
        let started = Instant::now();
        let output = run_quietly(&mut test)?;
        let counted = output.lines().rev().find(|line| line.starts_with("test result")).unwrap_or("no test result");
        eprintln!("    {}: {counted} ({:.0} s)", self.name(), started.elapsed().as_secs_f64());
        Ok(())
    }

    fn name(&self) -> String {
        let folder = self.folder.strip_prefix(root()).unwrap_or(&self.folder);
        format!("{} ({})", folder.display(), self.target)
    }
}

/// Runs the examples in doc comments.
pub(crate) fn examples() -> Result {
    step("examples in doc comments", || {
        run_quietly(&mut cargo(&["test", "--workspace", "--doc", "--locked", "--quiet"])).map(drop)
    })
}

#[cfg(test)]
mod tests {
    use super::{Executable, executables};

    #[test]
    fn only_programs_with_tests_are_found() {
        let artifact = |executable: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/r/a/Cargo.toml","target":{{"kind":["lib"],"name":"a"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let lines = [
            artifact(r#""/r/target/debug/deps/a-1""#, true),
            artifact(r#""/r/target/debug/a""#, false),
            artifact("null", false),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            "not JSON".to_owned(),
        ];
        let expected =
            Executable { folder: "/r/a".into(), target: "lib a".to_owned(), path: "/r/target/debug/deps/a-1".into() };
        assert_eq!(executables(&lines.join("\n")), [expected]);
    }
}
