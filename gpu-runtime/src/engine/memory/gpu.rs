//! Default division of the memory of GPUs.

use super::KV_PART;
use crate::backend::KV_BLOCK;
use crate::config::{ModelConfig, ModelSource};
use crate::engine::EngineOptions;
use crate::model::{ParamTable, PassMemory, Saved, Shard};

/// Configured parts of a budget, in bytes. The others follow from the budget and the models.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConfiguredParts {
    /// Configured value of [`EngineOptions::kv_bytes`].
    pub kv_bytes: Option<usize>,
    /// Configured value of [`EngineOptions::activation_bytes`].
    pub activation_bytes: Option<usize>,
    /// Configured value of [`EngineOptions::checkpoint_bytes`].
    pub checkpoint_bytes: Option<usize>,
}

/// Bytes of each GPU that runs get before a pass, keys and values get more than on a processor.
const RUNS: usize = 4 << 30;

/// Rows of a pass beyond which a GPU gains next to nothing (docs/design/gpu.md).
const ENOUGH_ROWS: usize = 4096;

/// Bytes of an element of activations: they are f32.
const ACTIVATION: usize = size_of::<f32>();

impl EngineOptions {
    /// Returns options with parts that suit a processor: some gigabytes, limited to fractions of the budget.
    #[must_use]
    pub fn divided_on_host(self, configured: ConfiguredParts) -> Self {
        let part = |bytes: usize, of_budget: usize| self.memory_bytes.map_or(bytes, |all| bytes.min(all / of_budget));
        Self {
            kv_bytes: configured.kv_bytes.unwrap_or_else(|| part(self.kv_bytes, 4)),
            activation_bytes: configured.activation_bytes.unwrap_or_else(|| part(self.activation_bytes, 8)),
            checkpoint_bytes: configured.checkpoint_bytes.unwrap_or_else(|| part(self.checkpoint_bytes, 16)),
            ..self
        }
    }

    /// Returns options with parts that suit GPUs with these models; `memory_bytes` counts the memory of `ranks` GPUs. A
    /// GPU needs passes of thousands of rows, and recomputes nothing if all blocks save their activations. The memory
    /// left by weights, embeddings of images and a checkpoint of all parameters goes first to runs, up to 4 GiB of each GPU. Of
    /// the rest, three fifths are for a pass (if 4,096 rows or an image need that much), and at most three tenths for keys and
    /// values.
    #[must_use]
    pub fn divided_on_gpus(self, models: &[(String, ModelSource)], ranks: usize, configured: ConfiguredParts) -> Self {
        let configs: Vec<&ModelConfig> = distinct(models.iter().map(|(_, model)| model)).collect();
        self.divided_beside(&configs, ranks, configured)
    }

    /// Like [`Self::divided_on_gpus`], for models of these configurations.
    pub(super) fn divided_beside(self, models: &[&ModelConfig], ranks: usize, configured: ConfiguredParts) -> Self {
        let Some(budget) = self.memory_bytes else { return self.divided_on_host(configured) };
        let small = self.clone().divided_on_host(ConfiguredParts::default());
        // A layout that a model does not permit is refused when that is loaded.
        let of_rank = |config: &ModelConfig, rank| Shard::of(config, rank, self.parallel).map(|(_, own)| own);
        let own: Vec<Vec<ModelConfig>> = (0..self.parallel.replica())
            .map(|rank| models.iter().filter_map(|config| of_rank(config, rank).ok()).collect())
            .collect();
        let bytes = |config: &ModelConfig| ParamTable::new(config).elements() * self.dtype.bytes();
        let most = |of: &dyn Fn(&[ModelConfig]) -> usize| own.iter().map(|own| of(own)).max().unwrap_or(0) * ranks;
        let tower = |config: &ModelConfig| config.tower_bytes(self.dtype.bytes());
        let weights = most(&|own| own.iter().map(|config| bytes(config) + tower(config)).sum());
        let takes_images = models.iter().any(|config| config.vision.is_some());
        let embeddings = if takes_images { self.image_cache_bytes * ranks } else { 0 };
        let checkpoint = most(&|own| own.iter().map(bytes).max().unwrap_or(0));
        let checkpoint_bytes = configured.checkpoint_bytes.unwrap_or(small.checkpoint_bytes);
        let fixed = weights + embeddings + checkpoint.max(checkpoint_bytes);
        let given = configured.activation_bytes.unwrap_or(0) + configured.kv_bytes.unwrap_or(0) / KV_PART;
        let left = budget.saturating_sub(fixed + given);
        let spare = left.saturating_sub(RUNS * ranks);
        let of_pass = |config: &ModelConfig| self.pass_bytes(config).max(config.tower_pass_bytes());
        let enough = most(&|own| own.iter().map(of_pass).max().unwrap_or(0));
        let pass = (small.activation_bytes.min(left / 8) + spare / 5 * 3).min(enough.max(small.activation_bytes));
        Self {
            activation_bytes: configured.activation_bytes.unwrap_or(pass),
            kv_bytes: configured.kv_bytes.unwrap_or(small.kv_bytes.min(left / 4) + spare / 10 * 3),
            checkpoint_bytes,
            ..self
        }
    }

    /// Bytes of a pass of [`ENOUGH_ROWS`] rows, with an eighth added for activations saved by adapters.
    fn pass_bytes(&self, config: &ModelConfig) -> usize {
        let kv_block = KV_BLOCK * 2 * config.attention_shape().kv_width() * self.dtype.bytes();
        let pass = PassMemory::planned_on_gpu(config, ACTIVATION, kv_block, std::iter::empty());
        pass.bytes(ENOUGH_ROWS, Saved::with_all_inputs(config.num_layers())) / 8 * 9
    }
}

/// The configurations of models, each set of weights once.
pub(crate) fn distinct<'a>(models: impl Iterator<Item = &'a ModelSource>) -> impl Iterator<Item = &'a ModelConfig> {
    distinct_sources(models).map(|model| &model.config)
}

/// Models, each set of weights once.
pub(crate) fn distinct_sources<'a>(
    models: impl Iterator<Item = &'a ModelSource>,
) -> impl Iterator<Item = &'a ModelSource> {
    let mut seen: Vec<&ModelSource> = Vec::new();
    models.filter_map(move |model| {
        let is_new = !seen.iter().any(|other| other.is_same_model(model));
        is_new.then(|| {
            seen.push(model);
            model
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_protocol::{LoraSpec, MemoryPlan};

    use super::*;
    use crate::engine::memory::bytes;
    use crate::parallel::Parallel;
    use crate::plan::named_shape;

    const GB: usize = 1_000_000_000;

    fn shape(name: &str) -> ModelConfig {
        named_shape(name).unwrap().unwrap()
    }

    fn options(parallel: &str, memory: usize) -> EngineOptions {
        let parallel: Parallel = parallel.parse().unwrap();
        EngineOptions { memory_bytes: Some(memory / 5 * 4 * parallel.world()), parallel, ..EngineOptions::default() }
    }

    /// Bytes for runs on a rank.
    fn runs(config: &ModelConfig, options: &EngineOptions) -> u64 {
        let (_, own) = Shard::of(config, 0, options.parallel).unwrap();
        let weights = ParamTable::new(&own).elements() * options.dtype.bytes();
        let options = options.of_rank();
        let plan = MemoryPlan {
            budget: options.memory_bytes.map(bytes),
            weights: bytes(weights),
            activations: bytes(options.activation_bytes),
            checkpoints: bytes(options.checkpoint_bytes.max(weights)),
            kv: bytes(options.kv_bytes / KV_PART),
        };
        plan.runs()
    }

    /// Checks the passes that docs/design/gpu.md describes.
    #[test]
    fn gpus_of_80_and_141_gb_save_whole_sequences_of_an_8b_model() {
        let config = shape("qwen3-8b");
        let lora = LoraSpec::on_all(32, 1);
        let kv_block = KV_BLOCK * 2 * config.attention_shape().kv_width() * 2;
        let pass = PassMemory::planned_on_gpu(&config, ACTIVATION, kv_block, std::iter::once(&lora));
        for (bytes, sequences) in [(80 * GB, 1), (141 * GB, 2)] {
            let options = options("tp=1", bytes).divided_beside(&[&config], 1, ConfiguredParts::default());
            assert_eq!(pass.rows_within(options.activation_bytes, 8192) / 2048, sequences, "{bytes}");
        }
    }

    #[test]
    fn runs_get_at_least_what_is_left_beside_the_parts_of_a_processor() {
        for (name, parallel, bytes) in [
            ("qwen3-8b", "tp=1", 48 * GB),
            ("qwen3-8b", "tp=1", 80 * GB),
            ("qwen3-8b", "dp=2", 80 * GB),
            ("llama-3.1-8b", "tp=2", 24 * GB),
            ("llama-3.1-70b", "tp=8", 80 * GB),
            ("qwen3-235b-a22b", "tp=2,ep=4", 192 * GB),
        ] {
            let (config, options) = (shape(name), options(parallel, bytes));
            let ranks = options.parallel.world();
            let divided = options.clone().divided_beside(&[&config], ranks, ConfiguredParts::default());
            let on_host = runs(&config, &options.divided_on_host(ConfiguredParts::default()));
            let left = runs(&config, &divided);
            assert!(left >= on_host.min(3 << 30), "{name} {parallel} {bytes}: {left} of {on_host}");
        }
    }

    #[test]
    fn configured_parts_are_taken_and_leave_less_for_the_others() {
        let config = shape("qwen3-8b");
        let divided = |configured| options("tp=1", 80 * GB).divided_beside(&[&config], 1, configured);
        let plain = divided(ConfiguredParts::default());
        let parts = ConfiguredParts { kv_bytes: Some(60 * GB), activation_bytes: None, checkpoint_bytes: Some(GB) };
        let given = divided(parts);
        assert_eq!((given.kv_bytes, given.checkpoint_bytes), (60 * GB, GB));
        assert!(given.activation_bytes < plain.activation_bytes);
        assert!(runs(&config, &given) > 2 << 30);
        let pass = ConfiguredParts { activation_bytes: Some(5 * GB), ..ConfiguredParts::default() };
        assert_eq!(divided(pass).activation_bytes, 5 * GB);
        // Nothing is left.
        assert_eq!(
            options("tp=1", 10 * GB).divided_beside(&[&config], 1, ConfiguredParts::default()).activation_bytes,
            0
        );
    }
}
