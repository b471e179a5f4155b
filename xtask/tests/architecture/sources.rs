//! The production files of the workspace's crates, and the module of each file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::references::Source;

/// A file that is compiled outside tests.
pub(crate) struct ProductionFile {
    /// Path relative to the repository, with `/`.
    pub(crate) path: String,
    /// The crate's library name, then the names of the modules.
    pub(crate) module: Vec<String>,
    pub(crate) text: String,
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Follows the `mod` declarations of `<folder>/src/lib.rs` and `main.rs`. Modules declared only for tests are left out.
pub(crate) fn production_files(root: &Path, folder: &str) -> Vec<ProductionFile> {
    let library = library_name(folder);
    let mut found = Vec::new();
    for entry in ["lib.rs", "main.rs"] {
        let path = Path::new(folder).join("src").join(entry);
        if root.join(&path).is_file() {
            follow(root, &path, vec![library.clone()], &mut found);
        }
    }
    assert!(!found.is_empty(), "{folder} has no production files");
    found
}

/// Returns the name under which other crates import the crate of a folder.
fn library_name(folder: &str) -> String {
    match folder {
        "xtask" => folder.to_owned(),
        "client-sdk/generator" => "trainyard_sdk_generator".to_owned(),
        "client-sdk/rust" => "trainyard_client".to_owned(),
        _ if folder.starts_with("cuda-sim/") => folder.replace(['-', '/'], "_"),
        _ => format!("trainyard_{}", folder.replace('-', "_")),
    }
}

fn follow(root: &Path, path: &Path, module: Vec<String>, found: &mut Vec<ProductionFile>) {
    let text = fs::read_to_string(root.join(path)).unwrap();
    let stem = path.file_stem().unwrap();
    let folder = path.parent().unwrap();
    let folder =
        if ["lib", "main", "mod"].iter().any(|name| stem == *name) { folder.into() } else { folder.join(stem) };
    for declaration in Source::parse(&text).declarations().iter().filter(|declaration| !declaration.test) {
        let name = &declaration.name;
        let candidates = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
        let child = candidates.iter().find(|candidate| root.join(candidate).is_file());
        let child = child.unwrap_or_else(|| panic!("{}: no file for `mod {name};`", path.display()));
        follow(root, child, [module.clone(), vec![name.clone()]].concat(), found);
    }
    found.push(ProductionFile { path: path.to_str().unwrap().to_owned(), module, text });
}

/// Returns the text of all Rust files below a folder, including tests.
pub(crate) fn all_text(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            text += &all_text(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text += &fs::read_to_string(&path).unwrap();
        }
    }
    text
}
