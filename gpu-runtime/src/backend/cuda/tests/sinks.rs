use super::simulated::on_device;
use super::support::{close, rows, values};
use crate::backend::FamilyOps;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::sinks::{add_sinks, sinks_backward};
use crate::backend::host::HostParams;
use crate::backend::reference::{Matrix, Reference};

/// The output, the log-sum-exp and the gradient of the sinks, on the device and on the reference.
fn compare(device: &CudaDevice, count: usize, heads: usize, head_dim: usize) {
    let width = heads * head_dim;
    let (out, sums, d_out) = (values(count * width, 1), values(count * heads, 2), values(count * width, 3));
    let sums: Vec<f32> = sums.iter().map(|x| 40.0 * x).collect();
    let sinks: Vec<f32> = values(heads, 4).iter().map(|x| 30.0 * x).collect();
    let old = values(heads, 5);

    let on_sinks = device.upload(&sinks).unwrap();
    let (mut found, mut found_sums) = (rows(device, &out, width), rows(device, &sums, heads));
    add_sinks(device, &on_sinks, [&mut found, &mut found_sums]).unwrap();
    let mut dw = device.upload(&old).unwrap();
    sinks_backward(device, &on_sinks, [&found, &found_sums], &rows(device, &d_out, width), &mut dw).unwrap();

    let mut expected = [Matrix::new(out, width), Matrix::new(sums, heads)];
    Reference::add_sinks(&Reference, &sinks, &mut expected);
    let mut grads = HostParams::new(vec![old]);
    let d_out = Matrix::new(d_out, width);
    Reference::sinks_backward(&Reference, &sinks, expected.each_ref(), &d_out, &mut grads, 0);
    close("output", &found.to_host().unwrap(), expected[0].data(), 4e-6);
    close("log-sum-exp", &found_sums.to_host().unwrap(), expected[1].data(), 2e-7);
    close("gradient", &dw.to_host().unwrap(), &grads[0], 4e-6);
}

#[test]
fn sinks_and_their_gradient() {
    on_device(|device| {
        for (count, heads, head_dim) in [(1, 1, 1), (7, 5, 33), (3, 2, 64), (2, 9, 300)] {
            compare(device, count, heads, head_dim);
        }
    });
}

#[test]
fn extents_have_to_fit() {
    on_device(|device| {
        let sinks = device.zeros(2).unwrap();
        let zeros = |rows, width| DeviceRows::<f32>::zeros(device, rows, width).unwrap();
        assert!(add_sinks(device, &sinks, [&mut zeros(3, 5), &mut zeros(3, 2)]).is_err());
        assert!(add_sinks(device, &sinks, [&mut zeros(3, 6), &mut zeros(2, 2)]).is_err());
        assert!(add_sinks(device, &sinks, [&mut zeros(3, 6), &mut zeros(3, 3)]).is_err());
        assert!(add_sinks(device, &device.zeros(0).unwrap(), [&mut zeros(3, 6), &mut zeros(3, 0)]).is_err());
        add_sinks(device, &sinks, [&mut zeros(0, 6), &mut zeros(0, 2)]).unwrap();
        let (out, sums) = (zeros(3, 6), zeros(3, 2));
        let mut dw = device.zeros(2).unwrap();
        assert!(sinks_backward(device, &sinks, [&out, &sums], &zeros(3, 5), &mut dw).is_err());
        assert!(sinks_backward(device, &sinks, [&out, &sums], &out, &mut device.zeros(3).unwrap()).is_err());
    });
}
