//! The sides of gradients of weights in tiles, rounded to bf16. Rows are multiplied in groups of up to [`TILE_K`], which
//! begin anew with each sequence; a group that has fewer rows is filled with zeros. Rows are packed while they are in cache,
//! gradients of outputs at once as left sides of GEMMs.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::marker::PhantomData;
use std::ops::Range;

use super::super::Cpu;
#[cfg(target_arch = "x86_64")]
use super::super::avx512::{interleave, round, transpose};
use super::super::buffer::Buffer;
use super::super::packed::NR;
use super::super::parallel::SharedPtr;
use super::super::tile_layout::{TILE, TILE_BYTES, TILE_K};
use super::lhs::{LhsData, PackedLhs};
use super::rows_view::RowsView;

/// Words of a tile.
pub(super) const TILE_WORDS: usize = TILE_BYTES / size_of::<u32>();

/// Rows that one instruction multiplies: the first one, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub first: usize,
    pub rows: usize,
}

/// The groups of runs of rows.
pub(super) fn groups(runs: &[Range<usize>]) -> Vec<Group> {
    let of_run = |run: &Range<usize>| {
        let end = run.end;
        run.clone().step_by(TILE_K).map(move |first| Group { first, rows: (end - first).min(TILE_K) })
    };
    runs.iter().flat_map(of_run).collect()
}

/// Side of a product that packed rows form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SideForm {
    /// Transposed: `[width / TILE][groups][TILE][TILE_K / 2]` words, an even number of tiles: kernels read two of them.
    Left,
    /// Pairs of rows: `[width / NR][groups][TILE_K / 2][NR]` words.
    Right,
}

/// Rows as a side of gradients.
pub struct PackedSide {
    pub(super) form: SideForm,
    pub(super) words: Buffer<u32>,
    pub(super) groups: Vec<Group>,
    pub(super) width: usize,
}

impl PackedSide {
    /// A side whose elements are anything until [`Packer`] writes them.
    pub(super) fn empty(cpu: &Cpu, form: SideForm, groups: Vec<Group>, width: usize) -> Self {
        let words = cpu.word_buffer(width.div_ceil(NR) * groups.len() * 2 * TILE_WORDS);
        Self { form, words, groups, width }
    }

    /// Number of columns per row.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The packed words, for tests.
    #[cfg(test)]
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    /// Packs rows, on all threads or on this one.
    pub(super) fn pack(cpu: &Cpu, form: SideForm, parallel: bool, rows: &RowsView<'_>, groups: Vec<Group>) -> Self {
        let mut side = Self::empty(cpu, form, groups, rows.width);
        let packer = Packer::new(None, Some(&mut side));
        // SAFETY: each group is packed once.
        packer.run(cpu, parallel, |packer, group| unsafe { packer.put(group, rows, packer.groups[group].first, 0) });
        side
    }
}

/// Destinations of groups of rows.
pub(crate) struct Packer<'a> {
    groups: Vec<Group>,
    lhs: Option<(SharedPtr<u32>, usize)>,
    side: Option<(SideForm, SharedPtr<u32>)>,
    width: usize,
    outputs: PhantomData<&'a mut u32>,
}

impl<'a> Packer<'a> {
    /// A packer for a left side of GEMMs, a side of gradients, or both, with equal numbers of rows and columns.
    fn new(lhs: Option<&'a mut PackedLhs>, side: Option<&'a mut PackedSide>) -> Self {
        let groups = side.as_ref().map(|side| side.groups.clone()).unwrap_or_default();
        let width = side.as_ref().map_or(0, |side| side.width);
        let end = groups.last().map_or(0, |group| group.first + group.rows);
        let lhs = lhs.and_then(|lhs| {
            assert!(lhs.rows() == end && lhs.k() == width, "sides of other extents");
            let (row_words, rows) = (lhs.stored_k / 2, lhs.rows());
            let LhsData::Tiles(words) = &mut lhs.data else { return None };
            // The last tile has zeros where it has no row.
            words[rows / TILE * TILE * row_words..].fill(0);
            Some((SharedPtr(words.as_mut_ptr()), row_words))
        });
        let side = side.map(|side| (side.form, SharedPtr(side.words.as_mut_ptr())));
        Self { groups, lhs, side, width, outputs: PhantomData }
    }

    fn run(&self, cpu: &Cpu, parallel: bool, pack: impl Fn(&Self, usize) + Sync) {
        if parallel {
            cpu.pool.run(self.groups.len(), |group| pack(self, group));
        } else {
            (0..self.groups.len()).for_each(|group| pack(self, group));
        }
    }

    /// Packs the columns of a group that `rows` has from its row `first` on; they begin at column `at`, a multiple of
    /// [`TILE_K`], and end at one or at the last column.
    ///
    /// # Safety
    /// Nobody else packs these columns of the group meanwhile.
    pub(crate) unsafe fn put(&self, group: usize, rows: &RowsView<'_>, first: usize, at: usize) {
        let end = at + rows.width;
        assert!(at.is_multiple_of(TILE_K) && end <= self.width && (end.is_multiple_of(TILE_K) || end == self.width));
        assert!(rows.holds(first + self.groups[group].rows));
        #[cfg(target_arch = "x86_64")]
        // SAFETY: left sides are tiles only where the processor has AVX-512 BF16; columns are in bounds.
        unsafe {
            self.put_columns(group, rows, first, at);
        }
    }

    /// # Safety
    /// The processor has AVX-512 BF16; the columns lie within `rows` and within the outputs.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    unsafe fn put_columns(&self, index: usize, rows: &RowsView<'_>, first: usize, at: usize) {
        let group = self.groups[index];
        let zero = _mm512_setzero_si512();
        // Rows that the group does not have stay zero.
        let mut rounded = [zero; TILE_K];
        for column in (0..rows.width).step_by(TILE_K) {
            let (low, high) = (mask(rows.width - column), mask((rows.width - column).saturating_sub(TILE)));
            let tile = (at + column) / TILE_K;
            if column + TILE_K < rows.width {
                self.prefetch(index, tile + 1);
            }
            for (i, rounded) in rounded.iter_mut().enumerate().take(group.rows) {
                // SAFETY: the row and its columns exist; masks leave out what is beyond them.
                unsafe {
                    let row = rows.data.as_ptr().add((first + i) * rows.stride + column);
                    let high = _mm512_maskz_loadu_ps(high, row.wrapping_add(TILE));
                    *rounded = round(_mm512_maskz_loadu_ps(low, row), high);
                    if let Some((lhs, row_words)) = self.lhs {
                        let to = lhs_line(group.first + i, tile, row_words);
                        _mm512_storeu_si512(lhs.ptr().add(to).cast(), *rounded);
                    }
                }
            }
            let Some((form, words)) = self.side else { continue };
            let pairs = rounded.as_chunks::<2>().0;
            // SAFETY: a side has two tiles of each group for 32 columns.
            unsafe {
                let store = |at: usize, value: __m512i| _mm512_storeu_si512(words.ptr().add(at).cast(), value);
                match form {
                    SideForm::Left => {
                        let (mut left, mut right) = ([zero; TILE], [zero; TILE]);
                        for ([first, second], (left, right)) in pairs.iter().zip(left.iter_mut().zip(&mut right)) {
                            [*left, *right] = interleave(*first, *second);
                        }
                        for (half, pairs) in [left, right].into_iter().enumerate() {
                            let to = self.left_tile(index, tile, half);
                            for (i, column) in transpose(pairs).into_iter().enumerate() {
                                store(to + i * TILE, column);
                            }
                        }
                    }
                    SideForm::Right => {
                        let to = (tile * self.groups.len() + index) * 2 * TILE_WORDS;
                        for (p, [first, second]) in pairs.iter().enumerate() {
                            let [left, right] = interleave(*first, *second);
                            store(to + p * NR, left);
                            store(to + p * NR + TILE, right);
                        }
                    }
                }
            }
        }
    }

    /// First word of a group's tile in a left side of gradients: `half` of 32 columns.
    #[cfg(target_arch = "x86_64")]
    fn left_tile(&self, group: usize, tile: usize, half: usize) -> usize {
        ((2 * tile + half) * self.groups.len() + group) * TILE_WORDS
    }

    /// Fetches the lines that 32 columns of a group are written to, where these are spread over two outputs.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn prefetch(&self, index: usize, tile: usize) {
        let (Some((lhs, row_words)), Some((SideForm::Left, side))) = (self.lhs, self.side) else { return };
        let first = self.groups[index].first;
        for line in 0..TILE_K {
            let side_line = self.left_tile(index, tile, line / TILE) + line % TILE * TILE;
            // SAFETY: a prefetch reads nothing that the program sees, at any address.
            unsafe {
                _mm_prefetch::<_MM_HINT_ET0>(lhs.ptr().wrapping_add(lhs_line(first + line, tile, row_words)).cast());
                _mm_prefetch::<_MM_HINT_ET0>(side.ptr().wrapping_add(side_line).cast());
            }
        }
    }
}

/// First word of a row's 32 columns in a left side of GEMMs with `row_words` words per row.
#[cfg(target_arch = "x86_64")]
fn lhs_line(row: usize, tile: usize, row_words: usize) -> usize {
    row / TILE * TILE * row_words + tile * TILE_WORDS + row % TILE * (TILE_K / 2)
}

/// The first `count` lanes of 16.
#[cfg(target_arch = "x86_64")]
fn mask(count: usize) -> __mmask16 {
    if count >= TILE { !0 } else { (1 << count) - 1 }
}

/// The gradient with respect to a linear layer's output, `[rows, width]`, as a left side of GEMMs and of gradients. `pack`
/// packs each group of `sequences`, which cover the rows.
pub(crate) fn pack_output_gradient(
    cpu: &Cpu,
    rows: usize,
    width: usize,
    sequences: &[Range<usize>],
    pack: impl Fn(&Packer<'_>, usize, Group) + Sync,
) -> (PackedLhs, PackedSide) {
    let mut lhs = PackedLhs::empty(cpu, cpu.dtype, rows, width);
    let mut side = PackedSide::empty(cpu, SideForm::Left, groups(sequences), width);
    Packer::new(Some(&mut lhs), Some(&mut side)).run(cpu, true, |packer, i| pack(packer, i, packer.groups[i]));
    (lhs, side)
}

/// A linear layer's input, rows of `width` elements, as a right side of gradients. `pack` packs each group of `sequences`.
pub(crate) fn pack_input(
    cpu: &Cpu,
    width: usize,
    sequences: &[Range<usize>],
    pack: impl Fn(&Packer<'_>, usize, Group) + Sync,
) -> PackedSide {
    let mut side = PackedSide::empty(cpu, SideForm::Right, groups(sequences), width);
    Packer::new(None, Some(&mut side)).run(cpu, true, |packer, i| pack(packer, i, packer.groups[i]));
    side
}

/// Packs like [`pack_output_gradient`] for one layer and [`pack_input`] for the next, rows of `widths` elements that are
/// computed together.
pub(crate) fn pack_between(
    cpu: &Cpu,
    rows: usize,
    widths: [usize; 2],
    sequences: &[Range<usize>],
    pack: impl Fn([&Packer<'_>; 2], usize, Group) + Sync,
) -> (PackedLhs, PackedSide, PackedSide) {
    let mut input = PackedSide::empty(cpu, SideForm::Right, groups(sequences), widths[1]);
    let packer = Packer::new(None, Some(&mut input));
    let (lhs, side) =
        pack_output_gradient(cpu, rows, widths[0], sequences, |own, i, group| pack([own, &packer], i, group));
    (lhs, side, input)
}
