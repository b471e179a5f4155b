//! Random numbers for large matrices, made fast.

use half::bf16;

use crate::rng::kaiming_uniform_fill;

/// Numbers of a tile: a prime, so that no row of a matrix repeats another one.
const LEN: usize = 65_537;

/// Random numbers of variance 1 that bf16 has, so that both types of weights are the same; repeated to any length.
pub(super) struct Tile(Vec<f32>);

impl Tile {
    pub(super) fn new() -> Self {
        let mut values = vec![0.0; LEN];
        kaiming_uniform_fill(8, 5, &mut values, 3f32.sqrt());
        values.iter_mut().for_each(|value| *value = bf16::from_f32(*value).to_f32());
        Self(values)
    }

    /// Numbers of a stream of their own, of standard deviation `1 / root`, rounded to a power of two: they stay numbers of bf16.
    pub(super) fn take(&self, stream: usize, len: usize, root: f32) -> Vec<f32> {
        let factor = (-root.log2().round()).exp2();
        let mut out = Vec::with_capacity(len);
        let mut first = stream * 7919 % LEN;
        while out.len() < len {
            let part = &self.0[first..LEN.min(first + len - out.len())];
            out.extend(part.iter().map(|value| value * factor));
            first = 0;
        }
        out
    }

    /// Weights of a matrix `[outputs, inputs]`: outputs of inputs of variance 1 have about this variance too.
    pub(super) fn weights(&self, stream: usize, outputs: usize, inputs: usize) -> Vec<f32> {
        self.take(stream, outputs * inputs, (inputs as f32).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_bf16_and_of_their_deviation() {
        let numbers = Tile::new().take(3, 200_000, 64.0);
        assert_eq!(numbers.len(), 200_000);
        assert!(numbers.iter().all(|value| bf16::from_f32(*value).to_f32() == *value));
        let variance = numbers.iter().map(|value| f64::from(value * value)).sum::<f64>() / 2e5;
        assert!((variance.sqrt() * 64.0 - 1.0).abs() < 0.01, "{variance}");
        assert_eq!(numbers[..100], numbers[LEN..LEN + 100]);
        assert_ne!(Tile::new().take(4, 100, 64.0), numbers[..100]);
    }
}
