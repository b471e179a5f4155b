//! Mixtures of experts, attention sinks, and heads with one output.

use std::ops::Range;

use super::Cuda;
use super::exchange::{concat, connect, gather};
use super::low_rank::LowRank;
use super::params::CudaParams;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::ops::combine::{combine, combine_backward};
use crate::backend::cuda::ops::routing::{route, route_backward};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::scalar_head::{DeviceScalarHead, scalar_head, scalar_head_backward};
use crate::backend::cuda::ops::sinks::{add_sinks, sinks_backward};
use crate::backend::{Dispatch, FamilyOps, RouterRule, ScalarHead};
use crate::collective::Ranks;

impl FamilyOps<Self> for Cuda {
    fn route(cuda: &Self, rule: RouterRule, correction: &[f32], logits: &DeviceRows) -> (Dispatch, DeviceRows) {
        let routed = cuda.device.upload(correction).and_then(|own| route(&cuda.device, rule, &own, logits));
        cuda.done(routed)
    }

    fn route_backward(
        cuda: &Self,
        rule: RouterRule,
        logits: &DeviceRows,
        dispatch: &Dispatch,
        weights: &DeviceRows,
        d_weights: &DeviceRows,
    ) -> DeviceRows {
        cuda.done(route_backward(&cuda.device, rule, logits, dispatch, weights, d_weights))
    }

    fn combine(
        cuda: &Self,
        parts: &[DeviceRows],
        dispatch: &Dispatch,
        weights: Option<&DeviceRows>,
        onto: &mut DeviceRows,
    ) {
        cuda.done(combine(&cuda.device, parts, dispatch, weights, onto));
    }

    fn combine_backward(
        cuda: &Self,
        parts: &[DeviceRows],
        dispatch: &Dispatch,
        weights: &DeviceRows,
        d_out: &DeviceRows,
    ) -> (Vec<DeviceRows>, DeviceRows) {
        Self::combine_backward_of(cuda, parts, 0..parts.len(), dispatch, weights, d_out)
    }

    fn combine_backward_of(
        cuda: &Self,
        parts: &[DeviceRows],
        held: Range<usize>,
        dispatch: &Dispatch,
        weights: &DeviceRows,
        d_out: &DeviceRows,
    ) -> (Vec<DeviceRows>, DeviceRows) {
        cuda.done(combine_backward(&cuda.device, parts, held, dispatch, weights, d_out))
    }

    fn gather_parts(
        cuda: &Self,
        own: &[DeviceRows],
        extents: &[(usize, usize)],
        width: usize,
        ranks: &Ranks,
    ) -> Vec<DeviceRows> {
        let mut lengths = vec![0; ranks.world()];
        extents.iter().for_each(|(rank, rows)| lengths[*rank] += rows * width);
        let mine = concat(&cuda.device, own.iter().map(|part| (part.data(), 0..part.data().len())));
        let all = gather(&cuda.device, ranks, cuda.done(mine), &lengths);
        let mut read = vec![0; ranks.world()];
        let part = |(rank, rows): &(usize, usize)| {
            let first = read[*rank];
            read[*rank] += rows * width;
            match &all {
                Some(all) => DeviceRows::from_data(all[*rank].copy(first..read[*rank])?, *rows, width),
                None => DeviceRows::zeros(&cuda.device, *rows, width),
            }
        };
        cuda.done(extents.iter().map(part).collect())
    }

    fn connect(cuda: &Self, ranks: Ranks) -> Result<Ranks, String> {
        connect(cuda, ranks)
    }

    fn low_rank_rows(cuda: &Self, low_rank: &LowRank, segment: usize, rank: usize) -> DeviceRows {
        cuda.done(low_rank.of_segment(cuda, segment, rank))
    }

    fn add_sinks(cuda: &Self, sinks: &Slice<f32>, [out, log_sums]: &mut [DeviceRows; 2]) {
        cuda.done(add_sinks(&cuda.device, sinks, [out, log_sums]));
    }

    fn sinks_backward(
        cuda: &Self,
        sinks: &Slice<f32>,
        attended: [&DeviceRows; 2],
        d_out: &DeviceRows,
        grads: &mut CudaParams,
        index: usize,
    ) {
        cuda.done(sinks_backward(&cuda.device, sinks, attended, d_out, &mut grads.0[index]));
    }

    fn scalar_head(cuda: &Self, head: ScalarHead<'_, Self>, x: &DeviceRows, rows: Range<usize>) -> Vec<f32> {
        cuda.done(scalar_head(&cuda.device, of(head), x, rows))
    }

    fn scalar_head_backward(
        cuda: &Self,
        head: ScalarHead<'_, Self>,
        x: &DeviceRows,
        rows: Range<usize>,
        dy: &[f32],
        dx: &mut DeviceRows,
        grads: Option<&mut CudaParams>,
    ) {
        let both = grads.and_then(|grads| grads.0.get_disjoint_mut([head.weight, head.weight + 1]).ok());
        let grads = both.map(|[weight, bias]| DeviceScalarHead { weight, bias });
        cuda.done(scalar_head_backward(&cuda.device, of(head), x, rows, dy, dx, grads));
    }
}

fn of<'a>(ScalarHead { params, weight }: ScalarHead<'a, Cuda>) -> DeviceScalarHead<&'a Slice<f32>> {
    DeviceScalarHead { weight: &params.0[weight], bias: &params.0[weight + 1] }
}
