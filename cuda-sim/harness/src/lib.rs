//! Puts the simulated CUDA libraries where programs look for the real ones.
//!
//! ```no_run
//! use cuda_sim_harness::Simulator;
//!
//! let simulator = Simulator::new()?;
//! let mut program = simulator.command("target/debug/my-program");
//! program.env("CUDASIM_SEED", "7");
//! assert!(program.status()?.success());
//! # Ok::<(), std::io::Error>(())
//! ```

use std::ffi::OsStr;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The libraries as they are built, and the names that programs load.
const LIBRARIES: &[(&str, &[&str])] = &[
    // Not `libcuda.so.1`: NVIDIA's compiler would load it, and wants functions of it that nobody documents.
    ("libcuda_sim_driver.so", &["libcuda.so"]),
    ("libcuda_sim_cublaslt.so", &["libcublasLt.so", "libcublasLt.so.13"]),
    ("libcuda_sim_nccl.so", &["libnccl.so", "libnccl.so.2"]),
];

/// A folder with links to the simulated libraries under the names of the real ones. It is deleted when this is dropped.
#[derive(Debug)]
pub struct Simulator {
    folder: TempDir,
}

impl Simulator {
    /// A folder of its own below `target/`: programs in other tests and processes never see it.
    ///
    /// # Errors
    ///
    /// If the libraries were not built, or the folder can't be written.
    pub fn new() -> Result<Self> {
        let built = built()?;
        let folder = tempfile::Builder::new().prefix("cuda-sim-").tempdir_in(&built)?;
        for (library, names) in LIBRARIES {
            let Some(library) = find(&built, library) else { continue };
            for name in *names {
                // Not a symbolic link: what is mapped would have the name of its target.
                std::fs::hard_link(&library, folder.path().join(name))?;
            }
        }
        if !folder.path().join("libcuda.so").exists() {
            return Err(Error::new(ErrorKind::NotFound, "libcuda_sim_driver.so is not built"));
        }
        Ok(Self { folder })
    }

    /// Copies a library to another name, also to one in a folder that does not exist yet.
    ///
    /// # Errors
    ///
    /// If the folder can't be written.
    pub fn copy(&self, library: &str, name: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
        // A link would be the same library to the dynamic linker.
        std::fs::copy(self.folder.path().join(library), &path)?;
        Ok(path)
    }

    /// Takes a library away.
    ///
    /// # Errors
    ///
    /// If it has no such name.
    pub fn remove(&self, library: &str) -> Result<()> {
        std::fs::remove_file(self.folder.path().join(library))
    }

    /// Takes a function away from a library, under all its names, as if the installed one were too old for it.
    ///
    /// # Errors
    ///
    /// If the library has no such name.
    pub fn remove_symbol(&self, library: &str, symbol: &str) -> Result<()> {
        let names = LIBRARIES.iter().map(|(_, names)| *names).find(|names| names.contains(&library));
        names.unwrap_or(&[library]).iter().try_for_each(|name| self.remove_symbol_of(name, symbol))
    }

    fn remove_symbol_of(&self, library: &str, symbol: &str) -> Result<()> {
        let path = self.folder.path().join(library);
        let mut bytes = std::fs::read(&path)?;
        let name: Vec<u8> = [b"\0", symbol.as_bytes(), b"\0"].concat();
        let places: Vec<usize> =
            (0..bytes.len() - name.len()).filter(|at| bytes[*at..*at + name.len()] == name).collect();
        if places.is_empty() {
            return Err(Error::new(ErrorKind::NotFound, format!("{library} has no {symbol}")));
        }
        for at in places {
            bytes[at + 1] = b'_';
        }
        std::fs::remove_file(&path)?;
        std::fs::write(&path, bytes)
    }

    /// Folder with the simulated libraries.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A program that finds the simulated libraries first.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.folder.path());
        command
    }
}

/// The folder of the profile, such as `target/debug`.
fn built() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().ok_or_else(|| Error::new(ErrorKind::NotFound, "no folder"))?;
    let nested = matches!(folder.file_name().and_then(OsStr::to_str), Some("deps" | "examples"));
    Ok(if nested { folder.parent().unwrap_or(folder) } else { folder }.to_path_buf())
}

/// Cargo leaves a library in `deps/` unless it was asked for by name.
fn find(built: &Path, library: &str) -> Option<PathBuf> {
    [built.join("deps").join(library), built.join(library)].into_iter().find(|path| path.exists())
}
