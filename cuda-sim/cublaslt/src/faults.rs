//! What the library may do on hardware, and what goes wrong there, from environment variables.
//!
//! Rows are columns of D: the library's callers store matrices row after row, which are their own transposes here.

use std::sync::OnceLock;

/// The most algorithms that the heuristic offers.
const MOST_ALGORITHMS: u8 = 8;

/// How the library behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Behaviour {
    /// `CUDASIM_LT_ALGORITHMS`: algorithms of a multiplication, each with another order of sums. Which one comes first depends
    /// on the number of rows.
    pub(crate) algorithms: u8,
    /// `CUDASIM_LT_FAULT`: `KIND:ROWS`, what multiplications of at least so many rows do.
    pub(crate) fault: Option<(Fault, usize)>,
}

/// What is wrong with multiplications of many rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `order`: an algorithm sums in another order, as if it had another kernel for many rows.
    Order,
    /// `flip`: the lowest bit of the last row's first element is wrong.
    Flip,
    /// `stale`: the last row gets the results of the first.
    Stale,
}

impl Behaviour {
    /// That of the process, read once. What is not understood is reported and ignored.
    pub(crate) fn of_process() -> Self {
        static BEHAVIOUR: OnceLock<Behaviour> = OnceLock::new();
        let text = |name: &str| std::env::var(name).ok();
        *BEHAVIOUR
            .get_or_init(|| Self::new(text("CUDASIM_LT_ALGORITHMS").as_deref(), text("CUDASIM_LT_FAULT").as_deref()))
    }

    fn new(algorithms: Option<&str>, fault: Option<&str>) -> Self {
        let algorithms = algorithms.and_then(|text| text.trim().parse::<u8>().ok()).unwrap_or(1);
        let parsed = fault.and_then(parse);
        if let (Some(text), None) = (fault, parsed) {
            eprintln!("cuda-sim: CUDASIM_LT_FAULT: not a fault: {text}");
        }
        Self { algorithms: algorithms.clamp(1, MOST_ALGORITHMS), fault: parsed }
    }

    /// The `nth` algorithm of the heuristic for a multiplication of so many rows, counted from 0.
    pub(crate) fn algorithm(self, nth: u8, rows: usize) -> u8 {
        let class = [16, 256, 2048].iter().filter(|most| rows > **most).count() as u8;
        (class + nth) % self.algorithms
    }

    /// Number of parts in which an algorithm sums along k; their sums are added in order.
    pub(crate) fn parts(self, algorithm: u8, rows: usize) -> usize {
        let other = self.has(Fault::Order, rows);
        1 << (algorithm % MOST_ALGORITHMS + u8::from(other))
    }

    /// Plants the fault in sums `[m][rows]`.
    pub(crate) fn spoil(self, sums: &mut [f32], rows: usize) {
        if rows == 0 {
            return;
        }
        if self.has(Fault::Flip, rows)
            && let Some(first) = sums.get_mut(rows - 1)
        {
            *first = f32::from_bits(first.to_bits() ^ 1);
        }
        if self.has(Fault::Stale, rows) {
            sums.chunks_exact_mut(rows).for_each(|of_rows| of_rows[rows - 1] = of_rows[0]);
        }
    }

    fn has(self, fault: Fault, rows: usize) -> bool {
        self.fault.is_some_and(|(own, least)| own == fault && rows >= least)
    }
}

fn parse(text: &str) -> Option<(Fault, usize)> {
    let (kind, rows) = text.trim().split_once(':')?;
    let fault = match kind {
        "order" => Fault::Order,
        "flip" => Fault::Flip,
        "stale" => Fault::Stale,
        _ => return None,
    };
    Some((fault, rows.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_differ_by_the_number_of_rows() {
        let three = Behaviour::new(Some("3"), None);
        assert_eq!([1, 16, 17, 256, 257, 4096].map(|rows| three.algorithm(0, rows)), [0, 0, 1, 1, 2, 0]);
        assert_eq!([0, 1, 2].map(|nth| three.algorithm(nth, 256)), [1, 2, 0]);
        assert_eq!([0, 1, 2].map(|algorithm| three.parts(algorithm, 1)), [1, 2, 4]);
        let one = Behaviour::new(None, None);
        assert_eq!([1, 8191].map(|rows| one.parts(one.algorithm(0, rows), rows)), [1, 1]);
        assert_eq!(Behaviour::new(Some("99"), None).algorithms, MOST_ALGORITHMS);
    }

    #[test]
    fn faults_begin_at_their_number_of_rows() {
        let of = |text| Behaviour::new(None, Some(text));
        assert_eq!([255, 256].map(|rows| of("order:256").parts(0, rows)), [1, 2]);
        let spoilt = |text, rows| {
            let mut sums = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
            of(text).spoil(&mut sums, rows);
            sums
        };
        assert_eq!(spoilt("stale:3", 3), [1.0, 2.0, 1.0, 4.0, 5.0, 4.0]);
        let flipped = spoilt("flip:2", 2);
        assert!(flipped[1] > 2.0 && flipped[1] < 2.000_001, "{flipped:?}");
        for text in ["flip:4", "nonsense", "flip:x"] {
            assert_eq!(spoilt(text, 3), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{text}");
        }
    }
}
