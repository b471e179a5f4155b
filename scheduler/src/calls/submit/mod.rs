//! Accepts requests: each is durable, and identified by its sequence number, before it is acknowledged.

mod accepted;
mod create;
mod run;
mod sample;

use bytes::Bytes;
use trainyard_protocol::RequestId;

use self::accepted::Submit;
use crate::store::blobs::StoredBytes;
use crate::{Error, Scheduler, Submitted};

impl Scheduler {
    /// Generates a request's id and stores its payload, in a file if it is large.
    async fn store_payload(&self, payload: &Bytes) -> Result<(RequestId, StoredBytes), Error> {
        let id = RequestId::from_uuid(self.core.new_uuid());
        self.core.origins.note(&id);
        let stored = self.core.blobs.put(format!("{id}.payload"), payload).await?;
        Ok((id, stored))
    }

    async fn submit<W: Submit>(&self, write: W) -> Result<Submitted, Error> {
        let file = write.payload().file().map(str::to_owned);
        let accepted = self.write(write).await;
        // Retries and refused requests leave no row for the file. After a failure the row may exist nevertheless.
        let unneeded = match &accepted {
            Ok(accepted) => accepted.fresh.is_none(),
            Err(Error::Unavailable(_) | Error::NoSpace(_) | Error::Conflict(_) | Error::Store(_)) => false,
            Err(_) => true,
        };
        if let Some(file) = file.filter(|_| unneeded) {
            self.core.blobs.remove(vec![file]).await;
        }
        Ok(accepted?.submitted)
    }
}
