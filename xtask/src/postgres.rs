//! A private PostgreSQL server for tests: started on demand, and removed when the process that started it ends, however
//! that happens.
//!
//! The variable `TEST_DATABASE_URL` names another server to use instead.

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Result;
use crate::postgres_install::{self, Binaries};
use crate::process::{command, run, succeeds};

/// Variable with the URL of a server that tests may use; each test creates its own database there.
pub(crate) const URL_VARIABLE: &str = "TEST_DATABASE_URL";

/// Variable with the folder of PostgreSQL's programs, for clusters that tests start and kill themselves.
const BINARIES_VARIABLE: &str = "TRAINYARD_POSTGRES_BIN";

const SUPERUSER: &str = "postgres";

/// Longest time for the server to start; it usually takes a second or two.
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(50);

/// Settings with which the server does not wait for the disk. What is committed still survives the end of its processes;
/// only a crash of the machine loses it, and with it the tests. Clusters that tests kill have PostgreSQL's defaults.
const UNSYNCED: [&str; 2] = ["fsync=off", "full_page_writes=off"];

/// Shell script that runs the server ("$@") until standard input closes, which also happens when xtask is killed. It
/// then stops the server without waiting for clients, and removes the folder.
const SUPERVISE: &str = r#"dir=$1; shift; "$@" & server=$!; read -r _; kill -INT $server; wait $server; rm -rf "$dir""#;

/// A server that tests may use. A private one stops when the value is dropped.
pub(crate) struct Database {
    url: OsString,
    binaries: Option<Binaries>,
    _cluster: Option<Cluster>,
}

impl Database {
    /// Opens the server that `TEST_DATABASE_URL` names, or starts a private one.
    pub(crate) fn open() -> Result<Self> {
        if let Some(url) = std::env::var_os(URL_VARIABLE).filter(|url| !url.is_empty()) {
            eprintln!("    using the server of {URL_VARIABLE}");
            return Ok(Self { url, binaries: postgres_install::find(), _cluster: None });
        }
        let binaries = postgres_install::ensure()?;
        let cluster = Cluster::start(&binaries)?;
        eprintln!("    PostgreSQL {} at {}", binaries.version, cluster.url());
        Ok(Self { url: cluster.url().into(), binaries: Some(binaries), _cluster: Some(cluster) })
    }

    /// Passes the URL and the programs' folder to a test program.
    pub(crate) fn hand_to(&self, tests: &mut Command) {
        tests.env(URL_VARIABLE, &self.url);
        if let Some(binaries) = &self.binaries {
            tests.env(BINARIES_VARIABLE, &binaries.dir);
        }
    }
}

/// Runs the command in the arguments with a database, or keeps a database until interrupted.
pub(crate) fn postgres() -> Result {
    let database = Database::open()?;
    let mut words = std::env::args_os().skip(2);
    if let Some(program) = words.next() {
        let mut tests = command(program, &[]);
        tests.args(words);
        database.hand_to(&mut tests);
        return run(tests);
    }
    eprintln!("    {URL_VARIABLE}={}; Ctrl-C stops it", database.url.to_string_lossy());
    loop {
        std::thread::park();
    }
}

/// A running cluster with a private folder.
struct Cluster {
    supervisor: Child,
    port: u16,
}

impl Cluster {
    fn start(binaries: &Binaries) -> Result<Self> {
        let owner = Owner::current()?;
        let dir = owner.folder()?;
        let data = dir.join("data");
        let mut create = owner.command(&binaries.program("initdb"));
        create.args(["--username", SUPERUSER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"]);
        create.arg("--pgdata");
        create.arg(&data).current_dir(&dir).stdout(Stdio::null());
        if let Err(error) = run(create) {
            let _ = std::fs::remove_dir_all(&dir);
            return Err(error);
        }
        let port = free_port()?;
        let mut server = owner.command(Path::new("sh"));
        server.args(["-c", SUPERVISE, "postgres"]).arg(&dir).arg(binaries.program("postgres")).arg("-D").arg(&data);
        server.args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        server.args(["-c", "unix_socket_directories=", "-c", "max_connections=300"]);
        server.args(UNSYNCED.into_iter().flat_map(|setting| ["-c", setting]));
        // Ctrl-C goes to the tests; the server outlives them.
        let log = std::fs::File::create(dir.join("log")).map_err(|e| format!("create the server's log: {e}"))?;
        server.current_dir(&dir).process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let supervisor = server.spawn().map_err(|e| format!("start PostgreSQL: {e}"))?;
        let mut cluster = Self { supervisor, port };
        cluster.wait_until_ready(binaries, &dir.join("log"))?;
        Ok(cluster)
    }

    fn url(&self) -> String {
        format!("postgres://{SUPERUSER}@127.0.0.1:{}/postgres", self.port)
    }

    fn wait_until_ready(&mut self, binaries: &Binaries, log: &Path) -> Result {
        let started = Instant::now();
        while started.elapsed() < START_LIMIT {
            let mut ask = Command::new(binaries.program("pg_isready"));
            ask.args(["--host", "127.0.0.1", "--port", &self.port.to_string()]);
            if succeeds(ask) {
                return Ok(());
            }
            if std::fs::read_to_string(log).is_ok_and(|text| text.contains("system is shut down")) {
                break;
            }
            std::thread::sleep(STEP);
        }
        let text = std::fs::read_to_string(log).unwrap_or_default();
        Err(format!("PostgreSQL is not ready after {} s:\n{text}", started.elapsed().as_secs()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        let started = Instant::now();
        while started.elapsed() < STOP_LIMIT {
            if !matches!(self.supervisor.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(STEP);
        }
        eprintln!("    PostgreSQL did not stop within {} s", STOP_LIMIT.as_secs());
    }
}

/// User that runs the server: PostgreSQL refuses to run as root.
#[derive(Clone, Copy)]
enum Owner {
    Myself,
    Other { user: u32, group: u32 },
}

impl Owner {
    /// Returns the package's user if it exists, else the user nobody.
    fn current() -> Result<Self> {
        if id(&["-u"]) != Some(0) {
            return Ok(Self::Myself);
        }
        let other = |name| Some(Self::Other { user: id(&["-u", name])?, group: id(&["-g", name])? });
        other("postgres")
            .or_else(|| other("nobody"))
            .ok_or_else(|| "found neither a user postgres nor a user nobody to run PostgreSQL as".into())
    }

    fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Self::Other { user, group } = self {
            command.uid(user).gid(group);
        }
        command
    }

    /// Creates a folder that this user owns and can reach; a checkout in root's home would be out of reach.
    fn folder(self) -> Result<PathBuf> {
        let name = format!("trainyard-postgres-{}", std::process::id());
        for parent in [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()] {
            let dir = parent.join(&name);
            if std::fs::create_dir(&dir).is_err() {
                continue;
            }
            if let Self::Other { user, group } = self {
                std::os::unix::fs::chown(&dir, Some(user), Some(group))
                    .map_err(|e| format!("hand {} over: {e}", dir.display()))?;
            }
            let mut reach = self.command(Path::new("test"));
            reach.arg("-w").arg(&dir).current_dir("/");
            if succeeds(reach) {
                return Ok(dir);
            }
            let _ = std::fs::remove_dir(&dir);
        }
        Err("found no temporary folder that PostgreSQL's user can write to".into())
    }
}

fn id(args: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(args).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Returns a port that is free at present.
fn free_port() -> Result<u16> {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|e| format!("find a free port: {e}"))
}
