//! Import cycles between the files of a crate.

use std::collections::{BTreeMap, BTreeSet};

use crate::references::{Kind, Reference, Source};
use crate::sources::ProductionFile;

/// Files by module, and the modules whose definitions each one uses. A definition belongs to the file that contains it,
/// wherever it is imported from, so a module that only declares and exports others is in no cycle.
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
        let mut exports = BTreeMap::new();
        let mut uses = Vec::new();
        for file in files {
            let names: Vec<_> = file.module.iter().map(String::as_str).collect();
            for Reference { path, kind, .. } in Source::parse(&file.text).references(&names) {
                let path: Vec<_> = path.split("::").map(str::to_owned).collect();
                match kind {
                    Kind::Export(name) => drop(exports.insert([file.module.clone(), vec![name]].concat(), path)),
                    // The uses of a module's name are found where they are.
                    Kind::Use if modules.contains_key(path.as_slice()) => {}
                    Kind::Use | Kind::Glob => uses.push((file.module.as_slice(), path)),
                }
            }
        }
        let mut edges: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (own, path) in uses {
            let found = defining_module(&modules, &exports, path).filter(|other| *other != own);
            edges.entry(own).or_default().extend(found);
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

/// Returns the module that defines what a path names. Exports are followed.
fn defining_module<'a>(
    modules: &BTreeMap<&'a [String], &str>,
    exports: &BTreeMap<Vec<String>, Vec<String>>,
    mut path: Vec<String>,
) -> Option<&'a [String]> {
    for _ in 0..=exports.len() {
        // The deepest module on the path; the rest names an item in it.
        let (module, length) = (1..=path.len())
            .rev()
            .find_map(|length| modules.get_key_value(&path[..length]).map(|(module, _)| (*module, length)))?;
        let exported = path.get(..=length).and_then(|name| exports.get(name));
        let Some(target) = exported else { return Some(module) };
        path = [target.as_slice(), &path[length + 1..]].concat();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::largest_cycle;
    use crate::sources::ProductionFile;

    fn file(module: &str, text: &str) -> ProductionFile {
        ProductionFile {
            path: format!("{module}.rs"),
            module: module.split("::").map(str::to_owned).collect(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_planted_cycle_is_found() {
        let mut files = vec![
            file("app", "mod a; mod b; mod c; fn x() {}"),
            file("app::a", "mod deep; use crate::b::{self, B};"),
            file("app::a::deep", "use crate::x;"),
            file("app::b", "fn f() { crate::c::g() }"),
            file("app::c", "use crate::d::E;"),
        ];
        assert!(largest_cycle(&files).is_empty());
        files[4].text.push_str("use crate::{a::{A}};");
        assert_eq!(largest_cycle(&files), ["app::a.rs", "app::b.rs", "app::c.rs"]);
    }

    #[test]
    fn a_parent_and_its_child_may_form_a_cycle() {
        let mut files = vec![file("app", "mod a; use a::f;"), file("app::a", "use super::X;")];
        assert_eq!(largest_cycle(&files), ["app.rs", "app::a.rs"]);
        files[0].text = "mod a; pub use a::f; struct X;".to_owned();
        assert!(largest_cycle(&files).is_empty(), "an export is not a use");
    }

    #[test]
    fn an_exported_name_belongs_to_the_module_that_defines_it() {
        let files = [
            file("app", "mod a; mod b; pub(crate) use a::A; pub use b::{B as C};"),
            file("app::a", "mod inner; pub use inner::A;"),
            file("app::a::inner", "use crate::C; pub struct A;"),
            file("app::b", "fn f() { crate::A::new() }"),
        ];
        assert_eq!(largest_cycle(&files), ["app::a::inner.rs", "app::b.rs"]);
    }
}
