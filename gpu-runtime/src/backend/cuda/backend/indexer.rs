//! Indexers of sparse attention, which this backend does not support yet: contexts end where an indexer would have to
//! choose positions.

use super::Cuda;
use super::attention::KvPool;
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::{Chosen, IndexCall, IndexRotation, IndexerOps, Span};

const REFUSED: &str = "contexts that need a choice of positions are refused before a pass is planned";

impl IndexerOps<Self> for Cuda {
    const HAS_INDEXERS: bool = false;

    fn rotate_index(_: &Self, _: &IndexRotation<'_, Self>, _: &DeviceRows) -> DeviceRows {
        unreachable!("{REFUSED}")
    }

    fn write_index(_: &Self, _: &mut KvPool, _: usize, _: &[Span], _: &DeviceRows) {
        unreachable!("{REFUSED}")
    }

    fn choose(_: &Self, _: IndexCall<'_>, _: &KvPool, _: &DeviceRows, _: &DeviceRows) -> Chosen {
        unreachable!("{REFUSED}")
    }
}
