//! A head with one output in place of the unembedding: the value of position t is `hidden_t · w + b`, of the final hidden states
//! after their norm. Its parameters come after all others that a run trains; every rank has them.

use std::sync::Arc;

use super::adapter::RowGroup;
use super::params::{Init, ParamSpec, ParamTable};
use crate::backend::{Backend, FamilyOps, GradientSinks, Params, Rows, ScalarHead};
use crate::config::ModelConfig;

/// Names of its parameters, also in files.
pub(crate) const NAMES: [&str; 2] = ["value_head.weight", "value_head.bias"];

impl ParamTable {
    /// Parameters of a scalar head: the weight, `[1, hidden]`, and the bias, `[1]`, both zero at the start, as all values are.
    pub(super) fn of_scalar_head(c: &ModelConfig) -> [ParamSpec; 2] {
        let [weight, bias] = NAMES;
        let zeros = |name, shape: &[usize]| ParamSpec::replicated(name, shape, Init::Zeros);
        [zeros(weight, &[1, c.hidden_size]), zeros(bias, &[1])]
    }
}

/// A run's scalar head: the last two of its parameters.
pub(crate) struct RunHead<B: Backend>(Arc<B::Params>);

impl<B: Backend> Clone for RunHead<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: Backend> RunHead<B> {
    /// The scalar head of the run with these parameters.
    pub(crate) fn of(params: &Arc<B::Params>) -> Self {
        Self(Arc::clone(params))
    }

    fn op(&self) -> ScalarHead<'_, B> {
        ScalarHead { params: &self.0, weight: self.0.len() - NAMES.len() }
    }
}

/// Values of all rows; groups cover the rows in order, each with its own head.
pub(super) fn values<B: Backend>(
    backend: &B,
    heads: &[RunHead<B>],
    groups: &[RowGroup<B>],
    hidden: &B::Rows,
) -> Vec<f32> {
    let of = |(head, group): (&RunHead<B>, &RowGroup<B>)| {
        B::Family::scalar_head(backend, head.op(), hidden, group.rows.clone())
    };
    heads.iter().zip(groups).filter(|(_, group)| !group.rows.is_empty()).flat_map(of).collect()
}

/// Gradient with respect to `hidden`, given that with respect to the values of its rows; those of the heads go to their groups'
/// sinks.
pub(super) fn backward<B: Backend>(
    backend: &B,
    heads: &[RunHead<B>],
    groups: &[RowGroup<B>],
    hidden: &B::Rows,
    d_values: &[f32],
    sinks: &mut GradientSinks<'_, '_, B>,
) -> B::Rows {
    let mut d_hidden = backend.alloc(hidden.rows(), hidden.width());
    for (index, (head, group)) in heads.iter().zip(groups).enumerate() {
        let grads = match sinks {
            GradientSinks::Adapters(sinks) => sinks[index].as_deref_mut(),
            GradientSinks::Full(params) => Some(&mut **params),
        };
        let (rows, dy) = (group.rows.clone(), &d_values[group.rows.clone()]);
        B::Family::scalar_head_backward(backend, head.op(), hidden, rows, dy, &mut d_hidden, grads);
    }
    d_hidden
}
