//! Import cycles between the files of a crate.

use std::collections::{BTreeMap, BTreeSet};

use crate::references::Source;
use crate::sources::ProductionFile;

/// Files by module, and the modules that each one imports. A module and those below it count as one: a parent declares
/// its children, and they use its definitions.
struct Imports<'a> {
    files: BTreeMap<&'a [String], &'a str>,
    edges: BTreeMap<&'a [String], BTreeSet<&'a [String]>>,
}

/// Returns the files of the largest group in which each file imports the others, directly or indirectly.
pub(crate) fn largest_cycle(files: &[ProductionFile]) -> Vec<&str> {
    let imports = Imports::of(files);
    let reachable: BTreeMap<_, _> = imports.files.keys().map(|module| (*module, imports.reachable(module))).collect();
    let cycle_of = |module: &[String]| {
        let mutual = reachable[module].iter().filter(|other| reachable[**other].contains(module));
        mutual.map(|other| imports.files[*other]).collect::<Vec<_>>()
    };
    imports.files.keys().map(|module| cycle_of(module)).max_by_key(Vec::len).unwrap_or_default()
}

impl<'a> Imports<'a> {
    fn of(files: &'a [ProductionFile]) -> Self {
        let modules: BTreeMap<_, _> = files.iter().map(|file| (file.module.as_slice(), file.path.as_str())).collect();
        let mut edges: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for file in files {
            let own = file.module.as_slice();
            let names: Vec<_> = own.iter().map(String::as_str).collect();
            for reference in Source::parse(&file.text).references(&names) {
                let path: Vec<_> = reference.path.split("::").map(str::to_owned).collect();
                // Find the deepest module on the path; the rest names an item in it.
                let found = (1..=path.len()).rev().find_map(|length| modules.get_key_value(&path[..length]));
                let found = found.map(|(module, _)| *module);
                let found = found.filter(|other| !other.starts_with(own) && !own.starts_with(other));
                edges.entry(own).or_default().extend(found);
            }
        }
        Self { files: modules, edges }
    }

    /// Returns the modules that a module imports, directly or indirectly.
    fn reachable(&self, module: &[String]) -> BTreeSet<&'a [String]> {
        let mut found = BTreeSet::new();
        let mut open: Vec<_> = self.edges.get(module).into_iter().flatten().collect();
        while let Some(next) = open.pop() {
            if found.insert(*next) {
                open.extend(self.edges.get(next).into_iter().flatten());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::largest_cycle;
    use crate::sources::ProductionFile;

    #[test]
    fn a_planted_cycle_is_found_and_parents_are_none() {
        let file = |module: &str, text: &str| ProductionFile {
            path: format!("{module}.rs"),
            module: module.split("::").map(str::to_owned).collect(),
            text: text.to_owned(),
        };
        let mut files = vec![
            file("app", "mod a; mod b; mod c; use a::A;"),
            file("app::a", "mod deep; use deep::D; use crate::b::{self, B};"),
            file("app::a::deep", "use super::A; use crate::X;"),
            file("app::b", "fn f() { crate::c::g() }"),
            file("app::c", "use crate::d::E;"),
        ];
        assert!(largest_cycle(&files).is_empty());
        files[4].text.push_str("use crate::{a::{A}};");
        assert_eq!(largest_cycle(&files), ["app::a.rs", "app::b.rs", "app::c.rs"]);
    }
}
