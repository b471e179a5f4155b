//! Tables of rotary position embedding (Su et al. 2021, arXiv:2104.09864).

use crate::config::{RopeConfig, RopeScaling};

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

/// (cos, sin) of `[position][half a head]` for positions below `positions`.
pub(crate) fn rope_table(config: &RopeConfig, head_dim: usize, positions: usize) -> Vec<(f32, f32)> {
    // The angle is rounded to f32 as in PyTorch: the frequency, then position times frequency.
    let frequencies: Vec<f32> = frequencies(config, head_dim / 2).into_iter().map(|f| f as f32).collect();
    let angle = |position: usize, f: &f32| f64::from(position as f32 * f);
    let scale = match config.scaling {
        RopeScaling::Yarn { attention_factor, .. } => attention_factor as f32,
        _ => 1.0,
    };
    let pair = |angle: f64| (angle.cos() as f32 * scale, angle.sin() as f32 * scale);
    (0..positions).flat_map(|position| frequencies.iter().map(move |f| pair(angle(position, f)))).collect()
}
