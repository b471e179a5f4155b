//! Conversion of 8-bit values to the floats that a tower reads.

use serde::{Deserialize, Serialize};

/// Mean and deviation of each channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Scale", into = "Scale")]
pub(super) struct Normalization {
    scale: Scale,
    /// What each of the 256 values becomes, by channel.
    values: Vec<[f32; 256]>,
}

/// Mean and deviation of each channel, in units of 8-bit values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Scale {
    mean: [f32; 3],
    deviation: [f32; 3],
}

impl From<Scale> for Normalization {
    fn from(scale: Scale) -> Self {
        let channels = scale.mean.into_iter().zip(scale.deviation);
        let values =
            channels.map(|(mean, deviation)| std::array::from_fn(|value| (value as f32 - mean) / deviation)).collect();
        Self { scale, values }
    }
}

impl From<Normalization> for Scale {
    fn from(normalization: Normalization) -> Self {
        normalization.scale
    }
}

impl Normalization {
    /// Computes (value − mean / factor) / (deviation / factor) in single precision, in the order of the reference.
    pub(super) fn new(mean: [f64; 3], deviation: [f64; 3], factor: f64) -> Self {
        let scale = (1.0 / factor) as f32;
        let scaled = |values: [f64; 3]| values.map(|value| value as f32 * scale);
        Self::from(Scale { mean: scaled(mean), deviation: scaled(deviation) })
    }

    /// Returns the float of each value of a channel.
    pub(super) fn channel(&self, channel: usize) -> &[f32; 256] {
        &self.values[channel]
    }
}

#[cfg(test)]
mod tests {
    use super::Normalization;

    #[test]
    fn values_reach_from_minus_one_to_one_with_means_of_a_half() {
        let half = Normalization::new([0.5; 3], [0.5; 3], 1.0 / 255.0);
        assert_eq!([half.channel(0)[0], half.channel(1)[255]], [-1.0, 1.0]);
        assert_eq!(half.channel(2)[128], 0.5 / 127.5);
    }
}
