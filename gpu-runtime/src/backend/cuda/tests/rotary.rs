use super::simulated::on_device;
use super::support::{close, rows, values, wide};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::norm::DeviceNorm;
use crate::backend::cuda::ops::rotary::{DeviceRotation, rotate, rotate_backward, rotate_backward_rounded};
use crate::backend::host::HostParams;
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{AttentionShape, Backend, Held, IndexKeys, Norm, Rotation};

const POSITIONS: [u32; 5] = [0, 1, 9, 3, 9];

fn shape(heads: usize, kv_heads: usize, head_dim: usize) -> AttentionShape {
    AttentionShape { layers: 1, heads, kv_heads, head_dim, scale: 1.0, index: IndexKeys::NONE }
}

const EPS: [f32; 2] = [1e-5, 1e-3];

/// A way to rotate heads.
#[derive(Clone, Copy)]
struct Kind {
    /// Elements of a head that are rotated.
    rotated: usize,
    /// Norms over all heads, or of each; none without.
    whole_norms: Option<bool>,
    /// Whether queries have a table of their own.
    own_table: bool,
}

fn plain(head_dim: usize, normed: bool) -> Kind {
    Kind { rotated: head_dim, whole_norms: normed.then_some(false), own_table: false }
}

/// (cos, sin) by position and pair: for keys, and scaled for queries.
fn tables(rotated: usize) -> [Vec<(f32, f32)>; 2] {
    let table: Vec<(f32, f32)> = (0..10 * rotated / 2).map(|i| ((i as f32).cos(), (i as f32).sin())).collect();
    let scaled = table.iter().map(|(cos, sin)| (1.25 * cos, 1.25 * sin)).collect();
    [table, scaled]
}

/// Rotates forward and backward, on the device and on the reference.
fn compare(device: &CudaDevice, shape: &AttentionShape, kind: Kind, count: usize) {
    let (positions, width) = (&POSITIONS[..count], shape.qkv_width());
    let (normed, whole_norms) = (kind.whole_norms.is_some(), kind.whole_norms == Some(true));
    let widths = if whole_norms { [shape.q_width(), shape.kv_width()] } else { [shape.head_dim; 2] };
    let [qkv, d] = [21, 22].map(|seed| values(count * width, seed));
    let angles = tables(kind.rotated);
    let weights = [(23, widths[0]), (24, widths[1])].map(|(seed, width)| values(width, seed));
    let olds = [(25, widths[0]), (26, widths[1])].map(|(seed, width)| values(width, seed));

    let upload = |table: &Vec<(f32, f32)>| {
        let pairs: Vec<f32> = table.iter().flat_map(|(cos, sin)| [*cos, *sin]).collect();
        rows::<f32>(device, &pairs, kind.rotated)
    };
    let [rope, scaled] = angles.each_ref().map(upload);
    let [wq, wk] = weights.each_ref().map(|w| device.upload(w).unwrap());
    let [mut dq, mut dk] = olds.each_ref().map(|w| device.upload(w).unwrap());
    let norms = [DeviceNorm { weight: &wq, eps: EPS[0] }, DeviceNorm { weight: &wk, eps: EPS[1] }];
    let query_rope = kind.own_table.then_some(&scaled);
    let norms = normed.then_some(norms);
    let rotation = DeviceRotation { shape, norms, whole_norms, rope: &rope, query_rope, positions };
    let (mut found, mut d_found) = (rows::<f32>(device, &qkv, width), rows::<f32>(device, &d, width));
    let mut in_place = found.copy().unwrap();
    let before = rotate(device, &rotation, &mut found, true).unwrap();
    assert!(rotate(device, &rotation, &mut in_place, false).unwrap().is_none());
    assert_eq!(found.to_host().unwrap(), in_place.to_host().unwrap());
    let narrow = before.as_ref().filter(|_| rotation.is_plain());
    let narrow = narrow.map(|of| rotate_backward_rounded(device, &rotation, of, &d_found).unwrap());
    let mut without = d_found.copy().unwrap();
    rotate_backward(device, &rotation, before.as_ref(), &mut without, None).unwrap();
    let dw = normed.then_some([&mut dq, &mut dk]);
    rotate_backward(device, &rotation, before.as_ref(), &mut d_found, dw).unwrap();
    assert_eq!(d_found.to_host().unwrap(), without.to_host().unwrap(), "with gradients of norms, and without");

    let [rope, scaled] = angles.map(|table| Reference.rope(kind.rotated / 2, table));
    let norms = [Norm { weight: &weights[0], eps: EPS[0] }, Norm { weight: &weights[1], eps: EPS[1] }];
    let query_rope = kind.own_table.then_some(&scaled);
    let norms = normed.then_some(norms);
    let rotation = Rotation { shape, norms, whole_norms, query_rope, rope: &rope, positions };
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
                compare(device, &shape, plain(shape.head_dim, normed), 5);
            }
        }
        compare(device, &shape(2, 2, 64), plain(64, true), 1);
        compare(device, &shape(2, 2, 64), plain(64, true), 0);
    });
}

#[test]
fn heads_are_rotated_in_part_by_two_tables_and_normalised_together() {
    on_device(|device| {
        for (shape, rotated) in
            [(shape(1, 1, 4), 2), (shape(3, 1, 10), 6), (shape(4, 2, 64), 16), (shape(5, 1, 80), 80)]
        {
            for whole_norms in [None, Some(false), Some(true)] {
                for own_table in [false, true] {
                    compare(device, &shape, Kind { rotated, whole_norms, own_table }, 5);
                }
            }
        }
        // More queries than a block has threads.
        compare(device, &shape(6, 3, 64), Kind { rotated: 64, whole_norms: Some(true), own_table: false }, 2);
        compare(device, &shape(2, 2, 8), Kind { rotated: 4, whole_norms: Some(true), own_table: true }, 0);
    });
}

/// A row's bits are the same alone and among others.
#[test]
fn rows_do_not_depend_on_others() {
    on_device(|device| {
        let (shape, rotated) = (shape(6, 3, 64), 32);
        let width = shape.qkv_width();
        let table: Vec<f32> = tables(rotated)[0].iter().flat_map(|(cos, sin)| [*cos, *sin]).collect();
        let rope = rows::<f32>(device, &table, rotated);
        let (qkv, positions) = (values(5 * width, 31), POSITIONS);
        let [wq, wk] = [(32, shape.q_width()), (33, shape.kv_width())]
            .map(|(seed, width)| device.upload(&values(width, seed)).unwrap());
        let norms = Some([&wq, &wk].map(|weight| DeviceNorm { weight, eps: 1e-6 }));
        let bits = |first: usize, count: usize| -> Vec<u32> {
            let positions = &positions[first..first + count];
            let query_rope = Some(&rope);
            let of = DeviceRotation { shape: &shape, norms, whole_norms: true, rope: &rope, query_rope, positions };
            let mut x = rows::<f32>(device, &qkv[first * width..(first + count) * width], width);
            rotate(device, &of, &mut x, false).unwrap();
            x.to_host().unwrap().iter().map(|x| x.to_bits()).collect()
        };
        let all = bits(0, 5);
        for row in 0..5 {
            assert_eq!(bits(row, 1), all[row * width..(row + 1) * width], "row {row}");
        }
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
        let good = DeviceRotation {
            shape: &shape,
            norms: None,
            whole_norms: false,
            rope: &rope,
            query_rope: None,
            positions: &[1],
        };
        rotate(device, &good, &mut qkv, true).unwrap();
        assert!(rotate(device, &DeviceRotation { positions: &[2], ..good }, &mut qkv, true).is_err());
        assert!(rotate(device, &DeviceRotation { positions: &[0, 1], ..good }, &mut qkv, true).is_err());
        let normed = DeviceRotation { norms: Some([norm; 2]), ..good };
        assert!(rotate_backward(device, &normed, None, &mut qkv, None).is_err(), "what was rotated is missing");
        assert!(rotate_backward_rounded(device, &good, &qkv, &qkv).is_err(), "the norms are missing");
        let [odd, broad] = [3, 6].map(|width| rows::<f32>(device, &vec![0.0; 2 * width], width));
        for rope in [&odd, &broad] {
            assert!(rotate(device, &DeviceRotation { rope, ..good }, &mut qkv, true).is_err());
            assert!(rotate(device, &DeviceRotation { query_rope: Some(rope), ..good }, &mut qkv, true).is_err());
        }
        let short = rows::<f32>(device, &[0.0; 4], 4);
        assert!(rotate(device, &DeviceRotation { query_rope: Some(&short), ..good }, &mut qkv, true).is_err());
        // Its head is all of q, and all of k.
        let whole = DeviceRotation { whole_norms: true, ..normed };
        rotate(device, &whole, &mut qkv, true).unwrap();
        let before = qkv.copy().unwrap();
        assert!(rotate_backward_rounded(device, &whole, &before, &qkv).is_err(), "norms are over all heads");
        let narrow = device.zeros(2).unwrap();
        let norms = Some([norm, DeviceNorm { weight: &narrow, eps: 0.0 }]);
        assert!(rotate(device, &DeviceRotation { norms, ..whole }, &mut qkv, true).is_err());
    });
}
