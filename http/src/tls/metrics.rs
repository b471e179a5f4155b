//! Metrics of the certificate of HTTPS.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reload {
    outcome: &'static str,
}

/// The metrics of certificates. Cheap to clone; all clones count together.
#[derive(Clone, Debug, Default)]
pub struct TlsMetrics {
    reloads: Family<Reload, Counter>,
    expiry: Gauge,
}

impl TlsMetrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        // A counter that is there from the start shows its first increase.
        for succeeded in [true, false] {
            drop(self.reloads.get_or_create(&of(succeeded)));
        }
        registry.register("tls_reloads", "Reloads of changed certificates, by result", self.reloads.clone());
        registry.register(
            "tls_certificate_expiry_timestamp_seconds",
            "When the served certificate expires, in seconds since 1970; 0 without TLS",
            self.expiry.clone(),
        );
    }

    /// Counts a changed pair of files, which is served now or was refused.
    pub(super) fn reloaded(&self, succeeded: bool) {
        self.reloads.get_or_create(&of(succeeded)).inc();
    }

    /// Sets the expiry of the served certificate, in seconds since 1970.
    pub(super) fn expires(&self, at: i64) {
        self.expiry.set(at);
    }
}

fn of(succeeded: bool) -> Reload {
    Reload { outcome: if succeeded { "succeeded" } else { "failed" } }
}
