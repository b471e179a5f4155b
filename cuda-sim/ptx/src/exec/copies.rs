//! Copies that were started and not waited for.

use std::collections::VecDeque;

use crate::exec::lanes;
use crate::row::LANES;

/// Copies that a warp's threads started and did not wait for.
#[derive(Debug, Default)]
pub(crate) struct AsyncCopies {
    /// Committed groups of each lane, oldest first; the last one is open.
    groups: [VecDeque<Vec<Copy>>; LANES],
}

#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) to: u64,
    pub(crate) bytes: Vec<u8>,
}

impl AsyncCopies {
    /// Adds a copy to a lane's open group.
    pub(crate) fn add(&mut self, lane: usize, copy: Copy) {
        let groups = &mut self.groups[lane];
        if groups.is_empty() {
            groups.push_back(Vec::new());
        }
        if let Some(open) = groups.back_mut() {
            open.push(copy);
        }
    }

    /// Closes the open group of each lane.
    pub(crate) fn commit(&mut self, active: u32) {
        for lane in lanes(active) {
            let groups = &mut self.groups[lane];
            if groups.is_empty() {
                groups.push_back(Vec::new());
            }
            groups.push_back(Vec::new());
        }
    }

    /// Takes a lane's oldest group while more than `keep` are committed.
    pub(crate) fn take(&mut self, lane: usize, keep: usize) -> Option<Vec<Copy>> {
        let groups = &mut self.groups[lane];
        if groups.len() > keep + 1 { groups.pop_front() } else { None }
    }
}
