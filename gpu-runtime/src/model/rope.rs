//! Tables of rotary position embedding (Su et al. 2021, arXiv:2104.09864).

use crate::config::{QueryScaling, RopeConfig, RopeScaling};

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
                RopeScaling::Yarn { factor, .. } => {
                    let divided = yarn_ramp(config, half, i);
                    divided * frequency / factor + (1.0 - divided) * frequency
                }
                RopeScaling::Long { ref factors, .. } => frequency / factors.get(i).copied().unwrap_or(1.0),
            }
        })
        .collect()
}

/// YaRN's ramp: how much of a dimension's frequency is divided, from 0 to 1.
fn yarn_ramp(config: &RopeConfig, half: usize, i: usize) -> f64 {
    let RopeScaling::Yarn { beta_fast, beta_slow, truncate, original_max_position_embeddings, .. } = config.scaling
    else {
        return 0.0;
    };
    // The dimension that turns so many times within the original context.
    let dimension = |turns: f64| {
        let original = original_max_position_embeddings as f64;
        half as f64 * (original / (turns * 2.0 * std::f64::consts::PI)).ln() / config.theta.ln()
    };
    let (low, high) = (dimension(beta_fast), dimension(beta_slow));
    let (low, high) = if truncate { (low.floor(), high.ceil()) } else { (low, high) };
    let (low, high) = (low.max(0.0), high.min(2.0 * half as f64 - 1.0));
    let width = if low == high { 0.001 } else { high - low };
    ((i as f64 - low) / width).clamp(0.0, 1.0)
}

/// [`rope_table`] for queries that are scaled by position.
pub(crate) fn query_rope_table(
    config: &RopeConfig,
    scaling: QueryScaling,
    head_dim: usize,
    positions: usize,
) -> Vec<(f32, f32)> {
    let half = (head_dim / 2).max(1);
    let factor = |position: usize| 1.0 + scaling.beta * ((position / scaling.original) as f64).ln_1p();
    let table = rope_table(config, head_dim, positions).into_iter().enumerate();
    table
        .map(|(at, (cos, sin))| {
            let factor = factor(at / half) as f32;
            (cos * factor, sin * factor)
        })
        .collect()
}

/// Cosines and sines of a rotary embedding's angles.
pub(super) struct Angles {
    frequencies: Vec<f32>,
    scale: f32,
}

impl Angles {
    /// The angles of heads of which `head_dim` elements are rotated.
    pub(super) fn new(config: &RopeConfig, head_dim: usize) -> Self {
        // The angle is rounded to f32 as in PyTorch: the frequency, then position times frequency.
        let frequencies = frequencies(config, head_dim / 2).into_iter().map(|f| f as f32).collect();
        let scale = match config.scaling {
            RopeScaling::Yarn { attention_factor, .. } | RopeScaling::Long { attention_factor, .. } => {
                attention_factor as f32
            }
            _ => 1.0,
        };
        Self { frequencies, scale }
    }

    /// (cos, sin) of frequency `j` at a position.
    pub(super) fn pair(&self, position: usize, j: usize) -> (f32, f32) {
        let angle = f64::from(position as f32 * self.frequencies[j]);
        (angle.cos() as f32 * self.scale, angle.sin() as f32 * self.scale)
    }
}

/// (cos, sin) of `[position][half a head]` for positions below `positions`.
pub(crate) fn rope_table(config: &RopeConfig, head_dim: usize, positions: usize) -> Vec<(f32, f32)> {
    let angles = Angles::new(config, head_dim);
    (0..positions)
        .flat_map(|position| (0..head_dim / 2).map(move |j| (position, j)))
        .map(|(p, j)| angles.pair(p, j))
        .collect()
}
