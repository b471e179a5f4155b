//! Places where machines have NVIDIA's libraries although the dynamic linker does not look there: Python's packages
//! `nvidia-*`, and an installed toolkit.

use std::env;
use std::path::{Path, PathBuf};

/// Where the toolkit is installed, unless it was asked to be elsewhere.
const TOOLKIT: &str = "/usr/local/cuda/lib64";

/// Files of these names in [`folders`]: of each folder, those that it has, in the order of the names.
pub(crate) fn files<'a>(names: &'a [&'a str]) -> impl Iterator<Item = PathBuf> + 'a {
    folders()
        .into_iter()
        .flat_map(move |folder| names.iter().map(move |name| folder.join(name)))
        .filter(|file| file.is_file())
}

/// Folders that exist, in the order in which they are searched: the packages of the active environment (`VIRTUAL_ENV`,
/// `CONDA_PREFIX`), of this program's, of the `python3` of `PATH`, of the user and the system, and the toolkit.
pub(crate) fn folders() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = prefixes().iter().flat_map(|prefix| packages(prefix)).collect();
    found.push(TOOLKIT.into());
    let mut all = Vec::new();
    for folder in found {
        if !all.contains(&folder) && folder.is_dir() {
            all.push(folder);
        }
    }
    all
}

/// Prefixes of Python's environments.
fn prefixes() -> Vec<PathBuf> {
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    // The links of an environment's `bin/` are not followed: its packages are beside them.
    let above = |program: PathBuf| Some(program.parent()?.parent()?.to_path_buf());
    let own = env::current_exe().ok().and_then(above);
    let path = env::var_os("PATH").unwrap_or_default();
    let python =
        env::split_paths(&path).map(|folder| folder.join("python3")).find(|file| file.is_file()).and_then(above);
    let user = env::var_os("HOME").map(|home| Path::new(&home).join(".local"));
    let system = ["/usr/local", "/usr"].map(PathBuf::from);
    active.chain(own).chain(python).chain(user).chain(system).filter(|prefix| prefix.is_absolute()).collect()
}

/// Folders of libraries in the packages of a prefix, in the order of their names.
fn packages(prefix: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for version in inside(&prefix.join("lib"), "python3") {
        for packages in ["site-packages", "dist-packages"] {
            let nvidia = version.join(packages).join("nvidia");
            found.extend(inside(&nvidia, "").into_iter().map(|package| package.join("lib")));
        }
    }
    found.retain(|folder| folder.is_dir());
    found
}

/// What is in a folder with names that begin so, sorted.
fn inside(folder: &Path, beginning: &str) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let has_name = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(beginning))
    };
    let mut found: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).filter(has_name).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn libraries_of_packages_are_found_in_order() {
        let prefix = tempfile::tempdir().unwrap();
        let nvidia = prefix.path().join("lib/python3.12/site-packages/nvidia");
        for folder in ["nccl/lib", "cublas/lib", "cuda_nvcc/bin"] {
            std::fs::create_dir_all(nvidia.join(folder)).unwrap();
        }
        std::fs::create_dir_all(prefix.path().join("lib/perl5/site-packages/nvidia/cublas/lib")).unwrap();
        assert_eq!(packages(prefix.path()), [nvidia.join("cublas/lib"), nvidia.join("nccl/lib")]);
        assert!(packages(&prefix.path().join("none")).is_empty());
    }
}
