//! The dependency graph reported by `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::licences::is_allowed;
use crate::rules::{CrateRule, LICENCES, REGISTRY};

/// Packages of one target, development dependencies of the workspace included.
pub(crate) struct Graph {
    packages: BTreeMap<String, Package>,
}

struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    /// Source of the package; `None` for a package of the workspace.
    source: Option<String>,
    /// Folder of a package of the workspace, relative to the repository.
    folder: Option<String>,
    /// Ids of dependencies that are built into the package or that its build script needs.
    dependencies: BTreeSet<String>,
    /// Names of dependencies that any version satisfies.
    wildcards: Vec<String>,
}

impl Graph {
    /// Reads the graph from cargo. A dependency that the lock file does not contain is an error.
    pub(crate) fn of_target(target: &str) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", target]);
        let output = command.current_dir(crate::sources::root()).output().unwrap();
        assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        Self::parse(&serde_json::from_slice(&output.stdout).unwrap())
    }

    fn parse(metadata: &Value) -> Self {
        let root = text(&metadata["workspace_root"]);
        let mut packages = BTreeMap::new();
        for node in items(&metadata["resolve"]["nodes"]) {
            let id = text(&node["id"]);
            let package = items(&metadata["packages"]).iter().find(|package| package["id"] == node["id"]).unwrap();
            packages.insert(id, Package::parse(package, node, &root));
        }
        Self { packages }
    }

    /// Returns the folders of the workspace's packages.
    pub(crate) fn folders(&self) -> BTreeSet<&str> {
        self.packages.values().filter_map(|package| package.folder.as_deref()).collect()
    }

    /// Returns the packages that the rule forbids, each with the way to it.
    pub(crate) fn violations(&self, rule: &CrateRule) -> Vec<String> {
        let Some((id, start)) =
            self.packages.iter().find(|(_, package)| package.folder.as_deref() == Some(rule.folder))
        else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for dependency in start.dependencies.iter().map(|id| &self.packages[id]) {
            let folder = dependency.folder.as_deref();
            if let Some(folder) = folder.filter(|folder| !rule.may_use.contains(folder)) {
                found.push(format!("{} depends on {folder}: {}", rule.folder, rule.why));
            }
        }
        let mut ways = BTreeMap::from([(id.as_str(), rule.folder.to_owned())]);
        let mut open = vec![id.as_str()];
        while let Some(id) = open.pop() {
            for next in &self.packages[id].dependencies {
                let name = &self.packages[next].name;
                let way = format!("{} → {name}", ways[id]);
                if ways.contains_key(next.as_str()) {
                    continue;
                }
                if rule.never.contains(&name.as_str()) {
                    found.push(format!("{way}: {}", rule.why));
                }
                ways.insert(next, way);
                open.push(next);
            }
        }
        found
    }

    /// Returns packages with a forbidden licence, from outside the registry, or required in any version.
    pub(crate) fn untrusted(&self) -> Vec<String> {
        let mut found = Vec::new();
        for Package { name, version, licence, source, wildcards, .. } in self.packages.values() {
            if !licence.as_deref().is_some_and(|licence| is_allowed(licence, LICENCES)) {
                found.push(format!("{name} {version} has the licence {licence:?}"));
            }
            if let Some(source) = source.as_deref().filter(|source| !source.starts_with(REGISTRY)) {
                found.push(format!("{name} {version} comes from {source}"));
            }
            if source.is_none() {
                found.extend(wildcards.iter().map(|wanted| format!("{name} takes any version of {wanted}")));
            }
        }
        found
    }
}

impl Package {
    fn parse(package: &Value, node: &Value, root: &str) -> Self {
        let source = package["source"].as_str().map(str::to_owned);
        let manifest = text(&package["manifest_path"]);
        let folder = manifest.strip_prefix(root).and_then(|path| path.strip_suffix("/Cargo.toml"));
        let built = |dependency: &&Value| items(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
        let of_registry = |dependency: &&Value| dependency["path"].is_null() && dependency["req"] == "*";
        Self {
            name: text(&package["name"]),
            version: text(&package["version"]),
            licence: package["license"].as_str().map(str::to_owned),
            folder: folder.filter(|_| source.is_none()).map(|folder| folder.trim_start_matches('/').to_owned()),
            source,
            dependencies: items(&node["deps"]).iter().filter(built).map(|dep| text(&dep["pkg"])).collect(),
            wildcards: items(&package["dependencies"])
                .iter()
                .filter(of_registry)
                .map(|dep| text(&dep["name"]))
                .collect(),
        }
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Graph;
    use crate::rules::{CrateRule, REGISTRY};

    fn package(name: &str, source: Option<&str>, licence: &str, wanted: &str) -> Value {
        json!({
            "id": name, "name": name, "version": "1.0.0", "license": licence, "source": source,
            "manifest_path": format!("/r/{name}/Cargo.toml"),
            "dependencies": [{"name": "x", "req": wanted, "path": null}],
        })
    }

    fn node(name: &str, dependencies: &[(&str, Option<&str>)]) -> Value {
        let dependency = |(name, kind): &(&str, Option<&str>)| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        json!({"id": name, "deps": dependencies.iter().map(dependency).collect::<Vec<_>>()})
    }

    fn graph() -> Graph {
        Graph::parse(&json!({
            "workspace_root": "/r",
            "packages": [
                package("low", None, "MIT", "1"),
                package("high", None, "MIT", "*"),
                package("middle", Some(REGISTRY), "GPL-3.0", "*"),
                package("web", Some("git+https://example.com"), "MIT", "1"),
            ],
            "resolve": {"nodes": [
                node("low", &[("high", None), ("middle", None)]),
                node("high", &[("web", Some("dev"))]),
                node("middle", &[("web", Some("build"))]),
                node("web", &[]),
            ]},
        }))
    }

    #[test]
    fn forbidden_dependencies_are_found_with_the_way_to_them() {
        let rule = |folder, may_use, never| CrateRule { folder, may_use, never, why: "why" };
        let found = graph().violations(&rule("low", &[], &["web"]));
        assert_eq!(found, ["low depends on high: why", "low → middle → web: why"]);
        assert!(graph().violations(&rule("low", &["high"], &[])).is_empty());
        assert!(graph().violations(&rule("high", &[], &["web"])).is_empty(), "a development dependency");
        assert_eq!(graph().folders().into_iter().collect::<Vec<_>>(), ["high", "low"]);
    }

    #[test]
    fn untrusted_packages_are_found() {
        let found = graph().untrusted();
        assert_eq!(
            found,
            [
                "high takes any version of x",
                "middle 1.0.0 has the licence Some(\"GPL-3.0\")",
                "web 1.0.0 comes from git+https://example.com",
            ]
        );
    }
}
