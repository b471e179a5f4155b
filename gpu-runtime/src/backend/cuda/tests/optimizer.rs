use trainyard_protocol::AdamParams;

use super::simulated::on_device;
use super::support::values;
use crate::backend::cpu::Cpu;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::optimizer::{DeviceStep, adamw};
use crate::backend::host::HostParams;
use crate::backend::{AdamWStep, Backend};

/// Lengths of the arrays of each set of parameters: across chunks of a block, and without an element.
const SETS: [&[usize]; 3] = [&[1, 4096, 33], &[5000], &[0, 7]];

/// Parameters, gradients, first and second moments of a set.
struct Set([HostParams; 4]);

impl Set {
    fn new(lens: &[usize], seed: u64) -> Self {
        let array = |part: u64| move |(i, len): (usize, &usize)| values(*len, 1000 * seed + 100 * part + i as u64);
        let part = |part| HostParams::new(lens.iter().enumerate().map(array(part)).collect());
        let mut set = Self([part(0), part(1), part(2), part(3)]);
        set.0[3].iter_mut().flatten().for_each(|v| *v = v.abs());
        set
    }

    fn upload(&self, device: &CudaDevice) -> [Vec<Slice<f32>>; 4] {
        self.0.each_ref().map(|part| part.iter().map(|values| device.upload(values).unwrap()).collect())
    }
}

fn hyper(set: usize) -> AdamParams {
    // In one set no denominator where there was no gradient, and the other way to blend.
    let (eps, beta1) = if set == 1 { (0.0, 0.3) } else { (1e-8, 0.9) };
    AdamParams { learning_rate: 3e-3, beta1, beta2: 0.95, eps, weight_decay: 0.1, grad_clip_norm: 0.0 }
}

#[test]
fn a_step_has_the_bits_of_the_processors() {
    on_device(|device| {
        let mut sets: Vec<Set> = SETS.iter().zip(1..).map(|(lens, seed)| Set::new(lens, seed)).collect();
        (sets[1].0[1][0][3], sets[1].0[2][0][3], sets[1].0[3][0][3]) = (0.0, 0.0, 0.0);
        let mut found: Vec<_> = sets.iter().map(|set| set.upload(device)).collect();
        let hypers = [0, 1, 2].map(hyper);
        let steps = found.iter_mut().zip(&hypers).zip([1, 7, 1000]).map(|(([params, grads, m, v], hyper), step)| {
            DeviceStep { params, grads, moments: [m, v], hyper, step, grad_scale: 0.5 }
        });
        adamw(device, steps.collect()).unwrap();
        let steps =
            sets.iter_mut().zip(&hypers).zip([1, 7, 1000]).map(|((Set([params, grads, m, v]), hyper), step)| {
                AdamWStep { params, grads, moments: [m, v], hyper, step, grad_scale: 0.5 }
            });
        assert!(Cpu::new(1).adamw(steps.collect()).iter().all(Result::is_ok));
        for (found, Set(expected)) in found.iter().zip(&sets) {
            for (found, expected) in found.iter().zip(expected) {
                let found: Vec<Vec<f32>> = found.iter().map(|values| values.to_host().unwrap()).collect();
                assert_eq!(found, expected.iter().collect::<Vec<_>>());
            }
        }
    });
}

#[test]
fn lengths_have_to_agree() {
    on_device(|device| {
        let hyper = hyper(0);
        let [mut params, mut m, mut v] = [0; 3].map(|_| vec![device.zeros::<f32>(4).unwrap()]);
        let grads = vec![device.zeros::<f32>(3).unwrap()];
        let step = DeviceStep {
            params: &mut params,
            grads: &grads,
            moments: [&mut m, &mut v],
            hyper: &hyper,
            step: 1,
            grad_scale: 1.0,
        };
        assert!(adamw(device, vec![step]).is_err());
        adamw(device, Vec::new()).unwrap();
    });
}
