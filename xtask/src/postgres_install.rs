//! Finds PostgreSQL's programs, or installs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::apt;

/// The oldest major version that the store supports.
const OLDEST: u32 = 15;

/// Programs that a folder must contain to count.
const PROGRAMS: [&str; 3] = ["postgres", "initdb", "pg_isready"];

/// Folders of versions: Debian's, then Red Hat's and Homebrew's.
const ROOTS: [(&str, &str); 3] = [("/usr/lib/postgresql", "bin"), ("/usr", "bin"), ("/opt/homebrew/opt", "bin")];

/// Folder of PostgreSQL's programs.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    pub(crate) dir: PathBuf,
    pub(crate) version: u32,
}

impl Binaries {
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Returns the newest installed version, if it is new enough.
pub(crate) fn find() -> Option<Binaries> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = ROOTS.iter().flat_map(|(root, bin)| folders(Path::new(root), bin));
    let candidates = std::env::split_paths(&path).chain(installed);
    candidates.filter_map(examine).filter(|found| found.version >= OLDEST).max_by_key(|found| found.version)
}

/// Installs Debian's package if no installation is found and the package can be installed.
pub(crate) fn ensure() -> Result<Binaries> {
    if let Some(found) = find() {
        return Ok(found);
    }
    apt::install("postgresql")?;
    find().ok_or_else(|| {
        format!("PostgreSQL {OLDEST} or later is needed: install it, or name a server in TEST_DATABASE_URL")
    })
}

fn folders(root: &Path, bin: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join(bin)).collect()
}

fn examine(dir: PathBuf) -> Option<Binaries> {
    if !PROGRAMS.iter().all(|name| dir.join(name).is_file()) {
        return None;
    }
    let output = Command::new(dir.join("postgres")).arg("--version").output().ok()?;
    let version = major(&String::from_utf8(output.stdout).ok()?)?;
    Some(Binaries { dir, version })
}

/// Reads the major version from `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn major(text: &str) -> Option<u32> {
    let number = text.split_whitespace().nth(2)?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn versions_are_read_from_what_the_server_prints() {
        assert_eq!(major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(major("sh: not found"), None);
    }
}
