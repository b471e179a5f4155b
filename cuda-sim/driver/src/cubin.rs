//! Cubins: machine code is not simulated, so that they are refused, as by a driver for other devices. One whose PTX is known runs as
//! that PTX.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cuda_sim_cubin::Cubin;
use cuda_sim_ptx::Module;

use crate::config::Config;
use crate::error::{Code, INVALID_IMAGE, NO_BINARY_FOR_GPU, Result};
use crate::image::parse;

#[derive(Debug, Default)]
pub(crate) struct Cubins {
    /// The devices' compute capability.
    capability: (u32, u32),
    /// `CUDASIM_CUBIN_PTX`: the PTX of cubins, by their checksums.
    folder: Option<PathBuf>,
    log: bool,
    /// Whether it was said that machine code is not simulated.
    said: bool,
}

impl Cubins {
    pub(crate) fn new(config: &Config) -> Self {
        Self { capability: config.capability, folder: config.cubin_ptx.clone(), log: config.log, said: false }
    }

    /// The module that a cubin stands for.
    pub(crate) fn module(&mut self, bytes: &[u8]) -> Result<Module> {
        let cubin = Cubin::parse(bytes).map_err(|error| invalid(&error.to_string()))?;
        if !cubin.architecture.runs_on(self.capability) {
            let (major, minor) = self.capability;
            self.log(&format!("a cubin for {} does not run on {major}.{minor}", cubin.architecture));
            return Err(NO_BINARY_FOR_GPU);
        }
        let name = format!("{:08x}.ptx", crc32fast::hash(bytes));
        let known = self.folder.as_ref().and_then(|folder| std::fs::read_to_string(folder.join(&name)).ok());
        let Some(text) = known else {
            if !std::mem::replace(&mut self.said, true) {
                self.log(&format!(
                    "a cubin for {} is refused: machine code is not simulated, and there is no {name}",
                    cubin.architecture
                ));
            }
            return Err(NO_BINARY_FOR_GPU);
        };
        let module = parse(&text)?;
        let own: BTreeSet<&str> = cubin.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        if module.kernels().iter().map(|kernel| kernel.name()).collect::<BTreeSet<_>>() != own {
            return Err(invalid(&format!("{name} has other kernels than its cubin")));
        }
        Ok(module)
    }

    fn log(&self, message: &str) {
        if self.log {
            eprintln!("cuda-sim: {message}");
        }
    }
}

/// What is wrong with a cubin is said on the standard error.
pub(crate) fn invalid(message: &str) -> Code {
    eprintln!("cuda-sim: a cubin: {message}");
    INVALID_IMAGE
}
