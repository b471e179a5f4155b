//! `trainyard doctor`: checks the machine and the configuration before a server starts.

use std::error::Error;
use std::io::{self, Write};

use super::logging;
use crate::config::{Config, DoctorFlags, LogFormat};
use crate::doctor::{self, Report, Status};

/// Prints the report.
///
/// # Errors
/// Fails if a failure would keep a server from working.
pub(super) fn doctor(flags: DoctorFlags) -> Result<(), Box<dyn Error>> {
    // What fails is in the report.
    logging::start(Some("off"), LogFormat::default())?;
    let report = match Config::resolve(flags.serve) {
        Ok(config) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            let report = runtime.block_on(doctor::examine(&config));
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

fn print(report: &Report, json: bool) -> io::Result<()> {
    let mut out = io::stdout();
    if json {
        serde_json::to_writer_pretty(&mut out, report)?;
        return writeln!(out);
    }
    write!(out, "{report}")
}
