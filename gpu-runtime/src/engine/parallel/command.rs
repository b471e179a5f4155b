//! The calls that every rank makes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use trainyard_protocol::{Engine, Operation, RequestId, RunId, TenantShare};

/// A call that changes an engine. As a message it is MessagePack with names, which keeps every bit of its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Command {
    Start(RequestId, TenantShare, Box<Operation>),
    Step,
    Cancel(BTreeSet<RequestId>),
    UnloadRun(RunId),
    DropSnapshot(String),
}

impl Command {
    /// Makes the call. What it returns is for rank 0 to report.
    pub(super) fn call(self, engine: &mut impl Engine) {
        match self {
            Self::Start(id, share, operation) => engine.start(id, share, *operation),
            Self::Step => drop((engine.step(), engine.take_admitted())),
            Self::Cancel(ids) => engine.cancel(&ids),
            Self::UnloadRun(run) => engine.unload_run(&run),
            Self::DropSnapshot(key) => engine.drop_snapshot(&key),
        }
    }

    /// # Errors
    /// A path that is not UTF-8.
    pub(super) fn to_message(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        rmp_serde::to_vec_named(self)
    }

    /// # Errors
    /// Bytes of another version.
    pub(super) fn from_message(message: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(message)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;

    use trainyard_protocol::custom_loss::CustomLoss;
    use trainyard_protocol::*;

    use super::*;

    fn batch(loss: LossFn) -> Operation {
        let policy = PolicyInputs {
            logprobs: vec![-0.1, f32::MIN_POSITIVE],
            advantages: vec![1e-40, -3.0],
            ratio_mask: vec![true, false],
        };
        let datum = PreparedDatum {
            index: 1,
            tokens: vec![1, u32::MAX],
            targets: vec![3, 4],
            k: 1,
            shape: vec![2],
            weights: Some(vec![0.1, 16_777_217.0]),
            policy: Some(policy),
            values: Some(ValueInputs { returns: vec![0.5, -1.0], old_values: Vec::new() }),
            custom: vec![Tensor::f32(vec![1.5, -0.0]), Tensor::i64(vec![i64::MIN, 7])],
        };
        let extents = ModelExtents { vocab_size: 100, context: 64 };
        let batch = PreparedBatch { loss, data: vec![datum], extents };
        Operation::ForwardBackward(ForwardBackward { run: RunId::new("a"), batch, forward_only: false })
    }

    fn graph() -> CustomLoss {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fuzz/custom_loss/ppo_clip");
        CustomLoss::read(&serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).unwrap()
    }

    fn sample() -> Operation {
        let controls = SamplingControls { min_p: 0.05, logit_bias: vec![(5, -1.5)], ..Default::default() };
        let params = SamplingParams {
            max_tokens: None,
            seed: u64::MAX >> 1,
            stop: Stop::Strings(vec!["\n".to_owned()]),
            temperature: 0.7,
            top_k: Some(3),
            top_p: 0.9,
            controls,
        };
        let sparse = SparseIndices { crow: vec![0, 0, 2], col: vec![0, 2] };
        let sample = Sample {
            prompt: vec![1, 2, 3],
            num_samples: 2,
            params,
            prompt_logprobs: true,
            prompt_logprobs_last_n: Some(2),
            topk_prompt_logprobs: 0,
            topk_sample_logprobs: 1,
            target_prompt_logprobs: Some(PromptTargets { shape: [2, 3], ids: vec![5, 6], sparse: Some(sparse) }),
            prompt_alt_tokens_k: 0,
        };
        let source = SamplerSource::Checkpoint { base_model: "m".to_owned(), dir: "/a folder/ä".into() };
        Operation::Sample(Box::new(SampleOperation { session: SessionId::new("s"), source, sample }))
    }

    #[test]
    fn every_call_survives_as_a_message() {
        let run = RunId::new("a");
        let lora = LoraSpec { rank: 4, seed: u64::MAX, train_unembed: true, train_mlp: false, train_attn: true };
        let spec = RunSpec {
            base_model: "m".into(),
            lora: Some(lora),
            optimizer: Optimizer::AdamW,
            head: ModelHead::default(),
        };
        let target = SaveTarget { dir: "/saved".into(), overwrite: true };
        let params = AdamParams {
            learning_rate: 1e-4,
            beta1: 0.9,
            beta2: 0.95,
            eps: 1e-12,
            weight_decay: 0.1,
            grad_clip_norm: 0.0,
        };
        let uploaded = UploadedAdapter { config: vec!["a".into()], tensors: vec!["b".into(), "c".into()] };
        let load = LoadState {
            run: run.clone(),
            dir: "/saved".into(),
            with_optimizer: true,
            create: Some(spec.clone()),
            checkpoint_base: Some("other".into()),
            uploaded: Some(uploaded),
        };
        let operations = [
            Operation::CreateRun { run: run.clone(), spec: spec.clone() },
            Operation::LoadState(load),
            batch(LossFn::CrossEntropy),
            batch(LossFn::Ppo(ClipRange { low: 0.8, high: 1.2 })),
            batch(LossFn::Dro { beta: 0.05 }),
            batch(LossFn::Custom(Arc::new(graph()))),
            Operation::OptimStep { run: run.clone(), params },
            Operation::SaveState(SaveState { run: run.clone(), target: target.clone() }),
            Operation::SaveSampler(SaveSampler { run: run.clone(), snapshot: Some("k".into()), target: None }),
            Operation::SaveExternal(SaveExternal { run: run.clone(), target: target.clone() }),
            Operation::SaveRun(SaveRun { run: run.clone(), target: target.clone() }),
            Operation::RestoreRun(RestoreRun { run: run.clone(), spec, dir: "/saved".into() }),
            Operation::SaveSnapshot(SaveSnapshot { key: "k".into(), target }),
            sample(),
        ];
        let share = TenantShare { name: "t".into(), weight: std::num::NonZeroU32::MAX };
        let start = |operation: Operation| Command::Start(RequestId::new("r"), share.clone(), Box::new(operation));
        let ids = BTreeSet::from([RequestId::new("r"), RequestId::new("s")]);
        let others = [Command::Step, Command::Cancel(ids), Command::UnloadRun(run), Command::DropSnapshot("k".into())];
        for command in operations.into_iter().map(start).chain(others) {
            let message = command.to_message().unwrap();
            assert_eq!(Command::from_message(&message).unwrap(), command);
            // Nothing that is cut is taken for a call.
            assert!(Command::from_message(&message[..message.len() - 1]).is_err(), "{command:?}");
        }
    }
}
