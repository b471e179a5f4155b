//! Counter-based random numbers: each is a function of (seed, purpose, index, position) and of no state, so that batching,
//! replays and threads cannot change them.
//!
//! The generator is Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). The
//! seed is its key; purpose and index are the upper half of its counter, the position is the lower.

/// Purpose of random numbers. Streams of different purposes are disjoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Sampled tokens: index is the sample's number, position the token's.
    Sample,
    /// Initial weights: index is the tensor's number, position the element's block.
    Init,
    /// Independent samples at prompt positions: index is the sample's number, position that in the prompt.
    Alternative,
}

/// Returns the number in [0, 1) with which token `position` of sample `sample_index` is sampled.
pub fn uniform(seed: u64, sample_index: u64, position: u64) -> f64 {
    uniform_for(Purpose::Sample, seed, sample_index, position)
}

/// Returns a number in [0, 1) with 53 random bits. Only the lower 56 bits of `index` count.
pub fn uniform_for(purpose: Purpose, seed: u64, index: u64, position: u64) -> f64 {
    let [low, high, ..] = block(purpose, seed, index, position);
    unit(low, high)
}

/// Fills tensor `tensor_index` with U(-bound, bound). LoRA's A takes `bound = 1 / sqrt(in_features)`: PEFT's
/// Kaiming initialisation with a = sqrt(5).
pub fn kaiming_uniform_fill(seed: u64, tensor_index: u64, out: &mut [f32], bound: f32) {
    for (position, chunk) in (0u64..).zip(out.chunks_mut(4)) {
        for (value, bits) in chunk.iter_mut().zip(block(Purpose::Init, seed, tensor_index, position)) {
            // The upper 24 bits fill an f32 exactly.
            let unit = (bits >> 8) as f32 / (1u32 << 24) as f32;
            *value = (2.0 * unit - 1.0) * bound;
        }
    }
}

fn unit(low: u32, high: u32) -> f64 {
    let bits = (u64::from(high) << 32 | u64::from(low)) >> 11;
    bits as f64 / (1u64 << 53) as f64
}

fn block(purpose: Purpose, seed: u64, index: u64, position: u64) -> [u32; 4] {
    let stream = (purpose as u64) << 56 | index & ((1 << 56) - 1);
    philox(halves(position, stream), [seed as u32, (seed >> 32) as u32])
}

fn halves(low: u64, high: u64) -> [u32; 4] {
    [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
}

/// Ten rounds of Philox4x32.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
    const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    let widen = |a: u32, b: u32| {
        let product = u64::from(a) * u64::from(b);
        ((product >> 32) as u32, product as u32)
    };
    for _ in 0..10 {
        let (high0, low0) = widen(MULTIPLIERS[0], counter[0]);
        let (high1, low1) = widen(MULTIPLIERS[1], counter[2]);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that the authors publish with Random123.
    #[test]
    fn philox_known_answers() {
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let cases = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (pi, [0xa409_3822, 0x299f_31d0], [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(philox(counter, key), expected);
        }
    }

    #[test]
    fn every_argument_matters() {
        let numbers = [
            uniform(1, 2, 3),
            uniform(2, 2, 3),
            uniform(1 << 40, 2, 3),
            uniform(1, 3, 3),
            uniform(1, 2, 4),
            uniform(1, 2, 3 << 33),
            uniform_for(Purpose::Alternative, 1, 2, 3),
            uniform_for(Purpose::Init, 1, 2, 3),
        ];
        for (at, number) in numbers.iter().enumerate() {
            assert!((0.0..1.0).contains(number));
            assert!(!numbers[at + 1..].contains(number));
        }
        assert!(unit(u32::MAX, u32::MAX) < 1.0);
    }

    #[test]
    fn the_fill_has_its_moments() {
        let mut values = vec![0f32; 40_001];
        kaiming_uniform_fill(7, 1, &mut values, 0.25);
        let mean = |values: &[f32], power: i32| {
            values.iter().map(|&x| f64::from(x).powi(power)).sum::<f64>() / values.len() as f64
        };
        assert!(values.iter().all(|x| x.abs() <= 0.25));
        assert!(mean(&values, 1).abs() < 2e-3 && (mean(&values, 2) - 0.0625 / 3.0).abs() < 1e-3);
        let mut short = vec![0f32; 10];
        kaiming_uniform_fill(7, 1, &mut short, 0.25);
        assert_eq!(short, values[..10]);
    }
}
