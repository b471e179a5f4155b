use super::simulated::on_device;
use super::support::{close, rows, values};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::gated::{gate_heads, gate_heads_backward, join_gates, split_gates};
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{AttentionShape, GateOps, IndexKeys};

fn shape(heads: usize, kv_heads: usize, head_dim: usize) -> AttentionShape {
    AttentionShape { layers: 1, heads, kv_heads, head_dim, scale: 1.0, index: IndexKeys::NONE }
}

fn compare(device: &CudaDevice, shape: &AttentionShape, count: usize) {
    let (q, all) = (shape.q_width(), shape.qkv_width());
    let projected = values(count * (q + all), 1);
    let on_device = rows::<f32>(device, &projected, q + all);
    let [qkv, gates] = split_gates(device, shape, &on_device).unwrap();
    let expected = Reference::split_gates(&Reference, shape, &Matrix::new(projected.clone(), q + all));
    assert_eq!(qkv.to_host().unwrap(), expected[0].data());
    assert_eq!(gates.to_host().unwrap(), expected[1].data());
    assert_eq!(join_gates(device, shape, &qkv, &gates).unwrap().to_host().unwrap(), projected);

    // Gates up to those whose sigmoids are 0 and 1.
    let steep: Vec<f32> = values(count * q, 2).iter().map(|x| 120.0 * x).collect();
    for gates in [values(count * q, 3), steep] {
        let [heads, d] = [4, 5].map(|seed| values(count * q, seed));
        let of = |values: &[f32]| rows::<f32>(device, values, q);
        let on_host = |values: &[f32]| Matrix::new(values.to_vec(), q);
        let out = gate_heads(device, &of(&heads), &of(&gates)).unwrap();
        let [d_heads, d_gates] = gate_heads_backward(device, &of(&heads), &of(&gates), &of(&d)).unwrap();
        let expected = Reference::gate_heads(&Reference, &on_host(&heads), &on_host(&gates));
        let [d_expected, d_gates_expected] =
            Reference::gate_heads_backward(&Reference, &on_host(&heads), &on_host(&gates), &on_host(&d));
        close("gated", &out.to_host().unwrap(), expected.data(), 1e-6);
        close("gradient of heads", &d_heads.to_host().unwrap(), d_expected.data(), 1e-6);
        close("gradient of gates", &d_gates.to_host().unwrap(), d_gates_expected.data(), 1e-6);
    }
}

#[test]
fn gates_are_split_off_joined_and_applied() {
    on_device(|device| {
        for (shape, count) in [(shape(1, 1, 2), 3), (shape(3, 1, 6), 5), (shape(4, 2, 64), 2), (shape(2, 2, 8), 0)] {
            compare(device, &shape, count);
        }
    });
}

#[test]
fn extents_are_checked() {
    on_device(|device| {
        let shape = shape(2, 1, 2);
        let of = |width: usize| rows::<f32>(device, &vec![0.0; 3 * width], width);
        assert!(split_gates(device, &shape, &of(8)).is_err());
        assert!(join_gates(device, &shape, &of(8), &of(2)).is_err());
        assert!(join_gates(device, &shape, &of(6), &of(4)).is_err());
        assert!(gate_heads(device, &of(4), &of(2)).is_err());
        assert!(gate_heads_backward(device, &of(4), &of(4), &of(2)).is_err());
    });
}
