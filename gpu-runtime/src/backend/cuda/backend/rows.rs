//! Activations, and their exchange between ranks.

use super::exchange::reduce;
use crate::backend::Rows;
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::collective::Ranks;

impl Rows for DeviceRows {
    fn rows(&self) -> usize {
        if DeviceRows::width(self) == 0 { 0 } else { DeviceRows::rows(self) }
    }

    fn width(&self) -> usize {
        DeviceRows::width(self)
    }

    fn all_reduce(&mut self, ranks: &Ranks) {
        reduce(ranks, 0..ranks.world(), self.data_mut());
    }
}
