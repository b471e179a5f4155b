//! The URL of the store.

use std::path::{Path, PathBuf};

use trainyard_scheduler::Database;

use super::ConfigError;

/// Parses the URL of a store.
pub fn parse_database_url(url: &str) -> Result<Database, ConfigError> {
    parse_database(Some(url.to_owned()), Path::new(""))
}

pub(super) fn parse_database(url: Option<String>, data_dir: &Path) -> Result<Database, ConfigError> {
    let Some(url) = url else { return Ok(data_dir.join("trainyard.db").into()) };
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(Database::Postgres(url));
    }
    match url.strip_prefix("sqlite://") {
        Some(path) if !path.is_empty() && !path.contains(['?', '#']) && !path.starts_with(":memory:") => {
            Ok(PathBuf::from(path).into())
        }
        _ => Err(ConfigError::DatabaseUrl(without_password(&url))),
    }
}

/// Removes the credentials from a URL, so that it is safe to print: `scheme://user:secret@host` loses the text before
/// the `@`.
fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rfind('@')) {
        (Some((scheme, _)), Some(at)) => format!("{scheme}://…{}", &url[at..]),
        _ => url.to_owned(),
    }
}
