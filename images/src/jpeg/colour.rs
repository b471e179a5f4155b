//! Colours of JPEG files: luminance and two colour differences to RGB, with the bits of libjpeg.

/// Fractional bits of the constants below.
const BITS: i32 = 16;
const HALF: i32 = 1 << (BITS - 1);

/// 1.402, 1.772, 0.71414 and 0.34414.
const RED: i32 = 91_881;
const BLUE: i32 = 116_130;
const GREEN_RED: i32 = 46_802;
const GREEN_BLUE: i32 = 22_554;

/// Converts one pixel to RGB.
pub(super) fn rgb(luminance: u8, blue: u8, red: u8) -> [u8; 3] {
    let luminance = i32::from(luminance);
    let blue = i32::from(blue) - 128;
    let red = i32::from(red) - 128;
    let differences = [
        (RED * red + HALF) >> BITS,
        (HALF - GREEN_BLUE * blue - GREEN_RED * red) >> BITS,
        (BLUE * blue + HALF) >> BITS,
    ];
    differences.map(|difference| (luminance + difference).clamp(0, 255) as u8)
}

#[cfg(test)]
mod tests {
    use super::rgb;

    #[test]
    fn every_colour_is_that_of_the_formula_within_one_level() {
        for code in 0..1 << 12 {
            let [y, cb, cr] = [8, 4, 0].map(|shift| (code >> shift & 15_u16) as u8 * 17);
            let (luminance, blue, red) = (f64::from(y), f64::from(cb) - 128.0, f64::from(cr) - 128.0);
            let exact =
                [luminance + 1.402 * red, luminance - 0.344_136 * blue - 0.714_136 * red, luminance + 1.772 * blue];
            for (found, exact) in rgb(y, cb, cr).into_iter().zip(exact) {
                assert!((f64::from(found) - exact.clamp(0.0, 255.0)).abs() < 0.51, "{y} {cb} {cr}");
            }
        }
        assert_eq!(rgb(77, 128, 128), [77; 3]);
    }
}
