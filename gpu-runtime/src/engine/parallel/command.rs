//! The calls that every rank executes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use trainyard_protocol::{Engine, Operation, RequestId, RunId, TenantShare};

use super::copies::FolderCopies;

/// A call that changes an engine.
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

    /// The same call with this rank's own copies of the folders that rank 0 reads.
    pub(super) fn with_copies(mut self, copies: &dyn FolderCopies) -> Self {
        if let Self::Start(_, _, operation) = &mut self
            && let Some(dir) = operation.folder_mut()
            && let Some(copy) = copies.copy_of(dir)
        {
            *dir = copy;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::borrow::Cow;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use trainyard_images::{Preprocessor, RgbImage, Size};
    use trainyard_protocol::custom_loss::CustomLoss;
    use trainyard_protocol::*;

    use super::super::copies::FetchDone;
    use super::super::message::Message;
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
            entropy_weights: None,
            kl_weights: None,
            policy: Some(policy),
            values: Some(ValueInputs { returns: vec![0.5, -1.0], old_values: Vec::new() }),
            custom: vec![Tensor::f32(vec![1.5, -0.0]), Tensor::i64(vec![i64::MIN, 7])],
            images: Vec::new(),
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
            images: Vec::new(),
        };
        let source = SamplerSource::Checkpoint { base_model: "m".to_owned(), dir: "/a folder/ä".into() };
        Operation::Sample(Box::new(SampleOperation {
            session: SessionId::new("s"),
            source,
            sample,
            images: Default::default(),
        }))
    }

    /// A pass over an example with an image.
    fn with_image() -> Operation {
        let settings = r#"{"image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 4, "merge_size": 2,
            "temporal_patch_size": 2, "size": {"shortest_edge": 64, "longest_edge": 4096}}"#;
        let size = Size::new(24, 16);
        let pixels = RgbImage::new(size, (0..24 * 16 * 3).map(|at| at as u8).collect()).unwrap();
        let patches = Arc::new(Preprocessor::from_json(settings).unwrap().patches(&pixels, size).unwrap());
        let mut operation = batch(LossFn::CrossEntropy);
        if let Operation::ForwardBackward(request) = &mut operation {
            request.batch.data[0].images = vec![PreparedImage { start: 1, digest: ImageDigest([7; 32]), patches }];
        }
        operation
    }

    /// One of every kind of operation.
    fn operations() -> Vec<Operation> {
        let run = RunId::new("a");
        let lora = LoraSpec { train_mlp: false, ..LoraSpec::on_all(4, u64::MAX) };
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
        vec![
            Operation::CreateRun { run: run.clone(), spec: spec.clone() },
            Operation::LoadState(load),
            batch(LossFn::CrossEntropy),
            with_image(),
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
        ]
    }

    /// A copy of one folder.
    struct One;

    impl FolderCopies for One {
        fn fetch(&self, _: &Path, _: &Path, _: FetchDone) {}

        fn copy_of(&self, dir: &Path) -> Option<PathBuf> {
            (dir == Path::new("/saved")).then(|| "/copy".into())
        }

        fn remove(&self, _: &Path) {}
    }

    #[test]
    fn operations_read_copies_and_write_where_rank_0_does() {
        let start = |operation| Command::Start(RequestId::new("r"), TenantShare::new("t"), Box::new(operation));
        for operation in operations() {
            let mut expected = operation.clone();
            match &mut expected {
                Operation::LoadState(LoadState { dir, .. }) | Operation::RestoreRun(RestoreRun { dir, .. }) => {
                    *dir = "/copy".into();
                }
                // It reads a folder that nobody has fetched.
                Operation::Sample(_) => {}
                _ => assert_eq!(expected.folder_mut(), None),
            }
            assert_eq!(start(operation).with_copies(&One), start(expected));
        }
        assert!(sample().folder_mut().is_some());
    }

    #[test]
    fn every_call_survives_as_a_message() {
        let run = RunId::new("a");
        let share = TenantShare { name: "t".into(), weight: std::num::NonZeroU32::MAX };
        let start = |operation: Operation| Command::Start(RequestId::new("r"), share.clone(), Box::new(operation));
        let ids = BTreeSet::from([RequestId::new("r"), RequestId::new("s")]);
        let others = [Command::Step, Command::Cancel(ids), Command::UnloadRun(run), Command::DropSnapshot("k".into())];
        for command in operations().into_iter().map(start).chain(others) {
            let message = Message::Call(Cow::Borrowed(&command)).to_bytes().unwrap();
            assert_eq!(Message::from_bytes(&message).unwrap(), Message::Call(Cow::Borrowed(&command)));
            // Nothing that is cut is taken for a call.
            assert!(Message::from_bytes(&message[..message.len() - 1]).is_err(), "{command:?}");
        }
    }
}
