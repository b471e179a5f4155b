//! Names of modules in the files of adapters.

use crate::config::ModelConfig;
use crate::model::AdaptedModule;

/// The unembedding where it has a matrix of its own.
const LM_HEAD: &str = "lm_head";
/// The unembedding of the hosted service, under which the cookbook finds the matrix that both embeddings share.
const UNEMBED_TOKENS: &str = "model.unembed_tokens";

/// The name of a module in an adapter's files: that of the hosted service, or the one that `peft` knows too.
pub(crate) fn written_name(c: &ModelConfig, module: &AdaptedModule) -> String {
    match module.slot {
        None if c.tie_word_embeddings => UNEMBED_TOKENS.to_owned(),
        None => LM_HEAD.to_owned(),
        Some(_) => c.spelling.in_adapters(&module.name),
    }
}

/// Names under which files may have a module.
pub(crate) fn read_names(c: &ModelConfig, module: &AdaptedModule) -> Vec<String> {
    match module.slot {
        None => [LM_HEAD, UNEMBED_TOKENS, "model.lm_head"].map(str::to_owned).to_vec(),
        Some(_) => vec![c.spelling.in_adapters(&module.name)],
    }
}

/// Whether `peft` applies an adapter's tensors of a module under its written name. It leaves out those that it finds no module
/// for, without a warning.
pub(crate) fn is_known_to_peft(c: &ModelConfig, module: &AdaptedModule) -> bool {
    match module.slot {
        None => !c.tie_word_embeddings,
        Some(_) => module.experts.is_none() && c.spelling.fused(&format!("{}.weight", module.name)).is_none(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_protocol::LoraSpec;

    use super::*;
    use crate::load::describe_json;
    use crate::model::ParamTable;

    fn config(tied: bool, kind: &str) -> ModelConfig {
        let text = format!(
            r#"{{"model_type": "{kind}", "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "vocab_size": 8,
            "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 8, "rms_norm_eps": 1e-5,
            "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 8, "tie_word_embeddings": {tied}}}"#
        );
        describe_json("config.json", &text).unwrap()
    }

    fn modules(c: &ModelConfig) -> Vec<AdaptedModule> {
        let all = LoraSpec { latent_up: true, ..LoraSpec::on_all(1, 0) };
        ParamTable::adapted_modules(c, &all)
    }

    #[test]
    fn a_tied_unembedding_has_the_name_of_the_hosted_service() {
        for (tied, name) in [(false, "lm_head"), (true, "model.unembed_tokens")] {
            let c = config(tied, "llama");
            let last = modules(&c).pop().unwrap();
            assert_eq!((written_name(&c, &last), is_known_to_peft(&c, &last)), (name.to_owned(), !tied));
            assert_eq!(read_names(&c, &last), ["lm_head", "model.unembed_tokens", "model.lm_head"]);
        }
    }

    #[test]
    fn peft_knows_no_part_of_a_module_and_no_module_of_several_experts() {
        for (kind, unknown) in [
            ("llama", vec![]),
            ("qwen3_moe", vec!["w1", "w3", "w2"]),
            ("phi3", vec!["q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"]),
        ] {
            let c = config(false, kind);
            for module in modules(&c) {
                let last = module.name.rsplit('.').next().unwrap();
                assert_eq!(is_known_to_peft(&c, &module), !unknown.contains(&last), "{kind} {}", module.name);
                assert!(read_names(&c, &module).contains(&written_name(&c, &module)));
            }
        }
    }
}
