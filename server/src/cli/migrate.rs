//! `trainyard migrate`: brings the schema of a store up to date.

use std::error::Error;
use std::io::{self, Write};

use super::logging;
use crate::config::{LogFormat, MigrateFlags, parse_database_url};

/// Migrates the schema and prints its version.
pub(super) fn migrate(flags: &MigrateFlags) -> Result<(), Box<dyn Error>> {
    logging::start(None, LogFormat::default())?;
    let database = parse_database_url(&flags.database_url)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let version = runtime.block_on(trainyard_scheduler::migrate(&database))?;
    writeln!(io::stdout(), "{database}: schema version {version}")?;
    Ok(())
}
