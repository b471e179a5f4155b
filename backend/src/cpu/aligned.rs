//! Arrays aligned to cache lines: an unaligned row of a tile or vector spans two lines and takes twice as long to load.

use std::ops::{Deref, DerefMut};

#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::MmapMut;

/// Bytes of a cache line, and of the widest vector.
const LINE: usize = 64;
/// Bytes of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// Maximum number of elements in front of the first cache line.
const fn slack<T>() -> usize {
    LINE / size_of::<T>() - 1
}

/// Elements of an array in which [`aligned`] finds `len`.
pub(super) fn capacity_for<T>(len: usize) -> usize {
    if len == 0 { 0 } else { len + slack::<T>() }
}

/// `len` elements of an array of [`capacity_for`] as many, from its first cache line on.
pub(super) fn aligned<T>(data: &[T], len: usize) -> &[T] {
    &data[start(data, len)..][..len]
}

/// Mutable form of [`aligned`], with the same bounds.
pub(super) fn aligned_mut<T>(data: &mut [T], len: usize) -> &mut [T] {
    let start = start(data, len);
    &mut data[start..][..len]
}

fn start<T>(data: &[T], len: usize) -> usize {
    if len == 0 { 0 } else { data.as_ptr().align_offset(LINE).min(slack::<T>()) }
}

/// Elements for which every bit pattern is valid.
///
/// # Safety
/// The type has that property, and no alignment above [`LINE`].
pub(super) unsafe trait Plain: Copy + Default {}

// SAFETY: numbers without invalid bit patterns.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u8 {}

/// An array of fixed length that begins at a cache line. Long ones ask for huge pages: weights are read in order,
/// hardware prefetchers do not cross pages, and each page takes a translation.
pub(super) struct AlignedVec<T> {
    data: Storage<T>,
    len: usize,
}

enum Storage<T> {
    Heap(Vec<T>),
    /// Zeros of the system, used from this byte on.
    Pages(MmapMut, usize),
}

impl<T: Plain> AlignedVec<T> {
    /// A vector of `len` zeros.
    pub(super) fn zeros(len: usize) -> Self {
        let pages = huge_pages(len * size_of::<T>()).map(|(pages, at)| Storage::Pages(pages, at));
        let data = pages.unwrap_or_else(|| Storage::Heap(vec![T::default(); capacity_for::<T>(len)]));
        Self { data, len }
    }
}

/// Bytes of an array that are in huge pages: a last one is asked for where less than half of it would be unused.
const fn in_huge_pages(bytes: usize) -> usize {
    (bytes + HUGE_PAGE / 2) / HUGE_PAGE * HUGE_PAGE
}

/// Bytes of memory that an array of `bytes` bytes takes if the system gives huge pages.
pub(super) const fn resident_bytes(bytes: usize) -> usize {
    let huge = in_huge_pages(bytes);
    if huge > bytes { huge } else { bytes }
}

/// Zeros from a huge page's first byte on, and where they begin; `None` where they are too few or can't be had.
fn huge_pages(bytes: usize) -> Option<(MmapMut, usize)> {
    if bytes < HUGE_PAGE / 2 {
        return None;
    }
    // What is in front of the first huge page is never touched, so that it takes no memory.
    let pages = MmapMut::map_anon(bytes + HUGE_PAGE).ok()?;
    let at = pages.as_ptr().align_offset(HUGE_PAGE);
    #[cfg(target_os = "linux")]
    {
        if let Err(error) = pages.advise_range(Advice::HugePage, at, in_huge_pages(bytes).min(pages.len() - at)) {
            tracing::debug!("huge pages are not available: {error}");
        }
    }
    Some((pages, at))
}

impl<T: Plain> Clone for AlignedVec<T> {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl<T> Deref for AlignedVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.data {
            Storage::Heap(data) => aligned(data, self.len),
            // SAFETY: only `zeros` makes these; it mapped `len` elements of a plain type from there on, aligned.
            Storage::Pages(pages, at) => unsafe {
                std::slice::from_raw_parts(pages.as_ptr().add(*at).cast(), self.len)
            },
        }
    }
}

impl<T> DerefMut for AlignedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.data {
            Storage::Heap(data) => aligned_mut(data, self.len),
            // SAFETY: as above.
            Storage::Pages(pages, at) => unsafe {
                std::slice::from_raw_parts_mut(pages.as_mut_ptr().add(*at).cast(), self.len)
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_begin_at_a_cache_line_and_keep_their_elements() {
        for len in [0, 1, 15, 16, 1_000, 100_000, 300_000, 1_300_000] {
            let mut a = AlignedVec::<f32>::zeros(len);
            assert!(a.len() == len && a.iter().all(|x| *x == 0.0));
            a.iter_mut().enumerate().for_each(|(i, x)| *x = i as f32);
            let copies: Vec<_> = (0..4).map(|_| a.clone()).collect();
            for copy in copies.iter().chain([&a]) {
                assert!(len == 0 || copy.as_ptr().addr().is_multiple_of(LINE));
                assert!(copy.iter().enumerate().all(|(i, x)| *x == i as f32));
            }
        }
    }
}
