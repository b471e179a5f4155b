//! Custom losses: a graph that the client traced, evaluated per datum with its gradient.
//!
//! The graph is data that [`CustomLoss::read`] has checked. One walk evaluates its nodes in order on candle tensors;
//! the [`Tape`] records what depends on the log-probabilities and walks back. The cost of every operation is checked
//! before it allocates, so that a datum has a bounded cost whatever its graph contains.

mod activation;
mod binary;
mod create;
mod error;
mod index;
mod inputs;
mod interpret;
mod lanes;
mod parts;
mod python;
mod reduce;
mod scan;
mod select;
mod shape;
mod statistics;
mod tape;
mod tensor;
#[cfg(test)]
mod tests;
mod unary;
mod value;

use trainyard_protocol::custom_loss::{CustomLoss, Node};
use trainyard_protocol::{OpError, PreparedDatum};

use self::error::{Failure, Result};
use self::tape::Tape;
use self::tensor::{GraphTensor, elements};
use self::value::{Arguments, Value};
use super::{Evaluation, LossValue};
use crate::fault::guarded;
use crate::interrupt::Interrupt;

pub(super) use inputs::inputs;
pub(super) use tape::most_elements;

/// Elements that the custom losses of one training pass may cost together, unless one datum costs more: as many as the
/// largest datum.
pub(crate) const MAX_PASS_ELEMENTS: usize = tape::MAX_COST;
/// Maximum bytes of the reason in an error.
const MAX_REASON: usize = 600;

/// Evaluates a custom loss on a datum whose targets have these log-probabilities, in the layout of the targets. The
/// evaluation is postponed when it would cost more than `allowance` elements.
///
/// # Errors
/// Errors of the user, with the node's name and target: invalid operands of an operation, a cost beyond the limit, an
/// interrupt, or a loss that is not a number, not finite, or has no gradient.
pub(super) fn evaluate(
    loss: &CustomLoss,
    datum: &PreparedDatum,
    logprobs: &[f32],
    interrupt: &Interrupt,
    allowance: usize,
) -> std::result::Result<Evaluation, OpError> {
    let run = Run { loss, datum, interrupt, allowance };
    // A panic in the tensor library is the request's, and has changed nothing.
    let evaluated = guarded("custom loss", || run.evaluate(logprobs)).map_err(|fault| fault.error())?;
    match evaluated {
        Ok((value, elements)) => Ok(Evaluation::Done { value, elements }),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Postponed) => Ok(Evaluation::Postponed),
    }
}

/// Why an evaluation ends early.
enum Stop {
    Failed(OpError),
    /// The loss costs more than its present limit.
    Postponed,
}

impl From<OpError> for Stop {
    fn from(error: OpError) -> Self {
        Self::Failed(error)
    }
}

/// A graph on a datum.
struct Run<'a> {
    loss: &'a CustomLoss,
    datum: &'a PreparedDatum,
    interrupt: &'a Interrupt,
    allowance: usize,
}

impl Run<'_> {
    /// The loss, and the elements that it cost.
    fn evaluate(&self, logprobs: &[f32]) -> std::result::Result<(LossValue, usize), Stop> {
        let mut tape = Tape::new(logprobs.len()).interrupted_by(self.interrupt.clone()).within(self.allowance);
        tape.ask().map_err(|failure| self.stop(&failure))?;
        let (leaf, inputs) = self.inputs(&mut tape, logprobs).map_err(|failure| self.stop(&failure))?;
        let mut values: Vec<Value> = Vec::with_capacity(self.loss.nodes.len());
        for node in &self.loss.nodes {
            let value = node_value(&mut tape, node, &values, &inputs);
            values.push(value.map_err(|failure| self.stop_at(node, &failure))?);
        }
        let result = self.result(&values)?;
        let metrics = self.loss.metrics.iter().map(|metric| self.metric(metric.node, &values));
        let metrics = metrics.collect::<Result<Vec<f64>>>().and_then(|metrics| Ok((result.item()?, metrics)));
        let (sum, metrics) = metrics.map_err(|failure| self.stop(&failure))?;
        let elements_spent = tape.spent();
        let gradient = tape.gradient(&result, &leaf).map_err(|failure| self.stop(&failure))?;
        let Some(gradient) = gradient else {
            return Err(self.failed("the loss has no gradient: it does not depend on logprobs").into());
        };
        let gradient: Vec<f64> = elements(&gradient).map_err(|failure| self.stop(&failure))?;
        let dlogprobs: Vec<f32> = gradient.into_iter().map(|value| value as f32).collect();
        if !(sum as f32).is_finite() {
            return Err(self.failed(&format!("the loss is {}", sum as f32)).into());
        }
        if let Some(at) = dlogprobs.iter().position(|value| !value.is_finite()) {
            let row = at / self.datum.k.max(1);
            return Err(self.failed(&format!("the gradient is not finite at position {row}")).into());
        }
        Ok((LossValue { sum, elementwise: Vec::new(), dlogprobs, metrics }, elements_spent))
    }

    /// The log-probabilities, and all inputs in the order of the placeholders.
    fn inputs(&self, tape: &mut Tape, logprobs: &[f32]) -> Result<(GraphTensor, Vec<GraphTensor>)> {
        let wide = logprobs.iter().map(|&value| f64::from(value)).collect();
        let leaf = tape.leaf(GraphTensor::floats(wide, &self.datum.shape)?.data);
        let mut inputs = vec![leaf.clone()];
        for tensor in &self.datum.custom {
            inputs.push(inputs::to_graph(tensor)?);
        }
        Ok((leaf, inputs))
    }

    fn result(&self, values: &[Value]) -> std::result::Result<GraphTensor, OpError> {
        match values.get(self.loss.loss) {
            Some(Value::Tensor(loss)) if loss.rank() == 0 => Ok(loss.clone()),
            Some(other) => {
                Err(self.failed(&format!("the loss must be a tensor of no dimensions, not {}", other.describe())))
            }
            None => Err(self.failed("the loss has no value")),
        }
    }

    /// The one number of a metric.
    fn metric(&self, node: usize, values: &[Value]) -> Result<f64> {
        let value = values.get(node).cloned().unwrap_or(Value::None);
        let number = Arguments::new(vec![value]).number(0);
        let key = self.loss.metrics.iter().find(|metric| metric.node == node).map_or("", |metric| &metric.key);
        number.map_err(|failure| Failure::new(format!("metric {key:?}: {failure}")))
    }

    fn failed(&self, reason: &str) -> OpError {
        // It may repeat a text of the graph.
        let end = reason.floor_char_boundary(MAX_REASON);
        let (reason, cut) = (&reason[..end], if end < reason.len() { "…" } else { "" });
        OpError::user(format!("data[{}]: custom loss {:?}: {reason}{cut}", self.datum.index, self.loss.name))
    }

    fn stop(&self, failure: &Failure) -> Stop {
        match failure {
            Failure::Postponed => Stop::Postponed,
            failure => Stop::Failed(self.failed(&failure.to_string())),
        }
    }

    fn stop_at(&self, node: &Node, failure: &Failure) -> Stop {
        match failure {
            Failure::Postponed => Stop::Postponed,
            failure => Stop::Failed(self.failed(&format!("node {:?} ({}): {failure}", node.name, node.target))),
        }
    }
}

/// The value of a node; its cost is what it reads and what it makes.
fn node_value(tape: &mut Tape, node: &Node, values: &[Value], inputs: &[GraphTensor]) -> Result<Value> {
    let arguments = node.arguments.iter().map(|argument| interpret::resolve(argument, values));
    let arguments = Arguments::new(arguments.collect::<Result<Vec<_>>>()?);
    tape.charge(arguments.len())?;
    let value = interpret::apply(tape, node.op, &arguments, inputs)?;
    tape.charge(value.len())?;
    Ok(value)
}
