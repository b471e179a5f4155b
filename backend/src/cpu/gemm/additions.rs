//! What is added to a block of a GEMM's output after the products: updates of adapters, then a bias.

#[cfg(target_arch = "x86_64")]
use super::super::Cpu;
use super::super::Isa;
#[cfg(target_arch = "x86_64")]
use super::super::packed::NR;
use super::super::vexp::multiversion;
use super::partition::OutputBlock;
use super::tiles::TileOut;
use super::update::LowRankUpdate;

/// Additions that a kernel makes while the sums are in registers or in the cache.
#[derive(Clone, Copy, Default)]
pub(super) struct Additions<'a> {
    pub(super) updates: &'a [LowRankUpdate<'a>],
    /// Added to every row: `[n]`.
    pub(super) bias: Option<&'a [f32]>,
}

#[cfg(target_arch = "x86_64")]
impl Additions<'_> {
    /// Adds the bias of the strip at `column` to its rows of [`NR`] sums.
    pub(super) fn add_bias(&self, cpu: &Cpu, column: usize, sums: &mut [f32]) {
        let Some(bias) = self.bias else { return };
        let mut own = [0.0; NR];
        own.iter_mut().zip(&bias[column..]).for_each(|(own, bias)| *own = *bias);
        add_to_rows(cpu.isa(), sums, &own);
    }
}

#[cfg(target_arch = "x86_64")]
multiversion! {
    fn add_to_rows(sums: &mut [f32], bias: &[f32; NR]) {
        for row in sums.as_chunks_mut::<NR>().0 {
            for (sum, bias) in row.iter_mut().zip(bias) {
                *sum += bias;
            }
        }
    }
}

multiversion! {
    fn add_to_row(sums: &mut [f32], bias: &[f32]) {
        for (sum, bias) in sums.iter_mut().zip(bias) {
            *sum += bias;
        }
    }
}

/// Adds a bias, `[n]`, to a block of the output.
///
/// # Safety
/// `c` points at the first element of the block, which nobody else accesses.
pub(super) unsafe fn add_bias_to_block(isa: Isa, bias: &[f32], block: &OutputBlock, c: TileOut) {
    let bias = &bias[block.columns.clone()];
    for i in 0..block.rows.len() {
        // SAFETY: as the caller ensures.
        add_to_row(isa, unsafe { std::slice::from_raw_parts_mut(c.at.add(i * c.stride), bias.len()) }, bias);
    }
}
