//! Adapters of rank 32: every row has the same one. In f32 on Qwen3-8B's key projection, on tensor cores on one with fewer inputs.

use half::bf16;

use super::super::support::{Rounded, rows, values};
use super::Counts;
use crate::backend::cuda::ops::lora::{DeviceAdapter, LoraLayer, LoraTable, RowIndices};
use crate::backend::cuda::ops::outer::{OuterProducts, OuterSide};
use crate::backend::cuda::ops::rows::{Addend, DeviceRows};

const RANK: usize = 32;
const OUTPUTS: usize = 1024;

pub(super) fn count(counts: &mut Counts<'_>) {
    adapters::<f32>(counts, 2, 4096, &["lora_shrink", "lora_shrink_backward", "lora_expand", "lora_expand_backward"]);
    let tensor =
        ["tensor_lora_shrink", "tensor_lora_shrink_backward", "tensor_lora_expand", "tensor_lora_expand_backward"];
    // Rows of whole tiles, and more than those whose inputs warps share.
    adapters::<bf16>(counts, 576, 1024, &tensor);
    adapters::<bf16>(counts, 1, 4096, &["tensor_lora_shrink_few", "", "tensor_lora_expand", ""]);
    for (m, n, tensor) in [(RANK, 256, false), (256, RANK, false), (RANK, 256, true), (256, RANK, true)] {
        gradient(counts, (m, n), tensor);
    }
}

/// The four kernels; those without a name are not counted.
fn adapters<T: Rounded>(counts: &mut Counts<'_>, count: usize, inputs: usize, names: &[&str; 4]) {
    let device = counts.device;
    let a = rows::<T>(device, &values(RANK * inputs, 1), inputs);
    let b = rows::<T>(device, &values(OUTPUTS * RANK, 2), RANK);
    let adapters = vec![DeviceAdapter { a: &a, b: &b, scale: 1.0 }];
    let layer = LoraLayer { column: 0, outputs: OUTPUTS, adapters, rows: vec![Some(0); count] };
    let table = LoraTable::new(device, &[layer], inputs, &RowIndices::default()).unwrap();
    let x = rows::<T>(device, &values(count * inputs, 3), inputs);
    let dy = rows::<T>(device, &values(count * OUTPUTS, 4), OUTPUTS);
    let [mut y, mut dx] = [(OUTPUTS, 5), (inputs, 6)].map(|(width, seed)| {
        let values = values(count * width, seed);
        rows::<f32>(device, &values, width)
    });
    let plural = if count == 1 { "row" } else { "rows" };
    let shape = format!("{count} {plural} of {inputs} inputs, {OUTPUTS} outputs, rank {RANK}");
    let mut work = |which: usize, width: usize, body: &mut dyn FnMut()| {
        if !names[which].is_empty() {
            counts.count(&shape, &[(names[which], "product", count * RANK * width)], |_| body());
        }
    };
    let (mut z, mut dz): (Option<DeviceRows<T>>, Option<DeviceRows<T>>) = (None, None);
    work(0, inputs, &mut || z = Some(table.shrink(device, &x).unwrap()));
    work(1, OUTPUTS, &mut || dz = Some(table.shrink_backward(device, &dy).unwrap()));
    let tensor = names[2].starts_with("tensor");
    // In f32 they add only to the output.
    let addend = if tensor { Addend::None } else { Addend::Output };
    work(2, OUTPUTS, &mut || table.expand(device, z.as_ref().unwrap(), addend, &mut y).unwrap());
    work(3, inputs, &mut || table.expand_backward(device, dz.as_ref().unwrap(), addend, &mut dx).unwrap());
    if tensor {
        let (onto, shape) = (y.copy().unwrap(), format!("{shape}, onto rows"));
        counts.count(&shape, &[(names[2], "product", count * RANK * OUTPUTS)], |_| {
            table.expand(device, z.as_ref().unwrap(), Addend::Rows(&onto), &mut y).unwrap();
        });
    }
}

/// A part of a gradient of [m, n]: enough rows that they outweigh its elements.
fn gradient(counts: &mut Counts<'_>, (m, n): (usize, usize), tensor: bool) {
    let of = if tensor { 1024 } else { 64 };
    let host = [(m, 7), (n, 8)].map(|(width, seed)| (values(of * width, seed), width));
    let narrow = host.each_ref().map(|(values, width)| rows::<bf16>(counts.device, values, *width));
    let wide = host.each_ref().map(|(values, width)| rows::<f32>(counts.device, values, *width));
    let mut sum = counts.device.upload(&values(m * n, 9)).unwrap();
    let (name, side) =
        (if tensor { "tensor_outer_products" } else { "outer_products" }, if m == RANK { "A" } else { "B" });
    counts.count(&format!("of {side}, {of} rows: {m}x{n}"), &[(name, "product", of * m * n)], |device| {
        let mut products = OuterProducts::new();
        let side = |i: usize, width: usize| match tensor {
            true => OuterSide::new(&narrow[i], 0, width),
            false => OuterSide::new(&wide[i], 0, width),
        };
        products.push(&mut sum, 0, [side(0, m), side(1, n)], std::slice::from_ref(&(0..of))).unwrap();
        products.launch(device).unwrap();
    });
}
