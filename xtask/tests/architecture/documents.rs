//! Paths and links in Markdown pages.

use std::path::Path;

/// Paths of the repository that a page names in backquotes, and files that it links to, as far as they do not exist.
pub(crate) fn dangling<'a>(root: &Path, page: &str, text: &'a str) -> Vec<&'a str> {
    let folder = root.join(page).parent().map(Path::to_path_buf).unwrap_or_default();
    let mut missing: Vec<_> = named_paths(root, text).filter(|path| !root.join(path).exists()).collect();
    missing.extend(links(text).filter(|link| !folder.join(link).exists()));
    missing
}

/// What stands in backquotes and begins with a folder of the repository. Placeholders (`<family>`) are no paths.
fn named_paths<'a>(root: &Path, text: &'a str) -> impl Iterator<Item = &'a str> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| {
        let first = span.split_once('/').map(|(first, _)| first);
        let plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        plain && first.is_some_and(|first| !first.is_empty() && root.join(first).join("Cargo.toml").is_file())
    })
}

/// Relative targets of links, without their fragments.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let files = targets.map(|target| target.split_once('#').map_or(target, |(file, _)| file));
    files.filter(|file| !file.is_empty() && !file.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::dangling;
    use crate::sources::root;

    #[test]
    fn planted_dangling_paths_and_links_are_found() {
        let text = "`xtask/src/main.rs` `xtask/src/gone.rs` `xtask/<task>.rs` `a/b` `x` \
            [a](../README.md) [b](gone.md#part) [c](https://example.com/x) [d](#part)";
        assert_eq!(dangling(&root(), "docs/page.md", text), ["xtask/src/gone.rs", "gone.md"]);
    }
}
