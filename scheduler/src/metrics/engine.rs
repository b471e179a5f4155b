//! Counters of the engine of this process's worker.

use std::fmt;
use std::sync::{Arc, Mutex};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use trainyard_protocol::EngineStats;

use crate::context::lock::lock;

/// Last counters that an engine reported. All are zero without an engine.
#[derive(Clone, Debug, Default)]
pub(super) struct EngineMetrics(Arc<Mutex<EngineStats>>);

impl EngineMetrics {
    pub(super) fn set(&self, stats: EngineStats) {
        *lock(&self.0) = stats;
    }

    pub(super) fn get(&self) -> EngineStats {
        *lock(&self.0)
    }
}

impl Collector for EngineMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let stats = *lock(&self.0);
        let mut write = |name: &str, help: &str, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        for (name, help, value) in [
            ("microbatches", "Training passes.", stats.microbatches),
            ("microbatch_tokens", "Tokens of training passes.", stats.microbatch_tokens),
            ("microbatch_capacity_tokens", "Tokens that these passes could have held.", stats.microbatch_capacity),
            ("sampling_passes", "Sampling passes.", stats.sampling_passes),
            ("prompt_tokens", "Tokens of prompts that were computed, not found in the cache.", stats.prompt_tokens),
            ("sampled_tokens", "Tokens that were sampled.", stats.sampled_tokens),
            ("verified_samples", "Samples that a training pass computed again.", stats.verified_samples),
            (
                "differing_samples",
                "Verified samples whose log-probability differs in training: this worker computes wrong numbers.",
                stats.differing_samples,
            ),
            (
                "skipped_verifications",
                "Samples chosen for verification that could not be verified.",
                stats.skipped_verifications,
            ),
            ("collective_bytes", "Bytes that the first rank sent to the other ranks.", stats.collective_bytes),
        ] {
            write(name, help, &ConstCounter::new(value))?;
        }
        for (name, help, value) in [
            ("active_samples", "Samples in progress.", stats.active_samples),
            ("loaded_runs", "Training runs in the engine's memory.", stats.loaded_runs),
            ("kv_bytes", "Keys and values of samples and the prefix cache.", stats.kv_bytes),
            ("kv_limit_bytes", "Capacity for keys and values.", stats.kv_limit),
            ("ranks", "Ranks that share the models; 0 without an engine.", stats.ranks),
            ("memory_budget_bytes", "Memory that the engine may hold; 0 means unlimited.", stats.memory_budget),
        ] {
            write(name, help, &ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)))?;
        }
        let seconds = stats.collective_nanoseconds as f64 / 1e9;
        let help = "Time that the first rank spent in exchanges with the other ranks.";
        write("collective_seconds", help, &ConstCounter::new(seconds))?;
        let name = "memory_bytes";
        let mut family = encoder.encode_descriptor(name, "Memory that the engine holds.", None, MetricType::Gauge)?;
        for (kind, bytes) in stats.memory.kinds() {
            let gauge = ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX));
            gauge.encode(family.encode_family(&[("kind", kind)])?)?;
        }
        let help = "Ranks along each axis of the layout; 0 without an engine.";
        let mut family = encoder.encode_descriptor("layout_ranks", help, None, MetricType::Gauge)?;
        for (axis, ranks) in [("tp", stats.tensor_ranks), ("dp", stats.replicas), ("ep", stats.expert_ranks)] {
            let gauge = ConstGauge::new(i64::try_from(ranks).unwrap_or(i64::MAX));
            gauge.encode(family.encode_family(&[("axis", axis)])?)?;
        }
        Ok(())
    }
}
