//! MXFP4 (OCP Microscaling Formats 1.0): 32 elements share an exponent, and two 4-bit floats are in a byte. Which two differs
//! between formats of files.

/// Elements that share an exponent, and their bytes.
pub(super) const BLOCK: usize = 32;
pub(super) const BLOCK_BYTES: usize = BLOCK / 2;

/// The values of 4-bit floats (E2M1).
const FP4: [f64; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// The factor that a shared exponent (E8M0) stands for.
pub(super) fn scale(exponent: u8) -> f64 {
    2f64.powi(i32::from(exponent) - 127)
}

/// The element with the low four bits of `bits`.
pub(super) fn value(bits: u8, scale: f64) -> f32 {
    (FP4[usize::from(bits & 15)] * scale) as f32
}
