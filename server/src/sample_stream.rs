//! A sample's tokens as they are sampled, and its result: for endpoints that stream.
//!
//! The result is authoritative. Tokens that were not reported before the sample's end are taken from it. So a stream
//! contains every token of the result once and in order, wherever the sample is executed or executed again. If the
//! result contains other tokens than were streamed, the stream ends with an error.

use std::collections::VecDeque;
use std::time::Duration;

use futures::Stream;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use trainyard_protocol::{OpError, RequestId, SampleProgress, SampledSequence, TenantId};
use trainyard_scheduler::{Encoding, Error, Poll, SampleWatch, Scheduler};

use trainyard_wire::results::ResultError;
use trainyard_wire::sampling::{SampleOutput, decode_result};

/// How long one wait for the result lasts before the next begins.
const WAIT: Duration = Duration::from_secs(30);

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// Tokens of a sequence, each once and in order.
    Tokens(SampleProgress),
    /// The whole result, which is the last event.
    Done(Box<SampleOutput>),
}

/// The reason why a stream ends without a result.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The sample has failed.
    #[error("{0}")]
    Failed(OpError),
    /// The sample was cancelled, by its client or with its session.
    #[error("the sample was cancelled")]
    Cancelled,
    /// The request is unknown, its result was deleted, or the store can't be read.
    #[error(transparent)]
    Scheduler(#[from] Error),
    /// The stored result can't be read.
    #[error(transparent)]
    Result(#[from] ResultError),
    /// The result belongs to a request that is not a sample.
    #[error("the request's result is not that of a sample")]
    NoSample,
    /// The sample was executed again, on a machine whose arithmetic gives other bits.
    #[error("the sample was executed again, and its tokens differ from those that were streamed")]
    Diverged,
}

enum Phase {
    /// The sample is running, and tokens are streamed as they are sampled.
    Running,
    /// The result could not be read: the sample may still be running.
    Unread,
    /// The remaining events of the result.
    Ended(VecDeque<StreamEvent>),
}

/// Follows a sample until its end. Dropping the stream earlier cancels the sample.
pub struct SampleStream {
    scheduler: Scheduler,
    tenant: TenantId,
    request: RequestId,
    watch: SampleWatch,
    /// A task, because it reads the store: while nobody asks for an event, it would keep a connection that it was given, or its
    /// turn to be given one.
    result: JoinHandle<Result<Poll, Error>>,
    /// Tokens that were streamed, by sequence.
    streamed: Vec<Vec<u32>>,
    phase: Phase,
    runtime: Handle,
}

impl SampleStream {
    /// Follows a sample that was submitted. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown request, [`Error::Gone`] when its result was dropped.
    pub async fn open(scheduler: &Scheduler, tenant: TenantId, request: RequestId) -> Result<Self, Error> {
        let watch = scheduler.watch_sample(&tenant, &request).await?;
        let result = tokio::spawn(ended(scheduler.clone(), tenant.clone(), request.clone()));
        Ok(Self {
            scheduler: scheduler.clone(),
            tenant,
            request,
            watch,
            result,
            streamed: Vec::new(),
            phase: Phase::Running,
            runtime: Handle::current(),
        })
    }

    /// Returns the next event; `None` after the result or an error. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Result<StreamEvent, StreamError>> {
        if let Phase::Running = self.phase {
            tokio::select! {
                biased;
                progress = self.watch.next() => {
                    self.note(&progress);
                    return Some(Ok(StreamEvent::Tokens(progress)));
                }
                poll = &mut self.result => {
                    self.phase = Phase::Unread;
                    let poll = match poll.unwrap_or(Err(Error::Store("follow a sample"))) {
                        Ok(poll) => poll,
                        Err(error) => return Some(Err(error.into())),
                    };
                    self.phase = Phase::Ended(VecDeque::new());
                    match self.rest(poll) {
                        Ok(rest) => self.phase = Phase::Ended(rest),
                        Err(error) => return Some(Err(error)),
                    }
                }
            }
        }
        match &mut self.phase {
            Phase::Running | Phase::Unread => None,
            Phase::Ended(rest) => rest.pop_front().map(Ok),
        }
    }

    /// Returns the events as a [`Stream`].
    pub fn events(self) -> impl Stream<Item = Result<StreamEvent, StreamError>> + Send {
        futures::stream::unfold(self, |mut stream| async move { stream.next().await.map(|event| (event, stream)) })
    }

    fn note(&mut self, progress: &SampleProgress) {
        if self.streamed.len() <= progress.sequence {
            self.streamed.resize(progress.sequence + 1, Vec::new());
        }
        if let Some(tokens) = self.streamed.get_mut(progress.sequence) {
            tokens.extend_from_slice(&progress.tokens);
        }
    }

    /// The remaining events after the sample's end.
    fn rest(&self, poll: Poll) -> Result<VecDeque<StreamEvent>, StreamError> {
        let output = match poll {
            Poll::Succeeded { encoding: Encoding::Protobuf, payload } => decode_result(&payload)?,
            Poll::Succeeded { .. } | Poll::Pending => return Err(StreamError::NoSample),
            Poll::Failed(error) => return Err(StreamError::Failed(error)),
            Poll::Cancelled => return Err(StreamError::Cancelled),
        };
        let streamed = |sequence: usize| self.streamed.get(sequence).map_or(&[][..], Vec::as_slice);
        let agrees = |(at, sequence): (usize, &SampledSequence)| sequence.tokens.starts_with(streamed(at));
        if self.streamed.len() > output.sequences.len() || !output.sequences.iter().enumerate().all(agrees) {
            return Err(StreamError::Diverged);
        }
        let sequences = output.sequences.iter().enumerate();
        let tails = sequences.filter_map(|(at, sequence)| sequence.progress_from(at, streamed(at).len()));
        let mut rest: VecDeque<StreamEvent> = tails.map(StreamEvent::Tokens).collect();
        rest.push_back(StreamEvent::Done(Box::new(output)));
        Ok(rest)
    }
}

impl Drop for SampleStream {
    fn drop(&mut self) {
        self.result.abort();
        if let Phase::Running | Phase::Unread = self.phase {
            let (scheduler, tenant, request) = (self.scheduler.clone(), self.tenant.clone(), self.request.clone());
            self.runtime.spawn(async move {
                if let Err(error) = scheduler.cancel(&tenant, &request).await {
                    tracing::warn!(%request, %error, "failed to cancel a sample after its stream was dropped");
                }
            });
        }
    }
}

/// The answer to a request, once it has ended.
async fn ended(scheduler: Scheduler, tenant: TenantId, request: RequestId) -> Result<Poll, Error> {
    loop {
        match scheduler.poll(&tenant, &request, WAIT).await? {
            Poll::Pending => {}
            ended => return Ok(ended),
        }
    }
}

#[cfg(test)]
#[path = "sample_stream_tests.rs"]
mod tests;
