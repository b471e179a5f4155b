//! Functions of the simulated driver beyond CUDA, for tests and for the other simulated libraries.
//!
//! They belong to the `libcuda.so` that the process loads; with a real driver, [`Client::open`] fails.
#![allow(unsafe_code, reason = "functions of a library that is loaded at run time")]

mod control;
mod work;

pub use work::Work;

use libloading::Library;
use thiserror::Error;

/// Why the simulator could not be asked.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The library `libcuda.so` is missing, or is a real driver.
    #[error("the simulated driver is missing: {0}")]
    Missing(#[from] libloading::Error),
    /// The simulator refused the call, with the number of CUDA's error.
    #[error("the simulated driver answered CUDA error {0}")]
    Refused(i32),
    /// A name with a zero in it.
    #[error("a name must not contain a zero")]
    Name,
}

type Result<T = ()> = std::result::Result<T, ClientError>;

/// Handle of the loaded driver library.
#[derive(Debug)]
pub struct Client {
    library: Library,
}

fn checked(code: i32) -> Result {
    if code == 0 { Ok(()) } else { Err(ClientError::Refused(code)) }
}

impl Client {
    /// The driver that the process has loaded, or would load.
    ///
    /// # Errors
    ///
    /// [`ClientError::Missing`].
    pub fn open() -> Result<Self> {
        // SAFETY: loading the simulated driver runs no code; a real one is loaded by whoever uses CUDA anyway.
        let library = unsafe { Library::new("libcuda.so") }?;
        let client = Self { library };
        client.symbol::<unsafe extern "C" fn() -> i32>(b"cudasim_progress")?;
        Ok(client)
    }

    fn symbol<T: Copy>(&self, name: &[u8]) -> Result<T> {
        // SAFETY: the types above are those of the simulator's functions.
        Ok(*unsafe { self.library.get::<T>(name) }?)
    }
}
