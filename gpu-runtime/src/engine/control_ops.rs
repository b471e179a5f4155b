//! Execution of control operations: immediate, or as a save on the save thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use trainyard_protocol::{
    AdamParams, Completion, LoadState, OpError, OpResult, Operation, RequestId, RestoreRun, RunId, RunSpec,
    SaveExternal, SaveRun, SaveSampler, SaveSnapshot, SaveState, SaveTarget, SavedFiles,
};

use super::base::Base;
use super::lockstep::agreed;
use super::memory::run_memory;
use super::run::TrainingRun;
use super::saves::background::Job;
use super::saves::reader::not_sampled;
use super::saves::writer::{Contents, FrozenRun, FrozenSnapshot};
use super::{Engine, NewSnapshot, optimizer, unknown_run};
use crate::backend::Backend;
use crate::fault::{Fault, guarded};
use crate::interrupt::{Interrupt, interruptible};

/// State of a control operation after its execution.
enum ControlOutcome<B: Backend> {
    Done(OpResult),
    /// A save, which is done when it is written; then the snapshot is registered under its key.
    Save(Job<OpResult>, Option<NewSnapshot<B>>),
}

/// The save of what this rank writes, if it is the one that writes; the others report the folder that they do not write.
fn write_job<S: Send + 'static>(
    state: Option<S>,
    target: SaveTarget,
    write: impl FnOnce(&S, &SaveTarget) -> Result<OpResult, OpError> + Send + 'static,
) -> Job<OpResult> {
    Box::new(move || match state {
        Some(state) => write(&state, &target),
        None => Ok(OpResult::Saved(Some(SavedFiles { dir: target.dir, size_bytes: 0 }))),
    })
}

impl<B: Backend> Engine<B> {
    /// Whether an operation can be executed now: a save waits for the one in progress.
    pub(super) fn is_ready(&self, operation: &Operation) -> bool {
        self.save_thread.is_idle() || operation.target().is_none()
    }

    /// Executes the next control operation, or the optimizer steps that are next.
    pub(super) fn control_step(&mut self) {
        let idle = self.save_thread.is_idle();
        let mut steps = Vec::new();
        for (id, operation) in self.control.next(|operation| idle || operation.target().is_none()) {
            match operation {
                Operation::OptimStep { run, params } => steps.push((id, run, params)),
                other => self.control_operation(id, other),
            }
        }
        self.optim_steps(steps);
        // The operation may have dropped weights that the prefix cache has blocks of.
        self.sampler.evict_unused();
    }

    fn control_operation(&mut self, id: RequestId, operation: Operation) {
        let run = operation.run().cloned();
        let interrupt = self.load_interrupt(&id, &operation);
        let done = match guarded("control operation", || interruptible(interrupt, || self.control(operation))) {
            Ok(Ok(ControlOutcome::Done(result))) => Ok(result),
            Ok(Ok(ControlOutcome::Save(write, snapshot))) => match self.save_thread.start(id.clone(), write) {
                Ok(()) => return self.snapshot_after_save = snapshot,
                Err(error) => Err(error),
            },
            Ok(Err(error)) => Err(error),
            Err(fault) => return self.fail_with_run(id, run, fault),
        };
        self.finish(id, done);
    }

    /// Ends a load between two tensors once nobody waits for it: its run is as it was before. Whoever restores a run
    /// waits for it.
    fn load_interrupt(&self, id: &RequestId, operation: &Operation) -> Interrupt {
        match operation {
            Operation::CreateRun { .. } | Operation::LoadState(_) => Interrupt::of(self.trainer.is_abandoned(), id),
            _ => Interrupt::default(),
        }
    }

    /// Executes one optimizer step of each run. Requests of a run are serialized: it has at most one here. On one rank a
    /// long update that nobody waits for ends early, and then its runs are lost.
    fn optim_steps(&mut self, steps: Vec<(RequestId, RunId, AdamParams)>) {
        let mut runs: BTreeMap<&RunId, &mut TrainingRun<B>> = self.runs.iter_mut().collect();
        let (mut known, mut outcomes) = (Vec::new(), Vec::new());
        for (id, run, params) in &steps {
            match runs.remove(run) {
                Some(state) => known.push(((id, run), (state, params))),
                None => outcomes.push((id, run, Ok(Err(unknown_run(run))))),
            }
        }
        let (of, known): (Vec<_>, Vec<_>) = known.into_iter().unzip();
        // Ranks update their parts at the same time and could not stop at the same element.
        let is_abandoned = self.trainer.is_abandoned_on_one_rank();
        let interrupts = of.iter().map(|(id, _)| Interrupt::of(is_abandoned, id)).collect();
        let done = interruptible(Interrupt::all_of(interrupts), || optimizer::optim_steps(&*self.backend, known));
        outcomes.extend(of.into_iter().zip(done).map(|((id, run), outcome)| (id, run, outcome)));
        for (id, run, outcome) in outcomes {
            match outcome {
                Ok(result) => self.finish(id.clone(), result),
                Err(fault) => self.fail_with_run(id.clone(), Some(run.clone()), fault),
            }
        }
    }

    /// Fails a request that panicked, and drops its run, whose state is unknown.
    fn fail_with_run(&mut self, id: RequestId, run: Option<RunId>, fault: Fault) {
        run.iter().for_each(|run| self.drop_run(run));
        self.done.push(Completion { lost_run: run, ..Completion::new(id, Err(fault.error())) });
    }

    /// Completes the current save if it is written within `wait`.
    pub(super) fn collect_save(&mut self, wait: Duration) {
        let Some((id, written)) = self.save_thread.finished(wait) else { return };
        let snapshot = self.snapshot_after_save.take();
        // It may have been complete before it was cancelled; nobody learns of it.
        let cancelled = self.save_thread.is_cancelled();
        if let Ok(OpResult::Saved(Some(saved))) = &written {
            self.add_snapshot(snapshot.filter(|_| !cancelled));
            // The folder may have been overwritten.
            self.checkpoints.invalidate(&saved.dir);
        }
        self.sampler.evict_unused();
        if !cancelled {
            self.finish(id, written);
        }
    }

    /// Executes an operation, or prepares its save.
    fn control(&mut self, operation: Operation) -> Result<ControlOutcome<B>, OpError> {
        let write: Job<OpResult> = match operation {
            Operation::CreateRun { run, spec } => return self.create_run(run, spec).map(ControlOutcome::Done),
            Operation::LoadState(load) => return self.load_state(load).map(ControlOutcome::Done),
            Operation::RestoreRun(restore) => return self.restore_run(restore).map(ControlOutcome::Done),
            Operation::SaveState(SaveState { run, target }) => {
                write_job(self.run(&run)?.freeze(&self.backend, Contents::State), target, FrozenRun::save)
            }
            Operation::SaveExternal(SaveExternal { run, target }) => {
                write_job(self.run(&run)?.freeze(&self.backend, Contents::Weights), target, FrozenRun::save)
            }
            Operation::SaveRun(SaveRun { run, target }) => {
                write_job(self.run(&run)?.freeze(&self.backend, Contents::Run), target, FrozenRun::save)
            }
            Operation::SaveSnapshot(SaveSnapshot { key, target }) => {
                let weights = self.snapshots.get(&key);
                let weights = weights.ok_or_else(|| OpError::server(format!("snapshot {key} is not in memory")))?;
                write_job(FrozenSnapshot::new(&self.backend, weights), target, FrozenSnapshot::save)
            }
            Operation::SaveSampler(SaveSampler { run, snapshot, target }) => {
                let run = self.runs.get_mut(&run).ok_or_else(|| unknown_run(&run))?;
                if run.spec.head.is_scalar() {
                    return Err(not_sampled("model_id"));
                }
                let bytes = run.snapshot_bytes();
                let snapshot = match snapshot {
                    Some(key) => Some((key, run.sampler_weights(&*self.backend)?, bytes)),
                    None => None,
                };
                let Some(target) = target else {
                    self.add_snapshot(snapshot);
                    return Ok(ControlOutcome::Done(OpResult::Saved(None)));
                };
                let write = write_job(run.freeze(&self.backend, Contents::Weights), target, FrozenRun::save);
                return Ok(ControlOutcome::Save(write, snapshot));
            }
            Operation::ForwardBackward(_) | Operation::OptimStep { .. } | Operation::Sample(_) => {
                return Err(OpError::server("a batched operation reached the control queue"));
            }
        };
        Ok(ControlOutcome::Save(write, None))
    }

    fn add_snapshot(&mut self, snapshot: Option<NewSnapshot<B>>) {
        if let Some((key, weights, bytes)) = snapshot {
            self.snapshots.insert(key, weights, bytes);
        }
    }

    /// The base model of a run that is about to be loaded, for which keys and values make room.
    fn base_with_room(&mut self, spec: &RunSpec) -> Result<Arc<Base<B>>, OpError> {
        let base = self.base(&spec.base_model)?;
        self.limit_kv(run_memory(&*self.backend, base.config(), spec, base.layout).bytes);
        Ok(base)
    }

    fn restore_run(&mut self, restore: RestoreRun) -> Result<OpResult, OpError> {
        let base = self.base_with_room(&restore.spec)?;
        let run = TrainingRun::restore(&*self.backend, base, &restore.spec, &restore.dir);
        let run = agreed(&self.ranks, run)?;
        self.runs.insert(restore.run, run);
        Ok(OpResult::RunReady)
    }

    fn create_run(&mut self, id: RunId, spec: RunSpec) -> Result<OpResult, OpError> {
        let base = self.base_with_room(&spec)?;
        let run = agreed(&self.ranks, TrainingRun::new(&*self.backend, base, spec))?;
        self.runs.insert(id, run);
        Ok(OpResult::RunReady)
    }

    fn load_state(&mut self, load: LoadState) -> Result<OpResult, OpError> {
        let spec = match &load.create {
            Some(spec) => spec.clone(),
            None => self.run(&load.run)?.spec.clone(),
        };
        let base = self.base_with_room(&spec)?;
        let loaded = agreed(&self.ranks, TrainingRun::load(&*self.backend, base, &spec, &load))?;
        self.runs.insert(load.run, loaded);
        Ok(OpResult::RunReady)
    }
}
