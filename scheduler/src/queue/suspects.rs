//! Requests that workers ended with, again and again: each is executed with nothing beside it, so that one that takes
//! its worker with it fails in the end, and those that were only there at the time do not.

use std::collections::VecDeque;

use trainyard_protocol::{OpError, RequestId};

use super::{Doom, Queue, Turn};
use crate::suspicion::Suspicion;
use crate::{Timestamp, Work};

/// What is known of suspects.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// Those that could start, in order. While there are any, nothing else starts.
    waiting: VecDeque<Turn>,
    /// The next one, whose start is being noted in the store; true once it is.
    next: Option<(RequestId, bool)>,
    /// The one that was started.
    started: Option<RequestId>,
}

impl Queue {
    /// Whether nothing may start now.
    pub(super) fn suspects_hold_back(&self) -> bool {
        let Suspects { waiting, next, started } = &self.suspects;
        let executing = started.as_ref().is_some_and(|request| self.flights.contains_key(request));
        let being_noted = next.as_ref().is_some_and(|(_, noted)| !noted);
        executing || (!waiting.is_empty() && (being_noted || !self.flights.is_empty()))
    }

    /// Whether a suspect may start, or others after one.
    pub(super) fn suspects_can_go_on(&self) -> bool {
        let Suspects { waiting, started, .. } = &self.suspects;
        (!waiting.is_empty() || started.is_some()) && !self.suspects_hold_back()
    }

    /// Whether a turn is a suspect's, which waits until nothing else is executed, or ends here.
    pub(super) fn is_held_as_suspect(&mut self, turn: &Turn) -> bool {
        let Some((_, suspicion)) = self.suspicion(turn).filter(|(_, suspicion)| suspicion.is_suspect()) else {
            return false;
        };
        if suspicion.is_condemned() {
            self.condemn(turn, suspicion);
        } else {
            self.suspects.waiting.push_back(turn.clone());
        }
        true
    }

    /// Starts the next suspect, if that is noted; or has it noted. To be called when nothing holds back.
    pub(super) fn start_suspect(&mut self, now: Timestamp) -> Option<Work> {
        self.suspects.started = None;
        while let Some(turn) = self.suspects.waiting.front().cloned() {
            let suspect = self.suspicion(&turn).filter(|(_, suspicion)| suspicion.is_suspect());
            let Some((request, _)) = suspect else {
                // It was cancelled, or something comes before it now.
                self.suspects.waiting.pop_front();
                self.list_again(turn);
                continue;
            };
            if self.suspects.next != Some((request.clone(), true)) {
                self.suspects.next = Some((request.clone(), false));
                self.out.alone = Some(request);
                return None;
            }
            self.suspects.waiting.pop_front();
            self.suspects.next = None;
            if let Some(work) = self.start_now(&turn, now) {
                self.suspects.started = Some(request);
                return Some(work);
            }
        }
        self.suspects.next = None;
        None
    }

    /// The store knows that a suspect is about to start.
    pub(crate) fn suspect_noted(&mut self, request: &RequestId) {
        if let Some((next, noted)) = &mut self.suspects.next
            && next == request
        {
            *noted = true;
        }
    }

    fn suspicion(&self, turn: &Turn) -> Option<(RequestId, Suspicion)> {
        match turn {
            Turn::Run(run) => self.head_suspicion(run),
            Turn::Sample(arrival) => {
                let sample = self.samples.get(arrival)?;
                Some((sample.request.clone(), sample.cost.suspicion))
            }
        }
    }

    fn list_again(&mut self, turn: Turn) {
        match turn {
            Turn::Run(run) => self.ready_runs.push_back(run),
            Turn::Sample(arrival) if self.samples.contains_key(&arrival) => drop(self.ready_samples.insert(arrival)),
            Turn::Sample(_) => {}
        }
    }

    fn condemn(&mut self, turn: &Turn, suspicion: Suspicion) {
        let error = OpError::server(format!(
            "the worker process ended each of {} times that it executed this request alone; it is not tried again",
            suspicion.alone
        ));
        match turn {
            Turn::Run(run) => self.condemn_head(run, error),
            Turn::Sample(arrival) => self.doom_sample(*arrival, Doom::Failed(error)),
        }
    }
}
