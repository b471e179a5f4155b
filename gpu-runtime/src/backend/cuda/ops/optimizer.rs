//! AdamW over the parameters of several runs in one launch.

use trainyard_protocol::AdamParams;

use super::squares::Chunks;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::{Element, Slice};
use crate::backend::cuda::device::open::CudaDevice;

/// One AdamW step of one set of parameters.
pub(crate) struct DeviceStep<'a> {
    /// Masters, which are updated.
    pub params: &'a mut [Slice<f32>],
    /// Accumulated gradient, of the same lengths.
    pub grads: &'a [Slice<f32>],
    /// First and second moments, which are updated, of the same lengths.
    pub moments: [&'a mut [Slice<f32>]; 2],
    /// Learning rate, betas, epsilon and weight decay.
    pub hyper: &'a AdamParams,
    /// Number of the step, counted from 1.
    pub step: u64,
    /// Multiplies the gradient: clipping by norm.
    pub grad_scale: f32,
}

/// An array with all that a step reads and writes.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Array {
    param: u64,
    gradient: u64,
    moments: [u64; 2],
    length: u64,
    rule: u64,
}

impl Element for Array {}

/// Constants of a step that apply to every element, rounded to f32 as on the CPU.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Rule {
    grad_scale: f32,
    /// Factor of a weight after weight decay.
    keep: f32,
    blend: f32,
    beta2: f32,
    rest2: f32,
    /// Learning rate, corrected for the bias of the first moment.
    step_size: f32,
    /// Square root of the correction for the bias of the second.
    correction: f32,
    eps: f32,
}

impl Element for Rule {}

impl Rule {
    fn new(hyper: &AdamParams, step: u64, grad_scale: f32) -> Self {
        let exponent = step.max(1) as f64;
        Self {
            grad_scale,
            keep: (1.0 - hyper.learning_rate * hyper.weight_decay) as f32,
            blend: (1.0 - hyper.beta1) as f32,
            beta2: hyper.beta2 as f32,
            rest2: (1.0 - hyper.beta2) as f32,
            step_size: (hyper.learning_rate / (1.0 - hyper.beta1.powf(exponent))) as f32,
            correction: (1.0 - hyper.beta2.powf(exponent)).sqrt() as f32,
            eps: hyper.eps as f32,
        }
    }
}

/// AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101) in the order of operations of `torch.optim.AdamW`: decay, moments, bias
/// correction, update. Elements are independent, and have the bits that the CPU backend gives them. Where the denominator is zero
/// the parameter only decays.
pub(crate) fn adamw(device: &CudaDevice, steps: Vec<DeviceStep<'_>>) -> Result {
    let extents = Extents("adamw");
    let (mut arrays, mut rules, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    for DeviceStep { params, grads, moments: [first, second], hyper, step, grad_scale } in steps {
        for (what, count) in [("the gradients", grads.len()), ("the moments", first.len().min(second.len()))] {
            extents.equal(what, count, params.len())?;
        }
        for (((param, gradient), first), second) in params.iter().zip(grads).zip(first.iter()).zip(second.iter()) {
            for other in [gradient, first, second] {
                extents.equal("a gradient's or moment's length", other.len(), param.len())?;
            }
            lengths.push(param.len());
            arrays.push(Array {
                param: param.address(),
                gradient: gradient.address(),
                moments: [first.address(), second.address()],
                length: param.len() as u64,
                rule: rules.len() as u64,
            });
        }
        rules.push(Rule::new(hyper, step, grad_scale));
    }
    let chunks = Chunks::new(device, extents, &lengths)?;
    let (arrays, rules) = (device.upload(&arrays)?, device.upload(&rules)?);
    let arguments = [(&arrays).into(), (&rules).into(), (&chunks.first).into(), chunks.arrays.into()];
    device.launch("adamw", [chunks.blocks, 1, 1], 256, &arguments)
}
