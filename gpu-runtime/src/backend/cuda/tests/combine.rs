use super::simulated::on_device;
use super::support::{close, rows, values};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::combine::{combine, combine_backward};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{Dispatch, FamilyOps};

/// Experts of rows, ascending in each.
fn dispatch(rows: usize, slots: usize, count: usize) -> Dispatch {
    let experts = (0..rows).flat_map(|row| {
        let mut own: Vec<usize> = (0..slots).map(|slot| (row * 5 + slot * slot + slot) % count).collect();
        own.sort_unstable();
        own.dedup();
        let missing = (0..count).filter(|expert| !own.contains(expert)).take(slots - own.len()).collect::<Vec<_>>();
        own.extend(missing);
        own.sort_unstable();
        own
    });
    Dispatch::new(experts.collect(), slots, count)
}

fn parts(dispatch: &Dispatch, width: usize) -> Vec<Vec<f32>> {
    dispatch.parts().iter().map(|part| values(part.rows.len() * width, 10 + part.expert as u64)).collect()
}

fn compare(device: &CudaDevice, (count, slots, experts): (usize, usize, usize), width: usize) {
    let dispatch = dispatch(count, slots, experts);
    let (parts, old) = (parts(&dispatch, width), values(count * width, 1));
    let (weights, d_out) = (values(count * slots, 2), values(count * width, 3));
    let on_parts: Vec<DeviceRows> = parts.iter().map(|part| rows(device, part, width)).collect();
    let on_weights = rows(device, &weights, slots);
    let matrices: Vec<Matrix> = parts.into_iter().map(|part| Matrix::new(part, width)).collect();
    let [weights, d_out] = [Matrix::new(weights, slots), Matrix::new(d_out, width)];
    for weighted in [false, true] {
        let mut onto = rows(device, &old, width);
        combine(device, &on_parts, &dispatch, weighted.then_some(&on_weights), &mut onto).unwrap();
        let mut expected = Matrix::new(old.clone(), width);
        Reference::combine(&Reference, &matrices, &dispatch, weighted.then_some(&weights), &mut expected);
        assert_eq!(onto.to_host().unwrap(), expected.data());
    }
    let on_d_out = rows(device, d_out.data(), width);
    let all = 0..matrices.len();
    for held in [all.clone(), 0..1, 1..all.end, all.end..all.end] {
        let own =
            |parts: &[DeviceRows]| parts[held.clone()].iter().map(|part| part.copy().unwrap()).collect::<Vec<_>>();
        let (d_parts, d_weights) =
            combine_backward(device, &own(&on_parts), held.clone(), &dispatch, &on_weights, &on_d_out).unwrap();
        let (expected, expected_weights) = Reference::combine_backward_of(
            &Reference,
            &matrices[held.clone()],
            held.clone(),
            &dispatch,
            &weights,
            &d_out,
        );
        // What the parts that are not here would add is not there.
        let here = |row: usize| dispatch.places(row).iter().map(|(part, _)| held.contains(part));
        let masked: Vec<f32> = (0..count)
            .flat_map(here)
            .zip(expected_weights.data())
            .map(|(here, d)| if here { *d } else { 0.0 })
            .collect();
        close("d weights", &d_weights.to_host().unwrap(), &masked, 1e-6);
        assert_eq!(d_parts.len(), expected.len());
        for (d_part, expected) in d_parts.iter().zip(&expected) {
            assert_eq!(d_part.to_host().unwrap(), expected.data());
        }
    }
}

#[test]
fn sums_of_experts_and_their_gradients() {
    on_device(|device| {
        compare(device, (1, 1, 1), 1);
        compare(device, (7, 3, 6), 45);
        compare(device, (4, 2, 9), 300);
    });
}

#[test]
fn parts_are_checked() {
    on_device(|device| {
        let dispatch = dispatch(3, 2, 4);
        let on_device = |width: usize| -> Vec<DeviceRows> {
            parts(&dispatch, width).iter().map(|part| rows(device, part, width)).collect()
        };
        let zeros = |rows, width| DeviceRows::<f32>::zeros(device, rows, width).unwrap();
        let own = on_device(5);
        combine(device, &own, &dispatch, None, &mut zeros(3, 5)).unwrap();
        assert!(combine(device, &own[1..], &dispatch, None, &mut zeros(3, 5)).is_err());
        assert!(combine(device, &own, &dispatch, None, &mut zeros(4, 5)).is_err());
        assert!(combine(device, &on_device(6), &dispatch, None, &mut zeros(3, 5)).is_err());
        assert!(combine(device, &own, &dispatch, Some(&zeros(3, 1)), &mut zeros(3, 5)).is_err());
        let backward = |held, weights: &DeviceRows| {
            combine_backward(device, &own, held, &dispatch, weights, &zeros(3, 5)).is_err()
        };
        assert!(backward(1..own.len() + 1, &zeros(3, 2)) && backward(0..own.len(), &zeros(3, 3)));
    });
}
