//! Layouts that can be planned for: those that this version runs, and others.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::error::PlanError;
use super::workload::Workload;
use crate::config::ModelConfig;
use crate::engine::check_layout;
use crate::model::Shard;
use crate::parallel::Parallel;

/// Maximum number of ranks of an axis.
const MAX_RANKS: usize = 4096;
/// How replicas share the state of a run at least.
const LEAST_ZERO: usize = 2;

/// A layout: `tp=4,dp=2,ep=2,zero=3`. Axes that are not named are 1, and ZeRO's stage is 2. Ranks that differ only in
/// `tp` are neighbours, then those that differ in `ep`, then those that differ in `dp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedLayout {
    /// Ranks that share heads and the width of MLPs.
    pub tp: usize,
    /// Replicas, each with examples of its own.
    pub dp: usize,
    /// Copies of the tensor-parallel ranks that process the same examples and together share the experts.
    pub ep: usize,
    /// Stage of ZeRO (Rajbhandari et al. 2020, arXiv:1910.02054) in which replicas share the state of a run: 2 for
    /// moments and accumulated gradients, 3 also for parameters.
    pub zero: usize,
}

impl Default for PlannedLayout {
    fn default() -> Self {
        Self { tp: 1, dp: 1, ep: 1, zero: LEAST_ZERO }
    }
}

/// A layout that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlannedLayoutError {
    /// The text does not have the form of a layout.
    #[error("invalid layout {0:?}: expected AXIS=RANKS[,AXIS=RANKS], such as tp=4,dp=2,zero=3")]
    Form(String),
    /// An axis that does not exist.
    #[error("unknown axis {0:?}: expected tp, dp, ep or zero")]
    Axis(String),
    /// An axis that is given more than once.
    #[error("axis {0} is given twice")]
    Twice(String),
    /// The value is not an allowed number.
    #[error("{axis}={value}: must be a number from {least} to {most}")]
    Number {
        /// Name of the axis.
        axis: String,
        /// Value that was given.
        value: String,
        /// Smallest value that is allowed.
        least: usize,
        /// Largest value that is allowed.
        most: usize,
    },
}

impl FromStr for PlannedLayout {
    type Err = PlannedLayoutError;

    fn from_str(text: &str) -> Result<Self, PlannedLayoutError> {
        let mut layout = Self::default();
        let mut seen = Vec::new();
        for part in text.split(',') {
            let (axis, value) = part.split_once('=').ok_or_else(|| PlannedLayoutError::Form(text.to_owned()))?;
            let (axis, value) = (axis.trim(), value.trim());
            let (field, least, most) = match axis {
                "tp" => (&mut layout.tp, 1, MAX_RANKS),
                "dp" => (&mut layout.dp, 1, MAX_RANKS),
                "ep" => (&mut layout.ep, 1, MAX_RANKS),
                "zero" => (&mut layout.zero, LEAST_ZERO, 3),
                other => return Err(PlannedLayoutError::Axis(other.to_owned())),
            };
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            let refused = || PlannedLayoutError::Number { axis: axis.to_owned(), value: value.to_owned(), least, most };
            *field = number.ok_or_else(refused)?;
            if seen.contains(&axis) {
                return Err(PlannedLayoutError::Twice(axis.to_owned()));
            }
            seen.push(axis);
        }
        Ok(layout)
    }
}

impl fmt::Display for PlannedLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tp, dp, ep, zero } = self;
        write!(f, "tp={tp},dp={dp},ep={ep}")?;
        if *zero > LEAST_ZERO { write!(f, ",zero={zero}") } else { Ok(()) }
    }
}

impl PlannedLayout {
    /// Returns the number of all ranks.
    pub fn world(&self) -> usize {
        self.tp * self.dp * self.ep
    }

    /// Ranks that compute the same examples.
    pub(super) fn replica(&self) -> usize {
        self.tp * self.ep
    }

    /// Whether replicas divide the parameters of what is trained.
    pub(super) fn divides(&self, work: &Workload) -> bool {
        self.zero >= 3 && self.dp > 1 && work.lora.is_none()
    }

    /// The part of a model that rank 0 holds, as ranks that run it hold it.
    ///
    /// # Errors
    /// Fails if the ranks cannot share the model.
    pub(super) fn own(&self, whole: &ModelConfig) -> Result<(Shard, ModelConfig), PlanError> {
        let replica = Parallel::with_tp(self.tp)?.with_ep(self.ep)?;
        Ok(Shard::of(whole, 0, replica)?)
    }

    /// Why this version does not run a model with this layout; `None` where it does.
    pub(super) fn refusal(&self, whole: &ModelConfig) -> Option<String> {
        let parallel = match self.to_string().parse::<Parallel>() {
            Ok(parallel) => parallel,
            Err(error) => return Some(error.to_string()),
        };
        check_layout(whole, parallel).err().map(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn layouts_are_read_and_written() {
        let of = |text: &str| text.parse::<PlannedLayout>().unwrap();
        assert_eq!(of("tp=8"), PlannedLayout { tp: 8, ..PlannedLayout::default() });
        let all = PlannedLayout { tp: 2, dp: 4, ep: 8, zero: 3 };
        assert_eq!((of(" ep=8, dp=4,tp=2 ,zero=3"), all.world(), all.replica()), (all, 64, 16));
        assert_eq!(of(&all.to_string()), all);
        assert_eq!(PlannedLayout::default().to_string(), "tp=1,dp=1,ep=1");
    }

    #[test]
    fn what_cannot_be_is_named() {
        let refusal = |text: &str| text.parse::<PlannedLayout>().unwrap_err().to_string();
        assert!(refusal("8").starts_with("invalid layout \"8\""));
        assert_eq!(refusal("pp=2"), "unknown axis \"pp\": expected tp, dp, ep or zero");
        assert_eq!(refusal("tp=2,tp=2"), "axis tp is given twice");
        assert_eq!(refusal("tp=0"), "tp=0: must be a number from 1 to 4096");
        assert_eq!(refusal("zero=4"), "zero=4: must be a number from 2 to 3");
    }
}
