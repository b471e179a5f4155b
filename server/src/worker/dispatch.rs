//! Creates the operation that executes a stored request.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trainyard_protocol::{
    CheckpointKind, DecodedImages, ForwardBackward, LoadState, OpError, Operation, Prepare, PreparedContent,
    RestoreRun, RunId, RunSpec, Sample, SampleOperation, SamplerSource, SamplingSessionId, SaveExternal, SaveRun,
    SaveSampler, SaveSnapshot, SaveState, SaveTarget, SessionId, TenantId, TinkerPath, UploadedAdapter,
};
use trainyard_scheduler::{Effect, MaintenanceOp, NewSamplingSession, RequestKind, SamplingSession, Work};
use trainyard_wire::payload::{EphemeralKind, NamedSave, Payload};
use trainyard_wire::sampling::ComputedWith;

use super::folders::{BuildOperation, FolderSource, WaitingForFolder};
use super::images::{Undecoded, UndecodedContent, are_decoded};
use super::model_images::ModelImages;
use super::prefetch::{has_images, raw_batch};
use super::recorded_metrics::weighted_tokens;
use super::reply::{PendingReply, Reply, SampleReply};
use crate::save_locations::{checkpoint_location, snapshot_location};
use crate::stored_samples::PromptToStore;
use crate::workspace::Workspace;

/// Next step for a request.
pub(super) enum Dispatch {
    Start(Box<Operation>, Box<PendingReply>),
    /// Fetch a folder, then start.
    Wait(Box<WaitingForFolder>),
    /// Decode the images, then dispatch again.
    Decode(Box<Undecoded>),
}

/// Context for dispatching requests.
pub(super) struct Dispatcher<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) preparer: &'a dyn Prepare,
    pub(super) images: &'a ModelImages,
    /// Random bits for names of folders.
    pub(super) random: &'a dyn Fn() -> u64,
    /// Description of the engine's arithmetic, by base model.
    pub(super) arithmetic: &'a BTreeMap<String, String>,
}

fn start(operation: Operation, run: Option<RunId>, reply: Reply) -> Dispatch {
    Dispatch::Start(Box::new(operation), Box::new(PendingReply::new(run, reply)))
}

fn wait(folder: FolderSource, build: BuildOperation, run: Option<RunId>, reply: Reply, restores: bool) -> Dispatch {
    let reply = PendingReply::new(run, reply);
    Dispatch::Wait(Box::new(WaitingForFolder { folder, build, reply, restores }))
}

impl Dispatcher<'_> {
    /// Decodes a stored request.
    ///
    /// # Errors
    /// The user's when the request is wrong, the server's when its stored bytes are.
    pub(super) fn dispatch(&self, work: Work) -> Result<Dispatch, OpError> {
        match work.kind {
            RequestKind::Sample => self.sample(work),
            RequestKind::Forward | RequestKind::ForwardBackward => self.forward_backward(work),
            kind if kind.is_maintenance() => self.maintenance(&work),
            _ => self.run_operation(work),
        }
    }

    /// Makes the operation of a request that the scheduler sends on its own account.
    fn maintenance(&self, work: &Work) -> Result<Dispatch, OpError> {
        let run = run_of(work)?;
        let operation = serde_json::from_slice(&work.payload).map_err(|error| unreadable(work, &error.to_string()))?;
        let location = snapshot_location(&run, work.kind, (self.random)());
        let target = self.save_target(&location);
        let (operation, reply) = match operation {
            MaintenanceOp::SaveRun => {
                let reply = Reply::maintained(location.clone(), Effect::RunSaved(location));
                (Operation::SaveRun(SaveRun { run: run.clone(), target }), reply)
            }
            MaintenanceOp::SaveSnapshot { key } => {
                let operation = Operation::SaveSnapshot(SaveSnapshot { key: key.clone(), target });
                let effect = Effect::SnapshotSaved { key, dir: location.clone() };
                (operation, Reply::maintained(location, effect))
            }
            MaintenanceOp::RestoreRun { spec, dir } => {
                let restore = RestoreRun { run: run.clone(), spec, dir: PathBuf::new() };
                let build: BuildOperation =
                    Box::new(move |dir| Operation::RestoreRun(RestoreRun { dir: dir.to_owned(), ..restore }));
                return Ok(wait(FolderSource::At(dir), build, Some(run), Reply::restored(), true));
            }
        };
        Ok(start(operation, Some(run), reply))
    }

    fn forward_backward(&self, work: Work) -> Result<Dispatch, OpError> {
        let run = run_of(&work)?;
        let batch = match work.decoded.take() {
            Some(PreparedContent::Batch(batch)) => batch?,
            _ => {
                let base_model = work.base_model.clone();
                let batch = raw_batch(self.images, &base_model, work.payload.clone())?;
                if has_images(&batch) {
                    let preprocessor = self.images.preprocessor(&base_model)?;
                    let content = UndecodedContent::Batch { base_model, batch };
                    return Ok(Dispatch::Decode(Box::new(Undecoded { work, preprocessor, content })));
                }
                self.preparer.prepare(&base_model, batch)?
            }
        };
        let forward_only = work.kind == RequestKind::Forward;
        let tokens = batch.data.iter().map(|datum| datum.tokens.len() as u64).sum();
        let reply = Reply::pass(tokens, weighted_tokens(&batch));
        let operation = Operation::ForwardBackward(ForwardBackward { run: run.clone(), batch, forward_only });
        Ok(start(operation, Some(run), reply))
    }

    fn sample(&self, work: Work) -> Result<Dispatch, OpError> {
        let (sample, images) = match work.decoded.take() {
            Some(PreparedContent::Sample { sample, images }) => (*sample, images),
            _ => (stored_sample(&work)?, DecodedImages::new()),
        };
        let session = work.sampling_session.as_ref().ok_or_else(|| unreadable(&work, "it has no sampling session"))?;
        if !are_decoded(&sample.images, &images) {
            let preprocessor = self.images.preprocessor(&session.base_model)?;
            let content = UndecodedContent::Sample(Box::new(sample));
            return Ok(Dispatch::Decode(Box::new(Undecoded { work, preprocessor, content })));
        }
        let client = session.session.clone();
        let sparse = sample.target_prompt_logprobs.as_ref().and_then(|targets| targets.sparse.clone());
        let prompt = sample.prompt.len() as u64;
        let store = session.stores.clone().map(|storage| PromptToStore::new(storage, &sample.prompt, &sample.images));
        let computed_with = self.computed_with(session);
        let images_at = sample.images.iter().map(|image| image.start..image.start + image.tokens).collect();
        let reply = Reply::sample(SampleReply { prompt, images_at, sparse, computed_with, store });
        let sampling = Sampling { client, sample, images };
        let source = match (&session.snapshot, &session.checkpoint_dir, &session.model_path) {
            (Some(key), ..) => SamplerSource::Snapshot { key: key.clone() },
            (None, Some(location), _) => return Ok(self.checkpoint_sample(sampling, session, location, reply)),
            (None, None, None) => SamplerSource::Base { model: session.base_model.clone() },
            (None, None, Some(_)) => return Err(unreadable(&work, "its sampling session has no folder")),
        };
        Ok(start(sampling.with_source(source), None, reply))
    }

    fn computed_with(&self, session: &SamplingSession) -> ComputedWith {
        let weights = match (&session.snapshot, &session.model_path) {
            (Some(key), _) => key.clone(),
            (None, Some(path)) => path.to_string(),
            (None, None) => session.base_model.clone(),
        };
        let arithmetic = self.arithmetic.get(&session.base_model).cloned().unwrap_or_default();
        ComputedWith { weights, arithmetic }
    }

    fn checkpoint_sample(
        &self,
        sampling: Sampling,
        session: &SamplingSession,
        location: &Path,
        reply: Reply,
    ) -> Dispatch {
        let base_model = session.base_model.clone();
        let build = |dir: &Path| sampling.with_source(SamplerSource::Checkpoint { base_model, dir: dir.to_owned() });
        match self.workspace.present(location) {
            Some(folder) => {
                let operation = build(folder.dir());
                let mut reply = PendingReply::new(None, reply);
                reply.folder = Some(folder);
                Dispatch::Start(Box::new(operation), Box::new(reply))
            }
            None => wait(FolderSource::At(location.to_owned()), Box::new(build), None, reply, false),
        }
    }

    fn run_operation(&self, work: Work) -> Result<Dispatch, OpError> {
        let run = run_of(&work)?;
        let start = |operation, reply| Ok(start(operation, Some(run.clone()), reply));
        let saving = |kind, save| self.save(&work, run.clone(), kind, save);
        match decode(&work)? {
            Payload::CreateModel { spec, .. } => {
                start(Operation::CreateRun { run: run.clone(), spec }, Reply::created_run(run.clone()))
            }
            Payload::LoadWeights { path, with_optimizer, create, reader, checkpoint_base } => {
                let (dir, uploaded) = (PathBuf::new(), None);
                let load = LoadState { run: run.clone(), dir, with_optimizer, create, checkpoint_base, uploaded };
                load_state(&work, load, path, reader)
            }
            Payload::ImportAdapter { dir, files, spec } => Ok(import(&work, run.clone(), dir, files, spec)),
            Payload::OptimStep { params } => {
                let reply = Reply::step(params.learning_rate);
                start(Operation::OptimStep { run: run.clone(), params }, reply)
            }
            Payload::EphemeralSampler { session, sampling_session_seq_id, base_model, kind } => {
                let session_id = SamplingSessionId::of_session(&session, sampling_session_seq_id);
                let key = match kind {
                    EphemeralKind::Snapshot => session_id.to_string(),
                    EphemeralKind::Inflight => format!("{run}/inflight"),
                };
                let created = NewSamplingSession {
                    session,
                    seq_id: sampling_session_seq_id,
                    base_model,
                    model_path: None,
                    snapshot: Some(key.clone()),
                };
                let save = SaveSampler { run: run.clone(), snapshot: Some(key), target: None };
                start(Operation::SaveSampler(save), Reply::ephemeral(created))
            }
            Payload::SaveWeights(save) => saving(CheckpointKind::Training, save),
            Payload::SaveWeightsForSampler(save) => saving(CheckpointKind::Sampler, save),
            Payload::SaveWeightsExternal(save) => saving(CheckpointKind::External, save),
            Payload::Sample { .. } => Err(unreadable(&work, "it is a sample")),
        }
    }

    fn save(&self, work: &Work, run: RunId, kind: CheckpointKind, save: NamedSave) -> Result<Dispatch, OpError> {
        let path = TinkerPath { run: run.clone(), kind, name: save.name.parse()? };
        let location = checkpoint_location(&path, &work.request, (self.random)());
        let target = self.save_target(&location);
        let operation = match kind {
            CheckpointKind::Training => Operation::SaveState(SaveState { run: run.clone(), target }),
            CheckpointKind::Sampler => {
                Operation::SaveSampler(SaveSampler { run: run.clone(), snapshot: None, target: Some(target) })
            }
            CheckpointKind::External => Operation::SaveExternal(SaveExternal { run: run.clone(), target }),
        };
        Ok(start(operation, Some(run), Reply::saved(path, location, save)))
    }

    fn save_target(&self, location: &Path) -> SaveTarget {
        SaveTarget { dir: self.workspace.target(location), overwrite: false }
    }
}

/// A sample without the weights that it uses.
struct Sampling {
    client: SessionId,
    sample: Sample,
    images: DecodedImages,
}

impl Sampling {
    fn with_source(self, source: SamplerSource) -> Operation {
        let Self { client: session, sample, images } = self;
        Operation::Sample(Box::new(SampleOperation { session, source, sample, images }))
    }
}

fn load_state(work: &Work, load: LoadState, path: String, reader: Option<TenantId>) -> Result<Dispatch, OpError> {
    let (tenant, request) = (reader.unwrap_or_else(|| work.tenant.clone()), work.request.clone());
    let folder = FolderSource::Load { tenant, request, path: path.parse()? };
    let run = load.run.clone();
    let reply = Reply::loaded(run.clone(), path, load.create.is_some());
    let build: BuildOperation = Box::new(move |dir| Operation::LoadState(LoadState { dir: dir.to_owned(), ..load }));
    Ok(wait(folder, build, Some(run), reply, work.replay))
}

fn import(work: &Work, run: RunId, dir: PathBuf, files: UploadedAdapter, spec: RunSpec) -> Dispatch {
    let load = LoadState {
        run: run.clone(),
        dir: PathBuf::new(),
        with_optimizer: false,
        create: Some(spec),
        checkpoint_base: None,
        uploaded: Some(files),
    };
    let build: BuildOperation = Box::new(move |dir| Operation::LoadState(LoadState { dir: dir.to_owned(), ..load }));
    let reply = Reply::created_run(run.clone());
    wait(FolderSource::At(dir), build, Some(run), reply, work.replay)
}

fn run_of(work: &Work) -> Result<RunId, OpError> {
    work.run.clone().ok_or_else(|| unreadable(work, "it has no run"))
}

fn stored_sample(work: &Work) -> Result<Sample, OpError> {
    match decode(work)? {
        Payload::Sample { sample, .. } => Ok(*sample),
        _ => Err(unreadable(work, "it is not a sample")),
    }
}

fn decode(work: &Work) -> Result<Payload, OpError> {
    Payload::decode(&work.payload).map_err(|error| unreadable(work, &error.to_string()))
}

/// The error for a stored request that this program did not write. The client learns no details.
fn unreadable(work: &Work, reason: &str) -> OpError {
    tracing::error!(request = %work.request, kind = work.kind.as_str(), reason, "a stored request is unreadable");
    OpError::server("the stored request is unreadable; the server's log has the details")
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
