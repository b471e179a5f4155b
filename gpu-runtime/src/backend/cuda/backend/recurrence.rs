//! Linear recurrences on the device.

use super::Cuda;
use super::params::CudaParams;
use super::states::{StatePool, whole_sequences};
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::ops::norm::DeviceNorm;
use crate::backend::cuda::ops::recurrence::{DeviceRecurrence, MOST_KEY_DIM, recur};
use crate::backend::cuda::ops::recurrence_backward::{RecurrenceGradients, recur_backward};
use crate::backend::cuda::ops::recurrence_gate::{DeviceGate, gate_output};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::sequences::DeviceSequences;
use crate::backend::{RecurrentCall, RecurrentOps, RecurrentParams};

fn recurrence<'a>(
    call: &RecurrentCall<'a, Cuda>,
    sequences: &'a DeviceSequences,
    state: usize,
) -> DeviceRecurrence<'a> {
    DeviceRecurrence {
        shape: call.shape,
        conv: call.conv,
        conv_bias: call.conv_bias,
        a_log: call.a_log,
        dt_bias: call.dt_bias,
        skip: call.skip,
        sequences,
        state,
    }
}

fn gate<'a>(call: &RecurrentCall<'a, Cuda>) -> DeviceGate<'a> {
    DeviceGate { shape: call.shape, norm: DeviceNorm { weight: call.norm.weight, eps: call.norm.eps } }
}

impl RecurrentOps<Self> for Cuda {
    const HAS_RECURRENCES: bool = true;
    const HOLDS_ALL_CHUNKS: bool = true;
    const MOST_KEY_DIM: usize = MOST_KEY_DIM;

    fn recur(cuda: &Self, call: &RecurrentCall<'_, Self>, pool: &mut StatePool, inputs: &DeviceRows) -> DeviceRows {
        let run = || -> Result<DeviceRows> {
            let sequences = pool.sequences(&cuda.device, call.spans, inputs.rows())?;
            recur(&cuda.device, recurrence(call, &sequences, pool.layer(call.layer)), inputs)
        };
        cuda.done(run())
    }

    fn gate_output(cuda: &Self, call: &RecurrentCall<'_, Self>, inputs: &DeviceRows, out: &DeviceRows) -> DeviceRows {
        cuda.done(gate_output(&cuda.device, gate(call), inputs, out))
    }

    fn recur_backward(
        cuda: &Self,
        call: &RecurrentCall<'_, Self>,
        inputs: &DeviceRows,
        out: &DeviceRows,
        d_gated: &DeviceRows,
        dw: Option<(&mut CudaParams, RecurrentParams)>,
    ) -> DeviceRows {
        let run = || -> Result<DeviceRows> {
            let sequences = whole_sequences(&cuda.device, call.spans, inputs.rows())?;
            let grads = dw.map(|(params, own)| RecurrenceGradients { params: &mut params.0, own });
            recur_backward(&cuda.device, recurrence(call, &sequences, 0), gate(call), inputs, out, d_gated, grads)
        };
        cuda.done(run())
    }
}
