//! Sampler weights that were read from folders, the last ones kept in memory.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::SamplerWeights;

/// Up to a number of bytes, but always the last one.
pub(in super::super) struct Recent {
    limit: usize,
    /// By folder, most recently used last.
    entries: VecDeque<(PathBuf, SamplerWeights)>,
}

impl Recent {
    pub(in super::super) fn new(limit: usize) -> Self {
        Self { limit, entries: VecDeque::new() }
    }

    /// What was read from a folder, if it is still here.
    pub(in super::super) fn get(&mut self, dir: &Path) -> Option<SamplerWeights> {
        let at = self.entries.iter().position(|(known, _)| known == dir)?;
        let entry = self.entries.remove(at)?;
        let weights = entry.1.clone();
        self.entries.push_back(entry);
        Some(weights)
    }

    /// Keeps what was read from a folder. What was used least recently goes; whoever samples from it still has it.
    pub(in super::super) fn put(&mut self, dir: PathBuf, weights: SamplerWeights) {
        self.forget(&dir);
        self.entries.push_back((dir, weights));
        let mut bytes: usize = self.entries.iter().map(|(_, weights)| weights.own_bytes()).sum();
        while bytes > self.limit && self.entries.len() > 1 {
            bytes -= self.entries.pop_front().map_or(0, |(_, weights)| weights.own_bytes());
        }
    }

    /// What was read from a folder is out of date.
    pub(in super::super) fn forget(&mut self, dir: &Path) {
        self.entries.retain(|(known, _)| known != dir);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;

    use super::*;
    use crate::engine::sampler::tests::{adapter, base};

    #[test]
    fn the_least_recently_used_goes_when_there_are_too_many_bytes() {
        let base = base("llama");
        let weights = SamplerWeights { adapter: Some(adapter(&base, 1)), ..SamplerWeights::of_base(base) };
        let mut recent = Recent::new(2 * weights.own_bytes());
        let [a, b, c] = ["a", "b", "c"].map(Path::new);
        recent.put(a.into(), weights.clone());
        recent.put(b.into(), weights.clone());
        assert!(recent.get(a).is_some());
        recent.put(c.into(), weights.clone());
        assert!(recent.get(b).is_none() && recent.get(a).is_some() && recent.get(c).is_some());
        let found = recent.get(a).and_then(|found| found.adapter);
        assert!(found.is_some_and(|found| Arc::ptr_eq(&found, weights.adapter.as_ref().unwrap())));
        recent.forget(a);
        assert!(recent.get(a).is_none());
        let mut tight = Recent::new(1);
        tight.put(a.into(), weights.clone());
        assert!(tight.get(a).is_some(), "the last one stays");
        tight.put(b.into(), weights);
        assert!(tight.get(a).is_none() && tight.get(b).is_some());
    }
}
