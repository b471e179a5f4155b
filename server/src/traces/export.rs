//! The export of spans to a collector, in batches.

use std::time::Duration;

use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::TraceMetrics;

/// Maximum number of spans of an export.
const BATCH: usize = 512;
/// The time that the first span of a batch waits for others.
const DELAY: Duration = Duration::from_secs(1);

/// A message to the exporting task.
pub(super) enum Message {
    Span(Box<SpanData>),
    /// Asks for an export of all earlier spans.
    Flush(oneshot::Sender<()>),
}

/// Exports until the senders are gone. A batch that the collector does not accept is lost: later batches must not wait
/// for it longer than the exporter's timeout.
pub(super) async fn export(exporter: impl SpanExporter, mut messages: mpsc::Receiver<Message>, metrics: TraceMetrics) {
    let mut failing = false;
    while let Some(first) = messages.recv().await {
        let (batch, flushed) = gather(first, &mut messages).await;
        if !batch.is_empty() {
            let spans = batch.len();
            let exported = exporter.export(batch).await;
            metrics.exported(spans, exported.is_ok());
            match &exported {
                Err(error) if !failing => {
                    tracing::warn!(%error, "failed to export traces; they are dropped until the collector accepts them")
                }
                Ok(()) if failing => tracing::info!("traces are exported again"),
                _ => {}
            }
            failing = exported.is_err();
        }
        if let Some(flushed) = flushed {
            let _ = flushed.send(());
        }
    }
}

/// Collects spans until the batch is full, late or flushed.
async fn gather(
    first: Message,
    messages: &mut mpsc::Receiver<Message>,
) -> (Vec<SpanData>, Option<oneshot::Sender<()>>) {
    let mut batch = Vec::new();
    let end = Instant::now() + DELAY;
    let mut next = Some(first);
    while let Some(message) = next {
        match message {
            Message::Span(span) => batch.push(*span),
            Message::Flush(flushed) => return (batch, Some(flushed)),
        }
        if batch.len() >= BATCH {
            break;
        }
        next = timeout_at(end, messages.recv()).await.ok().flatten();
    }
    (batch, None)
}
