//! Traffic between ranks in a training step and in a decoding step.

use std::iter::repeat_n;

use serde::Serialize;

use super::layout::PlannedLayout;
use super::memory::elements;
use super::workload::Workload;
use crate::collective::{CollectiveKind, slice_of};
use crate::config::ModelConfig;
use crate::engine::LOGIT_ROWS;
use crate::model::{
    Exchange, Members, ParamSpec, ParamTable, ROUND_ROWS, Saved, Shard, UnitTraffic, Units, backward_exchanges,
    embedding_exchanges, forward_exchanges, gradient_exchanges, logit_exchanges, loss_exchanges,
};

/// Bytes of what ranks exchange: f32, on every transport.
const ELEMENT: usize = size_of::<f32>();

/// Group of ranks that take part in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Tensor-parallel ranks of a replica.
    Tp,
    /// All ranks of a replica.
    Replica,
    /// Ranks with the same part of each replica.
    Dp,
}

impl Axis {
    /// Returns the name of the axis in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tp => "tp",
            Self::Replica => "tp*ep",
            Self::Dp => "dp",
        }
    }

    /// Ranks of a group, and how far apart neighbours in it are.
    pub(super) fn group(self, layout: &PlannedLayout) -> (usize, usize) {
        match self {
            Self::Tp => (layout.tp, 1),
            Self::Replica => (layout.replica(), 1),
            Self::Dp => (layout.dp, layout.replica()),
        }
    }
}

impl From<Members> for Axis {
    fn from(members: Members) -> Self {
        match members {
            Members::Tensor => Self::Tp,
            Members::Replica => Self::Replica,
        }
    }
}

/// Collectives of one kind and purpose in a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Purpose of the collectives.
    pub purpose: &'static str,
    /// Ranks that take part.
    pub axis: Axis,
    /// Kind of the collectives.
    pub kind: CollectiveKind,
    /// Number of calls in a step.
    pub calls: usize,
    /// Bytes that rank 0 sends in a step through the exchanges of this version.
    pub bytes: u64,
    /// Minimum number of bytes that a rank must send.
    pub least_bytes: f64,
}

/// Traffic of a rank in a training step of [`Workload::microbatches`], whose passes keep `saved`.
pub(super) fn training(
    own: &ModelConfig,
    shard: &Shard,
    layout: &PlannedLayout,
    work: &Workload,
    saved: Saved,
) -> Vec<Moved> {
    let Workload { microbatch_tokens: rows, microbatches, .. } = *work;
    let (blocks, ranks, lora) = (own.num_layers(), layout.replica(), work.lora.as_ref());
    let table = ParamTable::new(own);
    let trained = table.trained(own, lora);
    let mut all = List { layout, moved: Vec::new() };
    let mut pass = forward_exchanges(own, rows, ranks, own.blocks.iter());
    pass.extend(backward_exchanges(own, rows, ranks, blocks - saved.blocks, lora));
    let repeated = own.blocks.iter().zip(saved.repeated(blocks)).flat_map(|(block, times)| repeat_n(block, times));
    pass.extend(forward_exchanges(own, rows, ranks, repeated));
    all.add_model("rows within blocks", &pass, microbatches);
    all.add_model("embeddings", &embedding_exchanges(own, rows), microbatches);
    all.add_model("loss head", &loss_exchanges(own, rows), microbatches);
    all.add_model("gradients", &gradient_exchanges(shard, layout.tp, &parts(&trained, layout, work)), 1);
    if layout.divides(work) {
        // Before the forward and the backward pass of each unit, and after the latter.
        let [gathers, reductions] = Units::of(&table, &trained).traffic(layout.dp);
        let passes = microbatches * rounds(rows, work.context);
        all.add_units("gradients", &reductions, passes);
        all.add_units("weights", &gathers, passes);
        return all.moved;
    }
    let whole = elements(&trained);
    all.add("gradients", Axis::Dp, &[of_dp(CollectiveKind::ReduceScatter, whole, 1)], 1);
    all.add("masters", Axis::Dp, &[of_dp(CollectiveKind::AllGather, whole.div_ceil(layout.dp), 1)], 1);
    all.moved
}

/// Traffic of a rank when each of `rows` sequences gets a token.
pub(super) fn decoding(own: &ModelConfig, layout: &PlannedLayout, rows: usize) -> Vec<Moved> {
    let mut all = List { layout, moved: Vec::new() };
    let pass = forward_exchanges(own, rows, layout.replica(), own.blocks.iter());
    all.add_model("rows within blocks", &pass, 1);
    all.add_model("embeddings", &embedding_exchanges(own, rows), 1);
    all.add_model("logits", &logit_exchanges(own, rows, LOGIT_ROWS), 1);
    all.moved
}

/// Passes in which a replica computes `rows` rows of examples of `context` tokens, where it divides parameters with others.
fn rounds(rows: usize, context: usize) -> usize {
    let example = context.min(rows);
    rows.div_ceil((ROUND_ROWS / example).max(1) * example)
}

/// Elements that tensor-parallel ranks add up at the end of a request: all of a rank's gradients, or its part of them
/// if replicas have added them up before.
fn parts(trained: &[ParamSpec], layout: &PlannedLayout, work: &Workload) -> Vec<ParamSpec> {
    let part = |spec: &ParamSpec| ParamSpec { shape: vec![slice_of(spec.len(), layout.dp, 0).len()], ..spec.clone() };
    if layout.divides(work) { trained.iter().map(part).collect() } else { trained.to_vec() }
}

/// Members are those of the list that it is added to.
fn of_dp(kind: CollectiveKind, len: usize, count: usize) -> Exchange {
    Exchange { members: Members::Replica, kind, len, count }
}

struct List<'a> {
    layout: &'a PlannedLayout,
    moved: Vec<Moved>,
}

impl List<'_> {
    /// Adds exchanges of ranks of a model, by their members.
    fn add_model(&mut self, purpose: &'static str, exchanges: &[Exchange], times: usize) {
        for members in [Members::Tensor, Members::Replica] {
            let of: Vec<_> = exchanges.iter().filter(|exchange| exchange.members == members).copied().collect();
            self.add(purpose, members.into(), &of, times);
        }
    }

    /// Adds what replicas exchange in each of `times` passes over a run that they divide.
    fn add_units(&mut self, purpose: &'static str, traffic: &UnitTraffic, times: usize) {
        let (bytes, least_bytes) =
            ((times * ELEMENT * traffic.elements) as u64, traffic.least * (times * ELEMENT) as f64);
        let (kind, calls) = (traffic.kind, times * traffic.calls);
        self.moved.push(Moved { purpose, axis: Axis::Dp, kind, calls, bytes, least_bytes });
    }

    /// Adds exchanges, by kind, that happen `times` times; none where a group has one rank.
    fn add(&mut self, purpose: &'static str, axis: Axis, exchanges: &[Exchange], times: usize) {
        let (ranks, _) = axis.group(self.layout);
        if ranks == 1 {
            return;
        }
        for kind in CollectiveKind::ALL {
            let of = || exchanges.iter().filter(|exchange| exchange.kind == kind);
            let calls = times * of().map(|exchange| exchange.count).sum::<usize>();
            let sent: usize = of().map(|e| e.count * kind.sent(e.len, 0, ranks)).sum();
            let least: f64 = of().map(|e| e.count as f64 * kind.least(e.len, ranks)).sum();
            if calls > 0 {
                let (bytes, least_bytes) = ((times * ELEMENT * sent) as u64, least * (times * ELEMENT) as f64);
                self.moved.push(Moved { purpose, axis, kind, calls, bytes, least_bytes });
            }
        }
    }
}
