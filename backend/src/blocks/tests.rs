//! Elements of blocks against those of candle's reading of the same bytes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use candle_core::Device;
use candle_core::quantized::GgmlDType;
use candle_core::quantized::ggml_file::qtensor_from_ggml;

use super::*;

/// Places of the scale, and of the minimum, in the bytes that a file stores together.
fn numbers_at(format: BlockFormat) -> &'static [usize] {
    match format {
        BlockFormat::Q6K => &[208],
        _ if format.has_minimum() => &[0, 2],
        _ => &[0],
    }
}

/// The same rows with another scale of the first block.
pub(crate) fn with_first_scale(mut rows: BlockRows, scale: f32) -> BlockRows {
    let at = numbers_at(rows.format)[0];
    rows.bytes[at..at + 2].copy_from_slice(&f16::from_f32(scale).to_le_bytes());
    rows
}

/// Rows of any blocks with finite scales.
pub(crate) fn rows(format: BlockFormat, rows: usize, columns: usize, seed: u32) -> BlockRows {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let numbers = numbers_at(format);
    let mut bytes = Vec::new();
    for _ in 0..rows * columns / format.elements() {
        let start = bytes.len();
        bytes.extend((0..format.bytes()).map(|_| next()));
        for at in numbers {
            let number = f16::from_f32((f32::from(next()) - 127.0) / 4096.0 + f32::from(next()) / 65536.0);
            bytes[start + at..start + at + 2].copy_from_slice(&number.to_le_bytes());
        }
    }
    BlockRows::new(format, columns, bytes).unwrap()
}

#[test]
fn elements_are_those_of_the_reference() {
    use GgmlDType::{Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};
    for (format, dtype) in BlockFormat::ALL.into_iter().zip([Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4K, Q5K, Q6K]) {
        assert_eq!((format.bytes(), format.elements()), (dtype.type_size(), dtype.block_size()));
        let columns = 3 * format.elements();
        for seed in 0..20 {
            let own = rows(format, 3, columns, seed);
            assert_eq!((own.rows(), own.columns(), own.bytes()), (3, columns, 9 * format.bytes()));
            let tensor = qtensor_from_ggml(dtype, &own.bytes, vec![3 * columns], &Device::Cpu).unwrap();
            let expected: Vec<f32> = tensor.dequantize(&Device::Cpu).unwrap().to_vec1().unwrap();
            let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&own.values(0..3)), bits(&expected), "{format:?}");
            assert_eq!(bits(&own.values(1..2)), bits(&expected[columns..2 * columns]), "{format:?}");
        }
    }
}

/// Bytes that are written in hexadecimal.
fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn floats(hex: &str) -> Vec<f32> {
    bytes(hex).as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

#[test]
fn elements_are_those_of_the_python_package() {
    let mut seen = Vec::new();
    for line in include_str!("dequantized.txt").lines().filter(|line| !line.starts_with('#')) {
        let [name, block, values] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let format = BlockFormat::ALL.into_iter().find(|format| format.name().to_lowercase() == name).unwrap();
        let rows = BlockRows::new(format, format.elements(), bytes(block)).unwrap();
        assert_eq!(rows.values(0..1), floats(values), "{name}");
        seen.push(name);
    }
    assert_eq!(seen.len(), BlockFormat::ALL.len());
}

#[test]
fn quantizers_give_the_blocks_of_the_python_package() {
    let (mut values, mut checked) = (Vec::new(), 0);
    for line in include_str!("quantized.txt").lines().filter(|line| !line.starts_with('#')) {
        let (name, hex) = line.split_once(' ').unwrap();
        let quantizer = match name {
            "values" => {
                values = floats(hex);
                continue;
            }
            "q4_0" => Quantizer::Q4_0,
            "q8_0" => Quantizer::Q8_0,
            _ => panic!("{name}"),
        };
        let packed = quantizer.pack(&values, values.len()).unwrap().unwrap();
        assert_eq!(packed.bytes, bytes(hex), "{name} of {values:?}");
        checked += 1;
    }
    assert_eq!(checked, 16);
}

#[test]
fn elements_that_no_scale_reaches_are_refused() {
    for quantizer in [Quantizer::Q4_0, Quantizer::Q8_0] {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -quantizer.limit() * 1.01] {
            let mut values = [0.5; 64];
            values[40] = value;
            assert_eq!(quantizer.pack(&values, 64).unwrap_err().to_bits(), value.to_bits());
        }
        // The least scales are zero, and so are their elements.
        let most = quantizer.pack(&[quantizer.limit(); 32], 32).unwrap().unwrap();
        assert!(most.values(0..1).iter().all(|x| *x == quantizer.limit()));
        let least = quantizer.pack(&[f32::from_bits(1); 32], 32).unwrap().unwrap();
        assert!(least.values(0..1).iter().all(|x| *x == 0.0));
    }
}

#[test]
fn padding_is_positive_zero() {
    for format in BlockFormat::ALL {
        let mut out = [1.0; BLOCK];
        format.dequantize(&format.zeros(), &mut out);
        assert!(out.iter().all(|x| x.to_bits() == 0), "{format:?}");
    }
}

#[test]
fn rows_must_be_whole_blocks() {
    assert_eq!(BlockRows::new(BlockFormat::Q8_0, 48, vec![0; 34]), None);
    assert_eq!(BlockRows::new(BlockFormat::Q8_0, 0, Vec::new()), None);
    assert_eq!(BlockRows::new(BlockFormat::Q8_0, 64, vec![0; 34]), None);
    assert!(BlockRows::new(BlockFormat::Q8_0, 64, vec![0; 68]).is_some());
    assert_eq!(BlockRows::new(BlockFormat::Q6K, 128, vec![0; 210]), None);
    assert_eq!(BlockRows::new(BlockFormat::Q4K, 512, vec![0; 144]), None);
    assert!(BlockRows::new(BlockFormat::Q5K, 256, vec![0; 352]).is_some());
}
