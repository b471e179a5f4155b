//! Starts the server that is measured.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use super::super::choices::NamedModel;
use super::super::flags::BenchFlags;

/// Longest time for the server to write its store and end.
const STOP_LIMIT: Duration = Duration::from_secs(10);
const STOP_STEP: Duration = Duration::from_millis(20);

/// Label of the line that names the address; see the server's banner.
const LISTENING: &str = "API";

/// A running server. Dropping the value stops it.
pub(super) struct ServerProcess {
    child: Child,
    pub(super) url: String,
}

impl ServerProcess {
    /// Starts a server and waits until the model is loaded.
    pub(super) fn start(flags: &BenchFlags, model: &NamedModel, data_dir: &Path) -> Result<Self, Box<dyn Error>> {
        let program = program(flags)?;
        let mut command = Command::new(&program);
        command.args(["serve", "--host", "127.0.0.1", "--port", "0", "--dtype", flags.dtype.name(), "--model"]);
        command.arg(format!("{}={}", model.name, model.path.display()));
        command.arg("--data-dir").arg(data_dir);
        if flags.threads > 0 {
            command.arg("--threads").arg(flags.threads.to_string());
        }
        if let Some(kernels) = flags.kernels {
            command.args(["--kernels", kernels.name()]);
        }
        if env::var_os("TRAINYARD_LOG").is_none() {
            command.env("TRAINYARD_LOG", "warn");
        }
        // A configuration file in the caller's folder does not apply to the benchmark.
        command.current_dir(data_dir).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("start {}: {error}", program.display()))?;
        let output = child.stdout.take().ok_or("the server has no standard output")?;
        let mut server = Self { child, url: String::new() };
        for line in BufReader::new(output).lines() {
            if let Some(url) = line?.trim().strip_prefix(LISTENING) {
                server.url = url.trim().to_owned();
                return Ok(server);
            }
        }
        Err("the server ended before it was ready; see its log for the reason".into())
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }
}

/// Returns the absolute path of the server's program.
fn program(flags: &BenchFlags) -> Result<PathBuf, Box<dyn Error>> {
    let program = match &flags.server {
        Some(program) => program.clone(),
        None => env::current_exe()?.with_file_name("trainyard"),
    };
    let absolute = fs::canonicalize(&program);
    absolute.map_err(|error| format!("--server: {}: {error}", program.display()).into())
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // SIGTERM lets it close its store; the standard library can only kill.
        let asked = Command::new("kill").arg(self.child.id().to_string()).status().is_ok_and(|status| status.success());
        let start = Instant::now();
        while asked && start.elapsed() < STOP_LIMIT {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(STOP_STEP);
        }
        // It may have ended meanwhile.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
