//! Generator of parts of the SDKs from `openapi/openapi.json`.
//!
//! [`document`] selects the parts of the description that a client needs. `typify` makes the types of the Rust client
//! from its schemas ([`types`]), and [`operations`] makes the operations. `openapi-python-client` makes the Python
//! client from the document that [`python_document`] returns. [`listing`] lists the public items of the Rust client.

pub mod document;
mod error;
pub mod listing;
pub mod operations;
pub mod types;

use std::path::{Path, PathBuf};

use serde_json::Value;

pub use error::{Error, read};

/// A file's path relative to the repository, and its text.
pub type File = (PathBuf, String);

/// Path of the description, relative to the repository.
pub const DOCUMENT: &str = "openapi/openapi.json";

/// Folder of the generated modules of the Rust client.
const RUST: &str = "client-sdk/rust/src/generated";

/// Returns the generated files of the Rust client.
///
/// # Errors
///
/// The description can't be read, or contains something unsupported.
pub fn rust_files(root: &Path) -> Result<Vec<File>, Error> {
    let document = document::for_clients(description(root)?);
    let mut files = vec![(PathBuf::from(RUST).join("types.rs"), types::module(&document)?)];
    for (name, text) in operations::modules(&document)? {
        files.push((PathBuf::from(RUST).join(name), text));
    }
    Ok(files)
}

/// Returns the description from which the Python client is generated.
///
/// # Errors
///
/// The description can't be read.
pub fn python_document(root: &Path) -> Result<String, Error> {
    let document = document::for_clients(description(root)?);
    Ok(serde_json::to_string_pretty(&document)?)
}

/// Path of the listing of the Rust client's public items.
pub const LISTING: &str = "client-sdk/rust/public-api.txt";

fn description(root: &Path) -> Result<Value, Error> {
    Ok(serde_json::from_str(&read(&root.join(DOCUMENT))?)?)
}
