//! A fork-join thread pool for parallel regions of microseconds: workers spin for a moment before they sleep.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Polls before a waiting thread yields, and before a worker goes to sleep.
const SPINS: usize = 4_000;
const YIELDS: usize = 200;

type RegionFn = *const (dyn Fn(usize) + Sync);

struct State {
    /// Counts regions; workers wait for it to change.
    epoch: AtomicUsize,
    /// The region's closure and number of tasks; written before `epoch` changes, and removed once all tasks were taken.
    job: Mutex<Option<(SendRegionFn, usize)>>,
    /// The next task to take.
    next: AtomicUsize,
    /// Workers in the region; they enter it under the lock of `job`. A worker that wakes after all tasks were taken does
    /// not enter, and nobody waits for it.
    active: AtomicUsize,
    /// The payload of the first worker that panicked in the region.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    stop: AtomicBool,
    sleepers: Mutex<usize>,
    wake: Condvar,
}

#[derive(Clone, Copy)]
struct SendRegionFn(RegionFn);
// SAFETY: the closure is Sync, and `run` does not return before every worker that entered the region is done with it.
unsafe impl Send for SendRegionFn {}

/// Threads that execute parallel regions together with the caller.
pub(super) struct ThreadPool {
    state: Arc<State>,
    workers: Vec<JoinHandle<()>>,
    region: Mutex<()>,
    threads: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ThreadPool {
    /// A pool of `threads` threads, the caller included.
    pub(super) fn new(threads: usize) -> Self {
        let state = Arc::new(State {
            epoch: AtomicUsize::new(0),
            job: Mutex::new(None),
            next: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
            panic: Mutex::new(None),
            stop: AtomicBool::new(false),
            sleepers: Mutex::new(0),
            wake: Condvar::new(),
        });
        // Where a thread cannot be started, the pool is smaller.
        let workers: Vec<_> = (1..threads.max(1))
            .filter_map(|i| {
                let state = Arc::clone(&state);
                std::thread::Builder::new().name(format!("kernel-{i}")).spawn(move || work(&state)).ok()
            })
            .collect();
        let threads = workers.len() + 1;
        Self { state, workers, region: Mutex::new(()), threads }
    }

    /// Threads, the caller included.
    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `f(0) … f(tasks - 1)`, each once, and returns when all are done. A panic in a task
    /// panics here, after the region has ended.
    pub(super) fn run(&self, tasks: usize, f: impl Fn(usize) + Sync) {
        if tasks <= 1 || self.workers.is_empty() {
            (0..tasks).for_each(f);
            return;
        }
        let _region = lock(&self.region);
        let state = &*self.state;
        let job: &(dyn Fn(usize) + Sync) = &f;
        // SAFETY: only the lifetime is erased; `run` removes the reference, so that no further worker gets it, and
        // returns after `active` has dropped to zero, so that no worker holds it beyond the closure's life.
        let job: RegionFn = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), RegionFn>(job) };
        // Nobody is in a region now, so nobody takes tasks.
        state.next.store(0, Ordering::Relaxed);
        *lock(&state.job) = Some((SendRegionFn(job), tasks));
        {
            // Under the lock, so that a worker on its way to sleep cannot miss it.
            let sleepers = lock(&state.sleepers);
            state.epoch.fetch_add(1, Ordering::Release);
            if *sleepers > 0 {
                state.wake.notify_all();
            }
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| take_tasks(state, &f, tasks)));
        *lock(&state.job) = None;
        let mut polls = 0;
        while state.active.load(Ordering::Acquire) > 0 {
            polls += 1;
            if polls < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        let of_worker = lock(&state.panic).take();
        if let Some(payload) = outcome.err().or(of_worker) {
            std::panic::resume_unwind(payload);
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        {
            let _sleepers = lock(&self.state.sleepers);
            self.state.stop.store(true, Ordering::Relaxed);
            self.state.epoch.fetch_add(1, Ordering::Release);
            self.state.wake.notify_all();
        }
        for worker in self.workers.drain(..) {
            // A worker catches panics, so joining it cannot fail.
            drop(worker.join());
        }
    }
}

fn take_tasks(state: &State, f: &(dyn Fn(usize) + Sync), tasks: usize) {
    loop {
        let i = state.next.fetch_add(1, Ordering::Relaxed);
        if i >= tasks {
            return;
        }
        f(i);
    }
}

fn work(state: &State) {
    let mut seen = 0;
    loop {
        seen = wait_for_region(state, seen);
        if state.stop.load(Ordering::Relaxed) {
            return;
        }
        let Some((SendRegionFn(job), tasks)) = enter(state) else { continue };
        // SAFETY: `run` holds the closure until `active` drops, which happens below.
        let f = unsafe { &*job };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| take_tasks(state, f, tasks))) {
            lock(&state.panic).get_or_insert(payload);
        }
        state.active.fetch_sub(1, Ordering::Release);
    }
}

/// Enters the region, if it still has tasks.
fn enter(state: &State) -> Option<(SendRegionFn, usize)> {
    let job = lock(&state.job);
    if job.is_some() {
        state.active.fetch_add(1, Ordering::Relaxed);
    }
    *job
}

fn wait_for_region(state: &State, seen: usize) -> usize {
    for poll in 0..SPINS + YIELDS {
        let epoch = state.epoch.load(Ordering::Acquire);
        if epoch != seen {
            return epoch;
        }
        if poll < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
    }
    let mut sleepers = lock(&state.sleepers);
    loop {
        let epoch = state.epoch.load(Ordering::Acquire);
        if epoch != seen {
            return epoch;
        }
        *sleepers += 1;
        sleepers = state.wake.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
        *sleepers -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        let pool = ThreadPool::new(3);
        for tasks in [0, 1, 2, 7, 1000] {
            let counts: Vec<_> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
            pool.run(tasks, |i| {
                counts[i].fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_survives() {
        let pool = ThreadPool::new(2);
        let result = catch_unwind(AssertUnwindSafe(|| pool.run(64, |i| assert!(i != 40, "boom"))));
        let text = result.err().and_then(|panic| panic.downcast_ref::<&str>().map(ToString::to_string));
        assert_eq!(text.as_deref(), Some("boom"));
        let sum = AtomicUsize::new(0);
        pool.run(10, |i| {
            sum.fetch_add(i, Ordering::Relaxed);
        });
        assert_eq!(sum.load(Ordering::Relaxed), 45);
    }

    #[test]
    fn regions_that_follow_at_once_do_not_mix() {
        let pool = ThreadPool::new(4);
        for round in 0..20_000 {
            let tasks = 2 + round % 5;
            let counts: Vec<_> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
            pool.run(tasks, |i| {
                counts[i].fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1), "round {round}");
        }
    }

    #[test]
    fn sleeping_workers_wake() {
        let pool = ThreadPool::new(2);
        for _ in 0..3 {
            std::thread::sleep(std::time::Duration::from_millis(30));
            let sum = AtomicUsize::new(0);
            pool.run(8, |i| {
                sum.fetch_add(i, Ordering::Relaxed);
            });
            assert_eq!(sum.load(Ordering::Relaxed), 28);
        }
    }
}
