//! Requests that wait for folders or decoded images, while the engine continues.

use std::sync::Arc;

use trainyard_protocol::{RequestId, TenantShare};
use trainyard_scheduler::{Decoded, Outcome};

use super::Worker;
use super::folders::{self, FetchedFolder, WaitingForFolder};
use super::images::{DecodedRequest, Undecoded};
use super::mailbox::Mailbox;

/// Something that a request waited for.
pub(super) enum Arrival {
    Folder(FetchedFolder),
    Images(DecodedRequest),
}

impl<M: Mailbox> Worker<M> {
    /// Continues a request with what it waited for.
    pub(super) fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Folder(fetched) => self.end_fetch(fetched),
            Arrival::Images(decoded) => self.end_decoding(decoded),
        }
    }

    pub(super) fn fetch(&mut self, request: RequestId, share: TenantShare, waiting: WaitingForFolder) {
        let (mailbox, workspace) = (Arc::clone(&self.mailbox), self.workspace.clone());
        let (arrived, folder, restores) = (self.arrived.clone(), waiting.folder.clone(), waiting.restores);
        self.waiting.insert(request.clone(), (share, waiting));
        self.runtime.spawn(async move {
            let folder = folders::fetch(mailbox, workspace, folder, restores).await;
            // A worker that has stopped no longer needs it.
            let _ = arrived.send(Arrival::Folder(FetchedFolder { request, folder }));
        });
    }

    fn end_fetch(&mut self, fetched: FetchedFolder) {
        // A sample may have been cancelled.
        let Some((share, WaitingForFolder { build, mut reply, .. })) = self.waiting.remove(&fetched.request) else {
            return;
        };
        match fetched.folder {
            Ok(folder) => {
                let operation = build(folder.dir());
                reply.folder = Some(folder);
                self.start_operation(fetched.request, share, operation, reply);
            }
            Err(error) => self.report(fetched.request, reply.finish(Err(error))),
        }
    }

    /// Puts a request into its tenant's queue for decoding.
    pub(super) fn decode(&mut self, share: TenantShare, undecoded: Undecoded) {
        let request = undecoded.work.request.clone();
        self.decoding.insert(request.clone(), undecoded.work.clone());
        self.image_gate.push(request, share, undecoded);
    }

    /// Begins to decode the images of requests for which there is memory.
    pub(super) fn decode_images(&mut self) {
        let Self { image_gate, decoding, waiting, started, .. } = self;
        image_gate.retain(|request| {
            started.contains_key(request) || waiting.contains_key(request) || decoding.contains_key(request)
        });
        while let Some(queued) = self.image_gate.pop(|request| self.decoding.contains_key(request)) {
            let Undecoded { preprocessor, content, .. } = queued.undecoded;
            let (request, share, arrived) = (queued.request, queued.share, self.arrived.clone());
            let (pool, preparer) = (Arc::clone(&self.image_pool), Arc::clone(&self.preparer));
            self.runtime.spawn(async move {
                let content = content.decoded(pool, share, preprocessor, preparer).await;
                let _ = arrived.send(Arrival::Images(DecodedRequest { request, content }));
            });
        }
    }

    fn end_decoding(&mut self, decoded: DecodedRequest) {
        // The request may have been cancelled.
        let Some(mut work) = self.decoding.remove(&decoded.request) else { return };
        match decoded.content {
            Ok(content) => {
                work.decoded = Decoded::new(content);
                self.start(work);
            }
            Err(error) => self.mailbox.complete(decoded.request, Outcome::Failed(error), Vec::new()),
        }
    }
}
