//! Control operations: executed at once, or as a save in the background.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use trainyard_protocol::{
    AdamParams, Completion, LoadState, OpError, OpResult, Operation, RequestId, RestoreRun, RunId, RunSpec,
    SaveExternal, SaveRun, SaveSampler, SaveSnapshot, SaveState,
};

use super::fault::{Fault, guarded};
use super::run::Run;
use super::sampler::SamplerWeights;
use super::saver::Write;
use super::{CpuEngine, saves, step, unknown_run};

/// What became of a control operation.
enum Progress {
    Done(OpResult),
    /// It is done when this has been written; then the snapshot exists.
    Save(Write, Option<(String, SamplerWeights)>),
}

/// Whether an operation writes a folder, which takes a while.
fn writes_files(operation: &Operation) -> bool {
    match operation {
        Operation::SaveState(_) | Operation::SaveExternal(_) | Operation::SaveRun(_) | Operation::SaveSnapshot(_) => {
            true
        }
        Operation::SaveSampler(save) => save.target.is_some(),
        _ => false,
    }
}

impl CpuEngine {
    /// Whether an operation can be executed now: one save at a time is written.
    pub(super) fn is_ready(&self, operation: &Operation) -> bool {
        self.saver.is_idle() || !writes_files(operation)
    }

    /// Executes the next control operation, or the optimizer steps that are next.
    pub(super) fn control_step(&mut self) {
        let idle = self.saver.is_idle();
        let mut steps = Vec::new();
        for (id, operation) in self.control.next(|operation| idle || !writes_files(operation)) {
            match operation {
                Operation::OptimStep { run, params } => steps.push((id, run, params)),
                other => self.control_operation(id, other),
            }
        }
        self.optim_steps(steps);
        // The operation may have replaced the last weights of which something is cached.
        self.sampler.settle();
    }

    fn control_operation(&mut self, id: RequestId, operation: Operation) {
        let run = operation.run().cloned();
        let done = match guarded("control operation", || self.control(operation)) {
            Ok(Ok(Progress::Done(result))) => Ok(result),
            Ok(Ok(Progress::Save(write, snapshot))) => match self.saver.start(id.clone(), write) {
                Ok(()) => return self.after_save = snapshot,
                Err(error) => Err(error),
            },
            Ok(Err(error)) => Err(error),
            Err(fault) => return self.lose(id, run, fault),
        };
        self.finish(id, done);
    }

    /// A run's requests come one after the other, so that each run has one step here.
    fn optim_steps(&mut self, steps: Vec<(RequestId, RunId, AdamParams)>) {
        let mut runs: BTreeMap<&RunId, &mut Run> = self.runs.iter_mut().collect();
        let (mut known, mut outcomes) = (Vec::new(), Vec::new());
        for (id, run, params) in &steps {
            match runs.remove(run) {
                Some(state) => known.push(((id, run), (state, params))),
                None => outcomes.push((id, run, Ok(Err(unknown_run(run))))),
            }
        }
        let (of, known): (Vec<_>, Vec<_>) = known.into_iter().unzip();
        let done = step::optim_steps(&self.cpu, known);
        outcomes.extend(of.into_iter().zip(done).map(|((id, run), outcome)| (id, run, outcome)));
        for (id, run, outcome) in outcomes {
            match outcome {
                Ok(result) => self.finish(id.clone(), result),
                Err(fault) => self.lose(id.clone(), Some(run.clone()), fault),
            }
        }
    }

    /// Fails a request that panicked; its run is in an unknown state and goes.
    fn lose(&mut self, id: RequestId, run: Option<RunId>, fault: Fault) {
        run.iter().for_each(|run| self.drop_run(run));
        self.done.push(Completion { lost_run: run, ..Completion::new(id, Err(fault.error())) });
    }

    /// Takes note of a save that is written, waiting for it for a while.
    pub(super) fn collect_save(&mut self, wait: Duration) {
        let Some((id, written)) = self.saver.finished(wait) else { return };
        let snapshot = self.after_save.take();
        if let Ok(OpResult::Saved(Some(saved))) = &written {
            self.snapshots.extend(snapshot);
            // What was read from a folder that has been replaced is out of date.
            self.checkpoints.forget(&saved.dir);
        }
        self.sampler.settle();
        self.finish(id, written);
    }

    /// Executes an operation, or begins the save that it asks for.
    fn control(&mut self, operation: Operation) -> Result<Progress, OpError> {
        let write: Write = match operation {
            Operation::CreateRun { run, spec } => return self.create_run(run, spec).map(Progress::Done),
            Operation::LoadState(load) => return self.load_state(load).map(Progress::Done),
            Operation::RestoreRun(restore) => return self.restore_run(restore).map(Progress::Done),
            Operation::SaveState(SaveState { run, target }) => {
                let run = self.run(&run)?.freeze();
                Box::new(move || run.save_state(&target))
            }
            Operation::SaveExternal(SaveExternal { run, target }) => {
                let run = self.run(&run)?.freeze();
                Box::new(move || run.save_weights(&target))
            }
            Operation::SaveRun(SaveRun { run, target }) => {
                let run = self.run(&run)?.freeze();
                Box::new(move || run.save_run(&target))
            }
            Operation::SaveSnapshot(SaveSnapshot { key, target }) => {
                let weights = self.snapshots.get(&key).cloned();
                let weights = weights.ok_or_else(|| OpError::server(format!("snapshot {key} is not in memory")))?;
                Box::new(move || saves::save_snapshot(&weights, &target))
            }
            Operation::SaveSampler(SaveSampler { run, snapshot, target }) => {
                let run = self.runs.get_mut(&run).ok_or_else(|| unknown_run(&run))?;
                let snapshot = snapshot.map(|key| (key, run.sampler_weights(&self.cpu)));
                let Some(target) = target else {
                    self.snapshots.extend(snapshot);
                    return Ok(Progress::Done(OpResult::Saved(None)));
                };
                let run = run.freeze();
                return Ok(Progress::Save(Box::new(move || run.save_weights(&target)), snapshot));
            }
            Operation::ForwardBackward(_) | Operation::OptimStep { .. } | Operation::Sample(_) => {
                return Err(OpError::server("a batched operation reached the control queue"));
            }
        };
        Ok(Progress::Save(write, None))
    }

    fn restore_run(&mut self, restore: RestoreRun) -> Result<OpResult, OpError> {
        let base = self.base(&restore.spec.base_model)?;
        let run = Run::restore(&self.cpu, base, &restore.spec, &restore.dir)?;
        self.runs.insert(restore.run, run);
        Ok(OpResult::RunReady)
    }

    fn create_run(&mut self, id: RunId, spec: RunSpec) -> Result<OpResult, OpError> {
        let base = self.base(&spec.base_model)?;
        let run = Run::new(&self.cpu, base, spec)?;
        self.runs.insert(id, run);
        Ok(OpResult::RunReady)
    }

    fn load_state(&mut self, load: LoadState) -> Result<OpResult, OpError> {
        match load.create {
            Some(spec) => {
                let base = self.base(&spec.base_model)?;
                let run = Run::load(&self.cpu, base, &spec, &load.dir, load.with_optimizer)?;
                self.runs.insert(load.run, run);
            }
            None => {
                let (base, spec) = {
                    let run = self.run(&load.run)?;
                    (Arc::clone(&run.base), run.spec.clone())
                };
                let loaded = Run::load(&self.cpu, base, &spec, &load.dir, load.with_optimizer)?;
                self.runs.insert(load.run, loaded);
            }
        }
        Ok(OpResult::RunReady)
    }
}
