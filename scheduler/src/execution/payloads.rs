//! Reads what the queue needs from the store: payloads that are not in memory, histories to replay, levels of token
//! buckets.

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trainyard_protocol::{RequestId, RunId, TenantId};

use crate::context::core::Core;
use crate::queue::{Fetch, PayloadSlot, QueuedRequest, Replayed, maintenance_request};
use crate::quotas::BucketLevel;
use crate::store::{quotas, requests, runs};
use crate::{Decoded, Error, MaintenanceOp, RequestKind};

/// Number of attempts at a failing read, unless the store can't be reached.
const ATTEMPTS: u32 = 20;
/// Pause between two attempts of a read.
const PAUSE: Duration = Duration::from_millis(250);

impl Core {
    /// Reads the requested data and passes them to the queue. A failed read is logged where it failed.
    pub(crate) async fn fetch(self: Arc<Self>, fetch: Fetch) {
        match fetch {
            Fetch::Payload { run, request, kind, base_model } => {
                let payload = self.decoded_payload(&request, kind, base_model).await;
                self.with_queue(|queue| queue.payload_read(&run, &request, payload));
            }
            Fetch::Sample { request } => {
                let payload = self.decoded_payload(&request, RequestKind::Sample, String::new()).await;
                self.with_queue(|queue| queue.sample_read(&request, payload));
            }
            Fetch::RateLimit { tenant } => match self.rate_limit_level(&tenant).await {
                Ok(level) => self.with_queue(|queue| queue.set_rate_limit(&tenant, level, 0, self.now())),
                Err(error) => {
                    tracing::warn!(%tenant, %error, "rate limit could not be read; its token bucket is assumed to be full");
                    self.with_queue(|queue| queue.set_rate_limit(&tenant, None, 0, self.now()));
                }
            },
            Fetch::History { run, epoch } => {
                let history = self.retry(|| self.history(&run, epoch)).await;
                self.with_queue(|queue| queue.history_read(&run, epoch, history));
            }
        }
    }

    /// Returns the level of a tenant's token bucket; `None` for a full one that was never used.
    async fn rate_limit_level(&self, tenant: &TenantId) -> Result<Option<BucketLevel>, Error> {
        quotas::rate_limit_level(&mut self.system_reader().await?, tenant).await
    }

    /// Reads, repeatedly while the store can't be reached. Returns `None` if there is nothing to read.
    async fn retry<T, F: Future<Output = Result<T, Error>>>(&self, read: impl Fn() -> F) -> Option<T> {
        let mut attempts = 0;
        loop {
            match read().await {
                Ok(value) => return Some(value),
                Err(Error::Unavailable(_) | Error::Conflict(_)) if !self.is_closed() => {}
                Err(Error::Store(_)) if attempts < ATTEMPTS && !self.is_closed() => attempts += 1,
                Err(_) => return None,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns a payload, decoded if a prefetch decoder is set.
    async fn decoded_payload(
        self: &Arc<Self>,
        request: &RequestId,
        kind: RequestKind,
        base_model: String,
    ) -> Option<(Bytes, Decoded)> {
        let bytes = self.retry(|| self.payload(request)).await?;
        let keeps = |size| self.with_queue(|queue| queue.keeps_decoded(size));
        let decoded = self.prefetch.decode(kind, base_model, bytes.clone(), keeps).await;
        Some((bytes, decoded))
    }

    async fn payload(&self, request: &RequestId) -> Result<Bytes, Error> {
        let stored = requests::payload_of_request(&mut self.system_reader().await?, request).await?;
        self.blobs.get(stored).await
    }

    /// Returns the operations that led to a run's present state, in order.
    async fn history(&self, run: &RunId, epoch: i64) -> Result<VecDeque<Replayed>, Error> {
        let mut conn = self.system_reader().await?;
        let mut history = VecDeque::new();
        let saved = runs::run_row(&mut conn, run).await?;
        let mut from = 0;
        if let Some((seq_id, dir)) = saved.snapshot {
            let restore = MaintenanceOp::RestoreRun { spec: saved.spec, dir: dir.into() };
            // The epoch distinguishes this restore from that of an older lease, which may complete late.
            let request = RequestId::new(format!("{run}/restore/{epoch}"));
            let entry = maintenance_request(request, &restore);
            history.push_back(Replayed { seq_id, entry, snapshots: Vec::new() });
            from = seq_id + 1;
        }
        for row in requests::requests_of_run(&mut conn, run, from).await? {
            if !row.replays {
                continue;
            }
            let snapshots = match row.kind {
                RequestKind::SaveWeightsForSampler => requests::snapshots_of_request(&mut conn, &row.id).await?,
                _ => Vec::new(),
            };
            let entry = QueuedRequest { request: row.id, kind: row.kind, cost: row.cost, payload: PayloadSlot::Stored };
            history.push_back(Replayed { seq_id: row.seq_id, entry, snapshots });
        }
        // Saves under the same key replace each other: samples wait for the last one.
        let mut later = BTreeSet::new();
        for replayed in history.iter_mut().rev() {
            replayed.snapshots.retain(|key| later.insert(key.clone()));
        }
        Ok(history)
    }
}
