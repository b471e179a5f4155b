//! Cubins: machine code is not simulated, so that they are refused, as by a driver for other devices. One whose PTX is known runs as
//! that PTX.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;

use cuda_sim_cubin::Cubin;
use cuda_sim_ptx::Module;

use crate::config::Config;
use crate::error::{Code, INVALID_IMAGE, NO_BINARY_FOR_GPU, Result};
use crate::image::parse;

#[derive(Debug, Default)]
pub(crate) struct Cubins {
    /// `CUDASIM_CUBIN_PTX`: the PTX of cubins, by their checksums.
    folder: Option<PathBuf>,
    log: bool,
    /// Whether it was logged that machine code is not simulated.
    refusal_logged: bool,
}

impl Cubins {
    pub(crate) fn new(config: &Config) -> Self {
        Self { folder: config.cubin_ptx.clone(), log: config.log, refusal_logged: false }
    }

    /// The module that a cubin stands for, on devices of the compute capability `major.minor`.
    pub(crate) fn module(&mut self, bytes: &[u8], major: u32, minor: u32) -> Result<Module> {
        let cubin = Cubin::parse(bytes).map_err(|error| report_invalid(&error.to_string()))?;
        if !cubin.architecture.runs_on(major, minor) {
            self.log(&format!("a cubin for {} does not run on {major}.{minor}", cubin.architecture));
            return Err(NO_BINARY_FOR_GPU);
        }
        let name = format!("{:08x}.ptx", crc32fast::hash(bytes));
        let Some(text) = self.known_text(&name)? else {
            let refusal = format!("a cubin for {} is refused: machine code is not simulated", cubin.architecture);
            match &self.folder {
                Some(folder) => self.log(&format!("{refusal}, and {} does not exist", folder.join(&name).display())),
                // Every cubin is refused for the same reason, which is said once.
                None if !std::mem::replace(&mut self.refusal_logged, true) => self.log(&refusal),
                None => {}
            }
            return Err(NO_BINARY_FOR_GPU);
        };
        let module = parse(&text)?;
        let own: BTreeSet<&str> = cubin.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        if module.kernels().iter().map(|kernel| kernel.name()).collect::<BTreeSet<_>>() != own {
            return Err(report_invalid(&format!("{name} has other kernels than its cubin")));
        }
        Ok(module)
    }

    /// The PTX of this name, if the folder has it.
    fn known_text(&self, name: &str) -> Result<Option<String>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let path = folder.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(report_invalid(&format!("its PTX {} cannot be read: {error}", path.display()))),
        }
    }

    fn log(&self, message: &str) {
        if self.log {
            eprintln!("cuda-sim: {message}");
        }
    }
}

/// Prints the error of a cubin to the standard error.
pub(crate) fn report_invalid(message: &str) -> Code {
    eprintln!("cuda-sim: a cubin: {message}");
    INVALID_IMAGE
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_file_counts_as_unknown_ptx() {
        let folder = std::env::temp_dir().join(format!("cuda-sim-cubins-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("folder.ptx")).unwrap();
        std::fs::write(folder.join("known.ptx"), "text").unwrap();
        let mut cubins = Cubins { folder: Some(folder.clone()), ..Cubins::default() };
        assert_eq!(cubins.known_text("known.ptx"), Ok(Some("text".to_owned())));
        assert_eq!(cubins.known_text("missing.ptx"), Ok(None));
        assert_eq!(cubins.known_text("folder.ptx"), Err(INVALID_IMAGE));
        std::fs::remove_dir_all(folder).unwrap();
        cubins.folder = None;
        assert_eq!(cubins.known_text("known.ptx"), Ok(None));
    }
}
