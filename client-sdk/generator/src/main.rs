//! `trainyard-sdk-generator write ROOT` writes the generated files of the Rust client below a repository;
//! `trainyard-sdk-generator python ROOT FILE` writes the description from which the Python client is generated.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use trainyard_sdk_generator::listing::public_items;
use trainyard_sdk_generator::{Error, LISTING, python_document, rust_files};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["write", root] => write_rust(Path::new(root)),
        ["python", root, file] => python_document(Path::new(root)).and_then(|text| write(Path::new(file), &text)),
        _ => {
            eprintln!("usage: trainyard-sdk-generator write ROOT | python ROOT FILE");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn write_rust(root: &Path) -> Result<(), Error> {
    for (path, text) in rust_files(root)? {
        write(&root.join(path), &text)?;
    }
    write(&root.join(LISTING), &public_items(&root.join("client-sdk/rust"), "trainyard_client")?)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    let failed = |source| Error::File { path: PathBuf::from(path), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)
}
