//! Loops over slices, rows and items on all threads.

use super::Cpu;
use super::thread_pool::ThreadPool;

/// A raw pointer that tasks of one parallel region share.
///
/// Each use states why the tasks' accesses are disjoint.
pub(super) struct SharedPtr<T>(pub(super) *mut T);

impl<T> Clone for SharedPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SharedPtr<T> {}

// SAFETY: the wrapper only moves the address between threads; dereferencing is unsafe at each use.
unsafe impl<T> Send for SharedPtr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for SharedPtr<T> {}

impl<T> SharedPtr<T> {
    pub(super) fn ptr(self) -> *mut T {
        self.0
    }
}

/// Runs `f(i, chunk)` on consecutive chunks of `data` (the last may be shorter), in parallel.
pub(super) fn par_chunks<T: Send>(pool: &ThreadPool, data: &mut [T], chunk: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    let (len, base) = (data.len(), SharedPtr(data.as_mut_ptr()));
    let chunk = chunk.max(1);
    pool.run(len.div_ceil(chunk), |i| {
        let start = i * chunk;
        let end = (start + chunk).min(len);
        // SAFETY: chunks [start, end) of distinct tasks do not overlap and lie inside `data`.
        f(i, unsafe { std::slice::from_raw_parts_mut(base.ptr().add(start), end - start) });
    });
}

/// Rows per task so that every thread gets a few tasks.
pub(super) fn rows_per_task(pool: &ThreadPool, rows: usize) -> usize {
    rows.div_ceil(pool.threads() * 4).max(1)
}

/// Runs `f(row)` for rows `[0, rows)` of a dense matrix of `width` columns, giving each its slice.
pub(super) fn for_rows(cpu: &Cpu, x: &mut [f32], width: usize, f: impl Fn(usize, &mut [f32]) + Sync) {
    let chunk = rows_per_task(&cpu.pool, x.len() / width.max(1));
    par_chunks(&cpu.pool, x, chunk * width, |i, rows| {
        for (j, row) in rows.chunks_exact_mut(width).enumerate() {
            f(i * chunk + j, row);
        }
    });
}

/// Runs `f(i)` for each item on all threads, giving each its own element of `items`.
pub(super) fn for_each<T: Send>(cpu: &Cpu, items: &mut [T], f: impl Fn(usize, &mut T) + Sync) {
    let base = SharedPtr(items.as_mut_ptr());
    cpu.pool.run(items.len(), |i| {
        // SAFETY: every task has an element of its own.
        f(i, unsafe { &mut *base.ptr().add(i) });
    });
}
