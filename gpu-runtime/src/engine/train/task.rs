//! A training request in progress.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_protocol::{OpError, RequestId, RunId, TenantShare};

use super::loss_thread::PostponedLoss;
use crate::backend::Backend;
use crate::loss::{LossFn, LossValue, PreparedDatum, most_elements};
use crate::model::zero::replicas::divide;
use crate::model::{FailedDatum, GradientSum, GroupOutput, TrainOutput};
use crate::vision::{Embeddings, ImageEmbedding};

/// What a datum costs in a pass.
#[derive(Clone, Copy)]
pub(super) struct DatumCost {
    pub(super) rows: usize,
    /// Maximum number of elements that a custom loss computes for the datum.
    pub(super) elements: usize,
    /// Tokens that the tenant's share is charged.
    pub(super) charge: usize,
}

/// It changes its run only when it completes.
pub(super) struct TrainTask<B: Backend> {
    pub(super) id: RequestId,
    pub(super) share: TenantShare,
    pub(super) run: RunId,
    pub(super) loss: LossFn,
    pub(super) data: Vec<Arc<PreparedDatum>>,
    /// Embeddings of all images.
    pub(super) embeddings: Embeddings<B>,
    /// Datums that each replica computes, by index and in order.
    queues: Vec<Vec<usize>>,
    /// Number of computed datums of each replica.
    computed: Vec<usize>,
    /// Outputs of the computed datums.
    outputs: Vec<Option<TrainOutput>>,
    /// End of the datums of each replica whose losses need no evaluation in a pass: the computed ones and those that were
    /// postponed.
    evaluated: Vec<usize>,
    /// Losses of this replica's datums that are to be evaluated beside the engine.
    postponed: Vec<PostponedLoss>,
    /// Losses of this replica's datums that were, by index of the datum.
    losses: BTreeMap<usize, Result<LossValue, OpError>>,
    /// Whether a replica's losses are to be evaluated beside the engine: no pass takes the request meanwhile.
    awaits_losses: bool,
    /// The first datum, of those computed, whose loss is not finite: only those before it are computed yet.
    failure: Option<FailedDatum>,
    /// Whether it computes gradients.
    pub(super) trains: bool,
    /// The sum over the datums that this replica has computed so far; `None` before the first one.
    pub(super) grads: Option<GradientSum<B>>,
    /// Number of datums until which it runs in microbatches by itself, because a pass that it took part in panicked.
    quarantined_until: usize,
}

impl<B: Backend> TrainTask<B> {
    /// A request that `replicas` replicas compute.
    pub(super) fn new(
        id: RequestId,
        share: TenantShare,
        run: RunId,
        loss: LossFn,
        data: Vec<PreparedDatum>,
        trains: bool,
        replicas: usize,
    ) -> Self {
        let mut task = Self {
            id,
            share,
            run,
            loss,
            data: data.into_iter().map(Arc::new).collect(),
            embeddings: Embeddings::new(),
            queues: Vec::new(),
            computed: vec![0; replicas],
            outputs: Vec::new(),
            evaluated: vec![0; replicas],
            postponed: Vec::new(),
            losses: BTreeMap::new(),
            awaits_losses: false,
            failure: None,
            trains,
            grads: None,
            quarantined_until: 0,
        };
        task.reset();
        task
    }

    fn reset(&mut self) {
        // Results depend on this: it must depend only on the request.
        self.queues = divide(self.data.iter().map(|datum| datum.tokens.len()), self.computed.len());
        self.computed.fill(0);
        self.evaluated.fill(0);
        self.outputs = self.data.iter().map(|_| None).collect();
        (self.failure, self.grads) = (None, None);
        self.postponed.clear();
        self.losses.clear();
        self.awaits_losses = false;
    }

    pub(super) fn is_quarantined(&self) -> bool {
        self.progress() < self.quarantined_until
    }

    /// Datums that are computed.
    pub(super) fn progress(&self) -> usize {
        self.computed.iter().sum()
    }

    /// Resets the request to its first datum. It runs in microbatches by itself until datum `quarantined_until`.
    pub(super) fn restart(&mut self, quarantined_until: usize) {
        self.reset();
        self.quarantined_until = quarantined_until;
    }

    /// What the datum costs that is `ahead` datums after a replica's next one.
    pub(super) fn cost_ahead(&self, replica: usize, ahead: usize) -> Option<DatumCost> {
        let datum = &self.data[*self.queues[replica].get(self.computed[replica] + ahead)?];
        let is_evaluated = self.computed[replica] + ahead < self.evaluated[replica];
        let elements = if is_evaluated { 0 } else { most_elements(&self.loss, datum) };
        let rows = datum.tokens.len();
        // A target of a custom loss takes about as long as a token, and the base model's forward pass less than a pass that trains.
        let charge = if elements > 0 { rows.max(datum.targets.len()) } else { rows };
        let charge = charge + if datum.kl_weights.is_some() { rows } else { 0 };
        Some(DatumCost { rows, elements, charge })
    }

    fn next_indices(&self, replica: usize, count: usize) -> &[usize] {
        &self.queues[replica][self.computed[replica]..][..count]
    }

    /// A replica's next datums.
    pub(super) fn next(&self, replica: usize, count: usize) -> Vec<&PreparedDatum> {
        self.next_indices(replica, count).iter().map(|index| &*self.data[*index]).collect()
    }

    /// Takes the losses of the first of this replica's next datums that were evaluated beside the engine.
    pub(super) fn take_losses(&mut self, replica: usize, count: usize) -> Vec<Result<LossValue, OpError>> {
        let next = self.next_indices(replica, count).to_vec();
        next.iter().map_while(|index| self.losses.remove(index)).collect()
    }

    /// Whether a pass can take its next datums.
    pub(super) fn is_ready(&self) -> bool {
        !self.awaits_losses
    }

    /// Takes what this replica has to evaluate beside the engine.
    pub(super) fn take_postponed(&mut self) -> Vec<PostponedLoss> {
        std::mem::take(&mut self.postponed)
    }

    /// Stores what this replica evaluated beside the engine.
    pub(super) fn store_losses(&mut self, losses: Vec<(usize, Result<LossValue, OpError>)>) {
        self.losses.extend(losses);
        self.awaits_losses = false;
    }

    /// Embeddings of the images of a replica's next datums; empty if the request has no images.
    pub(super) fn next_images(&self, replica: usize, count: usize) -> Vec<Vec<Arc<ImageEmbedding<B>>>> {
        if self.embeddings.is_empty() {
            return Vec::new();
        }
        let of = |datum: &PreparedDatum| {
            datum.images.iter().filter_map(|image| self.embeddings.get(&image.digest).cloned()).collect()
        };
        self.next(replica, count).into_iter().map(of).collect()
    }

    /// Stores what a replica computed of its next datums; `is_own` on that replica.
    pub(super) fn store(&mut self, replica: usize, outcome: Result<GroupOutput, FailedDatum>, is_own: bool) {
        let first = self.computed[replica];
        let queue = &self.queues[replica][first..];
        let done = match outcome {
            Ok(GroupOutput { datums, postponed }) => {
                let done = datums.len();
                for (index, output) in queue.iter().zip(datums) {
                    self.outputs[*index] = Some(output);
                }
                self.awaits_losses |= !postponed.is_empty();
                self.evaluated[replica] = first + done + postponed.len();
                if is_own {
                    let behind = queue.iter().skip(done).zip(postponed);
                    let of =
                        |(&index, logprobs)| PostponedLoss { index, datum: Arc::clone(&self.data[index]), logprobs };
                    self.postponed = behind.map(of).collect();
                }
                done
            }
            Err(FailedDatum { at, error }) => {
                // It is beyond the end where a datum before it has failed.
                if let Some(index) = queue.get(at) {
                    self.failure = Some(FailedDatum { at: *index, error });
                }
                at
            }
        };
        self.computed[replica] = first + done;
        // Of several errors the request has the first one's, whichever is met first.
        let Some(FailedDatum { at: end, .. }) = self.failure else { return };
        for (queue, computed) in self.queues.iter_mut().zip(&mut self.computed) {
            queue.truncate(queue.partition_point(|index| *index < end));
            *computed = (*computed).min(queue.len());
        }
    }

    /// Whether all datums are computed, or all before one that fails it.
    pub(super) fn is_computed(&self) -> bool {
        self.queues.iter().zip(&self.computed).all(|(queue, computed)| queue.len() == *computed)
    }

    /// The outputs of all datums, in their order.
    ///
    /// # Errors
    /// That of the first datum whose loss is not finite.
    pub(super) fn take_outputs(&mut self) -> Result<Vec<TrainOutput>, OpError> {
        match self.failure.take() {
            Some(failure) => Err(failure.error),
            None => Ok(std::mem::take(&mut self.outputs).into_iter().flatten().collect()),
        }
    }
}
