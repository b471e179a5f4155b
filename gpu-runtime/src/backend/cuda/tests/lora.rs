use half::bf16;

use super::simulated::on_device;
use super::support::{Rounded, close, product, rounded, rows, transposed, values, wide};
use crate::backend::cuda::device::error::CudaError;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::lora::{DeviceAdapter, LoraLayer, LoraTable, RowIndices};
use crate::backend::cuda::ops::rows::{Addend, DeviceRows};

const SCALE: f32 = 0.5;

/// Layers with the same input, and the adapters of each: all have the same ranks.
struct Case {
    inputs: usize,
    /// First column and outputs of each layer.
    layers: &'static [(usize, usize)],
    ranks: &'static [usize],
    /// Elements of a row of outputs.
    stride: usize,
    seed: u64,
}

const ODD: Case = Case { inputs: 70, layers: &[(3, 45)], ranks: &[1, 8, 37], stride: 50, seed: 61 };
/// Widths that asynchronous copies and pairs of elements fit; more inputs than a split has.
const EVEN: Case =
    Case { inputs: 528, layers: &[(0, 136), (136, 24), (160, 8)], ranks: &[16, 40, 8], stride: 168, seed: 161 };
/// Three fetches of a warp with few rows, the last ending before its second load, and three whole ones.
const WIDE: Case = Case { inputs: 4128, layers: &[(0, 8)], ranks: &[8, 3, 10], stride: 8, seed: 361 };
const WIDER: Case = Case { inputs: 6144, layers: &[(0, 8)], ranks: &[8], stride: 8, seed: 461 };
const NARROW: Case = Case { inputs: 1, layers: &[(1, 1), (0, 1)], ranks: &[1], stride: 2, seed: 261 };

const MIXED: &[Option<usize>] = &[Some(2), None, Some(0), Some(1), Some(2), None];

/// A, `[rank, inputs]`, and B, `[outputs, rank]`, of each layer's adapters, on the host and on the device.
struct Parts<T: Rounded> {
    host: Vec<Vec<[Vec<f32>; 2]>>,
    device: Vec<Vec<[DeviceRows<T>; 2]>>,
}

impl<T: Rounded> Parts<T> {
    fn new(device: &CudaDevice, case: &Case) -> Self {
        let part = |len: usize, seed: u64| wide(&rounded::<T>(&values(len, seed)));
        let layer = |(layer, (_, outputs)): (usize, &(usize, usize))| -> Vec<_> {
            let adapter = |(index, rank): (usize, &usize)| {
                let seed = case.seed + (layer * 20 + index * 2) as u64;
                [part(rank * case.inputs, seed), part(outputs * rank, seed + 1)]
            };
            case.ranks.iter().enumerate().map(adapter).collect()
        };
        let host: Vec<Vec<[Vec<f32>; 2]>> = case.layers.iter().enumerate().map(layer).collect();
        let upload = |(parts, rank): (&[Vec<f32>; 2], &usize)| {
            [rows(device, &parts[0], case.inputs), rows(device, &parts[1], *rank)]
        };
        let device = host.iter().map(|layer| layer.iter().zip(case.ranks).map(upload).collect()).collect();
        Self { host, device }
    }

    fn table(&self, device: &CudaDevice, case: &Case, rows: &[Option<usize>]) -> Result<LoraTable<'_, T>, CudaError> {
        let mut layers = Vec::new();
        for (parts, (column, outputs)) in self.device.iter().zip(case.layers) {
            let adapters = parts.iter().map(|[a, b]| DeviceAdapter { a, b, scale: SCALE }).collect();
            layers.push(LoraLayer { column: *column, outputs: *outputs, adapters, rows: rows.to_vec() });
        }
        LoraTable::new(device, &layers, case.inputs, &RowIndices::default())
    }
}

fn scaled(values: Vec<f32>) -> Vec<f32> {
    values.into_iter().map(|x| x * SCALE).collect()
}

fn added(to: &mut [f32], values: &[f32]) {
    to.iter_mut().zip(values).for_each(|(to, x)| *to += x);
}

/// An op adds the same `sum` to rows `old` in place and elsewhere, and to zeros without them: it writes all of the
/// memory, which is uninitialised before.
fn same_to_any_memory(
    device: &CudaDevice,
    op: impl Fn(Addend<'_>, &mut DeviceRows),
    old: &DeviceRows,
    sum: &DeviceRows,
    mut zeros: DeviceRows,
) {
    let result = |addend| {
        let mut out = DeviceRows::uninitialised(device, sum.rows(), sum.width()).unwrap();
        op(addend, &mut out);
        out.to_host().unwrap()
    };
    assert_eq!(result(Addend::Rows(old)), sum.to_host().unwrap());
    op(Addend::Output, &mut zeros);
    assert_eq!(result(Addend::None), zeros.to_host().unwrap());
}

/// All four ops against sums in f64.
fn compare<T: Rounded>(device: &CudaDevice, case: &Case, of_rows: &[Option<usize>]) {
    let parts = Parts::<T>::new(device, case);
    let (table, count, stride, inputs) =
        (parts.table(device, case, of_rows).unwrap(), of_rows.len(), case.stride, case.inputs);
    let [x, dy] =
        [(inputs, 71), (stride, 72)].map(|(width, seed)| wide(&rounded::<T>(&values(count * width, case.seed + seed))));
    let [mut y, mut dx] = [(stride, 73), (inputs, 74)].map(|(width, seed)| values(count * width, case.seed + seed));
    let (mut on_y, mut on_dx) = (rows::<f32>(device, &y, stride), rows::<f32>(device, &dx, inputs));
    let (old_y, old_dx) = (on_y.copy().unwrap(), on_dx.copy().unwrap());

    let z = table.shrink(device, &rows(device, &x, inputs)).unwrap();
    table.expand(device, &z, Addend::Output, &mut on_y).unwrap();
    let dz = table.shrink_backward(device, &rows(device, &dy, stride)).unwrap();
    table.expand_backward(device, &dz, Addend::Output, &mut on_dx).unwrap();
    let zeros = |rows: &DeviceRows| DeviceRows::zeros(device, rows.rows(), rows.width()).unwrap();
    if table.writes(stride) {
        let op = |addend: Addend<'_>, out: &mut DeviceRows| table.expand(device, &z, addend, out).unwrap();
        same_to_any_memory(device, op, &old_y, &on_y, zeros(&on_y));
    }
    if table.writes_inputs() {
        let op = |addend: Addend<'_>, out: &mut DeviceRows| table.expand_backward(device, &dz, addend, out).unwrap();
        same_to_any_memory(device, op, &old_dx, &on_dx, zeros(&on_dx));
    }

    let most = table.rank();
    let unrounded = [
        table.shrink_unrounded(device, &rows(device, &x, inputs)).unwrap(),
        table.shrink_backward_unrounded(device, &rows(device, &dy, stride)).unwrap(),
    ];
    let unrounded = unrounded.map(|rows| rows.to_host().unwrap());
    let narrow = [z, dz].map(|rows| wide(&rows.to_host().unwrap()));
    assert_eq!(narrow, unrounded.each_ref().map(|rows| wide(&rounded::<T>(rows))));
    let [z, dz] = unrounded;
    for (layer, (column, outputs)) in case.layers.iter().enumerate() {
        for (row, adapter) in of_rows.iter().enumerate() {
            let [z, dz] = [&z, &dz].map(|all| &all[(layer * count + row) * most..][..most]);
            let Some(adapter) = adapter else {
                assert!(z.iter().chain(dz).all(|x| *x == 0.0));
                continue;
            };
            let (rank, [a, b]) = (case.ranks[*adapter], &parts.host[layer][*adapter]);
            assert!(z[rank..].iter().chain(&dz[rank..]).all(|x| *x == 0.0));
            let (x, dy) = (&x[row * inputs..][..inputs], &dy[row * stride + column..][..*outputs]);
            close("z", &z[..rank], &scaled(product(x, a, inputs)), 4e-6);
            close("dz", &dz[..rank], &scaled(product(dy, &transposed(b, rank), *outputs)), 4e-6);
            // From the device's z, so that both round alike.
            let [z, dz] = [z, dz].map(|z| wide(&rounded::<T>(&z[..rank])));
            added(&mut y[row * stride + column..][..*outputs], &product(&z, b, rank));
            added(&mut dx[row * inputs..][..inputs], &product(&dz, &transposed(a, inputs), rank));
        }
    }
    close("output", &on_y.to_host().unwrap(), &y, 4e-6);
    close("gradient", &on_dx.to_host().unwrap(), &dx, 4e-6);
}

/// Adapters in runs of rows, some of them empty.
fn runs(lens: &[(Option<usize>, usize)]) -> Vec<Option<usize>> {
    lens.iter().flat_map(|(adapter, len)| vec![*adapter; *len]).collect()
}

#[test]
fn rows_get_what_their_adapters_add() {
    on_device(|device| {
        compare::<f32>(device, &ODD, MIXED);
        compare::<f32>(device, &EVEN, &[Some(1), Some(0)]);
        compare::<bf16>(device, &ODD, MIXED);
        compare::<bf16>(device, &ODD, &[None, Some(2)]);
        compare::<bf16>(device, &EVEN, MIXED);
        compare::<bf16>(device, &EVEN, &[Some(1)]);
        compare::<bf16>(device, &WIDE, &[Some(2), None, Some(1)]);
        compare::<bf16>(device, &WIDER, &[Some(0)]);
        compare::<bf16>(device, &NARROW, &[Some(0), None, Some(0)]);
        compare::<bf16>(device, &NARROW, &[None]);
    });
}

#[test]
fn many_rows_get_what_their_adapters_add() {
    on_device(|device| {
        compare::<bf16>(device, &ODD, &runs(&[(Some(0), 500), (Some(2), 9), (None, 2), (Some(1), 30), (Some(2), 1)]));
        compare::<bf16>(device, &EVEN, &runs(&[(Some(1), 70), (Some(0), 0), (None, 440), (Some(2), 5)]));
    });
}

/// The rows of what each op returns or changes, of one batch.
fn bits(
    device: &CudaDevice,
    parts: &Parts<bf16>,
    case: &Case,
    of: &[Option<usize>],
    x: &[f32],
    dy: &[f32],
) -> [Vec<u32>; 4] {
    let table = parts.table(device, case, of).unwrap();
    let z = table.shrink(device, &rows(device, x, case.inputs)).unwrap();
    let dz = table.shrink_backward(device, &rows(device, dy, case.stride)).unwrap();
    let mut y = DeviceRows::zeros(device, of.len(), case.stride).unwrap();
    let mut dx = DeviceRows::zeros(device, of.len(), case.inputs).unwrap();
    table.expand(device, &z, Addend::Output, &mut y).unwrap();
    table.expand_backward(device, &dz, Addend::Output, &mut dx).unwrap();
    let [z, dz] = [z, dz].map(|rows| rows.to_host().unwrap().iter().map(|x| u32::from(x.to_bits())).collect());
    let [y, dx] = [y, dx].map(|rows| rows.to_host().unwrap().iter().map(|x| x.to_bits()).collect());
    [z, dz, y, dx]
}

#[test]
fn a_row_has_its_bits_in_every_batch() {
    on_device(|device| {
        for case in [&ODD, &EVEN, &WIDE] {
            let parts = Parts::<bf16>::new(device, case);
            // The last six rows of a batch in which warps share rows, and in batches in which they share inputs.
            let of = [runs(&[(Some(2), 300), (None, 3), (Some(0), 260)]), MIXED.to_vec()].concat();
            let [x, dy] =
                [(case.inputs, 75), (case.stride, 76)].map(|(width, seed)| values(of.len() * width, case.seed + seed));
            let all = bits(device, &parts, case, &of, &x, &dy);
            for count in [1, 2, 6, 20] {
                let first = of.len() - count;
                let part =
                    bits(device, &parts, case, &of[first..], &x[first * case.inputs..], &dy[first * case.stride..]);
                // z and dz have the rows of one layer after the other.
                let layers = [case.layers.len(), case.layers.len(), 1, 1];
                for ((all, part), layers) in all.iter().zip(&part).zip(layers) {
                    let width = part.len() / count / layers;
                    for (all, part) in all.chunks(of.len() * width).zip(part.chunks(count * width)) {
                        assert_eq!(&all[first * width..], part);
                    }
                }
            }
        }
    });
}

#[test]
fn tables_are_checked() {
    on_device(|device| {
        let case = &ODD;
        let parts = Parts::<f32>::new(device, case);
        assert!(parts.table(device, case, &[Some(3)]).is_err());
        let [[a, _], [_, b], ..] = &parts.device[0][..] else { unreachable!("the parts above are two") };
        let adapters = vec![DeviceAdapter { a, b, scale: 1.0 }];
        let mixed = LoraLayer { column: 0, outputs: 45, adapters, rows: vec![Some(0)] };
        assert!(LoraTable::new(device, &[mixed], case.inputs, &RowIndices::default()).is_err(), "ranks differ");
        let table = parts.table(device, case, &[Some(0)]).unwrap();
        let z = DeviceRows::zeros(device, 1, 37).unwrap();
        let mut out = DeviceRows::zeros(device, 1, 47).unwrap();
        assert!(table.expand(device, &z, Addend::Output, &mut out).is_err(), "columns 3..48");
        assert!(table.shrink(device, &DeviceRows::zeros(device, 2, case.inputs).unwrap()).is_err());
        let (mut out, dz) = (DeviceRows::zeros(device, 1, case.stride).unwrap(), z.copy().unwrap());
        assert!(table.expand(device, &z, Addend::None, &mut out).is_err(), "in f32 the output is added to");
        let (rows, mut dx) = (out.copy().unwrap(), DeviceRows::zeros(device, 1, case.inputs).unwrap());
        assert!(table.expand(device, &z, Addend::Rows(&rows), &mut out).is_err());
        assert!(table.expand_backward(device, &dz, Addend::None, &mut dx).is_err());
    });
}
