//! Rows of embeddings, and their gradients by token.

use std::collections::BTreeMap;

use super::Cuda;
use super::elements::Elements;
use crate::backend::EmbeddingGradient;
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::embedding::{embed, embed_backward};
use crate::backend::cuda::ops::rows::DeviceRows;

/// Gradients of embedding rows by token, apart from their parameter. Only tokens that occur take memory.
#[derive(Default)]
pub struct EmbeddingSums {
    /// Tokens with their rows.
    tokens: BTreeMap<u32, u32>,
    /// Sums of gradients: `[tokens, width]`.
    sums: Option<DeviceRows>,
}

impl EmbeddingSums {
    fn add(&mut self, device: &CudaDevice, tokens: &[u32], dx: &DeviceRows, scale: f32) -> Result {
        let rows = tokens.iter().map(|token| {
            let next = self.tokens.len() as u32;
            *self.tokens.entry(*token).or_insert(next)
        });
        let rows: Vec<u32> = rows.collect();
        let held = self.sums.as_ref().map_or(0, DeviceRows::rows);
        let sums = if held < self.tokens.len() {
            let mut sums = DeviceRows::zeros(device, self.tokens.len(), dx.width())?;
            if let Some(old) = &self.sums {
                sums.data_mut().copy_from(0, old.data(), 0..old.data().len())?;
            }
            self.sums.insert(sums)
        } else if let Some(sums) = &mut self.sums {
            sums
        } else {
            return Ok(());
        };
        embed_backward(device, &rows, dx, scale, sums.data_mut())
    }
}

impl Cuda {
    pub(super) fn embed_of(&self, table: &Elements, tokens: &[u32], scale: f32) -> Result<DeviceRows> {
        match table {
            Elements::F32(rows) => embed(&self.device, rows, tokens, scale),
            Elements::Bf16(rows) => embed(&self.device, rows, tokens, scale),
        }
    }

    pub(super) fn embed_gradient(
        &self,
        tokens: &[u32],
        dx: &DeviceRows,
        scale: f32,
        into: EmbeddingGradient<'_, Self>,
    ) -> Result {
        match into {
            EmbeddingGradient::Param(params, index) => {
                embed_backward(&self.device, tokens, dx, scale, &mut params.0[index])
            }
            EmbeddingGradient::Sums(sums) => sums.add(&self.device, tokens, dx, scale),
        }
    }

    pub(super) fn add_sums(
        &self,
        EmbeddingSums { tokens, sums }: EmbeddingSums,
        gradient: &mut crate::backend::cuda::device::memory::Slice<f32>,
    ) -> Result {
        let Some(sums) = sums else { return Ok(()) };
        let mut by_row: Vec<(u32, u32)> = tokens.into_iter().map(|(token, row)| (row, token)).collect();
        by_row.sort_unstable();
        let tokens: Vec<u32> = by_row.into_iter().map(|(_, token)| token).collect();
        embed_backward(&self.device, &tokens, &sums, 1.0, gradient)
    }
}
