//! Rotary position embedding (Su et al. 2021, arXiv:2104.09864) in the half-split layout of Hugging Face:
//! element `i` pairs with `i + head_dim / 2`.

use super::Cpu;
use super::elementwise::for_rows;
use crate::config::{RopeConfig, RopeScaling};

/// Cosines and sines for every position of a model.
pub struct Rope {
    half: usize,
    /// `[position][half]` of (cos, sin).
    table: Vec<(f32, f32)>,
}

fn frequencies(config: &RopeConfig, half: usize) -> Vec<f64> {
    (0..half)
        .map(|i| {
            let frequency = config.theta.powf(-(i as f64) / half as f64);
            match config.scaling {
                RopeScaling::None => frequency,
                RopeScaling::Linear { factor } => frequency / factor,
                RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_position_embeddings } => {
                    let original = original_max_position_embeddings as f64;
                    let wavelength = 2.0 * std::f64::consts::PI / frequency;
                    if wavelength < original / high_freq_factor {
                        frequency
                    } else if wavelength > original / low_freq_factor {
                        frequency / factor
                    } else {
                        let smooth = (original / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor);
                        (1.0 - smooth) * frequency / factor + smooth * frequency
                    }
                }
            }
        })
        .collect()
}

impl Rope {
    /// Tables for positions below `positions`.
    pub fn new(config: &RopeConfig, head_dim: usize, positions: usize) -> Self {
        let half = head_dim / 2;
        // The angle is rounded to f32 as PyTorch computes it: frequency and product in f32.
        let frequencies: Vec<f32> = frequencies(config, half).into_iter().map(|f| f as f32).collect();
        let table = (0..positions)
            .flat_map(|position| {
                frequencies.iter().map(move |f| {
                    let angle = f64::from(position as f32 * f);
                    (angle.cos() as f32, angle.sin() as f32)
                })
            })
            .collect();
        Self { half, table }
    }

    /// Rotates `heads` consecutive heads at `offset` of every row; row `i` is at `positions[i]`.
    /// `inverse` rotates back: the gradient.
    pub fn apply(
        &self,
        cpu: &Cpu,
        x: &mut [f32],
        stride: usize,
        offset: usize,
        heads: usize,
        positions: &[u32],
        inverse: bool,
    ) {
        let half = self.half;
        for_rows(cpu, x, stride, |i, row| {
            let at = positions[i] as usize * half;
            let table = &self.table[at..at + half];
            for head in row[offset..offset + heads * 2 * half].chunks_exact_mut(2 * half) {
                let (low, high) = head.split_at_mut(half);
                for ((low, high), (cos, sin)) in low.iter_mut().zip(high).zip(table) {
                    let sin = if inverse { -sin } else { *sin };
                    let (a, b) = (*low, *high);
                    *low = a * cos - b * sin;
                    *high = b * cos + a * sin;
                }
            }
        });
    }
}
