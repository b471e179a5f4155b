//! A base model on the command line: its name and where its files are.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A model in the form `NAME=PATH`, or only its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPath {
    /// The name that clients use.
    pub name: String,
    /// A folder or a file.
    pub path: PathBuf,
}

impl FromStr for NamedPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) => (Some(name.to_owned()), path),
            None => (name_of(Path::new(text)), text),
        };
        match name.filter(|name| !name.is_empty() && !path.is_empty()) {
            Some(name) => Ok(Self { name, path: PathBuf::from(path) }),
            None => Err("expected NAME=PATH, such as Qwen/Qwen3-8B=models/Qwen3-8B".to_owned()),
        }
    }
}

/// Returns the name of a model that is given without one: the id of a model in the hub's cache, the name of the folder,
/// or that of the GGUF file without its ending.
fn name_of(path: &Path) -> Option<String> {
    let found = path.canonicalize().ok();
    let Some(found) = found else {
        // An id of the hub has two parts; loading looks for it in the cache.
        let parts: Vec<&str> = path.to_str()?.split('/').collect();
        let is_id = parts.len() == 2 && parts.iter().all(|part| !part.is_empty() && !part.starts_with(['.', '~']));
        return if is_id { Some(parts.join("/")) } else { last_part(path) };
    };
    // The cache has a folder for each revision, whose name is a hash.
    let revisions = found.parent().filter(|parent| parent.ends_with("snapshots"));
    let cached = revisions.and_then(Path::parent).and_then(Path::file_name).and_then(|name| name.to_str());
    match cached.and_then(|name| name.strip_prefix("models--")) {
        Some(id) => Some(id.replacen("--", "/", 1)),
        // The name that was written, where a link has another one than its target.
        None => last_part(path).or_else(|| last_part(&found)),
    }
}

fn last_part(path: &Path) -> Option<String> {
    let is_gguf = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gguf"));
    let name = if is_gguf { path.file_stem() } else { path.file_name() };
    name.and_then(|name| name.to_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::fs;

    use super::*;

    #[test]
    fn models_are_written_name_equals_path() {
        let model: NamedPath = "org/name=/a=b".parse().unwrap();
        assert_eq!((model.name.as_str(), model.path), ("org/name", PathBuf::from("/a=b")));
        for text in ["", "=path", "name=", "/"] {
            let refused = text.parse::<NamedPath>().unwrap_err();
            assert_eq!(refused, "expected NAME=PATH, such as Qwen/Qwen3-8B=models/Qwen3-8B", "{text:?}");
        }
    }

    #[test]
    fn a_model_without_a_name_has_that_of_its_folder_file_or_id() {
        let dir = tempfile::tempdir().unwrap();
        let revision = dir.path().join("hub/models--org--Model-1B/snapshots/0123abcd");
        fs::create_dir_all(&revision).unwrap();
        fs::create_dir_all(dir.path().join("models/Qwen3-8B")).unwrap();
        fs::write(dir.path().join("models/smol.Q4_1.gguf"), "").unwrap();
        let given = |path: &str| dir.path().join(path).to_str().unwrap().to_owned();
        for (text, name) in [
            (given("models/Qwen3-8B"), "Qwen3-8B"),
            (given("models/Qwen3-8B/"), "Qwen3-8B"),
            (given("models/Qwen3-8B/../Qwen3-8B/."), "Qwen3-8B"),
            (given("models/smol.Q4_1.gguf"), "smol.Q4_1"),
            (given("hub/models--org--Model-1B/snapshots/0123abcd"), "org/Model-1B"),
            ("HuggingFaceTB/SmolLM2-135M-Instruct".to_owned(), "HuggingFaceTB/SmolLM2-135M-Instruct"),
            ("/nowhere/at-all".to_owned(), "at-all"),
            ("../nowhere".to_owned(), "nowhere"),
        ] {
            let model: NamedPath = text.parse().unwrap();
            assert_eq!((model.name.as_str(), model.path), (name, PathBuf::from(&text)));
        }
    }
}
