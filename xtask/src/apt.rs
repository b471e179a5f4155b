//! Packages of Debian, where that is what the machine runs.

use crate::Result;
use crate::process::{command, run, succeeds};

/// Installs a package where that is possible: by root, with `apt-get`. Returns whether it tried.
pub(crate) fn install(package: &str) -> Result<bool> {
    let root = succeeds(command("sh", &["-c", "test \"$(id -u)\" = 0"]));
    if !root || !succeeds(command("apt-get", &["--version"])) {
        return Ok(false);
    }
    eprintln!("    installing {package}");
    run(command("apt-get", &["update", "-qq"]))?;
    let mut install = command("apt-get", &["install", "-y", "-qq", "--no-install-recommends", package]);
    install.env("DEBIAN_FRONTEND", "noninteractive");
    run(install)?;
    Ok(true)
}
