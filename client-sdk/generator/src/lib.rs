//! The generated parts of the SDKs, from `openapi/openapi.json`.
//!
//! [`document`] selects what a client needs of the description. Types of the Rust client are made from its schemas by
//! `typify` ([`types`]), operations by [`operations`]. The Python client is made by `openapi-python-client`, from the
//! document that [`python_document`] returns. [`listing`] lists the public items of the Rust client.

pub mod document;
pub mod listing;
pub mod operations;
pub mod types;

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Why nothing could be generated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The description is no JSON.
    #[error("openapi/openapi.json: {0}")]
    Json(#[from] serde_json::Error),
    /// The description has something that the generator does not know.
    #[error("{0}")]
    Unsupported(String),
    /// Rust code can't be parsed.
    #[error("{0}")]
    Syntax(#[from] syn::Error),
}

/// A file's path relative to the repository, and its text.
pub type File = (PathBuf, String);

/// Where the description is, relative to the repository.
pub const DOCUMENT: &str = "openapi/openapi.json";

/// Where the generated modules of the Rust client are.
const RUST: &str = "client-sdk/rust/src/generated";

/// The generated files of the Rust client.
///
/// # Errors
///
/// The description can't be read, or has something unknown.
pub fn rust_files(root: &Path) -> Result<Vec<File>, Error> {
    let document = document::for_clients(description(root)?);
    let mut files = vec![(PathBuf::from(RUST).join("types.rs"), types::module(&document)?)];
    for (name, text) in operations::modules(&document)? {
        files.push((PathBuf::from(RUST).join(name), text));
    }
    Ok(files)
}

/// The description from which the Python client is generated.
///
/// # Errors
///
/// The description can't be read.
pub fn python_document(root: &Path) -> Result<String, Error> {
    let document = document::for_clients(description(root)?);
    Ok(serde_json::to_string_pretty(&document)?)
}

/// Where the listing of the Rust client's public items is.
pub const LISTING: &str = "client-sdk/rust/public-api.txt";

fn description(root: &Path) -> Result<Value, Error> {
    Ok(serde_json::from_str(&read(&root.join(DOCUMENT))?)?)
}

/// Reads a file of text.
///
/// # Errors
///
/// With the file's path.
pub fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::File { path: path.into(), source })
}
