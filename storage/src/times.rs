//! Histograms of requests to the storage.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::StorageError;

/// Upper bounds in seconds: from a cached file to an upload of gigabytes.
const SECONDS: [f64; 11] = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 30.0, 120.0, 600.0, 3600.0];

/// Times of requests by operation and outcome. All clones count together.
#[derive(Clone, Debug)]
pub struct StorageTimes(Family<Request, Histogram, fn() -> Histogram>);

/// What is done in the storage.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// Bytes or a folder are stored.
    Put,
    /// Bytes are read, or a file is opened and fails later.
    Get,
    Delete,
    /// Names are listed, or a part is prepared.
    List,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    operation: &'static str,
    outcome: &'static str,
}

const OUTCOMES: [&str; 4] = ["ok", "not_found", "no_space", "failed"];

impl Operation {
    const ALL: [Self; 4] = [Self::Put, Self::Get, Self::Delete, Self::List];

    fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Delete => "delete",
            Self::List => "list",
        }
    }
}

fn outcome(error: Option<&StorageError>) -> &'static str {
    match error {
        None => "ok",
        Some(StorageError::NotFound(_)) => "not_found",
        Some(StorageError::NoSpace { .. }) => "no_space",
        Some(StorageError::Settings(_) | StorageError::Failed { .. }) => "failed",
    }
}

impl Default for StorageTimes {
    fn default() -> Self {
        let times = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        // A rate includes the first failure only when there was a zero before it.
        for operation in Operation::ALL {
            for outcome in OUTCOMES {
                drop(times.get_or_create(&Request { operation: operation.name(), outcome }));
            }
        }
        Self(times)
    }
}

impl StorageTimes {
    /// Adds the histograms to a registry, as `storage_request_seconds`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("storage_request_seconds", "Time of requests to the storage", self.0.clone());
    }

    /// Waits for a request and notes how long it took, and what came of it.
    pub(super) async fn of<T>(
        &self,
        operation: Operation,
        request: impl Future<Output = Result<T, StorageError>>,
    ) -> Result<T, StorageError> {
        let started = Instant::now();
        let done = request.await;
        self.note(operation, started, done.as_ref().err());
        done
    }

    /// A request that was started then has ended.
    pub(super) fn note(&self, operation: Operation, started: Instant, error: Option<&StorageError>) {
        let request = Request { operation: operation.name(), outcome: outcome(error) };
        self.0.get_or_create(&request).observe(started.elapsed().as_secs_f64());
    }
}
