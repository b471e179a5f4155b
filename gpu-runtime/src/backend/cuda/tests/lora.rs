use half::bf16;

use super::simulated::on_device;
use super::support::{Rounded, close, product, rounded, rows, transposed, values, wide};
use crate::backend::cuda::{CudaDevice, CudaError, DeviceAdapter, DeviceRows, LoraTable, OuterProduct, outer_products};

const RANKS: [usize; 3] = [1, 8, 37];
const ROWS: [Option<usize>; 6] = [Some(2), None, Some(0), Some(1), Some(2), None];
const OUTPUTS: usize = 45;
const INPUTS: usize = 70;
/// Elements of a row of outputs, and the layer's first one.
const STRIDE: usize = 50;
const COLUMN: usize = 3;
const SCALE: f32 = 0.5;

/// Elements of A, [rank, inputs], and B, [outputs, rank].
struct Adapter([Vec<f32>; 2]);

fn adapters<T: Rounded>() -> Vec<Adapter> {
    let part = |len: usize, seed: u64| wide(&rounded::<T>(&values(len, seed)));
    let adapter = |(rank, seed): (usize, u64)| Adapter([part(rank * INPUTS, seed), part(OUTPUTS * rank, seed + 10)]);
    RANKS.into_iter().zip(61..).map(adapter).collect()
}

/// A of each adapter, and B of each.
fn upload<T: Rounded>(device: &CudaDevice, adapters: &[Adapter]) -> [Vec<DeviceRows<T>>; 2] {
    let a = adapters.iter().map(|Adapter([a, _])| rows(device, a, INPUTS));
    let b = adapters.iter().zip(RANKS).map(|(Adapter([_, b]), rank)| rows(device, b, rank));
    [a.collect(), b.collect()]
}

fn table<'a, T: Rounded>(
    device: &CudaDevice,
    [a, b]: &'a [Vec<DeviceRows<T>>; 2],
    rows: &[Option<usize>],
) -> Result<LoraTable<'a, T>, CudaError> {
    let adapters: Vec<_> = a.iter().zip(b).map(|(a, b)| DeviceAdapter { a, b, scale: SCALE }).collect();
    LoraTable::new(device, &adapters, rows, (OUTPUTS, INPUTS))
}

fn scaled(values: Vec<f32>) -> Vec<f32> {
    values.into_iter().map(|x| x * SCALE).collect()
}

fn added(to: &mut [f32], values: &[f32]) {
    to.iter_mut().zip(values).for_each(|(to, x)| *to += x);
}

fn compare<T: Rounded>(device: &CudaDevice) {
    let host = adapters::<T>();
    let parts = upload::<T>(device, &host);
    let table = table(device, &parts, &ROWS).unwrap();
    let x = wide(&rounded::<T>(&values(ROWS.len() * INPUTS, 71)));
    let dy = wide(&rounded::<T>(&values(ROWS.len() * STRIDE, 72)));
    let (mut y, mut dx) = (values(ROWS.len() * STRIDE, 73), values(ROWS.len() * INPUTS, 74));
    let (mut on_y, mut on_dx) = (rows::<f32>(device, &y, STRIDE), rows::<f32>(device, &dx, INPUTS));

    let z = table.shrink(device, &rows(device, &x, INPUTS)).unwrap();
    table.expand(device, &z, &mut on_y, COLUMN).unwrap();
    let dz = table.shrink_backward(device, &rows(device, &dy, STRIDE), COLUMN).unwrap();
    table.expand_backward(device, &dz, &mut on_dx).unwrap();

    let [z, dz] = [z, dz].map(|rows| rows.to_host().unwrap());
    for (row, adapter) in ROWS.into_iter().enumerate() {
        let [z, dz] = [&z, &dz].map(|all| &all[row * 37..(row + 1) * 37]);
        let Some(adapter) = adapter else {
            assert!(z.iter().chain(dz).all(|x| *x == 0.0));
            continue;
        };
        let (rank, Adapter([a, b])) = (RANKS[adapter], &host[adapter]);
        assert!(z[rank..].iter().chain(&dz[rank..]).all(|x| *x == 0.0));
        let (x, dy) = (&x[row * INPUTS..][..INPUTS], &dy[row * STRIDE + COLUMN..][..OUTPUTS]);
        close("z", &z[..rank], &scaled(product(x, a, INPUTS)), 2e-6);
        close("dz", &dz[..rank], &scaled(product(dy, &transposed(b, rank), OUTPUTS)), 2e-6);
        // From the device's z, so that both round alike.
        let [z, dz] = [z, dz].map(|z| wide(&rounded::<T>(&z[..rank])));
        added(&mut y[row * STRIDE + COLUMN..][..OUTPUTS], &product(&z, b, rank));
        added(&mut dx[row * INPUTS..][..INPUTS], &product(&dz, &transposed(a, INPUTS), rank));
    }
    close("output", &on_y.to_host().unwrap(), &y, 2e-6);
    close("gradient", &on_dx.to_host().unwrap(), &dx, 2e-6);
}

#[test]
fn rows_get_what_their_adapters_add() {
    on_device(|device| {
        compare::<f32>(device);
        compare::<bf16>(device);
    });
}

#[test]
fn a_row_has_its_bits_in_every_batch() {
    on_device(|device| {
        let parts = upload::<bf16>(device, &adapters::<bf16>());
        let x = values(ROWS.len() * INPUTS, 75);
        let outputs = |x: &[f32], adapters: &[Option<usize>]| {
            let table = table(device, &parts, adapters).unwrap();
            let mut y = DeviceRows::zeros(device, adapters.len(), STRIDE).unwrap();
            let z = table.shrink(device, &rows(device, x, INPUTS)).unwrap();
            table.expand(device, &z, &mut y, COLUMN).unwrap();
            y.to_host().unwrap()
        };
        let all = outputs(&x, &ROWS);
        for ((x, y), adapter) in x.chunks(INPUTS).zip(all.chunks(STRIDE)).zip(ROWS) {
            assert_eq!(outputs(x, &[adapter]), y);
        }
    });
}

#[test]
fn tables_are_checked() {
    on_device(|device| {
        let parts = upload::<f32>(device, &adapters::<f32>());
        assert!(table(device, &parts, &[Some(3)]).is_err());
        let [a, b] = &parts;
        let mixed = [DeviceAdapter { a: &a[0], b: &b[1], scale: 1.0 }];
        assert!(LoraTable::new(device, &mixed, &[Some(0)], (OUTPUTS, INPUTS)).is_err(), "ranks differ");
        let table = table(device, &parts, &[Some(0)]).unwrap();
        let z = DeviceRows::zeros(device, 1, 37).unwrap();
        let mut out = DeviceRows::zeros(device, 1, STRIDE).unwrap();
        assert!(table.expand(device, &z, &mut out, STRIDE - OUTPUTS + 1).is_err());
        assert!(table.shrink(device, &DeviceRows::zeros(device, 2, INPUTS).unwrap()).is_err());
    });
}

#[test]
fn gradients_of_weights_are_sums_over_rows_in_order() {
    on_device(|device| {
        let (left, right) = (values(9 * 20, 76), values(9 * 40, 77));
        let olds = [values(5 * 37, 78), values(11 * 3, 79)];
        let mut gradients = olds.each_ref().map(|old| device.upload(old).unwrap());
        let [first, second] = gradients.each_mut();
        let mut products = [
            OuterProduct { gradient: first, first: 0, rows: (0, 4), left: 5, right: 37 },
            OuterProduct { gradient: second, first: 0, rows: (4, 5), left: 11, right: 3 },
        ];
        let (on_left, on_right) = (rows(device, &left, 20), rows(device, &right, 40));
        outer_products(device, (&on_left, 2), (&on_right, 1), &mut products).unwrap();
        let shapes = [(0..4, 37), (4..9, 3)];
        for ((found, old), (rows, width)) in gradients.iter().zip(&olds).zip(shapes) {
            let mut expected = old.clone();
            for row in rows {
                for (at, sum) in expected.iter_mut().enumerate() {
                    *sum = left[row * 20 + 2 + at / width].mul_add(right[row * 40 + 1 + at % width], *sum);
                }
            }
            assert_eq!(found.to_host().unwrap(), expected);
        }
        let [first, _] = gradients.each_mut();
        let mut wide = [OuterProduct { gradient: first, first: 0, rows: (0, 10), left: 5, right: 37 }];
        assert!(outer_products(device, (&on_left, 2), (&on_right, 1), &mut wide).is_err(), "there are 9 rows");
    });
}
