//! Module images: PTX text, a fat binary that holds it, or a cubin.

use crate::error::{Code, INVALID_PTX, NO_BINARY_FOR_GPU, Result};
use cuda_sim_ptx::Module;

const FAT_BINARY: u32 = 0xba55_ed50;
const FAT_HEADER: usize = 16;
const KIND_PTX: u16 = 1;

/// A module as a program loads it.
pub(crate) enum Image {
    /// Text of a PTX module.
    Text(String),
    /// Machine code for a GPU.
    Cubin(Vec<u8>),
}

/// Kind of an image by its first bytes.
pub(crate) enum Kind {
    /// Text that ends with a zero.
    Text,
    /// A fat binary of this number of bytes, header included.
    Fat(usize),
    /// Machine code for a GPU.
    Cubin,
}

/// Needs the first 16 bytes of a fat binary, or 4 of something else.
pub(crate) fn kind(first: &[u8]) -> Kind {
    if first.starts_with(b"\x7fELF") {
        return Kind::Cubin;
    }
    if first.len() >= FAT_HEADER && first[..4] == FAT_BINARY.to_le_bytes() {
        let header = usize::from(u16::from_le_bytes([first[6], first[7]]));
        let body = number(first, 8, 8).unwrap_or(0);
        return Kind::Fat(header.saturating_add(body));
    }
    Kind::Text
}

fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let mut value = [0; 8];
    value[..length].copy_from_slice(bytes.get(at..at + length)?);
    usize::try_from(u64::from_le_bytes(value)).ok()
}

/// The PTX of the first entry that holds text, uncompressed.
pub(crate) fn fat_binary_text(bytes: &[u8]) -> Result<String> {
    let mut at = number(bytes, 6, 2).ok_or(NO_BINARY_FOR_GPU)?;
    loop {
        let kind = number(bytes, at, 2).ok_or(NO_BINARY_FOR_GPU)?;
        let header = number(bytes, at + 4, 4).ok_or(NO_BINARY_FOR_GPU)?;
        let size = number(bytes, at + 8, 8).ok_or(NO_BINARY_FOR_GPU)?;
        if kind == usize::from(KIND_PTX) {
            let text = bytes.get(at + header..at + header + size).ok_or(NO_BINARY_FOR_GPU)?;
            return Ok(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned());
        }
        at += header + size;
    }
}

/// Parses a module; errors are printed to the standard error.
pub(crate) fn parse(text: &str) -> Result<Module> {
    Module::parse(text).map_err(|error| -> Code {
        eprintln!("cuda-sim: {error}");
        INVALID_PTX
    })
}
