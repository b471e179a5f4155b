//! Models that the Hugging Face tools have downloaded: `models--ORG--NAME/snapshots/COMMIT` in a cache folder, the
//! commit of a branch in `refs/BRANCH`.

use std::env;
use std::path::{Path, PathBuf};

use super::errors::malformed;
use super::load;
use crate::config::{LoadError, ModelSource};

/// Opens a model by its path or, from the hub cache, by its id.
///
/// # Errors
/// Errors of [`location`] and [`load`].
pub fn open(path: &Path) -> Result<ModelSource, LoadError> {
    load(&location(path)?)
}

/// Finds the folder or file of a model by its path or, from the hub cache, by its id.
///
/// # Errors
/// Fails if the model does not exist.
pub fn location(path: &Path) -> Result<PathBuf, LoadError> {
    locate(path, hub_cache().as_deref())
}

/// The folder in which the Hugging Face tools keep downloads, from their variables.
fn hub_cache() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("HF_HUB_CACHE")
        .or_else(|| variable("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/huggingface/hub")))
}

/// The folder or file that a model's `path` means: itself where it exists, else the hub id's newest download in
/// `cache`.
///
/// # Errors
/// Fails if it is neither.
fn locate(path: &Path, cache: Option<&Path>) -> Result<PathBuf, LoadError> {
    if path.exists() {
        return Ok(path.to_owned());
    }
    let refused = |reason: String| Err(malformed(path, reason));
    let Some(folder) = path.to_str().and_then(folder_of) else {
        return refused("no such file or folder".to_owned());
    };
    let Some(cache) = cache else {
        return refused("no such file or folder, and no hub cache to look in".to_owned());
    };
    let model = cache.join(folder);
    let snapshot =
        std::fs::read_to_string(model.join("refs/main")).map(|commit| model.join("snapshots").join(commit.trim()));
    match snapshot {
        Ok(snapshot) if snapshot.is_dir() => Ok(snapshot),
        _ => refused(format!("no such file or folder, and no such model in the hub cache {}", cache.display())),
    }
}

/// Folder of the cache for a model with this id: `org/name`, or only `name`.
fn folder_of(id: &str) -> Option<String> {
    let plain = |part: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !part.is_empty() && !part.starts_with('.') && part.chars().all(allowed)
    };
    let parts: Vec<_> = id.split('/').collect();
    (parts.len() <= 2 && parts.iter().all(|part| plain(part))).then(|| format!("models--{}", parts.join("--")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn ids_are_found_in_the_cache_and_paths_are_paths() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("models--org--name-1.5");
        std::fs::create_dir_all(model.join("snapshots/abc")).unwrap();
        std::fs::create_dir_all(model.join("refs")).unwrap();
        std::fs::write(model.join("refs/main"), "abc\n").unwrap();
        let found = |path: &str, cache| locate(Path::new(path), cache);
        assert_eq!(found("org/name-1.5", Some(dir.path())).unwrap(), model.join("snapshots/abc"));
        assert_eq!(locate(&model, None).unwrap(), model);
        let missing = found("org/other", Some(dir.path())).unwrap_err().to_string();
        assert!(missing.contains("org/other") && missing.contains("hub cache"), "{missing}");
        assert!(found("org/name-1.5", None).is_err());
        for path in ["/no/such/model", "../up", "a/b/c", "org/.."] {
            assert!(found(path, Some(dir.path())).unwrap_err().to_string().ends_with("no such file or folder"));
        }
        std::fs::write(model.join("refs/main"), "gone").unwrap();
        assert!(found("org/name-1.5", Some(dir.path())).is_err());
    }
}
