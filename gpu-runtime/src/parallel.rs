//! How a worker divides a model among its ranks: a layout such as `tp=2,dp=1,ep=2`.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use serde::Deserialize;

/// Most ranks of one process.
const MAX_RANKS: usize = 64;

/// A layout. Axes that are not named are 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Parallel {
    /// Ranks that share each layer's heads and MLP width (tensor parallel).
    tp: NonZeroUsize,
    /// Times as many ranks share experts: all ranks do (expert parallel).
    ep: NonZeroUsize,
}

impl Default for Parallel {
    fn default() -> Self {
        Self { tp: NonZeroUsize::MIN, ep: NonZeroUsize::MIN }
    }
}

/// A layout that cannot be read, or that is not supported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParallelError {
    /// Not the form of a layout.
    #[error("{0:?} is no layout; expected AXIS=RANKS[,AXIS=RANKS], such as tp=2")]
    Form(String),
    /// An axis that does not exist.
    #[error("axis {0:?} is unknown; there are tp, dp and ep")]
    Axis(String),
    /// An axis that is given more than once.
    #[error("axis {0} is given twice")]
    Twice(&'static str),
    /// Not a number of ranks.
    #[error("{axis}={value}: must be a number from 1 to {MAX_RANKS}")]
    Ranks {
        /// Of which axis.
        axis: &'static str,
        /// What was given.
        value: String,
    },
    /// More ranks than there may be.
    #[error("{layout} has {ranks} ranks: there are at most {MAX_RANKS}")]
    TooMany {
        /// What was asked for.
        layout: String,
        /// Its ranks.
        ranks: usize,
    },
    /// An axis that exists only with one rank so far.
    #[error("{axis}={ranks} is not supported yet: {what} exist with {axis}=1 alone")]
    Unsupported {
        /// Which axis.
        axis: &'static str,
        /// What was asked for.
        ranks: usize,
        /// What the axis stands for.
        what: &'static str,
    },
}

/// A model that ranks cannot share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Ranks that do not divide what they would share.
    #[error("tp={ranks} does not fit the model: {what} is {extent}, which {ranks} does not divide")]
    Extent {
        /// How many they are.
        ranks: usize,
        /// The name in the model's configuration.
        what: &'static str,
        /// Its value.
        extent: usize,
    },
    /// Ranks that do not divide the experts of a block.
    #[error("{layout} does not fit the model: its {ranks} ranks do not divide the {experts} experts of a block")]
    Experts {
        /// What was asked for.
        layout: Parallel,
        /// All ranks.
        ranks: usize,
        /// Experts of the block.
        experts: usize,
    },
    /// Expert parallel ranks for a model that they would not share.
    #[error("ep={ranks} does not fit the model: it has no experts")]
    NoExperts {
        /// How many ranks were asked for.
        ranks: usize,
    },
}

impl Parallel {
    /// Tensor parallel ranks.
    pub fn tp(self) -> usize {
        self.tp.get()
    }

    /// Expert parallel ranks: on each of them are all tensor parallel ones, and every rank has experts of its own.
    pub fn ep(self) -> usize {
        self.ep.get()
    }

    /// All ranks.
    pub fn world(self) -> usize {
        self.tp() * self.ep()
    }

    /// Axes with their ranks, but those of one rank.
    fn axes(self) -> impl Iterator<Item = (&'static str, usize)> {
        [("tp", self.tp()), ("ep", self.ep())].into_iter().filter(|(_, ranks)| *ranks > 1)
    }

    /// Its name among what decides the bits of results: ranks add in another order than one does.
    pub fn name(self) -> String {
        let axes: Vec<_> = self.axes().map(|(axis, ranks)| format!("{axis}{ranks}")).collect();
        if axes.is_empty() { "single".to_owned() } else { axes.join("-") }
    }

    /// With so many tensor parallel ranks.
    ///
    /// # Errors
    /// When that is 0 or too many.
    pub fn with_tp(ranks: usize) -> Result<Self, ParallelError> {
        Ok(Self { tp: ranks_of("tp", ranks)?, ..Self::default() })
    }

    /// The same with so many expert parallel ranks.
    ///
    /// # Errors
    /// When that is 0, or too many with those of other axes.
    pub fn with_ep(self, ranks: usize) -> Result<Self, ParallelError> {
        let layout = Self { ep: ranks_of("ep", ranks)?, ..self };
        match layout.world() {
            ranks if ranks > MAX_RANKS => Err(ParallelError::TooMany { layout: layout.to_string(), ranks }),
            _ => Ok(layout),
        }
    }
}

impl fmt::Display for Parallel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes: Vec<_> = self.axes().map(|(axis, ranks)| format!("{axis}={ranks}")).collect();
        f.write_str(if axes.is_empty() { "tp=1" } else { "" })?;
        f.write_str(&axes.join(","))
    }
}

/// A number of ranks along an axis.
fn ranks_of(axis: &'static str, ranks: usize) -> Result<NonZeroUsize, ParallelError> {
    let refused = || ParallelError::Ranks { axis, value: ranks.to_string() };
    NonZeroUsize::new(ranks).filter(|ranks| ranks.get() <= MAX_RANKS).ok_or_else(refused)
}

impl FromStr for Parallel {
    type Err = ParallelError;

    fn from_str(text: &str) -> Result<Self, ParallelError> {
        // By axis, in the order of its names.
        const AXES: [(&str, &str); 3] =
            [("tp", "tensor parallel ranks"), ("dp", "data parallel ranks"), ("ep", "expert parallel ranks")];
        let mut given = [None; AXES.len()];
        for part in text.split(',') {
            let (axis, value) = part.split_once('=').ok_or_else(|| ParallelError::Form(text.to_owned()))?;
            let (axis, value) = (axis.trim(), value.trim());
            let at = AXES.iter().position(|(name, _)| *name == axis);
            let at = at.ok_or_else(|| ParallelError::Axis(axis.to_owned()))?;
            let axis = AXES[at].0;
            let ranks = value.parse().ok().filter(|ranks| (1..=MAX_RANKS).contains(ranks));
            let ranks = ranks.ok_or_else(|| ParallelError::Ranks { axis, value: value.to_owned() })?;
            if given[at].replace(ranks).is_some() {
                return Err(ParallelError::Twice(axis));
            }
        }
        for ((axis, what), ranks) in AXES.into_iter().zip(given).filter(|((axis, _), _)| *axis == "dp") {
            if let Some(ranks) = ranks.filter(|ranks| *ranks > 1) {
                return Err(ParallelError::Unsupported { axis, ranks, what });
            }
        }
        let [tp, _, ep] = given.map(|ranks| ranks.unwrap_or(1));
        Self::with_tp(tp)?.with_ep(ep)
    }
}

impl TryFrom<String> for Parallel {
    type Error = ParallelError;

    fn try_from(text: String) -> Result<Self, ParallelError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn refusal(text: &str) -> String {
        text.parse::<Parallel>().unwrap_err().to_string()
    }

    #[test]
    fn axes_that_are_absent_are_1() {
        let of = |text: &str| text.parse::<Parallel>().unwrap();
        assert_eq!(of("tp=2"), Parallel::with_tp(2).unwrap());
        assert_eq!(of("dp=1, tp=4 ,ep=1"), Parallel::with_tp(4).unwrap());
        assert_eq!(of("dp=1"), Parallel::default());
        assert_eq!((of("tp=2").to_string(), of("tp=2").name()), ("tp=2".to_owned(), "tp2".to_owned()));
        assert_eq!(Parallel::default().name(), "single");
        assert_eq!((of("ep=4").to_string(), of("ep=4").name()), ("ep=4".to_owned(), "ep4".to_owned()));
        let both = of("ep=4,tp=2");
        assert_eq!((both.to_string(), both.name(), both.world()), ("tp=2,ep=4".to_owned(), "tp2-ep4".to_owned(), 8));
        for layout in ["tp=1", "tp=3", "ep=2", "tp=2,ep=2"] {
            assert_eq!(of(layout).to_string(), layout);
        }
    }

    #[test]
    fn what_cannot_be_is_named() {
        assert_eq!(refusal("2"), "\"2\" is no layout; expected AXIS=RANKS[,AXIS=RANKS], such as tp=2");
        assert_eq!(refusal(""), "\"\" is no layout; expected AXIS=RANKS[,AXIS=RANKS], such as tp=2");
        assert_eq!(refusal("pp=2"), "axis \"pp\" is unknown; there are tp, dp and ep");
        assert_eq!(refusal("tp=2,tp=2"), "axis tp is given twice");
        for value in ["0", "-1", "two", "65", ""] {
            assert_eq!(refusal(&format!("tp={value}")), format!("tp={value}: must be a number from 1 to 64"));
        }
        let unsupported = "dp=2 is not supported yet: data parallel ranks exist with dp=1 alone";
        assert_eq!(refusal("tp=2,dp=2"), unsupported);
        assert_eq!(refusal("tp=16,ep=8"), "tp=16,ep=8 has 128 ranks: there are at most 64");
    }
}
