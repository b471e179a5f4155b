//! The committed generated files equal those made from the description and the sources.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use trainyard_sdk_generator::listing::public_items;
use trainyard_sdk_generator::{LISTING, read, rust_files};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn the_rust_client_is_generated_from_the_committed_description() {
    let files = rust_files(root()).unwrap();
    let folder = root().join("client-sdk/rust/src/generated");
    let present = std::fs::read_dir(folder).unwrap().count();
    assert_eq!(present, files.len(), "a file that is no longer generated, or a missing one: run `make sdk`");
    for (path, text) in files {
        assert!(read(&root().join(&path)).unwrap() == text, "{} differs: run `make sdk`", path.display());
    }
}

#[test]
fn the_public_items_of_the_rust_client_are_those_listed() {
    let items = public_items(&root().join("client-sdk/rust"), "trainyard_client").unwrap();
    let listed = read(&root().join(LISTING)).unwrap();
    let changed: Vec<_> = items.lines().filter(|line| !listed.lines().any(|other| other == *line)).collect();
    let gone: Vec<_> = listed.lines().filter(|line| !items.lines().any(|other| other == *line)).collect();
    assert!(changed.is_empty() && gone.is_empty(), "run `make sdk`; added: {changed:#?}; removed: {gone:#?}");
}
