//! The units that replicas gather and reduce one at a time where they divide all parameters of a run (ZeRO stage 3, Rajbhandari et
//! al. 2020, arXiv:1910.02054): the embedding, each block, and the end of the model. The order of these steps in a pass follows
//! from the model and from whether the pass trains, so that all replicas take the same.

use std::collections::VecDeque;

use super::part_exchange::{PIECE, calls};
use crate::backend::{Backend, MatrixRole};
use crate::collective::{CollectiveKind, Extent, slice_of};
use crate::config::ModelConfig;
use crate::model::params::{ParamSpec, ParamTable};

/// Rows of each replica after whose backward pass replicas add up gradients. A replica computes examples until it has
/// this number of rows, at least one example. Neither memory nor kernels nor other requests change it, since bits
/// depend on it.
pub(crate) const ROUND_ROWS: usize = 1024;
/// Bytes of an element of parameters and gradients, as replicas hold and exchange them.
const ELEMENT: usize = size_of::<f32>();

/// A unit of parameters that is gathered at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The token embedding; if it is also the unembedding, also the gradients of everything outside the blocks.
    Embedding,
    /// The parameters of one decoder block.
    Block(usize),
    /// The final norm and the unembedding, or the scalar head in its place.
    Head,
}

/// A step that all replicas take together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Decides whether the pass ends here, because nobody needs its result.
    Decide,
    /// Gathers the parameters of a unit.
    Gather(Unit),
    /// Adds up the gradients of a unit; each replica gets its parts of the sum.
    Reduce(Unit),
}

/// The arrays of each unit of what a run trains.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    /// Lengths of arrays by index.
    lens: Vec<usize>,
    embed: usize,
    /// The first array of each block, then that of the final norm.
    starts: Vec<usize>,
    norm: usize,
    head: usize,
    /// Index of the first array of the scalar head, or one beyond the last array without one.
    scalar_head: usize,
}

impl Units {
    /// Units of a run that trains all parameters of `table`, and `trained` in total.
    pub(crate) fn of(table: &ParamTable, trained: &[ParamSpec]) -> Self {
        let starts = table.blocks.iter().map(|block| block.first).chain([table.norm]).collect();
        Self {
            lens: trained.iter().map(ParamSpec::len).collect(),
            embed: table.embed,
            starts,
            norm: table.norm,
            head: table.head,
            scalar_head: table.specs.len(),
        }
    }

    /// Elements of all arrays, on all replicas together.
    pub(crate) fn lens(&self) -> &[usize] {
        &self.lens
    }

    pub(super) fn has_scalar_head(&self) -> bool {
        self.scalar_head < self.lens.len()
    }

    fn is_tied(&self) -> bool {
        self.head == self.embed
    }

    fn blocks(&self) -> usize {
        self.starts.len() - 1
    }

    fn extents(&self, indices: impl IntoIterator<Item = usize>) -> Vec<Extent> {
        indices.into_iter().map(|index| Extent { index, len: self.lens[index] }).collect()
    }

    /// Arrays whose elements a pass needs for a unit.
    pub(crate) fn gathered(&self, unit: Unit) -> Vec<Extent> {
        let scalar_head = self.scalar_head..self.lens.len();
        match unit {
            Unit::Embedding => self.extents([self.embed]),
            Unit::Block(layer) => self.extents(self.starts[layer]..self.starts[layer + 1]),
            // A scalar head takes the unembedding's place.
            Unit::Head if self.has_scalar_head() => self.extents([self.norm].into_iter().chain(scalar_head)),
            Unit::Head => self.extents([self.norm, self.head]),
        }
    }

    /// Arrays whose gradients are complete when a unit's are. Those of an embedding that is the unembedding too are so at the end,
    /// and with them those of the norm: the unembedding's gradients come first in the sum, then those of lookups.
    pub(crate) fn reduced(&self, unit: Unit) -> Vec<Extent> {
        match unit {
            Unit::Embedding if self.is_tied() => {
                self.extents([self.embed, self.norm].into_iter().chain(self.scalar_head..self.lens.len()))
            }
            Unit::Head if self.is_tied() => Vec::new(),
            unit => self.gathered(unit),
        }
    }

    /// Whether the gradients of the model's end are reduced as soon as they are there, not with the embedding's.
    pub(super) fn reduces_head(&self) -> bool {
        !self.is_tied()
    }

    /// The steps that replicas take together in a pass, in order.
    pub(crate) fn steps(&self, trains: bool) -> VecDeque<Step> {
        let blocks = || (0..self.blocks()).map(Unit::Block);
        let ends = [Unit::Embedding].into_iter().chain(blocks()).chain([Unit::Head]);
        // One before each block, and one after each half.
        let forward = ends.flat_map(|unit| {
            let decide = (unit != Unit::Embedding).then_some(Step::Decide);
            decide.into_iter().chain([Step::Gather(unit)])
        });
        let head = self.reduces_head().then_some(Step::Reduce(Unit::Head));
        let backward = blocks().rev().flat_map(|block| [Step::Decide, Step::Gather(block), Step::Reduce(block)]);
        let backward = head.into_iter().chain(backward).chain([Step::Reduce(Unit::Embedding), Step::Decide]);
        forward.chain(backward.filter(|_| trains)).collect()
    }

    /// Traffic of replica 0 of `world` for the gathers, and for the reductions, of a pass that trains.
    pub(crate) fn traffic(&self, world: usize) -> [UnitTraffic; 2] {
        let mut all = [CollectiveKind::AllGather, CollectiveKind::ReduceScatter].map(|kind| UnitTraffic {
            kind,
            calls: 0,
            elements: 0,
            least: 0.0,
        });
        for step in self.steps(true) {
            let (traffic, arrays) = match step {
                Step::Decide => continue,
                Step::Gather(unit) => (&mut all[0], self.gathered(unit)),
                Step::Reduce(unit) => (&mut all[1], self.reduced(unit)),
            };
            traffic.calls += calls(&arrays, world);
            for Extent { len, .. } in arrays {
                let begins_with = if matches!(step, Step::Reduce(_)) { len } else { slice_of(len, world, 0).len() };
                traffic.elements += traffic.kind.sent(begins_with, 0, world);
                // In equal parts: all but the own one are sent, or each to all others.
                traffic.least += (len * (world - 1)) as f64 / world as f64;
            }
        }
        all
    }

    /// The maximum that a rank holds at once in addition to its parts. `packed` are the bytes of a parameter of
    /// `trained` in the form that passes read; its second argument tells whether backward passes need it too. `lookups`
    /// are the bytes of gradients of a tied embedding as inputs.
    pub(crate) fn memory(
        &self,
        trained: &[ParamSpec],
        packed: impl Fn(&ParamSpec, bool) -> usize,
        lookups: usize,
    ) -> GatheredMemory {
        let elements = |arrays: &[Extent]| arrays.iter().map(|array| array.len).sum::<usize>();
        let floats = |unit| ELEMENT * elements(&self.gathered(unit));
        let gradients = |unit| ELEMENT * elements(&self.reduced(unit));
        let piece = |bytes: usize| bytes.min(ELEMENT * PIECE);
        let packed =
            |unit, trains| self.gathered(unit).iter().map(|of| packed(&trained[of.index], trains)).sum::<usize>();
        // While a unit is exchanged or packed from f32; while it is used; while its gradients are exchanged, a piece for others
        // and one from them.
        let gathering = |unit| floats(unit) + packed(unit, false).max(piece(floats(unit)));
        let reducing = |unit| gradients(unit) + 2 * piece(gradients(unit));
        let (ends, held) = match self.is_tied() {
            true => (gradients(Unit::Embedding), gradients(Unit::Embedding)),
            false => (gradients(Unit::Head), 0),
        };
        let with = |weights, gradients| GatheredMemory { weights, gradients };
        let mut moments = vec![
            with(gathering(Unit::Embedding), 0),
            with(gathering(Unit::Head), 0),
            with(packed(Unit::Head, true), ends),
            with(0, reducing(Unit::Head)),
            with(0, reducing(Unit::Embedding) + lookups),
        ];
        for block in (0..self.blocks()).map(Unit::Block) {
            moments.push(with(gathering(block), held));
            moments.push(with(packed(block, true), held + gradients(block)));
            moments.push(with(0, held + reducing(block)));
        }
        moments.into_iter().max_by_key(|moment| moment.weights + moment.gradients).unwrap_or_default()
    }
}

/// Traffic of a replica in collectives of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UnitTraffic {
    pub(crate) kind: CollectiveKind,
    pub(crate) calls: usize,
    /// Number of elements that it sends.
    pub(crate) elements: usize,
    /// Minimum number of elements that a replica must send, if all send the same number.
    pub(crate) least: f64,
}

/// Bytes that a rank holds in addition to its parts, at the moment of the largest sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GatheredMemory {
    /// Bytes of gathered parameters.
    pub(crate) weights: usize,
    /// Bytes of gradients that are yet to be reduced.
    pub(crate) gradients: usize,
}

/// Bytes of a parameter in the form that passes read, with its transpose if it `trains`; norms and biases may exist
/// twice.
pub(crate) fn packed_bytes<B: Backend>(backend: &B, param: &ParamSpec, trains: bool) -> usize {
    match param.shape[..] {
        [outputs, inputs] => backend.planned_matrix_bytes(outputs, inputs, MatrixRole::Base, trains),
        _ => 2 * ELEMENT * param.len(),
    }
}

/// Bytes of the gradients of a tied embedding as inputs, by token, of a round.
pub(crate) fn lookup_bytes(config: &ModelConfig) -> usize {
    let rows = config.vocab_rows().min(ROUND_ROWS.max(config.max_position_embeddings));
    if config.tie_word_embeddings { rows * config.hidden_size * ELEMENT } else { 0 }
}
