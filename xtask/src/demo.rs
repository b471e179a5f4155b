//! Tasks `demo` and `recipes`: a release server on a free port, and Python programs that use it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::Result;
use crate::process::{cache, command, run, step, target};
use crate::python;
use crate::tasks::{MODEL_NAME, build};

/// Longest time for a server to start; loading the model takes seconds.
const START_LIMIT: Duration = Duration::from_secs(120);

/// Runs the examples of the official SDK.
pub(crate) fn demo() -> Result {
    with_server("demo", |interpreter| Ok(command(interpreter, &["client-sdk/python/examples/demo.py"])))
}

/// Runs each recipe in a small form, checks its effect and draws the figures of `docs/users/recipes.md`; further arguments
/// go to the program.
pub(crate) fn recipes() -> Result {
    with_server("recipes", |interpreter| {
        let mut checks = command(interpreter, &["client-sdk/python/checks/run.py", "--figures", "docs/users/figures"]);
        checks.arg("--runs").arg(cache()?.join("recipes")).args(std::env::args().skip(2));
        Ok(checks)
    })
}

/// Builds and starts a server, runs a program with the server's address in its environment, then stops the server.
fn with_server(name: &str, program: impl FnOnce(PathBuf) -> Result<Command>) -> Result {
    build()?;
    let mut model = PathBuf::new();
    let mut interpreter = PathBuf::new();
    step("test model and Python packages", || {
        model = python::model()?;
        interpreter = python::venv()?;
        Ok(())
    })?;
    let server = Server::start(name, &model)?;
    let url = format!("http://{}", server.address);
    eprintln!("    serving {MODEL_NAME} at {url}");
    let mut program = program(interpreter)?;
    program
        .env("TINKER_BASE_URL", &url)
        .env("TINKER_API_KEY", "tml-local")
        .env("HF_ENDPOINT", format!("{url}/hf"))
        .env("HF_HOME", cache()?.join("hf"))
        .env("TRANSFORMERS_VERBOSITY", "error")
        .env("PYTHONUNBUFFERED", "1");
    run(program).map_err(|e| format!("{e}; the server's log is {}", server.log.display()))
}

/// A server process that stops when the value is dropped.
struct Server {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Server {
    /// Starts a server with an empty data folder and waits until it has loaded the model.
    fn start(name: &str, model: &Path) -> Result<Self> {
        let cache = cache()?;
        let (data, log) = (cache.join(format!("{name}-data")), cache.join(format!("{name}-server.log")));
        let failed = |what: &str, e: std::io::Error| format!("{what}: {e}");
        if data.exists() {
            std::fs::remove_dir_all(&data).map_err(|e| failed("clear the data folder", e))?;
        }
        let output = File::create(&log).map_err(|e| failed("create the server's log", e))?;
        let errors = output.try_clone().map_err(|e| failed("create the server's log", e))?;
        let address = free_address().map_err(|e| failed("find a free port", e))?;
        let child = Command::new(target().join("release").join("trainyard"))
            .args(["serve", "--host", "127.0.0.1", "--port", &address.port().to_string(), "--model"])
            .arg(format!("{MODEL_NAME}={}", model.display()))
            .arg("--data-dir")
            .arg(&data)
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|e| failed("start the server", e))?;
        let mut server = Self { child, address, log };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result {
        let started = Instant::now();
        while started.elapsed() < START_LIMIT {
            if is_healthy(self.address) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("the server ended ({status}):\n{}", self.log_tail()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(format!("the server is not ready after {} s:\n{}", START_LIMIT.as_secs(), self.log_tail()))
    }

    fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGTERM lets it close its store; the standard library can only kill.
        let asked = Command::new("kill").arg(self.child.id().to_string()).status().is_ok_and(|s| s.success());
        let deadline = Instant::now() + Duration::from_secs(if asked { 10 } else { 0 });
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an address with a port that is free at present.
fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

fn is_healthy(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /api/v1/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer.starts_with(b"HTTP/1.1 200"))
    };
    ask().unwrap_or(false)
}
