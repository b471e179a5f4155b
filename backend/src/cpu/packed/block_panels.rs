//! Panels whose weights stay in the blocks of a file ([`BlockFormat`]); kernels get the elements that a matrix of bf16, or of
//! f32, packed from the same rows would have.

use std::ops::Range;

use super::block_steps::{read_lane, round_values, step_values, step_words, write_lane};
use super::elements::NR;
use super::step_layout::{STEP, STEP_WORDS, StepBytes, StepLayout};
use super::{PackedData, PackedMatrix};
use crate::blocks::{BLOCK, BlockFormat, BlockRows};
use crate::cpu::aligned::AlignedVec;
use crate::cpu::parallel::for_each;
use crate::cpu::{Cpu, Isa};
use crate::{Dtype, PlannedPart};

/// Rows of a part of a matrix.
#[derive(Clone, Copy)]
pub(in crate::cpu) enum PartRows<'a> {
    Values(&'a [f32]),
    Blocks(&'a BlockRows),
}

impl PartRows<'_> {
    pub(super) fn count(&self, k: usize) -> usize {
        match self {
            Self::Values(values) => values.len() / k.max(1),
            Self::Blocks(blocks) => blocks.rows(),
        }
    }

    fn format(&self) -> Option<BlockFormat> {
        match self {
            Self::Values(_) => None,
            Self::Blocks(blocks) => Some(blocks.format()),
        }
    }
}

/// The panels of a matrix.
#[derive(Clone)]
pub(in crate::cpu) struct BlockPanels {
    dtype: Dtype,
    /// Blocks of a row.
    steps: usize,
    panels: Vec<Panel>,
    data: AlignedVec<u8>,
}

#[derive(Clone, Copy)]
struct Panel {
    /// The format of all of its rows; `None` where they have several, or none: then it is widened.
    format: Option<BlockFormat>,
    /// Whether it has a format, and scales and minimums are finite.
    is_finite: bool,
    /// Place of its first byte in the data.
    at: usize,
}

/// The bytes of a panel that kernels dequantize in registers.
#[cfg(target_arch = "x86_64")]
pub(in crate::cpu) struct FusedPanel<'a> {
    pub format: BlockFormat,
    pub bytes: &'a [u8],
}

impl BlockPanels {
    /// Packs stacked parts of `k` columns, a multiple of [`BLOCK`].
    pub(in crate::cpu) fn pack(cpu: &Cpu, dtype: Dtype, k: usize, parts: &[PartRows<'_>]) -> Self {
        assert!(k.is_multiple_of(BLOCK), "rows that end within a block");
        let rows: Vec<(PartRows<'_>, usize)> =
            parts.iter().flat_map(|part| (0..part.count(k)).map(|row| (*part, row))).collect();
        let steps = k / BLOCK;
        let mut at = 0;
        let mut place = |rows: &[(PartRows<'_>, usize)]| {
            let format = rows.first().and_then(|(part, _)| part.format());
            let format = format.filter(|format| rows.iter().all(|(part, _)| part.format() == Some(*format)));
            let panel = Panel { format, is_finite: false, at };
            at += StepLayout::of(dtype, format).bytes_of(steps);
            panel
        };
        let mut panels: Vec<Panel> = rows.chunks(NR).map(&mut place).collect();
        let mut data = AlignedVec::zeros(at);
        let mut tasks = Vec::with_capacity(panels.len());
        let mut rest = &mut data[..];
        for (panel, rows) in panels.iter_mut().zip(rows.chunks(NR)) {
            let (own, behind) = rest.split_at_mut(StepLayout::of(dtype, panel.format).bytes_of(steps));
            tasks.push((panel, rows, own));
            rest = behind;
        }
        for_each(cpu, &mut tasks, |_, (panel, rows, bytes)| match panel.format {
            Some(format) => panel.is_finite = pack_blocks(format, rows, bytes),
            None => widen(cpu, dtype, k, rows, bytes),
        });
        Self { dtype, steps, panels, data }
    }

    /// The type that elements are rounded to.
    pub(in crate::cpu) fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// A panel of one format with finite elements; `None` of others.
    #[cfg(target_arch = "x86_64")]
    pub(in crate::cpu) fn fused(&self, panel: usize) -> Option<FusedPanel<'_>> {
        let Panel { format, is_finite, at } = self.panels[panel];
        format.filter(|_| is_finite).map(|format| FusedPanel { format, bytes: &self.data[at..] })
    }

    /// Bytes of all panels.
    pub(super) fn bytes(&self) -> usize {
        self.data.len()
    }

    /// Bytes of the panels that [`BlockPanels::pack`] makes of such parts.
    pub(super) fn bytes_of(dtype: Dtype, parts: &[PlannedPart], k: usize) -> usize {
        let parts = || parts.iter().filter(|part| part.outputs > 0);
        let starts = parts().scan(0, |next, part| Some(std::mem::replace(next, *next + part.outputs)));
        let placed: Vec<(Range<usize>, Option<BlockFormat>)> =
            starts.zip(parts()).map(|(start, part)| (start..start + part.outputs, part.format)).collect();
        let rows = placed.last().map_or(0, |(rows, _)| rows.end);
        let mut first = 0;
        let panel = |panel: usize| {
            let rows = panel * NR..((panel + 1) * NR).min(rows);
            // Panels are in order, and so are parts.
            while placed[first].0.end <= rows.start {
                first += 1;
            }
            let format = placed[first].1;
            let mut others = placed[first..].iter().take_while(|(part, _)| part.start < rows.end);
            let format = format.filter(|_| others.all(|(_, other)| *other == format));
            StepLayout::of(dtype, format).bytes_of(k / BLOCK)
        };
        (0..rows.div_ceil(NR)).map(panel).sum()
    }

    fn panel(&self, panel: usize, steps: Range<usize>) -> (Option<BlockFormat>, impl Iterator<Item = StepBytes<'_>>) {
        let Panel { format, at, .. } = self.panels[panel];
        let (layout, data) = (StepLayout::of(self.dtype, format), &self.data[at..]);
        let steps = steps.start..steps.end.min(self.steps);
        (format, steps.map(move |step| layout.step(data, step)))
    }

    /// Writes steps of a panel as rows of pairs of bf16: what a matrix of bf16 has there.
    pub(in crate::cpu) fn words(&self, isa: Isa, panel: usize, steps: Range<usize>, out: &mut [u32]) {
        let (format, steps) = self.panel(panel, steps);
        for (step, out) in steps.zip(out.chunks_exact_mut(STEP_WORDS)) {
            match format {
                Some(format) => step_words(isa, format, step, out),
                None => words(step.own).zip(out).for_each(|(word, out)| *out = word),
            }
        }
    }

    /// Writes steps of a panel as rows of [`NR`] elements, with the rounding of the matrix's type.
    pub(in crate::cpu) fn values(&self, isa: Isa, panel: usize, steps: Range<usize>, out: &mut [f32]) {
        let (format, steps) = self.panel(panel, steps);
        for (step, out) in steps.zip(out.chunks_exact_mut(STEP)) {
            match (format, self.dtype) {
                (Some(format), dtype) => {
                    step_values(isa, format, step, out);
                    if dtype == Dtype::Bf16 {
                        round_values(out);
                    }
                }
                (None, Dtype::F32) => words(step.own).zip(out).for_each(|(word, out)| *out = f32::from_bits(word)),
                (None, Dtype::Bf16) => {
                    for (i, word) in words(step.own).enumerate() {
                        let at = i / NR * 2 * NR + i % NR;
                        out[at] = f32::from_bits(word << 16);
                        out[at + NR] = f32::from_bits(word & 0xffff_0000);
                    }
                }
            }
        }
    }

    /// Writes a row, with the rounding of the matrix's type.
    pub(super) fn row(&self, row: usize, out: &mut [f32]) {
        let (format, steps) = self.panel(row / NR, 0..self.steps);
        for (step, out) in steps.zip(out.chunks_mut(BLOCK)) {
            self.write_lane(format, step, row % NR, out);
        }
    }

    /// Returns the element `[row, col]`, with the rounding of the matrix's type.
    pub(super) fn get(&self, row: usize, col: usize) -> f32 {
        let (format, mut steps) = self.panel(row / NR, col / BLOCK..col / BLOCK + 1);
        let mut block = [0.0; BLOCK];
        steps.by_ref().for_each(|step| self.write_lane(format, step, row % NR, &mut block));
        block[col % BLOCK]
    }

    fn write_lane(&self, format: Option<BlockFormat>, step: StepBytes<'_>, lane: usize, out: &mut [f32]) {
        match format {
            Some(format) => {
                format.dequantize(&read_lane(format, step, lane), out);
                if self.dtype == Dtype::Bf16 {
                    round_values(out);
                }
            }
            None => {
                let lane = words(step.own).skip(lane).step_by(NR);
                match self.dtype {
                    Dtype::F32 => lane.zip(out).for_each(|(word, out)| *out = f32::from_bits(word)),
                    Dtype::Bf16 => lane.zip(out.as_chunks_mut::<2>().0).for_each(|(word, out)| {
                        *out = [f32::from_bits(word << 16), f32::from_bits(word & 0xffff_0000)];
                    }),
                }
            }
        }
    }

    /// A matrix of bf16, or of f32, with the same elements.
    pub(super) fn widened(&self, cpu: &Cpu, n: usize) -> PackedMatrix {
        let mut packed = PackedMatrix::empty(cpu, self.dtype, n, self.steps * BLOCK);
        packed.for_panels(
            cpu,
            true,
            |panel, out| self.words(cpu.isa(), panel, 0..self.steps, out),
            |panel, out| self.values(cpu.isa(), panel, 0..self.steps, out),
        );
        packed
    }
}

/// Words of a widened step.
fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word))
}

/// Packs a panel of one format. Rows that it lacks are zeros. Returns whether all scales and minimums are finite.
fn pack_blocks(format: BlockFormat, rows: &[(PartRows<'_>, usize)], bytes: &mut [u8]) -> bool {
    let (layout, mut is_finite) = (StepLayout::of_format(format), true);
    for lane in 0..NR {
        let mut blocks: Box<dyn Iterator<Item = _>> = match rows.get(lane) {
            Some((PartRows::Blocks(blocks), row)) => Box::new(blocks.row(*row)),
            _ => Box::new(std::iter::repeat(format.zeros())),
        };
        for together in bytes.chunks_exact_mut(layout.bytes()) {
            let (numbers, steps) = together.split_at_mut(layout.numbers);
            for (own, block) in steps.chunks_exact_mut(layout.own).zip(blocks.by_ref()) {
                is_finite &= block.scale.is_finite() && block.minimum.is_finite();
                write_lane(format, numbers, own, lane, &block);
            }
        }
    }
    is_finite
}

/// Packs a panel whose rows have several formats.
fn widen(cpu: &Cpu, dtype: Dtype, k: usize, rows: &[(PartRows<'_>, usize)], bytes: &mut [u8]) {
    let mut values = Vec::with_capacity(rows.len() * k);
    for (part, row) in rows {
        match part {
            PartRows::Values(own) => values.extend_from_slice(&own[row * k..(row + 1) * k]),
            PartRows::Blocks(own) => values.extend(own.values(*row..row + 1)),
        }
    }
    let packed = PackedMatrix::pack_on(cpu, dtype, k, &[&values], false);
    let to = bytes.as_chunks_mut::<4>().0.iter_mut();
    match &packed.data {
        PackedData::Bf16(words) => to.zip(words.iter()).for_each(|(to, word)| *to = word.to_le_bytes()),
        PackedData::F32(values) => to.zip(values.iter()).for_each(|(to, x)| *to = x.to_le_bytes()),
        PackedData::Blocks(_) => {}
    }
}
