//! A training request in progress.

use std::sync::Arc;

use trainyard_protocol::{OpError, RequestId, RunId, TenantShare};

use crate::backend::Backend;
use crate::loss::{LossFn, PreparedDatum, most_elements};
use crate::model::zero::replicas::divide;
use crate::model::{FailedDatum, GradientSum, TrainOutput};
use crate::vision::{Embeddings, ImageEmbedding};

/// What a datum costs in a pass.
#[derive(Clone, Copy)]
pub(super) struct DatumCost {
    pub(super) rows: usize,
    /// Most elements that a custom loss computes for the datum.
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
    pub(super) data: Vec<PreparedDatum>,
    /// Embeddings of all images.
    pub(super) embeddings: Embeddings<B>,
    /// Datums that each replica computes, by index and in order.
    queues: Vec<Vec<usize>>,
    /// Number of computed datums of each replica.
    computed: Vec<usize>,
    /// Outputs of the computed datums.
    outputs: Vec<Option<TrainOutput>>,
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
            data,
            embeddings: Embeddings::new(),
            queues: Vec::new(),
            computed: vec![0; replicas],
            outputs: Vec::new(),
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
        self.outputs = self.data.iter().map(|_| None).collect();
        (self.failure, self.grads) = (None, None);
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
        let index = self.queues[replica].get(self.computed[replica] + ahead)?;
        let datum = &self.data[*index];
        let (rows, elements) = (datum.tokens.len(), most_elements(&self.loss, datum));
        // A target of a custom loss takes about as long as a token.
        let charge = if elements > 0 { rows.max(datum.targets.len()) } else { rows };
        Some(DatumCost { rows, elements, charge })
    }

    /// A replica's next datums.
    pub(super) fn next(&self, replica: usize, count: usize) -> Vec<&PreparedDatum> {
        let next = &self.queues[replica][self.computed[replica]..][..count];
        next.iter().map(|index| &self.data[*index]).collect()
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

    /// Stores what a replica computed of its next `count` datums.
    pub(super) fn store(&mut self, replica: usize, count: usize, outcome: Result<Vec<TrainOutput>, FailedDatum>) {
        let first = self.computed[replica];
        match outcome {
            Ok(outputs) => {
                for (index, output) in self.queues[replica][first..].iter().zip(outputs) {
                    self.outputs[*index] = Some(output);
                }
                self.computed[replica] += count;
            }
            Err(FailedDatum { at, error }) => {
                // It is beyond the end where a datum before it has failed.
                if let Some(index) = self.queues[replica].get(first + at) {
                    self.failure = Some(FailedDatum { at: *index, error });
                }
            }
        }
        // Of several errors the request has the first one's, whichever is met first.
        let Some(FailedDatum { at: end, .. }) = self.failure else { return };
        for (queue, computed) in self.queues.iter_mut().zip(&mut self.computed) {
            queue.truncate(queue.partition_point(|index| *index < end));
            *computed = (*computed).min(queue.len());
        }
        self.computed[replica] = self.queues[replica].len().min(first + count);
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
