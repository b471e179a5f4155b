use half::bf16;

use super::simulated::on_device;
use super::support::{close, rounded, rows, values};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::norm::{DeviceNorm, add_norm, norm, norm_backward};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::host::HostParams;
use crate::backend::reference::{Matrix, Reference};
use crate::backend::{Backend, Norm};

const EXTENTS: [(usize, usize); 5] = [(1, 1), (3, 33), (5, 64), (2, 700), (1, 4100)];
const EPS: f32 = 1e-5;

struct Input {
    x: Vec<f32>,
    dy: Vec<f32>,
    weight: Vec<f32>,
    width: usize,
}

impl Input {
    fn new((count, width): (usize, usize)) -> Self {
        let weight = values(width, 5).iter().map(|w| w + 1.5).collect();
        Self { x: values(count * width, 6), dy: values(count * width, 7), weight, width }
    }

    fn matrix(&self, x: &[f32]) -> Matrix {
        Matrix::new(x.to_vec(), self.width)
    }

    fn reference(&self) -> Norm<'_, Reference> {
        Norm { weight: &self.weight, eps: EPS }
    }
}

fn on(weight: &Slice<f32>) -> DeviceNorm<'_> {
    DeviceNorm { weight, eps: EPS }
}

fn normed(device: &CudaDevice, weight: &Slice<f32>, x: &[f32], width: usize) -> Vec<f32> {
    norm::<f32>(device, on(weight), &rows(device, x, width)).unwrap().to_host().unwrap()
}

#[test]
fn rows_are_normalised() {
    on_device(|device| {
        for extents in EXTENTS {
            let input = Input::new(extents);
            let weight = device.upload(&input.weight).unwrap();
            let found = normed(device, &weight, &input.x, input.width);
            let expected = Reference.norm(input.reference(), &input.matrix(&input.x));
            close("norm", &found, expected.data(), 1e-6);
            let left = norm::<bf16>(device, on(&weight), &rows(device, &input.x, input.width)).unwrap();
            assert_eq!(left.to_host().unwrap(), rounded::<bf16>(&found));
            let mut sum = rows(device, &input.dy, input.width);
            add_norm(device, on(&weight), &rows(device, &input.x, input.width), &mut sum).unwrap();
            let expected: Vec<f32> = input.dy.iter().zip(&found).map(|(x, y)| x + y).collect();
            assert_eq!(sum.to_host().unwrap(), expected);
        }
    });
}

#[test]
fn a_row_has_its_bits_in_every_batch() {
    on_device(|device| {
        let input = Input::new((4, 300));
        let weight = device.upload(&input.weight).unwrap();
        let all = normed(device, &weight, &input.x, 300);
        for (row, expected) in input.x.chunks(300).zip(all.chunks(300)) {
            assert_eq!(normed(device, &weight, row, 300), expected);
        }
    });
}

#[test]
fn gradients_are_those_of_the_formula() {
    on_device(|device| {
        for extents in EXTENTS {
            let input = Input::new(extents);
            let [x, dy] = [&input.x, &input.dy].map(|x| rows::<f32>(device, x, input.width));
            let (old_dx, old_dw) = (values(input.x.len(), 8), values(input.width, 9));
            let (weight, mut dw) = (device.upload(&input.weight).unwrap(), device.upload(&old_dw).unwrap());
            let mut dx = rows(device, &old_dx, input.width);
            norm_backward(device, on(&weight), &x, &dy, &mut dx, Some(&mut dw)).unwrap();
            let (mut expected_dx, mut expected_dw) = (input.matrix(&old_dx), HostParams::new(vec![old_dw]));
            let [x, dy] = [&input.x, &input.dy].map(|x| input.matrix(x));
            let sink = Some((&mut expected_dw, 0));
            Reference.norm_backward(input.reference(), &x, &dy, &mut expected_dx, sink);
            close("dx", &dx.to_host().unwrap(), expected_dx.data(), 2e-6);
            close("dw", &dw.to_host().unwrap(), &expected_dw[0], 2e-6);
        }
    });
}

#[test]
fn extents_have_to_fit() {
    on_device(|device| {
        let weight = device.zeros(8).unwrap();
        let x = DeviceRows::zeros(device, 2, 8).unwrap();
        let mut narrow = DeviceRows::zeros(device, 2, 7).unwrap();
        assert!(norm::<f32>(device, on(&weight), &narrow).is_err());
        assert!(add_norm(device, on(&weight), &x, &mut narrow).is_err());
        let error = norm_backward(device, on(&weight), &x, &x, &mut narrow, None).unwrap_err();
        assert_eq!(error.to_string(), "norm_backward: the gradient of the input is 7, not 8");
        let none = DeviceRows::zeros(device, 0, 8).unwrap();
        assert_eq!(norm::<f32>(device, on(&weight), &none).unwrap().rows(), 0);
    });
}
