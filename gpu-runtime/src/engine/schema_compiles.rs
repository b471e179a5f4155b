//! Samples whose text follows a JSON schema. Schemas are compiled on a separate thread, one at a time, while the engine
//! continues; tenants take turns, so that many large schemas of one tenant delay only that tenant's samples.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use trainyard_protocol::{CallMarks, OpError, RequestId, SampleOperation, TenantShare};

use super::base::Base;
use super::sampler::SamplerWeights;
use super::saves::background::Background;
use crate::backend::Backend;
use crate::collective::Ranks;
use crate::grammar::{COMPILE_STACK, Grammar};

/// Compiled schemas that are kept; those that are used last.
const KEPT: usize = 16;

/// A sample with its weights.
pub(super) struct LoadedSample<B: Backend> {
    pub(super) id: RequestId,
    pub(super) share: TenantShare,
    pub(super) operation: SampleOperation,
    pub(super) weights: SamplerWeights<B>,
}

impl<B: Backend> LoadedSample<B> {
    fn key(&self) -> SchemaKey {
        let controls = &self.operation.sample.params.controls;
        SchemaKey {
            base: self.weights.base.name.clone(),
            schema: controls.json_schema.clone().unwrap_or_default(),
            marks: controls.call_marks.clone(),
        }
    }

    fn needs(&self, key: &SchemaKey) -> bool {
        let controls = &self.operation.sample.params.controls;
        self.weights.base.name == key.base
            && controls.json_schema.as_ref() == Some(&key.schema)
            && controls.call_marks == key.marks
    }
}

/// A schema for the vocabulary of a base model.
#[derive(Clone, PartialEq, Eq)]
struct SchemaKey {
    base: String,
    schema: String,
    /// Marks around what follows the schema, if it is the schema of calls.
    marks: Option<CallMarks>,
}

/// Compiles the schemas of samples.
pub(super) struct SchemaCompiles<B: Backend> {
    waiting: VecDeque<LoadedSample<B>>,
    thread: Background<SchemaKey, Grammar>,
    /// The most recently used last. What is refused is not kept.
    compiled: VecDeque<(SchemaKey, Grammar)>,
    /// Schemas compiled for each tenant with waiting samples.
    turns: BTreeMap<Arc<str>, u64>,
}

impl<B: Backend> SchemaCompiles<B> {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            thread: Background::new("schema compilation").with_stack(COMPILE_STACK),
            compiled: VecDeque::new(),
            turns: BTreeMap::new(),
        }
    }

    /// Compiles each schema on all of these ranks.
    pub(super) fn on(self, ranks: &Ranks) -> Self {
        Self { thread: self.thread.on(ranks), ..self }
    }

    /// Whether no sample waits for a grammar.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Queues a sample with a schema; [`SchemaCompiles::advance`] returns it with its grammar.
    pub(super) fn push(&mut self, sample: LoadedSample<B>) {
        // A tenant that comes later has no advantage over those that wait.
        let least = self.turns.values().min().copied().unwrap_or(0);
        self.turns.entry(Arc::clone(&sample.share.name)).or_insert(least);
        self.waiting.push_back(sample);
    }

    /// Removes samples that wait.
    pub(super) fn cancel(&mut self, ids: &BTreeSet<RequestId>) {
        self.waiting.retain(|sample| !ids.contains(&sample.id));
    }

    /// Completes the compilation in progress if it is done within `wait`, and starts the next one. Returns the samples that
    /// need to wait no longer, with their grammars or the reason why there are none.
    pub(super) fn advance(&mut self, wait: Duration) -> Vec<(LoadedSample<B>, Result<Grammar, OpError>)> {
        let mut resolved = Vec::new();
        if let Some((key, compiled)) = self.thread.finished(wait) {
            self.resolve(&key, &compiled, &mut resolved);
            if let Ok(grammar) = compiled {
                self.keep(key, grammar);
            }
        }
        while self.thread.is_idle()
            && let Some(next) = self.next()
        {
            let (base, key) = (Arc::clone(&next.weights.base), next.key());
            let ready = match self.kept(&key) {
                Some(grammar) => Ok(grammar),
                None => match self.start(base, &key) {
                    Ok(()) => break,
                    Err(error) => Err(error),
                },
            };
            self.resolve(&key, &ready, &mut resolved);
        }
        let waiting = &self.waiting;
        self.turns.retain(|tenant, _| waiting.iter().any(|sample| sample.share.name == *tenant));
        resolved
    }

    /// The oldest sample of the tenant that had the fewest turns.
    fn next(&self) -> Option<&LoadedSample<B>> {
        self.waiting.iter().min_by_key(|sample| self.turns.get(&sample.share.name).copied().unwrap_or(0))
    }

    fn start(&mut self, base: Arc<Base<B>>, key: &SchemaKey) -> Result<(), OpError> {
        if let Some(turns) =
            self.next().map(|sample| Arc::clone(&sample.share.name)).and_then(|t| self.turns.get_mut(&t))
        {
            *turns += 1;
        }
        let SchemaKey { schema, marks, .. } = key.clone();
        self.thread.start(key.clone(), Box::new(move || base.grammar(&schema, marks.as_ref())))
    }

    /// Takes the samples that wait for a schema.
    fn resolve(
        &mut self,
        key: &SchemaKey,
        compiled: &Result<Grammar, OpError>,
        resolved: &mut Vec<(LoadedSample<B>, Result<Grammar, OpError>)>,
    ) {
        let (ready, waiting): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|sample| sample.needs(key));
        self.waiting = waiting;
        resolved.extend(ready.into_iter().map(|sample| (sample, compiled.clone())));
    }

    fn kept(&mut self, key: &SchemaKey) -> Option<Grammar> {
        let at = self.compiled.iter().position(|(kept, _)| kept == key)?;
        let (key, grammar) = self.compiled.remove(at)?;
        self.compiled.push_back((key, grammar.clone()));
        Some(grammar)
    }

    fn keep(&mut self, key: SchemaKey, grammar: Grammar) {
        if self.compiled.len() >= KEPT {
            self.compiled.pop_front();
        }
        self.compiled.push_back((key, grammar));
    }
}

#[cfg(test)]
#[path = "schema_compile_tests.rs"]
mod tests;
