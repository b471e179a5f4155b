use half::bf16;

use super::simulated::on_device;
use super::support::{Rounded, close, product, rounded, rows, transposed, values, wide};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::matmul::Matmul;
use crate::backend::cuda::ops::product::WeightSide;
use crate::backend::cuda::ops::rows::{Addend, DeviceRows};

fn products<T: Rounded>(device: &CudaDevice) {
    let matmul = Matmul::new(device).unwrap();
    for (count, outputs, inputs) in [(1, 1, 1), (5, 24, 40), (33, 7, 16)] {
        let plans =
            [WeightSide::Inputs, WeightSide::Outputs].map(|side| matmul.plan::<T>(outputs, inputs, side).unwrap());
        let w = wide(&rounded::<T>(&values(outputs * inputs, 41)));
        let x = wide(&rounded::<T>(&values(count * inputs, 42)));
        let old = values(count * outputs, 43);
        let (on_w, on_x) = (rows::<T>(device, &w, inputs), rows::<T>(device, &x, inputs));
        let mut y = rows::<f32>(device, &old, outputs);
        matmul.run(&plans[0], &on_x, &on_w, 0..outputs, &mut y, true).unwrap();
        let forward = product(&x, &w, inputs);
        let expected: Vec<f32> = forward.iter().zip(&old).map(|(new, old)| new + old).collect();
        close("accumulated", &y.to_host().unwrap(), &expected, 1e-5);
        let (added, sum) = (rows::<f32>(device, &old, outputs), y.to_host().unwrap());
        let mut y = DeviceRows::uninitialised(device, count, outputs).unwrap();
        matmul.run_columns(&plans[0], &on_x, &on_w, 0..outputs, &mut y, 0, Addend::Rows(&added)).unwrap();
        assert_eq!(y.to_host().unwrap(), sum, "the same from other rows");
        let other = DeviceRows::zeros(device, count, outputs + 1).unwrap();
        assert!(matmul.run_columns(&plans[0], &on_x, &on_w, 0..outputs, &mut y, 0, Addend::Rows(&other)).is_err());
        let mut y = DeviceRows::uninitialised(device, count, outputs).unwrap();
        matmul.run(&plans[0], &on_x, &on_w, 0..outputs, &mut y, false).unwrap();
        close("product", &y.to_host().unwrap(), &forward, 1e-5);

        let d = wide(&rounded::<T>(&values(count * outputs, 44)));
        let mut dx = DeviceRows::uninitialised(device, count, inputs).unwrap();
        matmul.run(&plans[1], &rows::<T>(device, &d, outputs), &on_w, 0..outputs, &mut dx, false).unwrap();
        close("gradient", &dx.to_host().unwrap(), &product(&d, &transposed(&w, inputs), outputs), 1e-5);
    }
}

#[test]
fn products_with_weights() {
    on_device(|device| {
        products::<f32>(device);
        products::<bf16>(device);
    });
}

#[test]
fn parts_of_a_weight_and_single_rows_have_the_same_bits() {
    on_device(|device| {
        let matmul = Matmul::new(device).unwrap();
        let (w, x) = (rows::<bf16>(device, &values(12 * 32, 45), 32), values(6 * 32, 46));
        let plan = |outputs| matmul.plan::<bf16>(outputs, 32, WeightSide::Inputs).unwrap();
        let run = |x: &[f32], part: std::ops::Range<usize>| {
            let x = rows::<bf16>(device, x, 32);
            let mut y = DeviceRows::uninitialised(device, x.rows(), part.len()).unwrap();
            matmul.run(&plan(part.len()), &x, &w, part, &mut y, false).unwrap();
            y.to_host().unwrap()
        };
        let whole = run(&x, 0..12);
        for (x, y) in x.chunks(32).zip(whole.chunks(12)) {
            assert_eq!(run(x, 0..12), y);
            assert_eq!(run(x, 4..9), y[4..9]);
        }
        assert!(run(&[], 0..12).is_empty());
    });
}

#[test]
fn extents_have_to_be_those_of_the_plan() {
    on_device(|device| {
        let matmul = Matmul::new(device).unwrap();
        let plan = matmul.plan::<f32>(3, 4, WeightSide::Inputs).unwrap();
        let (w, x) = (rows::<f32>(device, &[0.0; 12], 4), rows::<f32>(device, &[0.0; 8], 4));
        let mut y = DeviceRows::zeros(device, 2, 3).unwrap();
        matmul.run(&plan, &x, &w, 0..3, &mut y, false).unwrap();
        assert!(matmul.run(&plan, &x, &w, 0..2, &mut y, false).is_err());
        assert!(matmul.run(&plan, &x, &w, 1..4, &mut y, false).is_err());
        assert!(matmul.run(&plan, &x, &w, 0..3, &mut DeviceRows::zeros(device, 1, 3).unwrap(), false).is_err());
        let (w, x) = (rows::<bf16>(device, &[0.0; 12], 4), rows::<bf16>(device, &[0.0; 8], 4));
        assert!(matmul.run(&plan, &x, &w, 0..3, &mut y, false).is_err(), "the plan is for f32");
    });
}
