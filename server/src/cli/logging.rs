//! The log on standard error.

use std::env::{self, VarError};
use std::io;

use tracing_subscriber::EnvFilter;

use super::short_log::Short;
use crate::config::LogFormat;

/// The variable that sets the log's filter if no flag, variable or file of Trainyard does.
const FALLBACK: &str = "RUST_LOG";
/// The default filter. Notices of PostgreSQL, such as about a table that exists already, are for those who ask.
const DEFAULT: &str = "info,sqlx::postgres::notice=warn";

/// Starts logging. A process starts it once; later calls change nothing.
///
/// # Errors
/// Fails if the filter is invalid.
pub(super) fn start(level: Option<&str>, format: LogFormat) -> Result<(), String> {
    let filter = filter(level, env::var(FALLBACK))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let is_terminal = io::IsTerminal::is_terminal(&io::stderr());
    let started = match format {
        LogFormat::Text if is_terminal => log.with_ansi(true).event_format(Short).try_init(),
        LogFormat::Text | LogFormat::Full => log.with_ansi(is_terminal).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    if let Err(error) = started {
        tracing::debug!(%error, "the log was already started");
    }
    Ok(())
}

fn filter(level: Option<&str>, fallback: Result<String, VarError>) -> Result<EnvFilter, String> {
    let given = |text: &str| !text.trim().is_empty();
    match (level.filter(|level| given(level)), fallback.ok().filter(|text| given(text))) {
        (Some(level), _) => EnvFilter::try_new(level).map_err(|error| format!("--log-level: {level:?}: {error}")),
        (None, Some(text)) => EnvFilter::try_new(&text).map_err(|error| format!("{FALLBACK}: {text:?}: {error}")),
        (None, None) => Ok(EnvFilter::new(DEFAULT)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_level_is_the_flags_else_rust_logs_else_info() {
        let shown = |level, fallback: Option<&str>| {
            filter(level, fallback.map(ToOwned::to_owned).ok_or(VarError::NotPresent)).map(|filter| filter.to_string())
        };
        assert_eq!(shown(Some("debug"), Some("error")).unwrap(), "debug");
        assert_eq!(shown(None, Some("warn,hyper=trace")).unwrap(), "hyper=trace,warn");
        assert_eq!(shown(Some(""), None).unwrap(), "sqlx::postgres::notice=warn,info");
        assert!(shown(Some("a=b=c"), None).unwrap_err().starts_with("--log-level: \"a=b=c\""));
        assert!(shown(None, Some("x=loud")).unwrap_err().starts_with("RUST_LOG"));
    }
}
