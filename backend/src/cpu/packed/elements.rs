//! Elements of packed matrices: how many stand side by side, and their rounding to bf16.

/// Columns of a panel.
pub(in crate::cpu) const NR: usize = 32;

/// Rounds to the nearest bf16, ties to even, without a branch so that loops over it vectorise.
#[inline(always)]
pub(in crate::cpu) fn bf16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = (bits >> 16) | 0x40;
    if x.is_nan() { nan as u16 } else { rounded as u16 }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    #[test]
    fn rounding_is_that_of_the_format() {
        let edges =
            [0.0, -0.0, 1.0, f32::MAX, f32::MIN_POSITIVE, f32::INFINITY, f32::NEG_INFINITY, 1.003_906_3, 1.011_718_8];
        let some = (0..100_000u32).map(|i| f32::from_bits(i.wrapping_mul(2_654_435_761))).filter(|x| !x.is_nan());
        for x in edges.into_iter().chain(some) {
            assert_eq!(bf16_bits(x), bf16::from_f32(x).to_bits(), "{x}");
        }
        assert!(bf16::from_bits(bf16_bits(f32::NAN)).is_nan());
    }
}
