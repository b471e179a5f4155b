use super::simulated::on_device;
use super::support::{close, rows, values, wide};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::norm::DeviceNorm;
use crate::backend::cuda::ops::rotary::{DeviceRotation, rotate, rotate_backward, rotate_backward_rounded};
use crate::backend::host::HostParams;
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{AttentionShape, Backend, Held, Norm, Rotation};

const POSITIONS: [u32; 5] = [0, 1, 9, 3, 9];

fn shape(heads: usize, kv_heads: usize, head_dim: usize) -> AttentionShape {
    AttentionShape { layers: 1, heads, kv_heads, head_dim, scale: 1.0 }
}

const EPS: [f32; 2] = [1e-5, 1e-3];

/// Rotates forward and backward, on the device and on the reference.
fn compare(device: &CudaDevice, shape: &AttentionShape, normed: bool, count: usize) {
    let (positions, head_dim, width) = (&POSITIONS[..count], shape.head_dim, shape.qkv_width());
    let [qkv, d] = [21, 22].map(|seed| values(count * width, seed));
    let angles: Vec<(f32, f32)> = (0..10 * head_dim / 2).map(|i| ((i as f32).cos(), (i as f32).sin())).collect();
    let weights = [23, 24].map(|seed| values(head_dim, seed));
    let olds = [25, 26].map(|seed| values(head_dim, seed));

    let pairs: Vec<f32> = angles.iter().flat_map(|(cos, sin)| [*cos, *sin]).collect();
    let rope = rows::<f32>(device, &pairs, head_dim);
    let [wq, wk] = weights.each_ref().map(|w| device.upload(w).unwrap());
    let [mut dq, mut dk] = olds.each_ref().map(|w| device.upload(w).unwrap());
    let norms = [DeviceNorm { weight: &wq, eps: EPS[0] }, DeviceNorm { weight: &wk, eps: EPS[1] }];
    let rotation = DeviceRotation { shape, norms: normed.then_some(norms), rope: &rope, positions };
    let (mut found, mut d_found) = (rows::<f32>(device, &qkv, width), rows::<f32>(device, &d, width));
    let mut in_place = found.copy().unwrap();
    let before = rotate(device, &rotation, &mut found, true).unwrap();
    assert!(rotate(device, &rotation, &mut in_place, false).unwrap().is_none());
    assert_eq!(found.to_host().unwrap(), in_place.to_host().unwrap());
    let narrow = before.as_ref().map(|of| rotate_backward_rounded(device, &rotation, of, &d_found).unwrap());
    let dw = normed.then_some([&mut dq, &mut dk]);
    rotate_backward(device, &rotation, before.as_ref(), &mut d_found, dw).unwrap();

    let rope = Reference.rope(head_dim / 2, angles);
    let norms = [Norm { weight: &weights[0], eps: EPS[0] }, Norm { weight: &weights[1], eps: EPS[1] }];
    let rotation = Rotation { shape, norms: normed.then_some(norms), rope: &rope, positions };
    let mut expected = Matrix::new(qkv, width);
    let before = Reference.rotate(&rotation, &mut expected, true);
    let mut dw = HostParams::new(olds.to_vec());
    let d: Held<'_, Matrix> =
        Reference.rotate_backward(&rotation, before.as_ref(), Matrix::new(d, width), Some((&mut dw, [0, 1])), &[]);

    close("rotated", &found.to_host().unwrap(), expected.data(), 2e-6);
    close("gradient", &d_found.to_host().unwrap(), d.data(), 4e-6);
    if let Some(narrow) = narrow {
        close("rounded gradient", &wide(&narrow.to_host().unwrap()), d.data(), 4e-3);
    }
    close("q's norm", &dq.to_host().unwrap(), &dw[0], 4e-6);
    close("k's norm", &dk.to_host().unwrap(), &dw[1], 4e-6);
}

#[test]
fn heads_are_normalised_and_rotated() {
    on_device(|device| {
        for shape in [shape(1, 1, 2), shape(3, 1, 6), shape(4, 2, 64), shape(6, 1, 80)] {
            for normed in [false, true] {
                compare(device, &shape, normed, 5);
            }
        }
        compare(device, &shape(2, 2, 64), true, 1);
        compare(device, &shape(2, 2, 64), true, 0);
    });
}

#[test]
fn positions_and_widths_are_checked() {
    on_device(|device| {
        let shape = shape(1, 1, 4);
        let rope = rows::<f32>(device, &[0.0; 8], 4);
        let weight = device.zeros(4).unwrap();
        let norm = DeviceNorm { weight: &weight, eps: 0.0 };
        let mut qkv = rows::<f32>(device, &[0.0; 12], 12);
        let good = DeviceRotation { shape: &shape, norms: None, rope: &rope, positions: &[1] };
        rotate(device, &good, &mut qkv, true).unwrap();
        assert!(rotate(device, &DeviceRotation { positions: &[2], ..good }, &mut qkv, true).is_err());
        assert!(rotate(device, &DeviceRotation { positions: &[0, 1], ..good }, &mut qkv, true).is_err());
        let normed = DeviceRotation { norms: Some([norm; 2]), ..good };
        assert!(rotate_backward(device, &normed, None, &mut qkv, None).is_err(), "what was rotated is missing");
        assert!(rotate_backward_rounded(device, &good, &qkv, &qkv).is_err(), "the norms are missing");
    });
}
