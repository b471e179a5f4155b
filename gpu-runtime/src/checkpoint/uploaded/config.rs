//! `adapter_config.json` of an uploaded adapter.

use serde_json::{Map, Value};
use trainyard_protocol::OpError;

use super::super::adapter::{CONFIG_FILE, is_lora};
use super::super::variants::{Variant, first_other, plain_alpha, variant};
use super::refused;

/// Keys that make PEFT apply an adapter elsewhere than its tensors say, with the values at which they don't. Other keys, but
/// for those of [`variant`], say how the adapter was trained, or nothing about what it computes, and are ignored, as PEFT
/// ignores those that it does not know.
const PLACEMENT: &[(&str, Option<&str>)] = &[
    ("task_type", Some("\"CAUSAL_LM\"")),
    ("layers_to_transform", None),
    ("layers_pattern", None),
    ("exclude_modules", None),
];
/// PEFT's word for all linear modules but the unembedding.
const ALL_LINEAR: &str = "all-linear";
/// Names of the unembedding.
const UNEMBEDDINGS: [&str; 3] = ["lm_head", "model.lm_head", "model.unembed_tokens"];

/// The configuration of a LoRA adapter.
#[derive(Debug)]
pub(super) struct UploadedConfig {
    rank: u64,
    alpha: f32,
    targets: Targets,
}

/// Modules that are adapted.
#[derive(Debug)]
enum Targets {
    AllLinear,
    Named(Vec<String>),
}

impl UploadedConfig {
    /// Reads a configuration; what this server does not compute is refused by its key.
    pub(super) fn parse(text: &[u8]) -> Result<Self, OpError> {
        let keys: Map<String, Value> = serde_json::from_slice(text).map_err(|error| refused(CONFIG_FILE, error))?;
        match keys.get("peft_type") {
            Some(Value::String(kind)) if is_lora(kind) => {}
            other => {
                let found = other.unwrap_or(&Value::Null);
                let variant = Variant { key: "peft_type", found, expected: "\"LORA\"".to_owned() };
                return Err(refused(CONFIG_FILE, variant.reason()));
            }
        }
        if let Some(other) = variant(&keys).or_else(|| first_other(&keys, PLACEMENT)) {
            return Err(refused(CONFIG_FILE, other.reason()));
        }
        let rank = keys.get("r").and_then(Value::as_u64);
        let rank = rank.ok_or_else(|| refused(CONFIG_FILE, "r: expected a whole number"))?;
        let alpha = keys.get("lora_alpha").and_then(Value::as_f64);
        let alpha = alpha.map(|alpha| plain_alpha(&keys, alpha as f32, rank));
        let alpha = alpha.filter(|alpha| alpha.is_finite() && *alpha > 0.0);
        Ok(Self {
            rank,
            alpha: alpha.ok_or_else(|| refused(CONFIG_FILE, "lora_alpha: expected a positive number"))?,
            targets: targets(keys.get("target_modules"))?,
        })
    }

    /// `B A` is multiplied by this over the rank.
    pub(super) fn alpha(&self) -> f32 {
        self.alpha
    }

    /// Checks that this adapts these modules of the base model, each under one of its names, with this rank.
    pub(super) fn check<'a>(
        &self,
        rank: usize,
        mut modules: impl Iterator<Item = &'a [String]>,
    ) -> Result<(), OpError> {
        if self.rank != rank as u64 {
            let found = self.rank;
            return Err(refused(CONFIG_FILE, format_args!("r: {found} is not the rank {rank} of lora_config")));
        }
        match modules.find(|names| !names.iter().any(|name| self.targets.has(name))) {
            None => Ok(()),
            Some(names) => {
                let module = names.first().map_or("", String::as_str);
                Err(refused(CONFIG_FILE, format_args!("target_modules: missing {module}, which lora_config adapts")))
            }
        }
    }
}

impl Targets {
    /// Whether PEFT adapts a module: by its whole name, or by its last parts.
    fn has(&self, module: &str) -> bool {
        match self {
            Self::AllLinear => !UNEMBEDDINGS.contains(&module),
            Self::Named(names) => names.iter().any(|name| {
                module.strip_suffix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }),
        }
    }
}

fn targets(value: Option<&Value>) -> Result<Targets, OpError> {
    match value {
        Some(Value::String(text)) if text == ALL_LINEAR => Ok(Targets::AllLinear),
        Some(Value::String(_)) => {
            Err(refused(CONFIG_FILE, "target_modules: patterns are not supported; list the modules"))
        }
        Some(Value::Array(names)) => {
            let names: Option<Vec<String>> = names.iter().map(|name| name.as_str().map(str::to_owned)).collect();
            names.map(Targets::Named).ok_or_else(|| refused(CONFIG_FILE, "target_modules: expected a list of names"))
        }
        _ => Err(refused(CONFIG_FILE, "target_modules: expected a list of names")),
    }
}
