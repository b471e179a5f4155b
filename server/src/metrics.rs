//! `GET /metrics`: the metrics of the process, for Prometheus. The endpoint is not part of the API: operators read it,
//! tenants don't.

mod access;
mod count;
mod http;
mod process;
mod refusals;

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use trainyard_http::answer::full_response;
use trainyard_http::tls::TlsMetrics;
use trainyard_scheduler::Scheduler;

pub use self::access::Access;
pub(crate) use self::count::count;
use self::http::HttpMetrics;
use self::process::ProcessCollector;
use self::refusals::RefusalLog;
use crate::disk::Disks;
use crate::error::ApiError;
use crate::traces::TraceMetrics;

/// The path of the endpoint.
pub const PATH: &str = "/metrics";
/// The prefix of every metric's name.
const PREFIX: &str = "trainyard";
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of parts of the process that exist before the store is open. Cheap to clone; all clones count together.
#[derive(Clone, Debug, Default)]
pub struct ProcessMetrics {
    /// The metrics of certificates.
    pub tls: TlsMetrics,
    /// The metrics of exported spans.
    pub traces: TraceMetrics,
}

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    http: HttpMetrics,
    refusals: RefusalLog,
}

impl Metrics {
    /// Joins the metrics of the scheduler, the HTTP side, the rest of the process and the system.
    pub fn new(scheduler: &Scheduler, process: &ProcessMetrics, disks: &Disks) -> Self {
        let mut all = Registry::default();
        all.register_collector(Box::new(ProcessCollector::default()));
        let registry = all.sub_registry_with_prefix(PREFIX);
        let http = HttpMetrics::default();
        registry.register(
            "build",
            "Version of the running program",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        http.register(registry);
        process.tls.register(registry);
        process.traces.register(registry);
        scheduler.metrics().register(registry);
        registry.register_collector(Box::new(disks.clone()));
        Self { registry: all, http, refusals: RefusalLog::default() }
    }

    fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// The state that serves [`PATH`].
#[derive(Clone)]
struct Scrape {
    metrics: Arc<Metrics>,
    scheduler: Scheduler,
    access: Arc<Access>,
}

/// Serves [`PATH`] to those who have access.
pub fn router(metrics: Arc<Metrics>, scheduler: Scheduler, access: Access) -> Router {
    Router::new().route(PATH, get(scrape)).with_state(Scrape { metrics, scheduler, access: Arc::new(access) })
}

async fn scrape(State(scrape): State<Scrape>, headers: HeaderMap) -> Response {
    match answer(&scrape, &headers).await {
        Ok(text) => full_response(StatusCode::OK, CONTENT_TYPE, text.into()),
        Err(error) => error.into_response(),
    }
}

async fn answer(scrape: &Scrape, headers: &HeaderMap) -> Result<String, ApiError> {
    scrape.access.check(headers)?;
    // Without the store, the other metrics still help to find the fault.
    if let Err(error) = scrape.scheduler.observe().await {
        tracing::warn!(%error, "scrape without the store's metrics: store unavailable");
    }
    scrape.metrics.text().map_err(|_| ApiError::Internal("failed to write the metrics".to_owned()))
}

#[cfg(test)]
#[path = "metrics/tests.rs"]
mod tests;
