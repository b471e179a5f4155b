//! Joins the page's modules into one script: each module becomes a function with its own names, and a browser fetches
//! them all with one request.

use std::sync::LazyLock;

macro_rules! modules {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../console/", $name, ".js")))),*]
    };
}

/// Modules in the order in which they import each other. The last one is not wrapped in a function, because it may
/// wait.
pub(super) static MODULES: &[(&str, &str)] = &modules![
    "dom",
    "api",
    "axis",
    "chart",
    "token",
    "limits",
    "overview",
    "welcome",
    "runs",
    "checkpoints",
    "run",
    "samples",
    "agents",
    "agent",
    "playground",
    "admin",
    "app",
];

/// All modules, joined into one script.
pub(super) static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let mut script = String::new();
    for (at, (name, source)) in MODULES.iter().enumerate() {
        let body = body(source);
        script += &match at + 1 == MODULES.len() {
            true => format!("// {name}.js\n{body}"),
            false => {
                let exported = source.lines().filter_map(exported).collect::<Vec<_>>().join(", ");
                format!("const {name}Module = (() => {{ // {name}.js\n{body}return {{ {exported} }};\n}})();\n")
            }
        };
    }
    script
});

/// Returns a module's lines, with imports replaced by names from the functions before it.
fn body(source: &str) -> String {
    let mut body = String::new();
    for line in source.lines() {
        match imported(line) {
            Some((names, module)) => body += &format!("const {names} = {module}Module;\n"),
            None => body += &format!("{}\n", line.strip_prefix("export ").unwrap_or(line)),
        }
    }
    body
}

/// Parses a line that imports: the names in braces, and the module.
fn imported(line: &str) -> Option<(&str, &str)> {
    let (names, module) = line.strip_prefix("import ")?.split_once(" from \"./")?;
    Some((names, module.strip_suffix(".js\";")?))
}

/// Parses a line that exports: the name.
fn exported(line: &str) -> Option<&str> {
    let declared = line.strip_prefix("export ")?;
    let declared = declared.strip_prefix("async ").unwrap_or(declared);
    let keywords = ["function* ", "function ", "const ", "class "];
    let name = keywords.iter().find_map(|keyword| declared.strip_prefix(keyword))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').next()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn modules_import_what_those_before_them_export() {
        let mut imports = 0;
        for (at, (name, source)) in MODULES.iter().enumerate() {
            for line in source.lines().filter(|line| line.starts_with("import ")) {
                let (names, module) = imported(line).unwrap();
                let found = MODULES[..at].iter().find(|(known, _)| *known == module);
                let (_, from) =
                    found.unwrap_or_else(|| panic!("{name} imports {module}, which does not come before it"));
                let known: Vec<&str> = from.lines().filter_map(exported).collect();
                for name in names.trim_matches(['{', '}', ' ']).split(", ") {
                    assert!(known.contains(&name), "{module} exports no {name}");
                    imports += 1;
                }
            }
        }
        assert!(imports > 50, "{imports}");
    }

    #[test]
    fn nothing_is_left_that_a_function_can_not_have() {
        for (at, line) in SCRIPT.lines().enumerate() {
            let line = line.trim_start();
            assert!(!line.starts_with("import ") && !line.starts_with("export "), "{}: {line}", at + 1);
        }
        // `await` at the top level of a module would be inside of a function that is not asynchronous.
        for (name, source) in &MODULES[..MODULES.len() - 1] {
            let waits = source.lines().any(|line| line.starts_with("await ") || line.contains("= await import"));
            assert!(!waits, "{name}");
        }
    }

    #[test]
    fn declarations_of_every_kind_are_exported() {
        for (line, name) in [
            ("export function fill(element) {", "fill"),
            ("export async function login(key) {", "login"),
            ("export async function* stream(path) {", "stream"),
            ("export const number = (value) => 1;", "number"),
            ("export class Chart {", "Chart"),
        ] {
            assert_eq!(exported(line), Some(name));
        }
        assert_eq!(exported("const number = 1;"), None);
    }
}
