//! Devices that this process has open.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often each device is open.
static OPEN: Mutex<BTreeMap<i32, usize>> = Mutex::new(BTreeMap::new());

/// A device that is open while this lives.
pub(super) struct Opened(i32);

fn open() -> MutexGuard<'static, BTreeMap<i32, usize>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Opened {
    /// Notes that a device is open.
    pub(super) fn new(ordinal: i32) -> Self {
        *open().entry(ordinal).or_default() += 1;
        Self(ordinal)
    }

    /// The other devices that are open now, in order.
    pub(super) fn others(&self) -> Vec<i32> {
        open().keys().copied().filter(|ordinal| *ordinal != self.0).collect()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut open = open();
        if let Some(count) = open.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Opened;

    #[test]
    fn devices_are_open_until_the_last_one_is_dropped() {
        // Numbers that no other test of this process has.
        let [first, again, other] = [7001, 7001, 7002].map(Opened::new);
        let others = |of: &Opened| of.others().into_iter().filter(|ordinal| *ordinal > 7000).collect::<Vec<_>>();
        assert_eq!([others(&first), others(&other)], [vec![7002], vec![7001]]);
        drop(again);
        assert_eq!(others(&other), [7001]);
        drop(first);
        assert!(others(&other).is_empty());
    }
}
