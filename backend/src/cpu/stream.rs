//! Memory that is not in the caches: prefetches, and non-temporal copies to memory that is not read again soon.

use super::Isa;

/// Elements of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 16;

/// Copies `from` to `to`, of one length, past the caches where the processor can: lines of `to` are not read first.
pub(super) fn stream(isa: Isa, from: &[f32], to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx512() {
        // SAFETY: an `Isa` of a `Cpu` is one that the processor has.
        return unsafe { avx512(from, to) };
    }
    let _ = isa;
    to.copy_from_slice(from);
}

/// Fetches what is read soon into the first-level cache.
#[inline]
pub(super) fn prefetch(x: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for line in x.chunks(LINE) {
        // SAFETY: a prefetch reads nothing that the program sees.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = x;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(from: &[f32], to: &mut [f32]) {
    use std::arch::x86_64::{_mm_sfence, _mm512_loadu_ps, _mm512_stream_ps};
    assert!(from.len() == to.len());
    // Up to the first whole line.
    let head = to.as_ptr().align_offset(4 * LINE).min(to.len());
    let (first, rest) = to.split_at_mut(head);
    first.copy_from_slice(&from[..head]);
    let (lines, last) = rest.as_chunks_mut::<LINE>();
    let (from_lines, from_last) = from[head..].as_chunks::<LINE>();
    for (to, from) in lines.iter_mut().zip(from_lines) {
        // SAFETY: whole lines of 16 elements; those of `to` are aligned.
        unsafe { _mm512_stream_ps(to.as_mut_ptr(), _mm512_loadu_ps(from.as_ptr())) };
    }
    last.copy_from_slice(from_last);
    // Streamed stores are not ordered with what tells other threads that they are done.
    _mm_sfence();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_copied() {
        let from: Vec<f32> = (0..200).map(|i| i as f32).collect();
        for isa in Isa::available() {
            for (start, len) in [(0, 0), (0, 200), (1, 7), (3, 100), (5, 150)] {
                let mut to = vec![-1.0; 210];
                stream(isa, &from[..len], &mut to[start..start + len]);
                assert!(to[start..start + len] == from[..len], "{isa:?}");
                assert!(to[..start].iter().chain(&to[start + len..]).all(|x| *x == -1.0), "{isa:?}");
            }
        }
    }
}
