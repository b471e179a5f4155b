//! Inputs and comparisons for tests of ops.

use half::bf16;

use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::rows::{DeviceRows, RowElement};
use crate::rng::kaiming_uniform_fill;

/// Numbers in [-1, 1); streams of different `seed` are independent.
pub(super) fn values(count: usize, seed: u64) -> Vec<f32> {
    let mut out = vec![0.0; count];
    kaiming_uniform_fill(seed, 3, &mut out, 1.0);
    out
}

/// Elements that both f32 and bf16 have.
pub(super) trait Rounded: RowElement {
    fn of(x: f32) -> Self;
    fn wide(self) -> f32;
}

impl Rounded for f32 {
    fn of(x: f32) -> Self {
        x
    }

    fn wide(self) -> f32 {
        self
    }
}

impl Rounded for bf16 {
    fn of(x: f32) -> Self {
        bf16::from_f32(x)
    }

    fn wide(self) -> f32 {
        self.to_f32()
    }
}

/// `values`, rounded to `T`.
pub(super) fn rounded<T: Rounded>(values: &[f32]) -> Vec<T> {
    values.iter().map(|x| T::of(*x)).collect()
}

/// The numbers of elements.
pub(super) fn wide<T: Rounded>(values: &[T]) -> Vec<f32> {
    values.iter().map(|x| x.wide()).collect()
}

/// Rows of the device.
pub(super) fn rows<T: Rounded>(device: &CudaDevice, values: &[f32], width: usize) -> DeviceRows<T> {
    DeviceRows::upload(device, &rounded(values), width).unwrap()
}

/// Elements differ by at most `tolerance`, relative to the largest one (to 1 if that is smaller).
pub(super) fn close(what: &str, found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let most = expected.iter().fold(1f32, |most, x| most.max(x.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let near = (found - expected).abs() <= tolerance * most;
        assert!(near, "{what}: element {i} is {found}, not {expected}");
    }
}

/// `x wᵀ` in f64, rounded to f32.
pub(super) fn product(x: &[f32], w: &[f32], width: usize) -> Vec<f32> {
    let dot = |x: &[f32], w: &[f32]| -> f32 {
        x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum::<f64>() as f32
    };
    x.chunks(width).flat_map(|x| w.chunks(width).map(move |w| dot(x, w))).collect()
}

/// The transpose of rows.
pub(super) fn transposed(x: &[f32], width: usize) -> Vec<f32> {
    (0..width).flat_map(|column| x.iter().skip(column).step_by(width).copied()).collect()
}
