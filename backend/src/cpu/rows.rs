//! Activations in host memory.

use std::ops::{Deref, DerefMut};

use super::Cpu;
use super::buffer::Buffer;
use super::parallel::{for_rows, par_chunks};
use crate::Rows;
use crate::collective::Ranks;

/// Elements that a thread copies at a time.
const COPIED: usize = 1 << 14;

/// `[rows, width]` f32, dense.
pub struct HostRows {
    data: Buffer<f32>,
    width: usize,
}

impl HostRows {
    /// Rows with anything in them.
    pub(super) fn alloc(cpu: &Cpu, rows: usize, width: usize) -> Self {
        Self { data: cpu.buffer(rows * width), width }
    }

    pub(super) fn zeros(cpu: &Cpu, rows: usize, width: usize) -> Self {
        Self { data: cpu.zero_buffer(rows * width), width }
    }

    pub(super) fn copy(&self, cpu: &Cpu) -> Self {
        let (from, mut to) = (&**self, Self::alloc(cpu, self.rows(), self.width));
        par_chunks(&cpu.pool, &mut to, COPIED, |i, to| to.copy_from_slice(&from[i * COPIED..][..to.len()]));
        to
    }

    pub(super) fn gather(&self, cpu: &Cpu, rows: &[usize]) -> Self {
        let (from, mut to) = (&**self, Self::alloc(cpu, rows.len(), self.width));
        for_rows(cpu, &mut to, self.width, |i, to| to.copy_from_slice(&from[rows[i] * to.len()..][..to.len()]));
        to
    }

    pub(super) fn scatter(&self, rows: &[usize], to: &mut Self) {
        assert!(self.width == to.width, "row widths differ");
        for (from, row) in self.chunks_exact(self.width).zip(rows) {
            to[row * self.width..(row + 1) * self.width].copy_from_slice(from);
        }
    }
}

impl Rows for HostRows {
    fn rows(&self) -> usize {
        self.data.len().checked_div(self.width).unwrap_or(0)
    }

    fn width(&self) -> usize {
        self.width
    }

    fn all_reduce(&mut self, ranks: &Ranks) {
        ranks.all_reduce(self);
    }
}

impl Deref for HostRows {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.data
    }
}

impl DerefMut for HostRows {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }
}
