//! Injected faults: the n-th allocation or launch fails.

#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    /// How many more allocations succeed; `None` for all.
    allocations: Option<u64>,
    launches: Option<u64>,
}

impl Faults {
    /// Each counts from 1: `Some(1)` fails the first one.
    pub(crate) fn new(allocation: Option<u64>, launch: Option<u64>) -> Self {
        let before = |nth: u64| nth.checked_sub(1);
        Self { allocations: allocation.and_then(before), launches: launch.and_then(before) }
    }

    /// Whether this allocation fails.
    pub(crate) fn allocation(&mut self) -> bool {
        fires(&mut self.allocations)
    }

    /// Whether this launch fails.
    pub(crate) fn launch(&mut self) -> bool {
        fires(&mut self.launches)
    }

    /// Lets the `nth` allocation from now fail; 0 for none.
    pub(crate) fn set_allocation(&mut self, nth: u64) {
        self.allocations = nth.checked_sub(1);
    }

    /// Lets the `nth` launch from now fail; 0 for none.
    pub(crate) fn set_launch(&mut self, nth: u64) {
        self.launches = nth.checked_sub(1);
    }
}

fn fires(left: &mut Option<u64>) -> bool {
    match left {
        Some(0) => {
            *left = None;
            true
        }
        Some(more) => {
            *more -= 1;
            false
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_fails_once() {
        let mut faults = Faults::new(Some(2), None);
        assert_eq!([faults.allocation(), faults.allocation(), faults.allocation()], [false, true, false]);
        assert!(!faults.launch());
    }
}
