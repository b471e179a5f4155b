//! Packages of Debian, on machines that run it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::Result;
use crate::process::{cache, command, run, succeeds};

/// NVIDIA's driver library: its package in Debian, and its path in the package.
const LIBCUDA: &str = "libcuda1";
const LIBCUDA_FOLDER: &str = "usr/lib/x86_64-linux-gnu/nvidia/current";

/// Archive that contains the package, and the key that signs the archive.
const ARCHIVE: &str = "http://deb.debian.org/debian";
const KEY: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Installs a package if the caller is root and `apt-get` exists. Returns whether an installation was tried.
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

/// Returns the folder of NVIDIA's real driver library. The library is unpacked but not installed, so that nothing else
/// on the machine finds it. It is fetched on the first call, whose failure is final.
pub(crate) fn libcuda() -> Result<PathBuf> {
    static FOUND: OnceLock<Result<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(fetch_libcuda).clone()
}

fn fetch_libcuda() -> Result<PathBuf> {
    let folder = cache()?.join(LIBCUDA);
    let unpacked = folder.join("unpacked");
    if !unpacked.exists() {
        eprintln!("    fetching {LIBCUDA}");
        let package = download(LIBCUDA, &folder)?;
        // Renamed last, so that an interrupted unpacking is repeated.
        let partial = folder.join("partial");
        let mut unpack = command("dpkg-deb", &["--extract"]);
        unpack.arg(&package).arg(&partial);
        run(unpack)?;
        fs::rename(&partial, &unpacked).map_err(|e| format!("rename {}: {e}", partial.display()))?;
    }
    let found = unpacked.join(LIBCUDA_FOLDER);
    if found.exists() { Ok(found) } else { Err(format!("{LIBCUDA} contains no library for this processor")) }
}

/// Downloads a package from the section non-free into a folder, with its own lists and settings: those of the machine
/// stay unchanged.
fn download(package: &str, folder: &Path) -> Result<PathBuf> {
    let release = fs::read_to_string("/etc/os-release").map_err(|e| format!("read /etc/os-release: {e}"))?;
    let value = |key: &str| release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let (Some("debian"), Some(codename)) = (value("ID"), value("VERSION_CODENAME")) else {
        return Err(format!("{package} is a package of Debian, which this machine does not run"));
    };
    for needed in ["state/lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(folder.join(needed)).map_err(|e| format!("create {}: {e}", folder.display()))?;
    }
    let sources = folder.join("sources.list");
    fs::write(&sources, format!("deb [signed-by={KEY}] {ARCHIVE} {codename} non-free\n"))
        .map_err(|e| format!("write {}: {e}", sources.display()))?;
    let apt = |arguments: &[&str]| {
        let mut apt = command("apt-get", &["-qq"]);
        let places = [("Dir::Etc::sourcelist", "sources.list"), ("Dir::State", "state"), ("Dir::Cache", "cache")];
        for (name, place) in places {
            let mut setting = OsString::from(format!("{name}="));
            setting.push(folder.join(place));
            apt.arg("-o").arg(setting);
        }
        apt.args(["-o", "Dir::Etc::sourceparts=/dev/null", "-o", "Debug::NoLocking=1"]);
        apt.args(["-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=0"]);
        // Run as the caller: another user may not have access to the folder.
        apt.args(["-o", "APT::Sandbox::User="]).args(arguments).current_dir(folder);
        run(apt)
    };
    apt(&["update"])?;
    apt(&["download", package])?;
    let entries = fs::read_dir(folder).map_err(|e| format!("read {}: {e}", folder.display()))?;
    let packages = entries.flatten().map(|entry| entry.path());
    let mut packages = packages.filter(|path| path.extension().is_some_and(|extension| extension == "deb"));
    packages.next().ok_or_else(|| format!("apt-get did not download {package}"))
}
