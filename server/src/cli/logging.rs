//! The log on standard error.

use std::io;

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// The variable that chooses what is logged, e.g. `debug` or `trainyard_server=debug,info`.
const FILTER: &str = "TRAINYARD_LOG";

/// Starts logging. A process starts it once; later calls change nothing.
pub(super) fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_env(FILTER).unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match format {
        LogFormat::Text => log.with_ansi(io::IsTerminal::is_terminal(&io::stderr())).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    if let Err(error) = started {
        tracing::debug!(%error, "the log was already started");
    }
}
