//! Requests that workers ended with, again and again: each is executed with nothing beside it, so that one that takes
//! its worker with it fails in the end, and those that were only there at the time do not. After each of them others
//! have the worker for as long as it took.

use std::collections::VecDeque;

use trainyard_protocol::{OpError, RequestId};

use super::{Doom, Queue, Turn};
use crate::suspicion::Suspicion;
use crate::{Timestamp, Work};

/// What is known of suspects.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// Those that could start, in order.
    waiting: VecDeque<Turn>,
    /// Nothing else starts, because the next one is due.
    due: bool,
    /// Until when others have their turn.
    rest: Option<Timestamp>,
    /// The next one, whose start is being noted in the store; true once it is.
    next: Option<(RequestId, bool)>,
    /// The one that was started, and when.
    started: Option<(RequestId, Timestamp)>,
}

impl Queue {
    /// Notes that a suspect has ended, or that it is time for the next.
    pub(super) fn look_at_suspects(&mut self, now: Timestamp) {
        if let Some((request, since)) = &self.suspects.started
            && !self.flights.contains_key(request)
        {
            self.suspects.rest = Some(now.plus(since.until(now)));
            self.suspects.started = None;
        }
        self.suspects.due = self.suspects_due_at(now) == Some(now);
    }

    /// Whether nothing may start now.
    pub(super) fn suspects_hold_back(&self) -> bool {
        let Suspects { due, next, started, .. } = &self.suspects;
        let executing = started.as_ref().is_some_and(|(request, _)| self.flights.contains_key(request));
        let being_noted = next.as_ref().is_some_and(|(_, noted)| !noted);
        executing || (*due && (being_noted || !self.flights.is_empty()))
    }

    /// Whether a suspect may start, or others after one.
    pub(super) fn suspects_can_go_on(&self) -> bool {
        (self.suspects.due || self.suspects.started.is_some()) && !self.suspects_hold_back()
    }

    /// When the next suspect may start, if nothing is executed then; `now` or later.
    pub(super) fn suspects_due_at(&self, now: Timestamp) -> Option<Timestamp> {
        let Suspects { waiting, rest, .. } = &self.suspects;
        (!waiting.is_empty()).then(|| rest.map_or(now, |rest| rest.max(now)))
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
            self.out.ready = true;
        }
        true
    }

    /// Starts the next suspect, if that is noted; or has it noted. To be called when nothing holds back.
    pub(super) fn start_suspect(&mut self, now: Timestamp) -> Option<Work> {
        if !self.suspects.due {
            return None;
        }
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
                self.suspects.started = Some((request, now));
                return Some(work);
            }
        }
        (self.suspects.next, self.suspects.due) = (None, false);
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
        tracing::warn!(?turn, deaths = suspicion.deaths, "a request that ended its worker time and again fails");
        match turn {
            Turn::Run(run) => self.condemn_head(run, error),
            Turn::Sample(arrival) => self.doom_sample(*arrival, Doom::Failed(error)),
        }
    }
}
