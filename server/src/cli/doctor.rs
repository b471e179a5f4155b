//! `trainyard doctor`: checks the machine and the configuration before a server starts.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;

use super::logging;
use crate::config::{Config, ConfigError, DoctorFlags, LogFormat, NamedPath, ServeFlags};
use crate::doctor::{self, Report, Status};

/// Prints the report.
///
/// # Errors
/// Fails if a failure would keep a server from working.
pub(super) fn doctor(flags: DoctorFlags) -> Result<(), Box<dyn Error>> {
    // What fails is in the report.
    logging::start(Some("off"), LogFormat::default())?;
    let report = match resolve(flags.serve) {
        Ok(config) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            let report = runtime.block_on(doctor::examine(&config, flags.shapes));
            runtime.shutdown_background();
            report
        }
        Err(error) => doctor::refused(&error.to_string()),
    };
    print(&report, flags.json)?;
    match report.status {
        Status::Failure => Err("some checks failed; the report names the remedies".into()),
        Status::Ok | Status::Warning => Ok(()),
    }
}

/// Returns the configuration. Without a model, which a server needs, everything else can still be checked.
fn resolve(flags: ServeFlags) -> Result<Config, ConfigError> {
    match Config::resolve(flags.clone()) {
        Err(ConfigError::NoModel) => {
            let mut named = flags;
            named.shared.models = vec![NamedPath { name: "none".to_owned(), path: PathBuf::new() }];
            Ok(Config { models: Vec::new(), ..Config::resolve(named)? })
        }
        resolved => resolved,
    }
}

fn print(report: &Report, json: bool) -> io::Result<()> {
    let mut out = io::stdout();
    if json {
        serde_json::to_writer_pretty(&mut out, report)?;
        return writeln!(out);
    }
    write!(out, "{report}")
}
