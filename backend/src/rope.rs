//! Tables of rotary position embedding (Su et al. 2021, arXiv:2104.09864).

/// Rotary position embedding (Su et al. 2021, arXiv:2104.09864). The layout is half-split, except as described at
/// [`LatentAttention`].
#[derive(Clone, Debug, PartialEq)]
pub struct RopeConfig {
    /// Base of the frequencies.
    pub theta: f64,
    /// Change of the frequencies for longer contexts.
    pub scaling: RopeScaling,
}

/// A factor of rotated queries that grows with the position: `1 + beta · ln(1 + floor(position / original))`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryScaling {
    /// Factor of the logarithm.
    pub beta: f64,
    /// Positions below this one are not scaled: the context length of pre-training.
    pub original: usize,
}

/// Scaling of rotary frequencies for longer contexts.
#[derive(Clone, Debug, PartialEq)]
pub enum RopeScaling {
    /// Frequencies of pre-training, unscaled.
    None,
    /// All frequencies divided by a factor.
    Linear {
        /// Divisor of all frequencies.
        factor: f64,
    },
    /// Llama 3: low frequencies divided, high ones kept, a smooth ramp between.
    Llama3 {
        /// Divisor of low frequencies.
        factor: f64,
        /// Wavelengths above `original / low` are divided.
        low_freq_factor: f64,
        /// Wavelengths below `original / high` are kept.
        high_freq_factor: f64,
        /// Context length of pre-training.
        original_max_position_embeddings: usize,
    },
    /// YaRN (Peng et al. 2023, arXiv:2309.00071): like Llama 3's with a ramp over dimensions, and a factor on rotated
    /// vectors.
    Yarn {
        /// Divisor of low frequencies.
        factor: f64,
        /// Rotations within the original context above which frequencies are kept.
        beta_fast: f64,
        /// Rotations below which they are divided.
        beta_slow: f64,
        /// The ends of the ramp are whole dimensions.
        truncate: bool,
        /// Multiplies cosines and sines.
        attention_factor: f64,
        /// Context length of pre-training.
        original_max_position_embeddings: usize,
    },
    /// LongRoPE (Ding et al. 2024, arXiv:2402.13753) within the context of pre-training: a longer sequence would need
    /// other factors at all of its positions.
    Long {
        /// Divisor of each frequency.
        factors: Vec<f64>,
        /// Multiplies cosines and sines.
        attention_factor: f64,
        /// Context length of pre-training.
        original_max_position_embeddings: usize,
    },
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
pub fn query_rope_table(
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
pub struct Angles {
    frequencies: Vec<f32>,
    scale: f32,
}

impl Angles {
    /// The angles of heads of which `head_dim` elements are rotated.
    pub fn new(config: &RopeConfig, head_dim: usize) -> Self {
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
    pub fn pair(&self, position: usize, j: usize) -> (f32, f32) {
        let angle = f64::from(position as f32 * self.frequencies[j]);
        (angle.cos() as f32 * self.scale, angle.sin() as f32 * self.scale)
    }
}

/// (cos, sin) of `[position][half a head]` for positions below `positions`.
pub fn rope_table(config: &RopeConfig, head_dim: usize, positions: usize) -> Vec<(f32, f32)> {
    let angles = Angles::new(config, head_dim);
    (0..positions)
        .flat_map(|position| (0..head_dim / 2).map(move |j| (position, j)))
        .map(|(p, j)| angles.pair(p, j))
        .collect()
}
