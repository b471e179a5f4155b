use super::simulated::on_device;
use super::support::{close, rows, values};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::latent::{
    DeviceLatentRotation, add_rows, columns, head_values, join_columns, join_heads, pad_values, split_heads,
};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{Backend, LatentHeads, LatentOps, LatentRotation};

/// Columns of the latent before the keys' common part.
const LATENT: usize = 5;

/// Positions of the rotary table.
const POSITIONS: usize = 40;

fn table(half: usize) -> Vec<(f32, f32)> {
    let angle = |i: usize| ((i / half) as f32 * 0.7_f32.powi((i % half) as i32)).sin_cos();
    (0..POSITIONS * half).map(angle).map(|(sin, cos)| (cos, sin)).collect()
}

/// All ops, on the device and on the reference.
fn compare(device: &CudaDevice, h: LatentHeads, count: usize) {
    let widths =
        [h.queries(), h.keys_and_values(), LATENT + h.rope, 3 * h.heads * h.width, h.heads * h.width, h.values()];
    let inputs: Vec<Vec<f32>> = (0u64..).zip(widths).map(|(seed, width)| values(count * width, seed)).collect();
    let on: Vec<DeviceRows> = inputs.iter().zip(widths).map(|(x, width)| rows(device, x, width)).collect();
    let matrices: Vec<Matrix> = inputs.into_iter().zip(widths).map(|(x, width)| Matrix::new(x, width)).collect();
    let positions: Vec<u32> = (0..count).map(|row| (row * 13 % POSITIONS) as u32).collect();
    let table = table(h.rope / 2);
    let pairs: Vec<f32> = table.iter().flat_map(|(cos, sin)| [*cos, *sin]).collect();
    let (on_rope, rope) = (rows(device, &pairs, h.rope), Reference.rope(h.rope / 2, table));

    let rotation = DeviceLatentRotation { heads: h, rope: &on_rope, positions: &positions };
    let joined = join_heads(device, &rotation, &on[0], &on[1], &on[2]).unwrap();
    let split = split_heads(device, &rotation, &on[3]).unwrap();
    let latent = columns(device, &on[2], 0..LATENT).unwrap();
    let mut sum = columns(device, &on[2], LATENT..LATENT + h.rope).unwrap();
    assert_eq!(join_columns(device, &latent, &sum).unwrap().to_host().unwrap(), matrices[2].data());
    add_rows(device, &split[2], &mut sum).unwrap();
    let found = [head_values(device, h, &on[4]).unwrap(), pad_values(device, h, &on[5]).unwrap()];

    let rotation = LatentRotation { heads: h, rope: &rope, positions: &positions };
    let b = &Reference;
    let expected = Reference::join_heads(b, &rotation, &matrices[0], &matrices[1], &matrices[2]);
    close("q, k and v", &joined.to_host().unwrap(), expected.data(), 2e-7);
    let expected = Reference::split_heads(b, &rotation, &matrices[3]);
    for (found, expected) in split.iter().zip(&expected) {
        close("gradient", &found.to_host().unwrap(), expected.data(), 1e-6);
    }
    let expected = [Reference::head_values(b, h, &matrices[4]), Reference::pad_values(b, h, &matrices[5])];
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.to_host().unwrap(), expected.data());
    }
    let mut expected = Reference::columns(b, &matrices[2], LATENT..LATENT + h.rope);
    Reference::add_rows(b, &Matrix::new(split[2].to_host().unwrap(), h.rope), &mut expected);
    assert_eq!(sum.to_host().unwrap(), expected.data());
}

#[test]
fn heads_are_joined_and_split() {
    on_device(|device| {
        for interleaved in [false, true] {
            let heads = |heads, nope, rope, value, width| LatentHeads { heads, nope, rope, value, width, interleaved };
            compare(device, heads(1, 1, 2, 1, 3), 1);
            compare(device, heads(3, 7, 6, 9, 14), 5);
            compare(device, heads(2, 33, 10, 70, 70), 4);
        }
    });
}

#[test]
fn extents_have_to_fit() {
    on_device(|device| {
        let h = LatentHeads { heads: 2, nope: 3, rope: 4, value: 5, width: 8, interleaved: true };
        let zeros = |width| DeviceRows::<f32>::zeros(device, 2, width).unwrap();
        let rope = zeros(4);
        let good = DeviceLatentRotation { heads: h, rope: &rope, positions: &[0, 1] };
        let join =
            |rotation: &DeviceLatentRotation<'_>| join_heads(device, rotation, &zeros(14), &zeros(16), &zeros(9));
        join(&good).unwrap();
        assert!(join(&DeviceLatentRotation { positions: &[0, 2], ..good }).is_err());
        assert!(join(&DeviceLatentRotation { positions: &[0], ..good }).is_err());
        assert!(join(&DeviceLatentRotation { heads: LatentHeads { width: 6, ..h }, ..good }).is_err());
        assert!(join(&DeviceLatentRotation { rope: &zeros(6), ..good }).is_err());
        assert!(join_heads(device, &good, &zeros(14), &zeros(16), &zeros(3)).is_err());
        assert!(split_heads(device, &good, &zeros(47)).is_err());
        assert!(columns(device, &rope, 2..5).is_err());
        assert!(join_columns(device, &rope, &DeviceRows::zeros(device, 3, 1).unwrap()).is_err());
        assert!(head_values(device, h, &zeros(15)).is_err() && pad_values(device, h, &zeros(11)).is_err());
        assert!(add_rows(device, &zeros(3), &mut zeros(4)).is_err());
    });
}
