//! Adapters of rank 32 on Qwen3-8B's key projection: every row has the same one.

use half::bf16;

use super::super::support::{Rounded, rows, values};
use super::Counts;
use crate::backend::cuda::{DeviceAdapter, DeviceRows, LoraTable, OuterProduct, RowElement, outer_products};

const ROWS: usize = 2;
const RANK: usize = 32;
const INPUTS: usize = 4096;
const OUTPUTS: usize = 1024;

pub(super) fn count(counts: &mut Counts<'_>) {
    adapters::<f32>(counts);
    adapters::<bf16>(counts);
    gradient(counts, "of A, 64 rows: 32x256", (RANK, 256));
    gradient(counts, "of B, 64 rows: 256x32", (256, RANK));
}

fn adapters<T: Rounded>(counts: &mut Counts<'_>) {
    let device = counts.device;
    let suffix = <T as RowElement>::SUFFIX;
    let a = rows::<T>(device, &values(RANK * INPUTS, 1), INPUTS);
    let b = rows::<T>(device, &values(OUTPUTS * RANK, 2), RANK);
    let adapters = [DeviceAdapter { a: &a, b: &b, scale: 1.0 }];
    let table = LoraTable::new(device, &adapters, &[Some(0); ROWS], (OUTPUTS, INPUTS)).unwrap();
    let x = rows::<T>(device, &values(ROWS * INPUTS, 3), INPUTS);
    let dy = rows::<T>(device, &values(ROWS * OUTPUTS, 4), OUTPUTS);
    let (mut y, mut dx) = (rows::<f32>(device, &values(ROWS * OUTPUTS, 5), OUTPUTS), wide(counts, INPUTS));
    let shape = "2 rows of 4096 inputs, 1024 outputs, rank 32";
    let mut work = |name: &str, width: usize, body: &mut dyn FnMut()| {
        let name = format!("{name}_{suffix}");
        counts.count(shape, &[(&name, "product", ROWS * RANK * width)], |_| body());
    };
    let (mut z, mut dz) = (None, None);
    work("lora_shrink", INPUTS, &mut || z = Some(table.shrink(device, &x).unwrap()));
    work("lora_shrink_backward", OUTPUTS, &mut || dz = Some(table.shrink_backward(device, &dy, 0).unwrap()));
    work("lora_expand", OUTPUTS, &mut || table.expand(device, z.as_ref().unwrap(), &mut y, 0).unwrap());
    work("lora_expand_backward", INPUTS, &mut || {
        table.expand_backward(device, dz.as_ref().unwrap(), &mut dx).unwrap();
    });
}

fn wide(counts: &Counts<'_>, width: usize) -> DeviceRows {
    rows(counts.device, &values(ROWS * width, 6), width)
}

/// A part of a gradient of [m, n]: enough rows that they outweigh its elements.
fn gradient(counts: &mut Counts<'_>, shape: &str, (m, n): (usize, usize)) {
    let of = 64;
    let [left, right] = [(m, 7), (n, 8)].map(|(width, seed)| rows(counts.device, &values(of * width, seed), width));
    let mut sum = counts.device.upload(&values(m * n, 9)).unwrap();
    counts.count(shape, &[("outer_products", "product", of * m * n)], |device| {
        let mut out = [OuterProduct { gradient: &mut sum, first: 0, rows: (0, of), left: m, right: n }];
        outer_products(device, (&left, 0), (&right, 0), &mut out).unwrap();
    });
}
