use candle_core::Tensor;

use super::support::{assert_close, constant, cpus, elements, gradients, values, var};
use crate::Activation;
use crate::cpu::elementwise::{activate, activate_backward, add, add_bias, add_column_sums, scale};
use crate::cpu::parallel::{for_each, for_rows};

/// An activation of candle's, or of its operations: candle's own gradient of GELU has six digits.
fn reference(activation: Activation, x: &Tensor) -> Tensor {
    match activation {
        Activation::Silu => x.silu().unwrap(),
        Activation::GeluTanh => {
            let cubic = (x.sqr().unwrap() * x).unwrap();
            let inner = ((cubic * 0.044715).unwrap() + x).unwrap();
            let tanh = (inner * (2.0 / std::f64::consts::PI).sqrt()).unwrap().tanh().unwrap();
            let y = ((tanh + 1.0).unwrap() * x).unwrap();
            let y = (y * 0.5).unwrap();
            let difference = (&y - x.gelu().unwrap()).unwrap();
            assert!(elements(&difference).iter().all(|x| x.abs() < 1e-9));
            y
        }
        Activation::SquaredRelu => x.relu().unwrap().sqr().unwrap(),
        Activation::ClampedSwish => unreachable!("up is clamped too: compared with the reference backend"),
    }
}

#[test]
fn swiglu_and_its_gradient() {
    check_activation(Activation::Silu);
}

#[test]
fn geglu_and_its_gradient() {
    check_activation(Activation::GeluTanh);
}

#[test]
fn squared_relu_and_its_gradient() {
    check_activation(Activation::SquaredRelu);
}

fn check_activation(activation: Activation) {
    for (rows, width) in [(1, 1), (7, 5), (3, 32), (2, 67)] {
        let columns = if activation.is_gated() { 2 * width } else { width };
        let mut x: Vec<f32> = values(rows * columns, 1).iter().map(|x| x * 4.0).collect();
        if width > 2 {
            // Saturated gates: the sigmoid is 0 or 1 in f32, the tanh -1 or 1.
            (x[0], x[1], x[2]) = (-120.0, 120.0, 0.0);
        }
        let dy = values(rows * width, 2);
        let vx = var(&x, &[rows, columns]);
        let y = reference(activation, &vx.narrow(1, 0, width).unwrap());
        let y = match activation.is_gated() {
            true => (y * vx.narrow(1, width, width).unwrap()).unwrap(),
            false => y,
        };
        let grads = gradients(&y, &constant(&dy, &[rows, width]), &[&vx]);
        for cpu in cpus() {
            let (out, mut dx) = (activate(&cpu, activation, &x, width), x.clone());
            assert_close("y", &out.to_rows(), &elements(&y), 1e-6);
            let mut gradient = dy.clone();
            activate_backward(&cpu, activation, &mut gradient, width, &mut dx);
            assert_close("dx", &dx, &grads[0], 1e-6);
            assert_close("y recomputed", &gradient, &elements(&y), 1e-6);
        }
    }
}

#[test]
fn bias_and_its_gradient() {
    // More columns than one task sums.
    let (rows, width, stride, offset) = (9, 300, 310, 6);
    let (x, b, dy) = (values(rows * width, 1), values(width, 2), values(rows * stride, 3));
    let vb = var(&b, &[width]);
    let y = constant(&x, &[rows, width]).broadcast_add(&vb).unwrap();
    let part: Tensor = constant(&dy, &[rows, stride]).narrow(1, offset, width).unwrap();
    let grads = gradients(&y, &part, &[&vb]);
    for cpu in cpus() {
        let mut out = x.clone();
        add_bias(&cpu, &mut out, &b);
        assert_close("y", &out, &elements(&y), 1e-6);
        let before = values(width, 4);
        let mut db = before.clone();
        add_column_sums(&cpu, &dy, stride, offset, &mut db);
        let expected: Vec<f64> = grads[0].iter().zip(&before).map(|(g, b)| g + f64::from(*b)).collect();
        assert_close("db", &db, &expected, 1e-6);
    }
}

#[test]
fn sums_and_multiples_are_exact() {
    // More elements than one task adds.
    let n = 40_000;
    let (a, b) = (values(n, 1), values(n, 2));
    for cpu in cpus() {
        let mut sum = a.clone();
        add(&cpu, &mut sum, &b);
        scale(&mut sum, 0.5);
        assert!(sum.iter().zip(a.iter().zip(&b)).all(|(s, (a, b))| *s == (a + b) * 0.5));
    }
}

#[test]
fn every_row_and_item_is_visited_once() {
    for cpu in cpus() {
        for rows in [0, 1, 13] {
            let mut x = vec![0.0; rows * 3];
            for_rows(&cpu, &mut x, 3, |i, row| row.iter_mut().for_each(|x| *x += i as f32 + 1.0));
            assert!(x.chunks_exact(3).enumerate().all(|(i, row)| row == [i as f32 + 1.0; 3]));
            let mut items = vec![0; rows];
            for_each(&cpu, &mut items, |i, item| *item += i + 1);
            assert!(items.iter().enumerate().all(|(i, item)| *item == i + 1));
        }
    }
}
