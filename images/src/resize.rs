//! Bicubic resizing with antialiasing, with the bits of torchvision on 8-bit images.
//!
//! Torchvision (and PyTorch's `interpolate`) resizes rows first and then columns, and rounds to 8 bits after each pass.
//! Weights are computed in double precision and rounded to 16-bit integers, with as many fractional bits as the largest
//! weight of the pass allows. PIL does the same with 22 fractional bits: its results differ by one level in some pixels.

use crate::Size;

/// Channels of a pixel.
const CHANNELS: usize = 3;
/// Maximum number of fractional bits of a weight.
const MOST_PRECISION: u32 = 22;

/// Resizes an RGB image of 8 bits per channel, `pixels` by rows. A side that keeps its length is copied.
pub(crate) fn resize(pixels: &[u8], from: Size, to: Size) -> Vec<u8> {
    let rows = if from.width == to.width {
        pixels.to_vec()
    } else {
        horizontal(pixels, from.width as usize, &Kernel::new(from.width as usize, to.width as usize))
    };
    if from.height == to.height {
        return rows;
    }
    vertical(&rows, to.width as usize, &Kernel::new(from.height as usize, to.height as usize))
}

/// Weights of one pass.
struct Kernel {
    /// Each output's first input and its number of inputs.
    spans: Vec<Span>,
    /// Weights of all outputs, one span after the other.
    weights: Vec<i32>,
    precision: u32,
}

struct Span {
    start: usize,
    length: usize,
}

impl Kernel {
    fn new(input: usize, output: usize) -> Self {
        let scale = input as f64 / output as f64;
        let support = if scale >= 1.0 { 2.0 * scale } else { 2.0 };
        let inverse = if scale >= 1.0 { 1.0 / scale } else { 1.0 };
        let mut spans = Vec::with_capacity(output);
        let mut exact = Vec::new();
        for at in 0..output {
            let center = scale * (at as f64 + 0.5);
            // Casts of floats saturate, so a negative start is zero.
            let start = (center - support + 0.5) as usize;
            let end = ((center + support + 0.5) as usize).min(input);
            let first = exact.len();
            exact.extend((start..end).map(|at| cubic((at as f64 - center + 0.5) * inverse)));
            let total: f64 = exact[first..].iter().sum();
            if total != 0.0 {
                exact[first..].iter_mut().for_each(|weight| *weight /= total);
            }
            spans.push(Span { start, length: end - start });
        }
        let largest = exact.iter().copied().fold(0.0, f64::max);
        let too_large = |bits: u32| (0.5 + largest * f64::from(1_u32 << (bits + 1))) as i64 >= 1 << 15;
        let precision = (0..MOST_PRECISION).find(|&bits| too_large(bits)).unwrap_or(MOST_PRECISION);
        let unit = f64::from(1_u32 << precision);
        let rounded = |weight: f64| if weight < 0.0 { weight * unit - 0.5 } else { weight * unit + 0.5 } as i32;
        Self { spans, weights: exact.into_iter().map(rounded).collect(), precision }
    }

    /// Returns each output's span and weights.
    fn outputs(&self) -> impl Iterator<Item = (&Span, &[i32])> {
        let mut rest = &self.weights[..];
        self.spans.iter().map(move |span| {
            let (weights, after) = rest.split_at(span.length);
            rest = after;
            (span, weights)
        })
    }

    fn half(&self) -> i32 {
        1 << self.precision >> 1
    }

    fn round(&self, sum: i32) -> u8 {
        (sum >> self.precision).clamp(0, 255) as u8
    }
}

/// The cubic convolution kernel with a = −0.5.
fn cubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    let x = x.abs();
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A
    } else {
        0.0
    }
}

fn horizontal(pixels: &[u8], width: usize, kernel: &Kernel) -> Vec<u8> {
    let mut resized = Vec::with_capacity(pixels.len() / width * kernel.spans.len());
    for row in pixels.chunks_exact(width * CHANNELS) {
        for (span, weights) in kernel.outputs() {
            let mut sums = [kernel.half(); CHANNELS];
            for (pixel, &weight) in row[span.start * CHANNELS..].chunks_exact(CHANNELS).zip(weights) {
                for (sum, &value) in sums.iter_mut().zip(pixel) {
                    *sum += i32::from(value) * weight;
                }
            }
            resized.extend(sums.map(|sum| kernel.round(sum)));
        }
    }
    resized
}

fn vertical(rows: &[u8], width: usize, kernel: &Kernel) -> Vec<u8> {
    let stride = width * CHANNELS;
    let mut resized = Vec::with_capacity(stride * kernel.spans.len());
    let mut sums = vec![0; stride];
    for (span, weights) in kernel.outputs() {
        sums.fill(kernel.half());
        for (row, &weight) in rows[span.start * stride..].chunks_exact(stride).zip(weights) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += i32::from(value) * weight;
            }
        }
        resized.extend(sums.iter().map(|&sum| kernel.round(sum)));
    }
    resized
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn size() -> impl Strategy<Value = Size> {
        (1..70_u32, 1..70_u32).prop_map(|(width, height)| Size::new(width, height))
    }

    proptest! {
        #[test]
        fn an_image_of_one_colour_keeps_it(from in size(), to in size(), colour: [u8; 3]) {
            let one = |size: Size| colour.repeat(size.pixels() as usize);
            prop_assert_eq!(resize(&one(from), from, to), one(to));
        }

        #[test]
        fn mirrored_images_have_mirrored_results(from in size(), to in size(), seed: u32) {
            let pixels: Vec<u8> =
                (0..from.pixels() as u32).flat_map(|at| [(at ^ seed) as u8; 3].map(|v| v.wrapping_mul(97))).collect();
            let mirrored = |pixels: &[u8]| pixels.rchunks_exact(3).flatten().copied().collect::<Vec<_>>();
            let there = resize(&pixels, from, to);
            let back = mirrored(&resize(&mirrored(&pixels), from, to));
            // Weights of the two directions may round differently.
            prop_assert!(there.iter().zip(&back).all(|(&a, &b)| a.abs_diff(b) <= 2));
        }
    }

    #[test]
    fn the_same_size_is_a_copy() {
        let pixels: Vec<u8> = (0..60).collect();
        assert_eq!(resize(&pixels, Size::new(5, 4), Size::new(5, 4)), pixels);
    }

    #[test]
    fn weights_have_as_many_bits_as_fit_into_16() {
        for (input, output, precision) in [(8, 4, 16), (4, 8, 14), (7, 7, 14), (1000, 3, 22), (16_384, 2, 22)] {
            assert_eq!(Kernel::new(input, output).precision, precision, "{input} {output}");
        }
        assert!(Kernel::new(1000, 3).weights.iter().all(|weight| weight.abs() < 1 << 15));
    }
}
