//! Sequences of a pass as the kernels of mixers read them: rows, chunks, states.

use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::{CHUNK, Span};

/// Index of the sequence of rows that have none, as kernels know it.
const NO_SEQUENCE: u32 = u32::MAX;

/// Words of a sequence: first row, end of rows, position of the first row, first chunk, end of chunks, address of the state.
const WORDS: usize = 6;

/// Rows of a chunk in a pass: first row, number of rows, place of the first row in the chunk, index of the sequence, and the number of
/// boundaries between chunks of a sequence before the chunk's end.
const CHUNK_WORDS: usize = 5;
type Chunk = [u32; CHUNK_WORDS];

/// Tables of a pass's sequences.
pub(crate) struct DeviceSequences {
    /// Index of the sequence of each row.
    rows: Slice<u32>,
    sequences: Slice<u64>,
    chunks: Slice<u32>,
    count: usize,
    /// Number of boundaries between chunks of a sequence.
    boundaries: usize,
    /// Whether every sequence begins at position 0.
    are_whole: bool,
    /// Whether every row is in a sequence.
    covers_all_rows: bool,
    have_states: bool,
}

impl DeviceSequences {
    /// The tables of `spans` in a batch of `rows` rows. `states` contains the address of each span's state, or 0 where it has none.
    pub(crate) fn upload(device: &CudaDevice, spans: &[Span], states: &[u64], rows: usize) -> Result<Self> {
        let extents = Extents("sequences");
        extents.index("the rows", rows)?;
        extents.equal("the number of states", states.len(), spans.len())?;
        let mut taken: Vec<u64> = states.iter().copied().filter(|address| *address != 0).collect();
        taken.sort_unstable();
        let shared = taken.windows(2).filter(|pair| pair[0] == pair[1]).count();
        extents.equal("the number of sequences that share a state", shared, 0)?;
        let mut of_rows = vec![NO_SEQUENCE; rows];
        let (mut sequences, mut chunks, mut behind) = (Vec::new(), Vec::<Chunk>::new(), 0);
        let mut boundaries = 0;
        for (index, (span, state)) in spans.iter().zip(states).enumerate() {
            let index = extents.index("the number of sequences", index)?;
            let (start, end) = (span.rows.start, span.rows.end);
            extents.check(behind <= start && start <= end, "a sequence's first row", start, || {
                format!("at least {behind}, and at most its end {end}")
            })?;
            extents.check(end <= rows, "a sequence's end", end, || format!("at most {rows}"))?;
            extents.check(
                span.state.is_some() || span.start == 0,
                "the start of a sequence without a state",
                span.start,
                || "0".to_owned(),
            )?;
            behind = end;
            of_rows[span.rows.clone()].fill(index);
            let first_chunk = chunks.len();
            let mut row = start;
            while row < end {
                let place = (span.start + row - start) % CHUNK;
                let count = (CHUNK - place).min(end - row);
                // At most `rows`, an index.
                chunks.push([row, count, place, index as usize, boundaries].map(|number| number as u32));
                row += count;
                boundaries += usize::from(row < end);
            }
            let words: [usize; WORDS - 1] = [start, end, span.start, first_chunk, chunks.len()];
            sequences.extend(words.map(|word| word as u64));
            sequences.push(*state);
        }
        let covers_all_rows = !of_rows.contains(&NO_SEQUENCE);
        Ok(Self {
            rows: device.upload(&of_rows)?,
            sequences: device.upload(&sequences)?,
            chunks: device.upload(chunks.as_flattened())?,
            count: spans.len(),
            boundaries,
            are_whole: spans.iter().all(|span| span.start == 0),
            covers_all_rows,
            have_states: !taken.is_empty(),
        })
    }

    /// Rows of the batch.
    pub(super) fn row_count(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether every sequence begins at position 0.
    pub(super) fn are_whole(&self) -> bool {
        self.are_whole
    }

    /// Whether every row is in a sequence.
    pub(super) fn covers_all_rows(&self) -> bool {
        self.covers_all_rows
    }

    /// Whether a sequence has a state.
    pub(super) fn have_states(&self) -> bool {
        self.have_states
    }

    /// Number of boundaries between chunks of a sequence.
    pub(super) fn boundaries(&self) -> usize {
        self.boundaries
    }

    pub(super) fn chunk_count(&self) -> usize {
        self.chunks.len() / CHUNK_WORDS
    }

    pub(super) fn chunks(&self) -> &Slice<u32> {
        &self.chunks
    }

    /// Index of the sequence of each row.
    pub(super) fn rows(&self) -> &Slice<u32> {
        &self.rows
    }

    pub(crate) fn sequences(&self) -> &Slice<u64> {
        &self.sequences
    }
}
