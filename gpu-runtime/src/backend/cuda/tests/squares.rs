use super::simulated::on_device;
use super::support::values;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::ops::squares::{add, squared_norms};

const LENS: [usize; 5] = [1, 4096, 0, 9000, 33];

#[test]
fn squares_are_summed_in_f64() {
    on_device(|device| {
        let arrays = |seed: u64| -> Vec<Vec<f32>> { LENS.map(|len| values(len, seed + len as u64)).to_vec() };
        let (a, b) = (arrays(1), arrays(2));
        let [on_a, on_b] =
            [&a, &b].map(|arrays| -> Vec<Slice<f32>> { arrays.iter().map(|x| device.upload(x).unwrap()).collect() });
        let alone = squared_norms(device, &on_a, None).unwrap();
        let sums = squared_norms(device, &on_a, Some(&on_b)).unwrap();
        for (i, (a, b)) in a.iter().zip(&b).enumerate() {
            let square = |x: f32| f64::from(x) * f64::from(x);
            let expected: f64 = a.iter().map(|x| square(*x)).sum();
            assert!((alone[i] - expected).abs() <= 1e-12 * expected, "{} {expected}", alone[i]);
            let expected: f64 = a.iter().zip(b).map(|(a, b)| square(a + b)).sum();
            assert!((sums[i] - expected).abs() <= 1e-12 * expected, "{} {expected}", sums[i]);
        }
        // An array's sum does not depend on the others.
        assert_eq!(squared_norms(device, &on_a[3..4], None).unwrap(), alone[3..4]);
        assert!(squared_norms(device, &on_a, Some(&on_b[1..])).is_err());
    });
}

#[test]
fn what_is_not_finite_shows() {
    on_device(|device| {
        for bad in [f32::NAN, f32::INFINITY] {
            let mut values = vec![f32::MAX; 5000];
            let finite = [device.upload(&values).unwrap()];
            assert!(squared_norms(device, &finite, None).unwrap()[0].is_finite());
            values[4999] = bad;
            let sums = squared_norms(device, &[device.upload(&values).unwrap()], None).unwrap();
            assert!(!sums[0].is_finite());
        }
    });
}

#[test]
fn arrays_are_added() {
    on_device(|device| {
        let [a, b] = [31, 32].map(|seed| values(300, seed));
        let mut sum = device.upload(&a).unwrap();
        add(device, &mut sum, &device.upload(&b).unwrap()).unwrap();
        let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        assert_eq!(sum.to_host().unwrap(), expected);
        assert!(add(device, &mut sum, &device.zeros(299).unwrap()).is_err());
    });
}
