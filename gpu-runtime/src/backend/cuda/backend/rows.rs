//! Activations, and what ranks do with them.

use super::super::DeviceRows;
use super::done;
use crate::backend::Rows;
use crate::collective::Ranks;

impl Rows for DeviceRows {
    fn rows(&self) -> usize {
        if DeviceRows::width(self) == 0 { 0 } else { DeviceRows::rows(self) }
    }

    fn width(&self) -> usize {
        DeviceRows::width(self)
    }

    fn all_reduce(&mut self, ranks: &Ranks) {
        if ranks.is_single() {
            return;
        }
        let mut values = done(self.to_host());
        ranks.all_reduce(&mut values);
        done(self.data_mut().write(0, &values));
    }
}
