//! Runs other programs, and returns paths of the repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// Result of a task. The error is one line, shown to the user.
pub(crate) type Result<T = ()> = std::result::Result<T, String>;

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
    // Otherwise each Python process compiles all that it imports.
    command.env_remove("PYTHONDONTWRITEBYTECODE");
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

/// Runs a command like [`run`], which is interrupted after `limit` and killed a minute later.
pub(crate) fn run_within(mut command: Command, limit: Duration) -> Result {
    const GRACE: Duration = Duration::from_secs(60);
    let failed = |e: std::io::Error, command: &Command| format!("run {}: {e}", describe(command));
    let mut child = command.spawn().map_err(|e| failed(e, &command))?;
    let began = Instant::now();
    let mut interrupted = false;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|e| failed(e, &command))? {
            break status;
        }
        if began.elapsed() > limit + GRACE {
            child.kill().map_err(|e| failed(e, &command))?;
        } else if began.elapsed() > limit && !interrupted {
            interrupted = true;
            succeeds(self::command("kill", &["-INT", &child.id().to_string()]));
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    match (interrupted, status.success()) {
        (true, _) => Err(format!("{} did not end within {} s", describe(&command), limit.as_secs())),
        (false, true) => Ok(()),
        (false, false) => Err(format!("{} failed ({status})", describe(&command))),
    }
}

/// Returns whether a command runs and succeeds; its output is discarded.
pub(crate) fn succeeds(mut command: Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs a command to completion and returns its standard output. Its output is shown only if it fails.
pub(crate) fn run_quietly(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("start {}: {e}", describe(command)))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    eprintln!("{text}{}", String::from_utf8_lossy(&output.stderr));
    Err(format!("{} failed ({})", describe(command), output.status))
}

/// Niceness of work that runs behind other work: it takes what the other leaves.
pub(crate) const BEHIND: u8 = 19;

/// Lowers the priority of this thread and of all processes that it starts later, if the system can do that.
pub(crate) fn lower_priority(niceness: u8) {
    // On Linux threads have priorities, and a process inherits that of the thread that starts it.
    let Ok(thread) = std::fs::read_link("/proc/thread-self") else { return };
    let Some(id) = thread.file_name() else { return };
    let mut renice = command("renice", &["-n", &niceness.to_string(), "-p"]);
    renice.arg(id);
    if !succeeds(renice) {
        eprintln!("    renice failed: compilers may slow tests down");
    }
}

/// Succeeds if all do. The error has the messages of all that failed.
pub(crate) fn all(results: impl IntoIterator<Item = Result>) -> Result {
    let failures: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Waits for a thread.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err("a step panicked".to_owned()))
}

/// Steps that have ended.
static STEPS: Mutex<Vec<Step>> = Mutex::new(Vec::new());

struct Step {
    name: String,
    took: Duration,
    failed: bool,
}

/// Runs a named step and prints how long it took.
pub(crate) fn step(name: &str, body: impl FnOnce() -> Result) -> Result {
    eprintln!("\n==> {name}");
    let started = Instant::now();
    let done = body();
    let took = started.elapsed();
    eprintln!("    {name}: {:.0} s", took.as_secs_f64());
    let ended = Step { name: name.to_owned(), took, failed: done.is_err() };
    STEPS.lock().unwrap_or_else(PoisonError::into_inner).push(ended);
    done
}

/// Prints the times of all steps, in the order of their ends, if there were several. Steps may have run side by side.
pub(crate) fn print_steps() {
    let steps = STEPS.lock().unwrap_or_else(PoisonError::into_inner);
    if steps.len() < 2 {
        return;
    }
    eprintln!("\n==> seconds of each step");
    for Step { name, took, failed } in &*steps {
        eprintln!("{:>8.0}  {name}{}", took.as_secs_f64(), if *failed { " (failed)" } else { "" });
    }
    if let Some(seconds) = processor_seconds() {
        eprintln!("{seconds:>8.0}  processor time of all steps");
    }
}

/// Returns the processor time of all processes that this one started and waited for, and theirs.
fn processor_seconds() -> Option<f64> {
    // Linux counts in hundredths of a second here, on every machine.
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may contain spaces. Behind it are the fields from the third on.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    Some((ticks(16)? + ticks(17)?) / TICKS)
}

fn describe(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_at_its_limit() {
        // A shell starts what runs in its background with interrupts ignored, and programs inherit that.
        let words = ["--default-signal=INT", "sleep", "60"];
        let error = run_within(command("env", &words), Duration::from_millis(300));
        assert_eq!(error, Err(format!("env {} did not end within 0 s", words.join(" "))));
        assert_eq!(run_within(command("true", &[]), Duration::from_secs(60)), Ok(()));
        assert!(run_within(command("false", &[]), Duration::from_secs(60)).is_err_and(|error| error.contains("exit")));
    }
}
