//! A step of the engine: the turn of one kind of work, and the results of background threads.

use std::time::{Duration, Instant};

use super::Engine;
use super::turns::{Turn, Waiting};
use crate::backend::Backend;

impl<B: Backend> Engine<B> {
    /// Takes over what threads in the background have finished, waiting for each of them for up to `wait`.
    pub(super) fn advance_background(&mut self, wait: Duration) {
        self.collect_save(wait);
        self.start_waiting(wait);
        self.done.extend(self.trainer.advance_losses(wait));
    }

    /// Kinds of work that wait for a step.
    pub(super) fn waiting(&self) -> Waiting {
        Waiting {
            control: self.control.has(|operation| self.is_ready(operation)),
            training: self.trainer.is_ready() || !self.images.is_idle() || !self.watch.is_idle(),
            sampling: !self.sampler.is_idle(),
        }
    }

    /// Runs control operations, a sampling pass or a training microbatch.
    pub(super) fn take_turn(&mut self, turn: Turn, sampling: bool) {
        let began = Instant::now();
        match turn {
            Turn::Control => self.control_step(),
            Turn::Sampling => {
                let finished = self.sampler.step(&*self.backend);
                self.watch.note(&finished);
                self.done.extend(finished);
            }
            Turn::Training => self.training_step(),
        }
        self.turns.record(turn, began.elapsed(), sampling);
        // Not after every sampling pass: buffers of microbatches must stay in the pool between two of them.
        if turn == Turn::Training || (turn == Turn::Sampling && self.turns.ends_round()) {
            self.backend.end_pass();
        }
    }

    /// Runs a training microbatch or a pass over images, in turn where both wait; or verifies a sample.
    fn training_step(&mut self) {
        if self.watch.takes_turn(self.trainer.is_ready() || !self.images.is_idle()) {
            self.watch.step(&*self.backend);
            return;
        }
        self.images.had_turn = !self.images.is_idle() && (!self.trainer.is_ready() || !self.images.had_turn);
        match self.images.had_turn {
            true => self.embed_step(),
            false => self.done.extend(self.trainer.step(&*self.backend, &mut self.runs)),
        }
    }
}
