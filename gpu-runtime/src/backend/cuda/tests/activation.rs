use half::bf16;

use super::simulated::on_device;
use super::support::{close, rounded, rows, values};
use crate::backend::cuda::ops::activation::{activate, activate_backward, activate_backward_rounded};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{Activation, Backend, Held};

const KINDS: [Activation; 3] = [Activation::Silu, Activation::GeluTanh, Activation::ClampedSwish];

/// Values of gate and up, wide enough that some are clamped.
fn gate_up(count: usize, width: usize) -> Vec<f32> {
    values(count * 2 * width, 11).iter().map(|x| x * 12.0).collect()
}

#[test]
fn gates_are_activated() {
    on_device(|device| {
        for (count, width) in [(1, 1), (3, 45), (2, 260)] {
            let values = gate_up(count, width);
            for kind in KINDS {
                let found = activate::<f32>(device, kind, &rows(device, &values, 2 * width)).unwrap();
                let found = found.to_host().unwrap();
                let expected = Reference.activate(kind, &Matrix::new(values.clone(), 2 * width));
                close("activation", &found, expected.data(), 1e-6);
                let left = activate::<bf16>(device, kind, &rows(device, &values, 2 * width)).unwrap();
                assert_eq!(left.to_host().unwrap(), rounded::<bf16>(&found));
            }
        }
        assert!(activate::<f32>(device, KINDS[0], &DeviceRows::zeros(device, 2, 3).unwrap()).is_err());
    });
}

#[test]
fn gradients_are_those_of_the_formula() {
    on_device(|device| {
        for (count, width) in [(1, 1), (3, 45), (2, 260)] {
            let (values, d) = (gate_up(count, width), values(count * width, 12));
            for kind in KINDS {
                let (mut gate_up, mut out) = (rows(device, &values, 2 * width), rows(device, &d, width));
                let narrow = activate_backward_rounded(device, kind, &gate_up, &out).unwrap();
                activate_backward(device, kind, &mut gate_up, &mut out).unwrap();
                for (narrow, wide) in narrow.iter().zip([&gate_up, &out]) {
                    assert_eq!(narrow.to_host().unwrap(), rounded::<bf16>(&wide.to_host().unwrap()));
                }
                let matrix = |values: &[f32], width| Matrix::new(values.to_vec(), width);
                let (gradient, output): (Held<'_, Matrix>, Held<'_, Matrix>) =
                    Reference.activate_backward(kind, matrix(&values, 2 * width), matrix(&d, width), &[], false);
                close("gate and up", &gate_up.to_host().unwrap(), gradient.data(), 1e-6);
                close("output", &out.to_host().unwrap(), output.data(), 1e-6);
            }
        }
    });
}
