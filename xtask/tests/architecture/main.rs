//! Checks the repository against the rules of ARCHITECTURE.md: allowed imports and dependencies, lengths of files. The
//! tables in `rules.rs` contain the rules.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod arguments;
mod cycles;
mod dependencies;
mod documents;
mod imports;
mod lexer;
mod licences;
mod references;
mod rules;
mod sizes;
mod sources;
mod templates;
mod wording;

use std::collections::BTreeSet;

use crate::dependencies::Graph;
use crate::imports::Violation;
use crate::rules::{
    CRATES, DEVICE_INDEPENDENT, DEVICE_SEAM, IMPORTS, KNOWN_IMPORTS, KNOWN_PATHS, KNOWN_SIZES, LICENCES, MEDIAN_LINES,
    MOST_CYCLE, MOST_LINES, MOVING, PAGES, TARGETS, UNSAFE,
};
use crate::sources::{ProductionFile, production_files, root};

/// Returns the folders of the crates that exist, each with its production files.
fn crates() -> impl Iterator<Item = (&'static str, Vec<ProductionFile>)> {
    let folders =
        CRATES.iter().map(|rule| rule.folder).filter(|folder| root().join(folder).join("Cargo.toml").is_file());
    folders.map(|folder| (folder, production_files(&root(), folder)))
}

#[test]
fn imports_follow_the_layers() {
    let mut violations = Vec::new();
    for (_, files) in crates() {
        for file in &files {
            violations.extend(IMPORTS.iter().flat_map(|rule| imports::check(rule, file)));
            violations.extend(imports::check_unsafe(file));
        }
    }
    let known = |violation: &Violation| {
        KNOWN_IMPORTS.iter().any(|(file, forbidden)| violation.file == *file && violation.forbidden == *forbidden)
    };
    let new: Vec<_> = violations.iter().filter(|violation| !known(violation)).map(Violation::text).collect();
    assert!(new.is_empty(), "{}", new.join("\n"));
    let held =
        |(file, forbidden): &&(&str, &str)| violations.iter().any(|v| v.file == *file && v.forbidden == *forbidden);
    let stale: Vec<_> = KNOWN_IMPORTS.iter().filter(|known| !held(known)).collect();
    assert!(stale.is_empty(), "no longer violations, remove them from KNOWN_IMPORTS: {stale:?}");
}

#[test]
fn the_model_knows_no_device() {
    if !root().join(DEVICE_SEAM).is_file() {
        return;
    }
    let files = production_files(&root(), "gpu-runtime");
    let found: Vec<_> = files.iter().flat_map(|file| imports::check(&DEVICE_INDEPENDENT, file)).collect();
    let text: Vec<_> = found.iter().map(Violation::text).collect();
    assert!(text.is_empty(), "{}", text.join("\n"));
}

#[test]
fn every_place_in_the_tables_exists() {
    let imports = IMPORTS.iter().flat_map(|rule| rule.folders).chain(DEVICE_INDEPENDENT.folders);
    let places = imports.chain(UNSAFE.iter().map(|(place, _)| place)).copied().chain(CRATES.iter().map(|c| c.folder));
    let gone: Vec<_> = places.filter(|place| !root().join(place).exists() && !MOVING.contains(place)).collect();
    assert!(gone.is_empty(), "update the rules of {gone:?}");
}

#[test]
fn crates_depend_only_on_what_their_layer_may_use() {
    for target in TARGETS {
        let graph = Graph::of_target(target);
        let ruled: BTreeSet<_> = CRATES.iter().map(|rule| rule.folder).collect();
        let unruled: Vec<_> = graph.folders().into_iter().filter(|folder| !ruled.contains(folder)).collect();
        assert!(unruled.is_empty(), "no rule in CRATES for {unruled:?}");
        let found: Vec<_> = CRATES.iter().flat_map(|rule| graph.violations(rule)).collect();
        assert!(found.is_empty(), "{target}:\n{}", found.join("\n"));
    }
}

#[test]
fn packages_have_permissive_licences_and_come_from_the_registry() {
    for target in TARGETS {
        let found = Graph::of_target(target).untrusted();
        assert!(found.is_empty(), "{target}:\n{}", found.join("\n"));
    }
}

#[test]
fn cargo_deny_has_the_same_rules() {
    let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    assert_eq!(licences::listed(&text, "allow"), LICENCES);
    assert_eq!(licences::listed(&text, "targets"), TARGETS);
    let banned = licences::listed(&text, "deny");
    for name in CRATES.iter().filter(|rule| rule.folder == "server").flat_map(|rule| rule.never) {
        // In tests, the crate `age` decrypts what the server encrypts.
        assert!(*name == "age" || banned.contains(name), "{name} is not in [bans] of deny.toml");
    }
}

#[test]
fn production_files_are_short() {
    let mut long = Vec::new();
    for (folder, files) in crates() {
        let oversized = sizes::oversized(&files, MOST_LINES).into_iter();
        long.extend(
            oversized.map(|(path, lines)| (path.to_owned(), format!("{path} has {lines} lines, above {MOST_LINES}"))),
        );
        let (path, lines) = sizes::median(&files);
        if lines > MEDIAN_LINES {
            let text =
                format!("{folder}: half of the files are as long as {path} ({lines} lines), above {MEDIAN_LINES}");
            long.push((folder.to_owned(), text));
        }
    }
    let new: Vec<_> = long.iter().filter(|(place, _)| !KNOWN_SIZES.contains(&place.as_str())).collect();
    assert!(new.is_empty(), "{}", new.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n"));
    let stale: Vec<_> = KNOWN_SIZES.iter().filter(|known| !long.iter().any(|(place, _)| place == *known)).collect();
    assert!(stale.is_empty(), "short now, remove them from KNOWN_SIZES: {stale:?}");
}

#[test]
fn pages_name_files_that_exist() {
    let mut missing = Vec::new();
    for page in PAGES {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        missing.extend(documents::dangling(&root(), page, &text).into_iter().map(|path| (*page, path.to_owned())));
    }
    let new: Vec<_> = missing.iter().filter(|(_, path)| !KNOWN_PATHS.contains(&path.as_str())).collect();
    assert!(new.is_empty(), "named in a page, but not there: {new:?}");
    let stale: Vec<_> = KNOWN_PATHS.iter().filter(|known| !missing.iter().any(|(_, path)| path == *known)).collect();
    assert!(stale.is_empty(), "there now, remove them from KNOWN_PATHS: {stale:?}");
}

#[test]
fn the_page_of_promises_names_tests_that_exist() {
    let text = std::fs::read_to_string(root().join("docs/operators/operations.md")).unwrap();
    let rust: String = crates().map(|(folder, _)| sources::all_text(&root().join(folder))).collect();
    let unknown = documents::unknown_tests(&root(), &text, &rust);
    assert!(unknown.is_empty(), "named in docs/operators/operations.md, but not there: {unknown:?}");
}

#[test]
fn import_cycles_are_short() {
    for (folder, files) in crates() {
        let cycle = cycles::largest_cycle(&files);
        assert!(
            cycle.len() <= MOST_CYCLE,
            "{folder}: files that import each other, at most {MOST_CYCLE}; move what both use below both:\n{}",
            cycle.join("\n")
        );
    }
}

#[test]
fn wording_is_english() {
    let mut wrong = Vec::new();
    for (_, files) in crates() {
        for file in files.iter().filter(|file| !file.path.contains("/generated/")) {
            wrong.extend(wording::violations(file).iter().map(|(line, text)| format!("{}:{line}: {text}", file.path)));
        }
    }
    assert!(wrong.is_empty(), "reword these comments and messages (see wording.rs):\n{}", wrong.join("\n"));
}

#[test]
fn functions_take_plain_arguments() {
    let mut found = Vec::new();
    for (_, files) in crates() {
        for file in &files {
            let places = arguments::tuples(file).into_iter();
            found.extend(places.map(|(line, name)| format!("{}:{line}: {name}", file.path)));
        }
    }
    assert!(
        found.is_empty(),
        "give these functions plain arguments instead of tuples, or a struct:\n{}",
        found.join("\n")
    );
}
