//! Short convolutions and scaled sums on the device.

use super::Cuda;
use super::params::CudaParams;
use super::states::{StatePool, whole_sequences};
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::ops::convolution::{DeviceConvolution, convolve, convolve_backward};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::scale::add_scaled;
use crate::backend::cuda::ops::sequences::DeviceSequences;
use crate::backend::{ConvolutionCall, ConvolutionOps, ScaleOps};

fn convolution<'a>(
    call: &ConvolutionCall<'a, Cuda>,
    sequences: &'a DeviceSequences,
    state: usize,
) -> DeviceConvolution<'a> {
    DeviceConvolution { shape: call.shape, weight: call.weight, sequences, state }
}

impl ConvolutionOps<Self> for Cuda {
    const HAS_CONVOLUTIONS: bool = true;

    fn convolve(
        cuda: &Self,
        call: &ConvolutionCall<'_, Self>,
        pool: &mut StatePool,
        inputs: &DeviceRows,
    ) -> DeviceRows {
        let run = || -> Result<DeviceRows> {
            let sequences = pool.sequences(&cuda.device, call.spans, inputs.rows())?;
            convolve(&cuda.device, convolution(call, &sequences, pool.layer(call.layer)), inputs)
        };
        cuda.done(run())
    }

    fn convolve_backward(
        cuda: &Self,
        call: &ConvolutionCall<'_, Self>,
        inputs: &DeviceRows,
        d_out: &DeviceRows,
        dw: Option<(&mut CudaParams, usize)>,
    ) -> DeviceRows {
        let run = || -> Result<DeviceRows> {
            let sequences = whole_sequences(&cuda.device, call.spans, inputs.rows())?;
            let dw = dw.map(|(params, index)| &mut params.0[index]);
            convolve_backward(&cuda.device, convolution(call, &sequences, 0), inputs, d_out, dw)
        };
        cuda.done(run())
    }
}

impl ScaleOps<Self> for Cuda {
    const HAS_SCALES: bool = true;

    fn add_scaled_rows(cuda: &Self, scale: f32, from: &DeviceRows, to: &mut DeviceRows) {
        cuda.done(add_scaled(&cuda.device, scale, from, to));
    }
}
