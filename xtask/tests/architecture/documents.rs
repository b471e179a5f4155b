//! Checks paths and links in Markdown pages.

use std::path::Path;

/// Returns the paths in backquotes and the linked files of a page that do not exist.
pub(crate) fn dangling<'a>(root: &Path, page: &str, text: &'a str) -> Vec<&'a str> {
    let folder = root.join(page).parent().map(Path::to_path_buf).unwrap_or_default();
    let mut missing: Vec<_> = named_paths(root, text).filter(|path| !root.join(path).exists()).collect();
    missing.extend(links(text).filter(|link| !folder.join(link).exists()));
    missing
}

/// Returns the texts in backquotes that begin with a folder of the repository. Placeholders (`<family>`) are skipped.
fn named_paths<'a>(root: &Path, text: &'a str) -> impl Iterator<Item = &'a str> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| {
        let first = span.split_once('/').map(|(first, _)| first);
        let plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        plain && first.is_some_and(|first| !first.is_empty() && root.join(first).join("Cargo.toml").is_file())
    })
}

/// Returns the relative targets of links, without their fragments.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let files = targets.map(|target| target.split_once('#').map_or(target, |(file, _)| file));
    files.filter(|file| !file.is_empty() && !file.contains("://"))
}

/// Returns the tests in backquotes that do not exist: `test_file.py`, `test_file.py::name`, and functions of any Rust
/// file, which contain underscores (`rust` is the text of all files).
pub(crate) fn unknown_tests<'a>(root: &Path, text: &'a str, rust: &str) -> Vec<&'a str> {
    let spans = text.split('`').skip(1).step_by(2);
    let unknown = spans.filter(|span| match span.split_once(".py") {
        Some((file, name)) if !file.contains('/') => {
            let source = std::fs::read_to_string(root.join("tests/sdk").join(format!("{file}.py")));
            let function = |source: String| name.is_empty() || source.contains(&format!("def {}(", &name[2..]));
            !source.is_ok_and(function)
        }
        Some(_) => false,
        None => {
            let function = span.matches('_').count() > 2 && span.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            function && !rust.contains(&format!("fn {span}("))
        }
    });
    unknown.collect()
}

#[cfg(test)]
mod tests {
    use super::{dangling, unknown_tests};
    use crate::sources::root;

    #[test]
    fn planted_dangling_paths_and_links_are_found() {
        let text = "`xtask/src/main.rs` `xtask/src/gone.rs` `xtask/<task>.rs` `a/b` `x` \
            [a](../README.md) [b](gone.md#part) [c](https://example.com/x) [d](#part)";
        assert_eq!(dangling(&root(), "docs/page.md", text), ["xtask/src/gone.rs", "gone.md"]);
    }

    #[test]
    fn planted_unknown_tests_are_found() {
        let text =
            "`test_kill.py` `test_gone.py` `test_kill.py::test_gone` `what_is_not_there` `what_is_there_now` `a_b`";
        let unknown = unknown_tests(&root(), text, "fn what_is_there_now() {");
        assert_eq!(unknown, ["test_gone.py", "test_kill.py::test_gone", "what_is_not_there"]);
    }
}
