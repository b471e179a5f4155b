//! Emulation of AMX tile instructions with bf16 operands, for tests on processors that have AVX-512 but not AMX.
//! [`install`] handles the signal that such an instruction raises there, computes what the instruction would, bit for
//! bit, and continues after it.
//!
//! Emulated are `ldtilecfg`, `sttilecfg`, `tilerelease`, `tilezero`, `tileloadd`, `tileloaddt1`, `tilestored` and `tdpbf16ps` of
//! palette 1. Any other instruction that raises SIGILL ends the process, as it would without the emulator.
//!
//! Tests of a program run once more with emulated tiles through [`rerun`].
//!
//! On a processor with AMX, tile instructions also raise the signal in a process that never asked Linux for the
//! permission to use tiles; only those that access nothing but the configuration do not. So the emulator can be tested
//! against the hardware.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod arithmetic;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod decode;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod handler;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tiles;

mod rerun;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use handler::executed;
pub use rerun::{Rerun, is_rerun, rerun, skipped};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use tiles::{Config, TILE_BYTES, Tile, Tiles};

/// Reason why tile instructions can't be emulated here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The program was compiled for another architecture or operating system.
    #[error("tile instructions are emulated on x86-64 Linux only")]
    System,
    /// The processor lacks AVX-512, with which the emulator computes and which the kernels use beside tiles.
    #[error("tile instructions are emulated on processors with AVX-512 only")]
    Avx512,
    /// A second process of this program can't be started.
    #[error("another process of this program can't be started")]
    Process,
    /// The system refused to install a handler of SIGILL.
    #[error("a handler of SIGILL can't be installed")]
    Handler,
}

/// Emulates tile instructions in all threads of this process from now on. Installing it again changes nothing.
///
/// # Errors
/// Tile instructions can't be emulated on this machine.
pub fn install() -> Result<(), Unsupported> {
    support()?;
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    handler::install()?;
    Ok(())
}

/// Whether tile instructions can be emulated on this machine.
///
/// # Errors
/// The reason why they can't be emulated.
pub fn support() -> Result<(), Unsupported> {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    return if is_x86_feature_detected!("avx512f") { Ok(()) } else { Err(Unsupported::Avx512) };
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    Err(Unsupported::System)
}

/// Number of tile instructions emulated in this process.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub fn executed() -> u64 {
    0
}
