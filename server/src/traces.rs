//! Spans of calls and of the requests that they submit, exported over OTLP. Recording a span never waits: spans that
//! the collector does not accept are dropped and counted.

mod answered;
mod export;
mod metrics;
mod spans;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

pub(crate) use self::answered::AnsweredCall;
use self::export::{Message, export};
pub use self::metrics::TraceMetrics;
use crate::random::Random;

/// Spans that wait for their export; further ones are dropped.
const QUEUE: usize = 8_192;
/// The time that a shutdown waits for the last export.
const CLOSE: Duration = Duration::from_secs(5);
/// The path of traces below a collector's base URL.
const PATH: &str = "/v1/traces";
/// The name of the service, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` sets one.
const SERVICE: &str = "trainyard";

/// A recorder of spans, or none. Cheap to clone.
#[derive(Clone, Default)]
pub struct Traces(Option<Arc<Recorder>>);

struct Recorder {
    queue: mpsc::Sender<Message>,
    metrics: TraceMetrics,
    scope: InstrumentationScope,
    random: Random,
}

/// Error when setting up the export of traces.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The URL, or a variable of OpenTelemetry, is invalid.
    #[error("--otlp-endpoint: {0}")]
    Exporter(#[from] ExporterBuildError),
}

impl Traces {
    /// Exports to the collector at a base URL. Headers, timeout, service name and resource come from the variables that
    /// OpenTelemetry defines. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// Fails if the URL or a variable is malformed.
    pub fn open(endpoint: &str, metrics: TraceMetrics, random: Random) -> Result<Self, TracesError> {
        // It fails where a provider was installed before, which is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(format!("{}{PATH}", endpoint.trim_end_matches('/')))
            .build()?;
        exporter.set_resource(&resource());
        let (queue, received) = mpsc::channel(QUEUE);
        tokio::spawn(export(exporter, received, metrics.clone()));
        let scope = InstrumentationScope::builder(SERVICE).with_version(env!("CARGO_PKG_VERSION")).build();
        Ok(Self(Some(Arc::new(Recorder { queue, metrics, scope, random }))))
    }

    /// Returns whether spans are exported.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Exports the recorded spans, for at most a few seconds.
    pub async fn close(&self) {
        let Some(recorder) = &self.0 else { return };
        let (flushed, done) = oneshot::channel();
        let closing = timeout(CLOSE, async {
            if recorder.queue.send(Message::Flush(flushed)).await.is_ok() {
                let _ = done.await;
            }
        });
        if closing.await.is_err() {
            tracing::warn!("shutdown: the last traces were not exported in time");
        }
    }
}

impl Recorder {
    fn record(&self, span: SpanData) {
        if self.queue.try_send(Message::Span(Box::new(span))).is_err() {
            self.metrics.dropped();
        }
    }
}

fn resource() -> Resource {
    let found = Resource::builder().build();
    let named = found
        .iter()
        .any(|(key, value)| key.as_str() == "service.name" && !value.as_str().starts_with("unknown_service"));
    let builder = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if named { builder.build() } else { builder.with_service_name(SERVICE).build() }
}
