//! The scheduler's counters, gauges and histograms, for Prometheus.

mod engine;
mod store;

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabel, EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use trainyard_protocol::{EngineStats, TenantId};
use trainyard_storage::StorageTimes;

use self::engine::EngineMetrics;
use self::store::StoreMetrics;
use crate::{Quota, RequestKind, RequestState};

/// Upper bounds of wait and service times in seconds, from a one-token sample to a full queue.
const SECONDS: [f64; 12] = [0.001, 0.005, 0.02, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0, 3600.0];

type Times = Family<Labels, Histogram>;
type FloatGauge = Gauge<f64, AtomicU64>;

/// Counters, gauges and times since the scheduler was opened. Cheap to clone; all clones share the counts.
#[derive(Clone, Debug)]
pub struct Metrics {
    per_tenant: bool,
    waited: Times,
    served: Times,
    ended: Family<Labels, Counter>,
    tokens: Family<Labels, Counter>,
    refused: Family<Labels, Counter>,
    queued: Family<Labels, Gauge>,
    running: Family<Labels, Gauge>,
    sessions: Gauge,
    runs: Gauge,
    waiting_for_memory: Gauge,
    waiting_for_numerics: Gauge,
    engine: EngineMetrics,
    storage: StorageTimes,
    pub(crate) store: StoreMetrics,
    pub(crate) replayed: Counter,
    pub(crate) leases_lost: Counter,
    pub(crate) numerics_changes: Counter,
    pub(crate) transactions: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) writes: Counter,
}

/// Labels with fixed names, and the tenant if metrics are per tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Labels {
    fixed: [Option<(&'static str, &'static str)>; 2],
    tenant: Option<TenantId>,
}

impl EncodeLabelSet for Labels {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> Result<(), fmt::Error> {
        for label in self.fixed.iter().flatten() {
            label.encode(encoder.encode_label())?;
        }
        match &self.tenant {
            Some(tenant) => ("tenant", tenant.as_str()).encode(encoder.encode_label()),
            None => Ok(()),
        }
    }
}

fn of_kind(kind: RequestKind) -> Labels {
    Labels { fixed: [Some(("kind", kind.as_str())), None], tenant: None }
}

fn of_outcome(kind: RequestKind, outcome: RequestState) -> Labels {
    Labels { fixed: [Some(("kind", kind.as_str())), Some(("outcome", outcome.as_str()))], tenant: None }
}

fn of_quota(quota: Quota) -> Labels {
    Labels { fixed: [Some(("quota", quota.name())), None], tenant: None }
}

fn times() -> Times {
    Family::new_with_constructor(|| Histogram::new(SECONDS))
}

/// Present values of the gauges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PresentCounts {
    /// Waiting and executed requests, by kind; absent kinds are 0.
    pub(crate) queued: Vec<(RequestKind, u64)>,
    pub(crate) running: Vec<(RequestKind, u64)>,
    /// Active sessions, and runs of active sessions.
    pub(crate) sessions: u64,
    pub(crate) runs: u64,
}

impl Metrics {
    /// Creates the metrics. With `per_tenant`, names of tenants become labels; there may be many, and they may be
    /// private. `storage` contains the times of the process's storage.
    pub(crate) fn new(per_tenant: bool, storage: StorageTimes) -> Self {
        let metrics = Self {
            per_tenant,
            waited: times(),
            served: times(),
            ended: Family::default(),
            tokens: Family::default(),
            refused: Family::default(),
            queued: Family::default(),
            running: Family::default(),
            sessions: Gauge::default(),
            runs: Gauge::default(),
            waiting_for_memory: Gauge::default(),
            waiting_for_numerics: Gauge::default(),
            engine: EngineMetrics::default(),
            storage,
            store: StoreMetrics::default(),
            replayed: Counter::default(),
            leases_lost: Counter::default(),
            numerics_changes: Counter::default(),
            transactions: Counter::default(),
            conflicts: Counter::default(),
            writes: Counter::default(),
        };
        if !per_tenant {
            metrics.start_at_zero();
        }
        metrics
    }

    /// Creates counters at zero, because a rate includes the first event only if there was a zero before it.
    fn start_at_zero(&self) {
        for kind in RequestKind::ALL.iter().filter(|kind| !kind.is_maintenance()) {
            drop(self.waited.get_or_create(&of_kind(*kind)));
            drop(self.served.get_or_create(&of_kind(*kind)));
            drop(self.tokens.get_or_create(&of_kind(*kind)));
            for outcome in RequestState::ALL.iter().filter(|state| state.is_terminal()) {
                drop(self.ended.get_or_create(&of_outcome(*kind, *outcome)));
            }
        }
        for quota in Quota::ALL {
            drop(self.refused.get_or_create(&of_quota(quota)));
        }
    }

    /// Sets the counters of the engine of this process's worker.
    pub fn set_engine(&self, stats: EngineStats) {
        self.engine.set(stats);
    }

    pub(crate) fn engine(&self) -> EngineStats {
        self.engine.get()
    }

    pub(crate) fn set_waiting_for_memory(&self, runs: usize) {
        self.waiting_for_memory.set(signed(runs as u64));
    }

    pub(crate) fn set_waiting_for_numerics(&self, runs: usize) {
        self.waiting_for_numerics.set(signed(runs as u64));
    }

    /// Registers all metrics in a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("queued_requests", "Requests that wait to be started", self.queued.clone());
        registry.register("running_requests", "Requests that are being executed", self.running.clone());
        registry.register("request_wait_seconds", "Time from submission to start", self.waited.clone());
        registry.register("request_service_seconds", "Time from start to end", self.served.clone());
        registry.register("requests", "Requests that ended", self.ended.clone());
        registry.register(
            "request_tokens",
            "Tokens of requests that succeeded, as counted by quotas",
            self.tokens.clone(),
        );
        registry.register("quota_refusals", "Requests rejected because of a quota", self.refused.clone());
        registry.register("sessions", "Active sessions", self.sessions.clone());
        registry.register("runs", "Training runs of active sessions", self.runs.clone());
        let waiting = self.waiting_for_memory.clone();
        registry.register("runs_waiting_for_memory", "Runs waiting for memory that loaded runs hold", waiting);
        let waiting = self.waiting_for_numerics.clone();
        registry.register("runs_waiting_for_numerics", "Runs waiting because no worker has their numerics", waiting);
        registry.register("numerics_changes", "Runs continued with different numerics", self.numerics_changes.clone());
        registry.register("replayed_requests", "Requests replayed to restore a run", self.replayed.clone());
        registry.register(
            "leases_lost",
            "Runs and samples freed because the lease of their worker expired",
            self.leases_lost.clone(),
        );
        registry.register_collector(Box::new(self.engine.clone()));
        registry.register("store_transactions", "Committed transactions that wrote", self.transactions.clone());
        registry.register(
            "store_conflicts",
            "Transactions retried because of conflicts with other processes",
            self.conflicts.clone(),
        );
        registry.register("store_writes", "Writes that these transactions held", self.writes.clone());
        self.store.register(registry);
        self.storage.register(registry);
    }

    /// Counts a request that starts for the first time.
    pub(crate) fn started(&self, kind: RequestKind, tenant: &TenantId, waited: Duration) {
        self.waited.get_or_create(&self.with(of_kind(kind), tenant)).observe(waited.as_secs_f64());
    }

    /// Counts a request that ended; `served` is the time of its execution, if it was executed.
    pub(crate) fn ended(
        &self,
        kind: RequestKind,
        tenant: &TenantId,
        outcome: RequestState,
        served: Option<Duration>,
        tokens: u64,
    ) {
        self.ended.get_or_create(&self.with(of_outcome(kind, outcome), tenant)).inc();
        if let Some(served) = served {
            self.served.get_or_create(&self.with(of_kind(kind), tenant)).observe(served.as_secs_f64());
        }
        if outcome == RequestState::Succeeded {
            self.tokens.get_or_create(&self.with(of_kind(kind), tenant)).inc_by(tokens);
        }
    }

    /// Counts a request that was rejected because of a quota.
    pub(crate) fn refused(&self, quota: Quota, tenant: &TenantId) {
        self.refused.get_or_create(&self.with(of_quota(quota), tenant)).inc();
    }

    /// Sets the gauges to the present values.
    pub(crate) fn show(&self, present: &PresentCounts) {
        for (family, counts) in [(&self.queued, &present.queued), (&self.running, &present.running)] {
            for kind in RequestKind::ALL.iter().filter(|kind| !kind.is_maintenance()) {
                let count = counts.iter().find(|(of, _)| of == kind).map_or(0, |(_, count)| *count);
                family.get_or_create(&of_kind(*kind)).set(signed(count));
            }
        }
        self.sessions.set(signed(present.sessions));
        self.runs.set(signed(present.runs));
    }

    fn with(&self, labels: Labels, tenant: &TenantId) -> Labels {
        Labels { tenant: self.per_tenant.then(|| tenant.clone()), ..labels }
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// Returns the metrics in the text format of Prometheus.
    pub(crate) fn text(metrics: &Metrics) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        metrics.register(&mut registry);
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    fn count(metrics: &Metrics) {
        let tenant = TenantId::new("team \"a\"");
        metrics.started(RequestKind::Sample, &tenant, Duration::from_millis(20));
        let served = Some(Duration::from_secs(2));
        metrics.ended(RequestKind::Sample, &tenant, RequestState::Succeeded, served, 7);
        metrics.ended(RequestKind::Sample, &tenant, RequestState::Cancelled, None, 9);
        metrics.refused(Quota::Runs, &tenant);
    }

    #[test]
    fn everything_starts_at_zero_and_names_no_tenant() {
        let metrics = Metrics::new(false, StorageTimes::default());
        let before = text(&metrics);
        for line in [
            "request_wait_seconds_count{kind=\"optim_step\"} 0",
            "requests_total{kind=\"sample\",outcome=\"cancelled\"} 0",
            "quota_refusals_total{quota=\"max_runs\"} 0",
            "leases_lost_total 0",
        ] {
            assert!(before.contains(line), "{line} in {before}");
        }
        count(&metrics);
        let after = text(&metrics);
        for line in [
            "request_wait_seconds_bucket{le=\"0.02\",kind=\"sample\"} 1",
            "request_service_seconds_sum{kind=\"sample\"} 2.0",
            "requests_total{kind=\"sample\",outcome=\"succeeded\"} 1",
            "requests_total{kind=\"sample\",outcome=\"cancelled\"} 1",
            "request_tokens_total{kind=\"sample\"} 7",
            "quota_refusals_total{quota=\"max_runs\"} 1",
        ] {
            assert!(after.contains(line), "{line} in {after}");
        }
        assert!(!after.contains("team"), "{after}");
    }

    #[test]
    fn tenants_are_labels_when_that_is_wanted() {
        let metrics = Metrics::new(true, StorageTimes::default());
        count(&metrics);
        let text = text(&metrics);
        assert!(
            text.contains("requests_total{kind=\"sample\",outcome=\"succeeded\",tenant=\"team \\\"a\\\"\"} 1"),
            "{text}"
        );
        assert!(text.contains("quota_refusals_total{quota=\"max_runs\",tenant="), "{text}");
    }

    #[test]
    fn the_engines_last_counters_are_shown() {
        let metrics = Metrics::new(false, StorageTimes::default());
        metrics.set_engine(EngineStats { microbatch_tokens: 200, microbatch_capacity: 256, ..EngineStats::default() });
        let text = text(&metrics);
        for line in ["microbatch_tokens_total 200", "microbatch_capacity_tokens_total 256", "kv_bytes 0"] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }

    #[test]
    fn the_present_is_shown_for_every_kind() {
        let metrics = Metrics::new(false, StorageTimes::default());
        metrics.show(&PresentCounts { queued: vec![(RequestKind::Sample, 3)], running: vec![], sessions: 2, runs: 1 });
        metrics.show(&PresentCounts { queued: vec![(RequestKind::Forward, 1)], running: vec![], sessions: 2, runs: 1 });
        let text = text(&metrics);
        for line in [
            "queued_requests{kind=\"sample\"} 0",
            "queued_requests{kind=\"forward\"} 1",
            "running_requests{kind=\"sample\"} 0",
            "sessions 2",
            "runs 1",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
