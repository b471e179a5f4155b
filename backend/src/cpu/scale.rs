//! Sums with a factor.

use super::Cpu;
use super::parallel::par_chunks;
use super::rows::HostRows;
use super::vexp::multiversion;
use crate::{Rows, ScaleOps};

/// Elements that a thread adds at a time.
const ADDED: usize = 1 << 14;

multiversion! {
    /// `to += scale · from`.
    fn add_scaled(scale: f32, from: &[f32], to: &mut [f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = scale.mul_add(*from, *to);
        }
    }
}

impl ScaleOps<Self> for Cpu {
    const HAS_SCALES: bool = true;

    fn add_scaled_rows(cpu: &Self, scale: f32, from: &HostRows, to: &mut HostRows) {
        assert!(from.width() == to.width() && from.rows() == to.rows(), "row extents differ");
        par_chunks(&cpu.pool, to, ADDED, |i, to| add_scaled(cpu.isa(), scale, &from[i * ADDED..], to));
    }
}
