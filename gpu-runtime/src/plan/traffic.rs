//! What ranks send each other in a training step and in a decoding step.

use serde::Serialize;

use super::Workload;
use super::layout::PlannedLayout;
use super::memory::elements;
use crate::collective::CollectiveKind;
use crate::config::ModelConfig;
use crate::engine::LOGIT_ROWS;
use crate::model::{
    Exchange, Members, ParamTable, Shard, backward_exchanges, embedding_exchanges, forward_exchanges,
    gradient_exchanges, logit_exchanges, loss_exchanges,
};

/// Bytes of what ranks exchange: f32, on every transport.
const ELEMENT: usize = size_of::<f32>();

/// Which ranks take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Tensor parallel ones.
    Tp,
    /// All ranks of a replica.
    Replica,
    /// Those with the same part of each replica.
    Dp,
}

impl Axis {
    /// For people.
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
    /// What they are for.
    pub purpose: &'static str,
    /// Among which ranks.
    pub axis: Axis,
    /// Their kind.
    pub kind: CollectiveKind,
    /// Calls in a step.
    pub calls: usize,
    /// Bytes that rank 0 sends in a step through the exchanges of this version.
    pub bytes: u64,
    /// The least that a rank has to send.
    pub least_bytes: f64,
}

/// What a rank sends in a training step of [`Workload::microbatches`], in whose passes `saved` blocks save their activations.
pub(super) fn training(
    own: &ModelConfig,
    shard: &Shard,
    layout: &PlannedLayout,
    work: &Workload,
    saved: usize,
) -> Vec<Moved> {
    let Workload { microbatch_tokens: rows, microbatches, .. } = *work;
    let (blocks, ranks, lora) = (own.num_layers(), layout.replica(), work.lora.as_ref());
    let trained = ParamTable::new(own).trained(own, lora);
    let mut all = List { layout, moved: Vec::new() };
    let mut pass = forward_exchanges(own, rows, ranks, own.blocks.iter());
    pass.extend(backward_exchanges(own, rows, ranks, blocks - saved, lora));
    all.add_model("rows within blocks", &pass, microbatches);
    all.add_model("embeddings", &embedding_exchanges(own, rows), microbatches);
    all.add_model("loss head", &loss_exchanges(own, rows), microbatches);
    all.add_model("gradients", &gradient_exchanges(shard, layout.tp, &trained), 1);
    let whole = elements(&trained);
    let part = whole.div_ceil(layout.dp);
    all.add("gradients", Axis::Dp, &[of_dp(CollectiveKind::ReduceScatter, whole, 1)], 1);
    match (layout.zero, lora) {
        // Before the forward and before the backward pass of each block, in f32.
        (3, None) => {
            let gathered = of_dp(CollectiveKind::AllGather, part.div_ceil(blocks.max(1)), 2 * blocks);
            all.add("weights", Axis::Dp, &[gathered], microbatches);
        }
        _ => all.add("masters", Axis::Dp, &[of_dp(CollectiveKind::AllGather, part, 1)], 1),
    }
    all.moved
}

/// What a rank sends when each of `rows` sequences gets a token.
pub(super) fn decoding(own: &ModelConfig, layout: &PlannedLayout, rows: usize) -> Vec<Moved> {
    let mut all = List { layout, moved: Vec::new() };
    let pass = forward_exchanges(own, rows, layout.replica(), own.blocks.iter());
    all.add_model("rows within blocks", &pass, 1);
    all.add_model("embeddings", &embedding_exchanges(own, rows), 1);
    all.add_model("logits", &logit_exchanges(own, rows, LOGIT_ROWS), 1);
    all.moved
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
    /// Adds exchanges of ranks of a model, by those who take part.
    fn add_model(&mut self, purpose: &'static str, exchanges: &[Exchange], times: usize) {
        for members in [Members::Tensor, Members::Replica] {
            let of: Vec<_> = exchanges.iter().filter(|exchange| exchange.members == members).copied().collect();
            self.add(purpose, members.into(), &of, times);
        }
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
            let sent: usize = of().map(|e| e.count * kind.sent(e.len, (0, ranks))).sum();
            let least: f64 = of().map(|e| e.count as f64 * kind.least(e.len, ranks)).sum();
            if calls > 0 {
                let (bytes, least_bytes) = ((times * ELEMENT * sent) as u64, least * (times * ELEMENT) as f64);
                self.moved.push(Moved { purpose, axis, kind, calls, bytes, least_bytes });
            }
        }
    }
}
