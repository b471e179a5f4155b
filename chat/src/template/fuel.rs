//! The fuel of renderings, which instructions and created values consume.

/// Fuel of a rendering: a unit per instruction, and per 64 bytes that it creates.
pub(super) const FUEL: u64 = 1_000_000;
/// Bytes that cost as much as an instruction.
pub(super) const BYTES_PER_FUEL: usize = 64;
