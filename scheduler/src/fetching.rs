//! Reading back what the queue needs: payloads that are not in memory, and histories to replay.

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::spawn_blocking;
use trainyard_protocol::{RequestId, RunId, TenantId};

use crate::core::Core;
use crate::queue::{Entry, Fetch, Replayed, Slot, upkeep_entry};
use crate::quotas::Level;
use crate::store::{quotas, requests, runs};
use crate::{Decoded, Error, RequestKind, Upkeep};

/// How often a read that failed is repeated, unless the store can't be reached.
const ATTEMPTS: u32 = 20;
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(250);

impl Core {
    /// Reads and tells the queue. What can't be read is logged where it failed.
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
            Fetch::Pace { tenant } => match self.pace(&tenant).await {
                Ok(level) => self.with_queue(|queue| queue.tell_pace(&tenant, level, 0, self.now())),
                Err(error) => {
                    tracing::warn!(%tenant, %error, "a tenant's pace could not be read; it is taken for unused");
                    self.with_queue(|queue| queue.tell_pace(&tenant, None, 0, self.now()));
                }
            },
            Fetch::History { run, epoch } => {
                let history = self.patiently(|| self.history(&run, epoch)).await;
                self.with_queue(|queue| queue.history_read(&run, epoch, history));
            }
        }
    }

    /// How much of a tenant's pace is left; `None` when it has not used any.
    pub(crate) async fn pace(&self, tenant: &TenantId) -> Result<Option<Level>, Error> {
        quotas::pace(&mut self.reader().await?, tenant).await
    }

    /// Reads, again and again while the store can't be reached; `None` when what is asked for is not there.
    async fn patiently<T, F: Future<Output = Result<T, Error>>>(&self, read: impl Fn() -> F) -> Option<T> {
        let mut attempts = 0;
        loop {
            match read().await {
                Ok(value) => return Some(value),
                Err(Error::Unavailable(_) | Error::Conflict(_)) if !self.messages_closed() => {}
                Err(Error::Store(_)) if attempts < ATTEMPTS && !self.messages_closed() => attempts += 1,
                Err(_) => return None,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// A payload, and what it says, where somebody reads that ahead. One payload is read at a time: the worker takes
    /// them one by one.
    async fn decoded_payload(
        self: &Arc<Self>,
        request: &RequestId,
        kind: RequestKind,
        base_model: String,
    ) -> Option<(Bytes, Decoded)> {
        let bytes = self.patiently(|| self.payload(request)).await?;
        let Some(reader) = self.reader_ahead.get().cloned() else { return Some((bytes, Decoded::default())) };
        let _turn = self.reading_ahead.lock().await;
        if !self.with_queue(|queue| queue.keeps_decoded(bytes.len())) {
            return Some((bytes, Decoded::default()));
        }
        let payload = bytes.clone();
        let decoded = spawn_blocking(move || reader(kind, &base_model, payload)).await;
        // A panic is met again by the worker, which knows what to do about it.
        Some((bytes, decoded.unwrap_or_default()))
    }

    async fn payload(&self, request: &RequestId) -> Result<Bytes, Error> {
        let stored = requests::payload_of_request(&mut self.reader().await?, request).await?;
        self.blobs.get(stored).await
    }

    /// The operations that made a run what it was, in order.
    async fn history(&self, run: &RunId, epoch: i64) -> Result<VecDeque<Replayed>, Error> {
        let mut conn = self.reader().await?;
        let mut history = VecDeque::new();
        let saved = runs::run_row(&mut conn, run).await?;
        let mut from = 0;
        if let Some((seq_id, dir)) = saved.snapshot {
            let upkeep = Upkeep::RestoreRun { spec: saved.spec, dir: dir.into() };
            // What comes late of an older lease's is not taken for this one's.
            let request = RequestId::new(format!("{run}/restore/{epoch}"));
            let entry = upkeep_entry(request, RequestKind::RestoreRun, &upkeep);
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
            let entry = Entry { request: row.id, kind: row.kind, cost: row.cost, payload: Slot::Stored };
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
