use candle_core::Tensor;

use super::support::{assert_close, constant, cpus, elements, gradients, values, var};
use crate::cpu::rope::Rope;
use crate::rope::rope_table;
use crate::rope::{RopeConfig, RopeScaling};

const HEAD_DIM: usize = 16;
const HALF: usize = HEAD_DIM / 2;
const THETA: f64 = 10_000.0;
const POSITIONS: [u32; 7] = [0, 1, 2, 31, 99, 1, 64];
const HEADS: usize = 3;
const OFFSET: usize = 8;
const STRIDE: usize = OFFSET + HEADS * HEAD_DIM + 4;

/// Wavelengths of base 10000 over 8 pairs are 6, 20, 63, 199, 628, ...: with an original context of 512, the
/// Llama 3 rule keeps the first three, mixes the fourth and divides the rest.
fn scalings() -> [RopeScaling; 3] {
    [
        RopeScaling::None,
        RopeScaling::Linear { factor: 4.0 },
        RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_position_embeddings: 512,
        },
    ]
}

fn frequencies(scaling: &RopeScaling) -> [f64; HALF] {
    let plain: [f64; HALF] = std::array::from_fn(|i| 1.0 / THETA.powf(2.0 * i as f64 / HEAD_DIM as f64));
    match scaling {
        RopeScaling::None => plain,
        RopeScaling::Linear { .. } => plain.map(|f| f / 4.0),
        RopeScaling::Llama3 { .. } => std::array::from_fn(|i| {
            let cycles = 512.0 * plain[i] / std::f64::consts::TAU;
            match i {
                0..3 => plain[i],
                3 => plain[i] * (1.0 / 8.0 + (cycles - 1.0) / 3.0 * (1.0 - 1.0 / 8.0)),
                _ => plain[i] / 8.0,
            }
        }),
        RopeScaling::Yarn { .. } | RopeScaling::Long { .. } => unreachable!("golden numbers have them"),
    }
}

fn rope(scaling: &RopeScaling) -> Rope {
    Rope::new(HALF, rope_table(&RopeConfig { theta: THETA, scaling: scaling.clone() }, HEAD_DIM, 100))
}

/// The rotation of `x[rows, STRIDE]` as a differentiable function; what lies around the heads stays.
fn reference(scaling: &RopeScaling, x: &Tensor) -> Tensor {
    let rows = POSITIONS.len();
    let table = |f: fn(f64) -> f64| {
        let frequencies = frequencies(scaling);
        let angle = |p: u32| frequencies.map(|w| f(f64::from(p) * w));
        let table: Vec<f64> = POSITIONS.into_iter().flat_map(angle).collect();
        Tensor::from_vec(table, (rows, 1, HALF), x.device()).unwrap()
    };
    let (cos, sin) = (table(f64::cos), table(f64::sin));
    let heads = x.narrow(1, OFFSET, HEADS * HEAD_DIM).unwrap().reshape((rows, HEADS, HEAD_DIM)).unwrap();
    let (low, high) = (heads.narrow(2, 0, HALF).unwrap(), heads.narrow(2, HALF, HALF).unwrap());
    let rotated_low = (low.broadcast_mul(&cos).unwrap() - high.broadcast_mul(&sin).unwrap()).unwrap();
    let rotated_high = (high.broadcast_mul(&cos).unwrap() + low.broadcast_mul(&sin).unwrap()).unwrap();
    let rotated = Tensor::cat(&[&rotated_low, &rotated_high], 2).unwrap().reshape((rows, HEADS * HEAD_DIM)).unwrap();
    let after = x.narrow(1, OFFSET + HEADS * HEAD_DIM, STRIDE - OFFSET - HEADS * HEAD_DIM).unwrap();
    Tensor::cat(&[&x.narrow(1, 0, OFFSET).unwrap(), &rotated, &after], 1).unwrap()
}

#[test]
fn rotation_and_its_gradient() {
    let shape = [POSITIONS.len(), STRIDE];
    let (x, dy) = (values(POSITIONS.len() * STRIDE, 1), values(POSITIONS.len() * STRIDE, 2));
    for scaling in scalings() {
        let vx = var(&x, &shape);
        let y = reference(&scaling, &vx);
        let grads = gradients(&y, &constant(&dy, &shape), &[&vx]);
        for cpu in cpus() {
            let (mut out, mut dx) = (x.clone(), dy.clone());
            rope(&scaling).apply(&cpu, &mut out, STRIDE, OFFSET, HEADS, HEAD_DIM, &POSITIONS, false);
            // Angles are rounded to f32, as PyTorch rounds them: about 1e-5 at position 99.
            assert_close("y", &out, &elements(&y), 2e-5);
            rope(&scaling).apply(&cpu, &mut dx, STRIDE, OFFSET, HEADS, HEAD_DIM, &POSITIONS, true);
            assert_close("dx", &dx, &grads[0], 2e-5);
        }
    }
}

#[test]
fn the_inverse_undoes_the_rotation() {
    let x = values(POSITIONS.len() * STRIDE, 3);
    for scaling in scalings() {
        for cpu in cpus() {
            let mut out = x.clone();
            rope(&scaling).apply(&cpu, &mut out, STRIDE, OFFSET, HEADS, HEAD_DIM, &POSITIONS, false);
            assert_eq!(out[..STRIDE], x[..STRIDE], "position 0 is not rotated");
            assert_ne!(out[STRIDE..2 * STRIDE], x[STRIDE..2 * STRIDE]);
            rope(&scaling).apply(&cpu, &mut out, STRIDE, OFFSET, HEADS, HEAD_DIM, &POSITIONS, true);
            assert_close("x", &out, &x.iter().map(|x| f64::from(*x)).collect::<Vec<_>>(), 1e-6);
        }
    }
}
