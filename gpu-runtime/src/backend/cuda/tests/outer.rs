use std::ops::Range;
use std::slice;

use super::simulated::on_device;
use super::support::{close, rounded, rows, values, wide};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::outer::{OuterProducts, OuterSide};
use half::bf16;

#[test]
fn gradients_are_sums_over_rows_in_order() {
    on_device(|device| {
        let (left, right) = (values(9 * 20, 76), values(9 * 40, 77));
        let olds = [values(5 * 37, 78), values(11 * 3, 79)];
        let mut gradients = olds.each_ref().map(|old| device.upload(old).unwrap());
        let (on_left, on_right) = (rows::<f32>(device, &left, 20), rows::<f32>(device, &right, 40));
        let shapes = [(0..4, 5, 37), (4..9, 11, 3)];
        let mut products = OuterProducts::new();
        for (gradient, (rows, m, n)) in gradients.iter_mut().zip(&shapes) {
            let sides = [OuterSide::new(&on_left, 2, *m), OuterSide::new(&on_right, 1, *n)];
            products.push(gradient, 0, sides, std::slice::from_ref(rows)).unwrap();
        }
        let sides = [OuterSide::new(&on_left, 2, 5), OuterSide::new(&on_right, 1, 37)];
        assert!(products.push(&mut gradients[0], 0, sides, slice::from_ref(&(0..10))).is_err(), "there are 9 rows");
        products.launch(device).unwrap();
        for ((found, old), (rows, _, width)) in gradients.iter().zip(&olds).zip(shapes) {
            let mut expected = old.clone();
            for row in rows {
                for (at, sum) in expected.iter_mut().enumerate() {
                    *sum = left[row * 20 + 2 + at / width].mul_add(right[row * 40 + 1 + at % width], *sum);
                }
            }
            assert_eq!(found.to_host().unwrap(), expected);
        }
    });
}

/// Compares a gradient of (m, n) over sequences of these lengths on tensor cores with a sum in f64 of rounded elements.
/// The left rows are a part of others, and so are its columns, from `first` on. Rows have `widths` elements.
fn compare(device: &CudaDevice, (m, n): (usize, usize), first: usize, widths: [usize; 2], lens: &[usize], seed: u64) {
    let (count, before, [left_width, right_width]) = (lens.iter().sum::<usize>(), 3, widths);
    let left = values((before + count) * left_width, seed);
    let right = values(count * right_width, seed + 1);
    let old = values(m * n, seed + 2);
    let [of_left, of_right] = [&left, &right].map(|x| wide(&rounded::<bf16>(x)));
    let mut expected: Vec<f64> = old.iter().map(|x| f64::from(*x)).collect();
    for row in 0..count {
        for (at, sum) in expected.iter_mut().enumerate() {
            let x = of_left[(before + row) * left_width + first + at / n];
            *sum += f64::from(x) * f64::from(of_right[row * right_width + at % n]);
        }
    }
    let expected: Vec<f32> = expected.into_iter().map(|x| x as f32).collect();
    let (on_left, on_right) = (rows::<bf16>(device, &left, left_width), rows::<bf16>(device, &right, right_width));
    let sides = || {
        let left = OuterSide { first_row: before, ..OuterSide::new(&on_left, first, m) };
        [left, OuterSide::new(&on_right, 0, n)]
    };
    let mut begin = 0;
    let sequences: Vec<Range<usize>> = lens
        .iter()
        .map(|len| {
            begin += len;
            begin - len..begin
        })
        .collect();
    // All sequences in one pass, and each in its own.
    let [mut at_once, mut one_by_one] = [(), ()].map(|()| device.upload(&old).unwrap());
    let mut products = OuterProducts::new();
    products.push(&mut at_once, 0, sides(), &sequences).unwrap();
    products.launch(device).unwrap();
    for sequence in &sequences {
        let mut products = OuterProducts::new();
        products.push(&mut one_by_one, 0, sides(), std::slice::from_ref(sequence)).unwrap();
        products.launch(device).unwrap();
    }
    let at_once = at_once.to_host().unwrap();
    close("gradient", &at_once, &expected, 4e-6);
    assert_eq!(at_once, one_by_one.to_host().unwrap(), "how sequences form batches changes no bits");
}

#[test]
fn gradients_on_tensor_cores() {
    on_device(|device| {
        compare(device, (1, 1), 1, [3, 2], &[1], 80);
        compare(device, (5, 37), 1, [7, 38], &[4, 0, 17], 83);
        compare(device, (32, 64), 0, [32, 64], &[16, 32], 86);
        // Rows that asynchronous copies begin at, with columns that end with one, and within one.
        compare(device, (40, 136), 8, [56, 144], &[3, 140], 89);
        compare(device, (36, 132), 8, [56, 144], &[3, 40], 97);
        compare(device, (70, 8), 1, [72, 9], &[300, 1], 92);
        compare(device, (72, 8), 8, [88, 16], &[260, 17], 94);
    });
}

#[test]
fn gradients_share_a_launch() {
    on_device(|device| {
        let (x, dz) = (rows::<bf16>(device, &values(40 * 66, 95), 66), rows::<bf16>(device, &values(40 * 9, 96), 9));
        let mut gradients = [(), (), ()].map(|()| device.upload(&[0.5; 66 * 9]).unwrap());
        let sides = [OuterSide::new(&dz, 0, 9), OuterSide::new(&x, 0, 66)];
        let [narrow, wide, other] = gradients.each_mut();
        let mut products = OuterProducts::new();
        products.push(narrow, 0, sides, &[0..20, 20..40]).unwrap();
        products.push(wide, 0, [sides[1], sides[0]], &[0..20, 20..40]).unwrap();
        products.push(other, 0, sides, slice::from_ref(&(20..40))).unwrap();
        let in_f32 = rows::<f32>(device, &values(40 * 9, 96), 9);
        let mixed = [OuterSide::new(&in_f32, 0, 9), sides[1]];
        assert!(products.push(other, 0, mixed, &[]).is_err(), "sides are of one type");
        products.launch(device).unwrap();
        let [narrow, wide, other] = gradients.map(|of| of.to_host().unwrap());
        assert_ne!(narrow, other);
        let transposed: Vec<f32> = (0..9 * 66).map(|at| wide[at % 66 * 9 + at / 66]).collect();
        assert_eq!(narrow, transposed);
    });
}
