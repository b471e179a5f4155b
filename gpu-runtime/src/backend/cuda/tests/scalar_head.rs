use super::simulated::on_device;
use super::support::{close, rows, values};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::scalar_head::{DeviceScalarHead, scalar_head, scalar_head_backward};
use crate::backend::host::HostParams;
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{FamilyOps, ScalarHead};

fn compare(device: &CudaDevice, count: usize, width: usize) {
    let of = 1..count + 1;
    let (params, old) = (vec![values(width, 1), values(1, 2)], vec![values(width, 3), values(1, 4)]);
    let (x, old_dx, dy) = (values((count + 2) * width, 5), values((count + 2) * width, 6), values(count, 7));

    let [weight, bias] = [0, 1].map(|i| device.upload::<f32>(&params[i]).unwrap());
    let head = DeviceScalarHead { weight: &weight, bias: &bias };
    let (on_x, mut dx) = (rows::<f32>(device, &x, width), rows::<f32>(device, &old_dx, width));
    let found = scalar_head(device, head, &on_x, of.clone()).unwrap();
    scalar_head_backward(device, head, &on_x, of.clone(), &dy, &mut dx, None).unwrap();
    let without = dx.to_host().unwrap();
    let [mut dw, mut db] = [0, 1].map(|i| device.upload::<f32>(&old[i]).unwrap());
    let grads = DeviceScalarHead { weight: &mut dw, bias: &mut db };
    scalar_head_backward(device, head, &on_x, of.clone(), &dy, &mut dx, Some(grads)).unwrap();
    assert_eq!(dx.to_host().unwrap(), without);

    let params = HostParams::new(params);
    let (x, mut expected_dx, mut grads) = (Matrix::new(x, width), Matrix::new(old_dx, width), HostParams::new(old));
    let head = ScalarHead { params: &params, weight: 0 };
    let expected = Reference::scalar_head(&Reference, head, &x, of.clone());
    Reference::scalar_head_backward(&Reference, head, &x, of, &dy, &mut expected_dx, Some(&mut grads));
    close("values", &found, &expected, 2e-6);
    assert_eq!(without, expected_dx.data());
    assert_eq!([dw.to_host().unwrap(), db.to_host().unwrap()], grads.iter().collect::<Vec<_>>()[..]);
}

#[test]
fn values_and_their_gradients() {
    on_device(|device| {
        for (count, width) in [(1, 1), (3, 45), (5, 32), (2, 256), (2, 700), (0, 4)] {
            compare(device, count, width);
        }
    });
}

#[test]
fn extents_have_to_fit() {
    on_device(|device| {
        let [weight, bias] = [4, 1].map(|len| device.zeros::<f32>(len).unwrap());
        let head = DeviceScalarHead { weight: &weight, bias: &bias };
        let (x, mut narrow) =
            (DeviceRows::<f32>::zeros(device, 3, 4).unwrap(), DeviceRows::<f32>::zeros(device, 3, 3).unwrap());
        assert!(scalar_head(device, head, &x, 0..4).is_err());
        assert!(scalar_head(device, head, &narrow, 0..3).is_err());
        assert!(scalar_head(device, DeviceScalarHead { weight: &weight, bias: &weight }, &x, 0..3).is_err());
        assert!(scalar_head_backward(device, head, &x, 0..3, &[0.0; 3], &mut narrow, None).is_err());
        let mut dx = x.copy().unwrap();
        assert!(scalar_head_backward(device, head, &x, 0..3, &[0.0; 2], &mut dx, None).is_err());
        let [mut dw, mut db] = [3, 1].map(|len| device.zeros::<f32>(len).unwrap());
        let grads = DeviceScalarHead { weight: &mut dw, bias: &mut db };
        assert!(scalar_head_backward(device, head, &x, 0..3, &[0.0; 3], &mut dx, Some(grads)).is_err());
    });
}
