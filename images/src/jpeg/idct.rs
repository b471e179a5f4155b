//! The inverse transform of a block, with the bits of libjpeg's accurate integer method (`jpeg_idct_islow`).

/// Index in a block by rows, of each coefficient in the order of the file.
pub(super) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

/// Fractional bits of the constants below.
const CONSTANT: u32 = 13;
/// Fractional bits kept between the two passes.
const BETWEEN: u32 = 2;

const F_0_298: i32 = 2446;
const F_0_390: i32 = 3196;
const F_0_541: i32 = 4433;
const F_0_765: i32 = 6270;
const F_0_899: i32 = 7373;
const F_1_175: i32 = 9633;
const F_1_501: i32 = 12_299;
const F_1_847: i32 = 15_137;
const F_1_961: i32 = 16_069;
const F_2_053: i32 = 16_819;
const F_2_562: i32 = 20_995;
const F_3_072: i32 = 25_172;

/// Coefficients of a block by rows.
pub(super) type Block = [i16; 64];

/// Transforms a block, and writes its samples to 8 rows of 8 that are `stride` apart.
pub(super) fn transform(block: &Block, table: &[u16; 64], samples: &mut [u8], stride: usize) {
    let mut middle = [0_i32; 64];
    for column in 0..8 {
        let value = |row: usize| i32::from(block[row * 8 + column]).wrapping_mul(table[row * 8 + column].into());
        let sums = pass([value(0), value(1), value(2), value(3), value(4), value(5), value(6), value(7)]);
        for (row, sum) in sums.into_iter().enumerate() {
            middle[row * 8 + column] = descale(sum, CONSTANT - BETWEEN);
        }
    }
    for (row, values) in middle.as_chunks().0.iter().enumerate() {
        let samples = &mut samples[row * stride..row * stride + 8];
        for (sample, sum) in samples.iter_mut().zip(pass(*values)) {
            *sample = descale(sum, CONSTANT + BETWEEN + 3).saturating_add(128).clamp(0, 255) as u8;
        }
    }
}

fn descale(sum: i32, bits: u32) -> i32 {
    sum.wrapping_add(1 << (bits - 1)) >> bits
}

/// Transforms eight values, scaled by 2^`CONSTANT`. Sums wrap: only damaged files have values that large.
fn pass(x: [i32; 8]) -> [i32; 8] {
    let times = i32::wrapping_mul;
    let sum = i32::wrapping_add;
    let difference = i32::wrapping_sub;

    let common = times(sum(x[2], x[6]), F_0_541);
    let even2 = difference(common, times(x[6], F_1_847));
    let even3 = sum(common, times(x[2], F_0_765));
    let even0 = sum(x[0], x[4]) << CONSTANT;
    let even1 = difference(x[0], x[4]) << CONSTANT;
    let even = [sum(even0, even3), sum(even1, even2), difference(even1, even2), difference(even0, even3)];

    let z5 = times(sum(sum(x[7], x[3]), sum(x[5], x[1])), F_1_175);
    let z1 = times(sum(x[7], x[1]), -F_0_899);
    let z2 = times(sum(x[5], x[3]), -F_2_562);
    let z3 = sum(times(sum(x[7], x[3]), -F_1_961), z5);
    let z4 = sum(times(sum(x[5], x[1]), -F_0_390), z5);
    let odd = [
        sum(times(x[1], F_1_501), sum(z1, z4)),
        sum(times(x[3], F_3_072), sum(z2, z3)),
        sum(times(x[5], F_2_053), sum(z2, z4)),
        sum(times(x[7], F_0_298), sum(z1, z3)),
    ];
    let mut sums = [0; 8];
    for (at, (even, odd)) in even.into_iter().zip(odd).enumerate() {
        sums[at] = sum(even, odd);
        sums[7 - at] = difference(even, odd);
    }
    sums
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use proptest::prelude::*;

    use super::*;

    fn exact(block: &Block, row: usize, column: usize) -> f64 {
        let wave = |at: usize, frequency: usize| {
            let scale = if frequency == 0 { 0.5_f64.sqrt() } else { 1.0 };
            scale * ((2 * at + 1) as f64 * frequency as f64 * PI / 16.0).cos() / 2.0
        };
        let term = |at: usize| f64::from(block[at]) * wave(row, at / 8) * wave(column, at % 8);
        (0..64).map(term).sum::<f64>() + 128.0
    }

    proptest! {
        #[test]
        fn samples_are_those_of_the_exact_transform_within_one_level(values in prop::collection::vec(-60..60_i16, 64)) {
            let block: Block = std::array::from_fn(|at| values[at]);
            let mut samples = [0; 64];
            transform(&block, &[1; 64], &mut samples, 8);
            for (at, &sample) in samples.iter().enumerate() {
                let wanted = exact(&block, at / 8, at % 8).clamp(0.0, 255.0);
                prop_assert!((f64::from(sample) - wanted).abs() < 1.0, "{at}: {sample} {wanted}");
            }
        }

        #[test]
        fn no_value_overflows(values in prop::collection::vec(any::<i16>(), 64), factor: u16) {
            let block: Block = std::array::from_fn(|at| values[at]);
            transform(&block, &[factor; 64], &mut [0; 64], 8);
        }
    }

    #[test]
    fn the_order_of_coefficients_is_a_permutation_along_diagonals() {
        let mut sorted = ZIGZAG;
        sorted.sort_unstable();
        assert!(sorted.iter().enumerate().all(|(at, &index)| at == usize::from(index)));
        let diagonal = |index: u8| index / 8 + index % 8;
        assert!(ZIGZAG.windows(2).all(|pair| diagonal(pair[0]) <= diagonal(pair[1])));
    }
}
