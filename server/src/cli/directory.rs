//! The shared parts of `trainyard tenants` and `trainyard keys`: access to a store that running servers may be using,
//! and output.

use std::error::Error;
use std::future::Future;
use std::io::{self, Write};

use trainyard_scheduler::{Actor, Directory, Role, Scope, Timestamp};
use trainyard_wire::timestamp::rfc3339;

use super::{logging, process};
use crate::config::{LogFormat, StoreFlags, Stores};

/// Opens the store that the flags name, and calls `call` with it.
pub(super) fn with<T, F>(flags: StoreFlags, call: impl FnOnce(Directory) -> F) -> Result<T, Box<dyn Error>>
where
    F: Future<Output = Result<T, Box<dyn Error>>>,
{
    logging::start(None, LogFormat::default())?;
    let file = Stores::policies(&flags)?;
    let stores = Stores::resolve(flags)?;
    process::create_folder("--data-dir", &stores.data_dir)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let actor = Actor { name: "the command line".to_owned(), key: None, user: None, address: None };
    runtime.block_on(actor.scope(async { call(Directory::beside(stores.database).await?.beside_file(file)).await }))
}

/// Prints a line of fields, separated by tabs.
pub(super) fn line<const N: usize>(fields: [&str; N]) -> io::Result<()> {
    writeln!(io::stdout(), "{}", fields.join("\t"))
}

/// Formats a time, or a dash.
pub(super) fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "-".to_owned(), |at| rfc3339(at.as_millis()))
}

pub(super) fn role(text: &str) -> Result<Role, String> {
    Role::from_text(text).ok_or_else(|| format!("--role: invalid role {text:?}: expected admin, member or read-only"))
}

pub(super) fn scope(text: &str) -> Result<Scope, String> {
    Scope::from_text(text)
        .ok_or_else(|| format!("--scope: invalid scope {text:?}: expected train, sample, checkpoints or admin"))
}
