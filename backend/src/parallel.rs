//! Layout of a worker's ranks, such as `tp=2,dp=2,ep=2`.
//!
//! Ranks that share a model are neighbours: rank = (replica · ep + copy) · tp + part. Those of the same part and copy hold the same
//! weights, one per replica (data parallel). With `zero=3` these divide the parameters of a run that trains all of them.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::str::FromStr;

use serde::Deserialize;

/// Maximum number of ranks of a worker.
const MAX_RANKS: usize = 64;

/// A layout. Axes that are not named are 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Parallel {
    /// Ranks that share each layer's heads and MLP width (tensor parallel).
    tp: NonZeroUsize,
    /// Replicas of the model, which share examples and samples (data parallel).
    dp: NonZeroUsize,
    /// Times as many ranks share experts: all ranks of a replica do (expert parallel).
    ep: NonZeroUsize,
    /// Parts of a run's state that replicas divide.
    zero: ZeroStage,
}

/// Parts of a run's state that replicas divide, by the stages of ZeRO (Rajbhandari et al. 2020, arXiv:1910.02054).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZeroStage {
    /// Moments and accumulated gradients.
    #[default]
    Two,
    /// Also parameters and gradients in progress, of runs that train all parameters.
    Three,
}

impl Default for Parallel {
    fn default() -> Self {
        Self { tp: NonZeroUsize::MIN, dp: NonZeroUsize::MIN, ep: NonZeroUsize::MIN, zero: ZeroStage::default() }
    }
}

/// A layout that cannot be read, or that is not supported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParallelError {
    /// The text does not have the form of a layout.
    #[error("invalid layout {0:?}: expected AXIS=RANKS[,AXIS=RANKS], such as tp=2")]
    Form(String),
    /// An axis that does not exist.
    #[error("unknown axis {0:?}: expected tp, dp, ep or zero")]
    Axis(String),
    /// An axis that is given more than once.
    #[error("axis {0} is given twice")]
    Twice(&'static str),
    /// The value is not a number of ranks.
    #[error("{axis}={value}: must be a number from 1 to {MAX_RANKS}")]
    Ranks {
        /// Name of the axis.
        axis: &'static str,
        /// Value that was given.
        value: String,
    },
    /// The value is not a stage of ZeRO.
    #[error("zero={0}: must be 2 or 3")]
    Stage(String),
    /// Stage 3 of ZeRO without replicas that could divide the parameters.
    #[error("zero=3 divides a run among replicas: it needs dp=2 or more")]
    StageAlone,
    /// The layout has more ranks than the limit.
    #[error("{layout} has {ranks} ranks: there are at most {MAX_RANKS}")]
    TooMany {
        /// Layout that was given.
        layout: String,
        /// Number of its ranks.
        ranks: usize,
    },
}

/// A model that the ranks cannot share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The ranks do not divide the extent that they would share.
    #[error("tp={ranks} does not fit the model: {what} is {extent}, which {ranks} does not divide")]
    Extent {
        /// How many they are.
        ranks: usize,
        /// The name in the model's configuration.
        what: &'static str,
        /// Value of that extent.
        extent: usize,
    },
    /// The ranks do not divide the experts of a block.
    #[error("{layout} does not fit the model: its {ranks} ranks do not divide the {experts} experts of a block")]
    Experts {
        /// Layout that was given.
        layout: Parallel,
        /// Number of all ranks of a replica.
        ranks: usize,
        /// Number of the block's experts.
        experts: usize,
    },
    /// Expert-parallel ranks for a model without experts.
    #[error("ep={ranks} does not fit the model: it has no experts")]
    NoExperts {
        /// How many ranks were asked for.
        ranks: usize,
    },
}

impl Parallel {
    /// Returns the number of tensor-parallel ranks.
    pub fn tp(self) -> usize {
        self.tp.get()
    }

    /// Returns the number of replicas of the model.
    pub fn dp(self) -> usize {
        self.dp.get()
    }

    /// Returns the number of expert-parallel copies: each has all tensor-parallel ranks, and every rank of a replica
    /// has experts of its own.
    pub fn ep(self) -> usize {
        self.ep.get()
    }

    /// Returns whether replicas divide the parameters of a run that trains all of them (ZeRO stage 3).
    pub fn divides_parameters(self) -> bool {
        self.zero == ZeroStage::Three
    }

    /// Returns the number of all ranks.
    pub fn world(self) -> usize {
        self.replica() * self.dp()
    }

    /// Returns the number of ranks that share a model: those of a replica.
    pub fn replica(self) -> usize {
        self.tp() * self.ep()
    }

    /// Returns the ranks that share the model with rank `rank`, itself included.
    pub fn replica_group(self, rank: usize) -> Range<usize> {
        let first = rank - rank % self.replica();
        first..first + self.replica()
    }

    /// The ranks of a replica that share each layer's heads with its rank `rank`, itself included.
    pub fn tensor_group(self, rank: usize) -> Range<usize> {
        let first = rank - rank % self.tp();
        first..first + self.tp()
    }

    /// Returns the ranks with the same part of the model as rank `rank`, itself included, in the order of replicas.
    pub fn dp_group(self, rank: usize) -> Vec<usize> {
        (0..self.dp()).map(|replica| replica * self.replica() + rank % self.replica()).collect()
    }

    /// Axes with their ranks, except axes of one rank.
    fn axes(self) -> impl Iterator<Item = (&'static str, usize)> {
        [("tp", self.tp()), ("dp", self.dp()), ("ep", self.ep())].into_iter().filter(|(_, ranks)| *ranks > 1)
    }

    /// Returns the name of the layout for [`Numerics`](trainyard_protocol::Numerics): several ranks add in another
    /// order than one rank does.
    pub fn name(self) -> String {
        if self.world() == 1 { "single".to_owned() } else { self.to_string() }
    }

    /// Returns a layout with `ranks` tensor-parallel ranks and one replica.
    ///
    /// # Errors
    /// Fails if `ranks` is 0 or too large.
    pub fn with_tp(ranks: usize) -> Result<Self, ParallelError> {
        Ok(Self { tp: ranks_of("tp", ranks)?, ..Self::default() })
    }

    /// Returns the same layout with this number of replicas.
    ///
    /// # Errors
    /// Fails if the number is 0, or the product of all axes is too large.
    pub fn with_dp(self, replicas: usize) -> Result<Self, ParallelError> {
        Self { dp: ranks_of("dp", replicas)?, ..self }.checked()
    }

    /// Returns the same layout with this number of expert-parallel ranks.
    ///
    /// # Errors
    /// Fails if the number is 0, or the product of all axes is too large.
    pub fn with_ep(self, ranks: usize) -> Result<Self, ParallelError> {
        Self { ep: ranks_of("ep", ranks)?, ..self }.checked()
    }

    /// Returns the same layout with this stage of ZeRO.
    ///
    /// # Errors
    /// Fails if the stage is 3 with only one replica.
    pub fn with_zero(self, zero: ZeroStage) -> Result<Self, ParallelError> {
        match zero {
            ZeroStage::Three if self.dp() == 1 => Err(ParallelError::StageAlone),
            _ => Ok(Self { zero, ..self }),
        }
    }

    fn checked(self) -> Result<Self, ParallelError> {
        match self.world() {
            ranks if ranks > MAX_RANKS => Err(ParallelError::TooMany { layout: self.to_string(), ranks }),
            _ => Ok(self),
        }
    }
}

impl fmt::Display for Parallel {
    /// The axes with more than one rank; `tp=1` where none has; and ZeRO's stage where that is 3.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = self.divides_parameters().then_some(("zero", 3));
        let axes: Vec<_> = self.axes().chain(stage).map(|(axis, ranks)| format!("{axis}={ranks}")).collect();
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
        const AXES: [&str; 3] = ["tp", "dp", "ep"];
        let mut given = [None; AXES.len()];
        let mut zero = None;
        for part in text.split(',') {
            let (axis, value) = part.split_once('=').ok_or_else(|| ParallelError::Form(text.to_owned()))?;
            let (axis, value) = (axis.trim(), value.trim());
            if axis == "zero" {
                let stage = match value {
                    "2" => ZeroStage::Two,
                    "3" => ZeroStage::Three,
                    other => return Err(ParallelError::Stage(other.to_owned())),
                };
                if zero.replace(stage).is_some() {
                    return Err(ParallelError::Twice("zero"));
                }
                continue;
            }
            let at = AXES.iter().position(|name| *name == axis);
            let at = at.ok_or_else(|| ParallelError::Axis(axis.to_owned()))?;
            let axis = AXES[at];
            let ranks = value.parse().ok().filter(|ranks| (1..=MAX_RANKS).contains(ranks));
            let ranks = ranks.ok_or_else(|| ParallelError::Ranks { axis, value: value.to_owned() })?;
            if given[at].replace(ranks).is_some() {
                return Err(ParallelError::Twice(axis));
            }
        }
        let [tp, dp, ep] = given.map(|ranks| ranks.unwrap_or(1));
        Self::with_tp(tp)?.with_dp(dp)?.with_ep(ep)?.with_zero(zero.unwrap_or_default())
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
        assert_eq!((of("tp=2").to_string(), of("tp=2").name()), ("tp=2".to_owned(), "tp=2".to_owned()));
        assert_eq!((of("dp=2").name(), of("dp=3,tp=2").name()), ("dp=2".to_owned(), "tp=2,dp=3".to_owned()));
        assert_eq!(Parallel::default().to_string(), "tp=1");
        assert_eq!(Parallel::default().name(), "single");
        assert_eq!((of("ep=4").to_string(), of("ep=4").name()), ("ep=4".to_owned(), "ep=4".to_owned()));
        let both = of("ep=4,tp=2");
        assert_eq!((both.to_string(), both.name(), both.world()), ("tp=2,ep=4".to_owned(), "tp=2,ep=4".to_owned(), 8));
        let all = of("ep=2,tp=2,dp=3");
        assert_eq!((all.to_string(), all.world()), ("tp=2,dp=3,ep=2".to_owned(), 12));
        for layout in ["tp=1", "tp=3", "ep=2", "tp=2,ep=2", "tp=3,dp=2", "dp=2,zero=3", "tp=2,dp=3,ep=2,zero=3"] {
            assert_eq!(of(layout).to_string(), layout);
        }
        assert_eq!(of("dp=2,zero=2"), of("dp=2"));
        let divided = of("zero=3 ,dp=4");
        assert_eq!(
            (divided.name(), divided.world(), divided.divides_parameters()),
            ("dp=4,zero=3".to_owned(), 4, true)
        );
        assert!(!of("dp=4").divides_parameters());
    }

    #[test]
    fn ranks_that_share_a_model_are_neighbours() {
        let groups = |layout: &str| {
            let layout: Parallel = layout.parse().unwrap();
            let of = |rank| (layout.replica_group(rank), layout.dp_group(rank));
            (0..layout.world()).map(of).collect::<Vec<_>>()
        };
        let two = groups("tp=2,dp=3");
        assert_eq!(two.len(), 6);
        assert_eq!(two[0], (0..2, vec![0, 2, 4]));
        assert_eq!(two[3], (2..4, vec![1, 3, 5]));
        assert_eq!(two[5], (4..6, vec![1, 3, 5]));
        assert_eq!(groups("tp=2,dp=2,ep=2")[6], (4..8, vec![2, 6]));
    }

    #[test]
    fn what_cannot_be_is_named() {
        assert_eq!(refusal("2"), "invalid layout \"2\": expected AXIS=RANKS[,AXIS=RANKS], such as tp=2");
        assert_eq!(refusal(""), "invalid layout \"\": expected AXIS=RANKS[,AXIS=RANKS], such as tp=2");
        assert_eq!(refusal("pp=2"), "unknown axis \"pp\": expected tp, dp, ep or zero");
        assert_eq!(refusal("tp=2,tp=2"), "axis tp is given twice");
        for value in ["0", "-1", "two", "65", ""] {
            assert_eq!(refusal(&format!("tp={value}")), format!("tp={value}: must be a number from 1 to 64"));
        }
        for value in ["1", "4", ""] {
            assert_eq!(refusal(&format!("dp=2,zero={value}")), format!("zero={value}: must be 2 or 3"));
        }
        assert_eq!(refusal("dp=2,zero=3,zero=3"), "axis zero is given twice");
        assert_eq!(refusal("tp=2,zero=3"), "zero=3 divides a run among replicas: it needs dp=2 or more");
        assert_eq!(refusal("tp=16,ep=8"), "tp=16,ep=8 has 128 ranks: there are at most 64");
        assert_eq!(refusal("tp=8,dp=16"), "tp=8,dp=16 has 128 ranks: there are at most 64");
    }
}
