//! Blocks addressed by id.

use crate::BlockId;
use crate::cpu::parallel::SharedPtr;

/// Blocks of equal length. A released block frees its memory; its id is reused.
pub(in crate::cpu) struct Paged<T> {
    len: usize,
    blocks: Vec<Option<Box<[T]>>>,
    free: Vec<u32>,
}

impl<T: Copy + Default> Paged<T> {
    /// No blocks yet; each will have `len` elements.
    pub(super) fn new(len: usize) -> Self {
        Self { len, blocks: Vec::new(), free: Vec::new() }
    }

    /// Allocates a block of zeros.
    pub(super) fn alloc(&mut self) -> BlockId {
        let block = Some(vec![T::default(); self.len].into_boxed_slice());
        match self.free.pop() {
            Some(id) => {
                self.blocks[id as usize] = block;
                BlockId(id)
            }
            None => {
                self.blocks.push(block);
                BlockId(self.blocks.len() as u32 - 1)
            }
        }
    }

    pub(super) fn release(&mut self, BlockId(id): BlockId) {
        if self.blocks[id as usize].take().is_some() {
            self.free.push(id);
        }
    }

    /// Copies a block over another one.
    pub(super) fn copy(&mut self, BlockId(from): BlockId, BlockId(to): BlockId) {
        let copy = self.blocks[from as usize].clone();
        self.blocks[to as usize] = copy;
    }

    /// The elements of a block; none if it was released.
    pub(super) fn get(&self, BlockId(id): BlockId) -> &[T] {
        self.blocks[id as usize].as_deref().unwrap_or_default()
    }

    /// Mutable variant of [`Paged::get`].
    pub(super) fn get_mut(&mut self, BlockId(id): BlockId) -> &mut [T] {
        self.blocks[id as usize].as_deref_mut().unwrap_or_default()
    }

    /// Elements of a block.
    pub(super) fn block_len(&self) -> usize {
        self.len
    }

    /// The first element of a block that a pass writes.
    pub(super) fn address(&mut self, BlockId(id): BlockId) -> SharedPtr<T> {
        let block = self.blocks[id as usize].as_deref_mut();
        assert!(block.is_some(), "the block was released");
        SharedPtr(block.unwrap_or_default().as_mut_ptr())
    }
}
