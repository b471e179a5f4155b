use std::ops::Range;
use std::slice::from_ref;

use half::bf16;

use super::simulated::on_device;
use super::support::{Rounded, close, rounded, rows, values, wide};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::image_attention::{attend_images, tensor_attend_images};
use crate::backend::cuda::ops::vision::{DeviceLayerNorm, add_rows, gelu, layer_norm, mix_rows};
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{AttentionShape, Gelu, IndexKeys, LayerNorm, RowMix, VisionOps};

const EPS: f32 = 1e-6;

fn normalised<T: Rounded>(device: &CudaDevice, count: usize, width: usize, tolerance: f32) {
    // Far from zero, so that a variance that was computed from squares would be off.
    let x: Vec<f32> = values(count * width, 1).iter().map(|x| x + 30.0).collect();
    let (weight, bias) = (values(width, 2), values(width, 3));
    let [w, b] = [&weight, &bias].map(|values| device.upload(values).unwrap());
    let norm = DeviceLayerNorm { weight: &w, bias: &b, eps: EPS };
    let y = layer_norm::<T>(device, norm, &rows::<f32>(device, &x, width)).unwrap().to_host().unwrap();
    let norm = LayerNorm { weight: &weight, bias: &bias, eps: EPS };
    let expected = Reference::layer_norm(&Reference, norm, &Matrix::new(x, width));
    close("layer norm", &wide(&y), expected.data(), tolerance);
}

#[test]
fn rows_are_normalised_around_their_means() {
    on_device(|device| {
        for (count, width) in [(1, 1), (3, 33), (2, 260), (2, 700), (0, 8)] {
            normalised::<f32>(device, count, width, 3e-5);
            normalised::<bf16>(device, count, width, 5e-3);
        }
    });
}

fn activated<T: Rounded>(device: &CudaDevice, kind: Gelu, width: usize, tolerance: f32) {
    let x: Vec<f32> = values(3 * width, 4).iter().map(|x| 7.0 * x).collect();
    let y = gelu::<T>(device, kind, &rows::<f32>(device, &x, width)).unwrap().to_host().unwrap();
    let expected = Reference::gelu(&Reference, kind, &Matrix::new(x, width));
    close("gelu", &wide(&y), expected.data(), tolerance);
}

#[test]
fn elements_are_activated() {
    on_device(|device| {
        for kind in [Gelu::Tanh, Gelu::Erf] {
            for width in [1, 33, 300] {
                activated::<f32>(device, kind, width, 1e-6);
                activated::<bf16>(device, kind, width, 4e-3);
            }
        }
    });
}

#[test]
fn rows_are_mixed_and_added() {
    on_device(|device| {
        for (count, width) in [(5, 3), (7, 33), (2, 300)] {
            let table = values(count * width, 5);
            let mix = RowMix {
                per_row: 3,
                rows: (0..3 * count).map(|i| i * 7 % count).collect(),
                weights: values(3 * count, 6),
            };
            let found = mix_rows(device, &rows::<f32>(device, &table, width), &mix).unwrap();
            let expected = Reference::mix_rows(&Reference, &Matrix::new(table.clone(), width), &mix);
            close("mix", &found.to_host().unwrap(), expected.data(), 1e-6);

            let order: Vec<usize> = (0..count).rev().collect();
            let (mut onto, base) =
                (rows::<f32>(device, &values((count + 1) * width, 7), width), values((count + 1) * width, 7));
            add_rows(device, &rows::<f32>(device, &table, width), &order, &mut onto).unwrap();
            let mut expected = Matrix::new(base, width);
            Reference::add_rows(&Reference, &Matrix::new(table, width), &order, &mut expected);
            assert_eq!(onto.to_host().unwrap(), expected.data());
        }
    });
}

fn shape(heads: usize, head_dim: usize) -> AttentionShape {
    let scale = 1.0 / (head_dim as f32).sqrt();
    AttentionShape { layers: 1, heads, kv_heads: heads, head_dim, scale, index: IndexKeys::NONE }
}

fn spans(images: &[usize]) -> Vec<Range<usize>> {
    let mut end = 0;
    let span = |rows: &usize| {
        end += rows;
        end - rows..end
    };
    images.iter().map(span).collect()
}

type Attend = fn(
    &CudaDevice,
    &AttentionShape,
    &[Range<usize>],
    &crate::backend::cuda::ops::rows::DeviceRows,
) -> crate::backend::cuda::device::error::Result<crate::backend::cuda::ops::rows::DeviceRows>;

/// Attention is the reference's, and each image has the bits that it has alone.
fn attended<T: Rounded>(device: &CudaDevice, attend: Attend, shape: &AttentionShape, images: &[usize], tolerance: f32) {
    let (width, spans) = (shape.qkv_width(), spans(images));
    let qkv: Vec<f32> = wide(&rounded::<T>(&values(images.iter().sum::<usize>() * width, 8)));
    let found = attend(device, shape, &spans, &rows::<f32>(device, &qkv, width)).unwrap().to_host().unwrap();
    let expected = Reference::attend_all(&Reference, shape.heads, &spans, &Matrix::new(qkv.clone(), width));
    close("attention", &found, expected.data(), tolerance);
    for span in spans {
        let own = rows::<f32>(device, &qkv[span.start * width..span.end * width], width);
        let alone = attend(device, shape, from_ref(&(0..span.len())), &own).unwrap().to_host().unwrap();
        let among = &found[span.start * shape.q_width()..span.end * shape.q_width()];
        assert_eq!(
            alone.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
            among.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        );
    }
}

#[test]
fn rows_attend_to_all_rows_of_their_image() {
    on_device(|device| {
        for (heads, head_dim, images) in [(1, 1, &[1, 3][..]), (2, 12, &[40, 1, 33]), (1, 130, &[5])] {
            attended::<f32>(device, attend_images, &shape(heads, head_dim), images, 2e-6);
        }
    });
}

#[test]
fn rows_attend_to_all_rows_of_their_image_on_tensor_cores() {
    on_device(|device| {
        for (heads, head_dim, images) in
            [(2, 16, &[70, 1, 140][..]), (1, 72, &[33, 64]), (1, 64, &[129]), (1, 128, &[20])]
        {
            attended::<bf16>(device, tensor_attend_images, &shape(heads, head_dim), images, 1e-2);
        }
    });
}

#[test]
fn extents_are_checked() {
    on_device(|device| {
        let of = |count: usize, width: usize| rows::<f32>(device, &vec![0.0; count * width], width);
        let (five, six) = (device.zeros::<f32>(5).unwrap(), device.zeros::<f32>(6).unwrap());
        for (weight, bias) in [(&five, &six), (&six, &five)] {
            assert!(layer_norm::<f32>(device, DeviceLayerNorm { weight, bias, eps: EPS }, &of(2, 6)).is_err());
        }
        let mix =
            |rows: &[usize], weights: usize| RowMix { per_row: 2, rows: rows.to_vec(), weights: vec![0.0; weights] };
        for wrong in [mix(&[0, 1], 1), mix(&[0, 1, 1], 3), mix(&[0, 2], 2)] {
            assert!(mix_rows(device, &of(2, 3), &wrong).is_err());
        }
        assert!(add_rows(device, &of(2, 3), &[0], &mut of(2, 3)).is_err());
        assert!(add_rows(device, &of(1, 3), &[2], &mut of(2, 3)).is_err());
        let of_heads = shape(2, 8);
        for (image, qkv) in [(0..2, of(3, 48)), (1..3, of(3, 48)), (0..3, of(3, 40))] {
            assert!(attend_images(device, &of_heads, from_ref(&image), &qkv).is_err());
            assert!(tensor_attend_images(device, &of_heads, from_ref(&image), &qkv).is_err());
        }
        assert!(attend_images(device, &shape(1, 257), from_ref(&(0..1)), &of(1, 3 * 257)).is_err());
        assert!(tensor_attend_images(device, &shape(1, 12), from_ref(&(0..1)), &of(1, 36)).is_err());
    });
}
