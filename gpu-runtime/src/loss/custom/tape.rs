//! The record of the computation from the log-probabilities to the loss, and its walk backward.
//!
//! Each step is differentiated by itself. Candle's autograd covers steps that move elements or multiply matrices;
//! elementwise functions, reductions and scans have their derivatives written beside them with torch's conventions
//! (ties, zeros, bounds). No recursion follows the length of a graph, and the sums of a gradient have one order.

use candle_core::{Tensor, Var};

use super::error::{Failure, Result};
use super::tensor::{GraphTensor, dense, elements, volume};
use crate::interrupt::Interrupt;

/// Maps the gradient with respect to a step's output to that with respect to its input.
type Backward = Box<dyn Fn(&Tensor) -> Result<Tensor>>;

enum Step {
    /// Candle recorded the step.
    Traced { inputs: Vec<(usize, Tensor)>, output: Tensor },
    /// Elementwise, after broadcasting: inputs with their shapes and the derivatives in the shape of the output.
    Pointwise { inputs: Vec<(usize, Vec<usize>, Tensor)> },
    /// Any other step with one input.
    Function { input: usize, backward: Backward },
}

/// Elements that a datum may cost whatever its size.
const BASE_COST: usize = 1 << 20;
/// Elements that a datum may cost for each of its targets.
const COST_PER_TARGET: usize = 1 << 14;
/// Elements that a datum may cost at most.
pub(super) const MAX_COST: usize = 1 << 25;

/// Elements between two questions whether the result is still needed: some ten milliseconds.
const ASK_EVERY: usize = 1 << 17;

/// Elements that a datum of so many targets may cost.
pub(in crate::loss) fn most_elements(targets: usize) -> usize {
    targets.saturating_mul(COST_PER_TARGET).saturating_add(BASE_COST).min(MAX_COST)
}

/// The steps of one datum, and what they may still cost.
pub(super) struct Tape {
    steps: Vec<(Step, usize)>,
    tensors: usize,
    budget: usize,
    /// Elements after which the evaluation is postponed.
    allowance: usize,
    spent: usize,
    targets: usize,
    interrupt: Interrupt,
    /// Elements since the last question to `interrupt`.
    unasked: usize,
}

impl Tape {
    /// A tape for a datum with this number of targets.
    pub(super) fn new(targets: usize) -> Self {
        let (steps, budget, interrupt) = (Vec::new(), most_elements(targets), Interrupt::default());
        Self { steps, tensors: 0, budget, allowance: usize::MAX, spent: 0, targets, interrupt, unasked: 0 }
    }

    /// A tape whose evaluation is postponed once it would cost more elements than `allowance`.
    pub(super) fn within(self, allowance: usize) -> Self {
        Self { allowance, ..self }
    }

    pub(super) fn interrupted_by(self, interrupt: Interrupt) -> Self {
        Self { interrupt, ..self }
    }

    /// Fails once the result is no longer needed.
    pub(super) fn ask(&self) -> Result<()> {
        if self.interrupt.is_set() { Err(Failure::Interrupted) } else { Ok(()) }
    }

    /// [`Tape::ask`] after every so many elements.
    fn ask_after(&mut self, elements: usize) -> Result<()> {
        self.unasked = self.unasked.saturating_add(elements);
        if self.unasked < ASK_EVERY {
            return Ok(());
        }
        self.unasked = 0;
        self.ask()
    }

    /// Charges the work on this number of elements.
    pub(super) fn charge(&mut self, elements: usize) -> Result<()> {
        self.spent = self.spent.saturating_add(elements);
        self.ask_after(elements)?;
        self.reserve(0)
    }

    /// Refuses to create this number of elements if they would cost too much.
    pub(super) fn reserve(&self, elements: usize) -> Result<()> {
        let cost = self.spent.saturating_add(elements);
        if cost > self.budget {
            return Err(Failure::Cost { budget: self.budget, targets: self.targets });
        }
        if cost > self.allowance { Err(Failure::Postponed) } else { Ok(()) }
    }

    /// Elements that have been charged.
    pub(super) fn spent(&self) -> usize {
        self.spent
    }

    /// A tensor whose gradient is wanted.
    pub(super) fn leaf(&mut self, data: Tensor) -> GraphTensor {
        GraphTensor { data, id: Some(self.number()) }
    }

    fn number(&mut self) -> usize {
        self.tensors += 1;
        self.tensors - 1
    }

    fn record(&mut self, step: Step, data: Tensor) -> GraphTensor {
        let id = self.number();
        self.steps.push((step, id));
        GraphTensor { data, id: Some(id) }
    }

    /// Result of `compute` on these tensors, by operations that candle differentiates.
    pub(super) fn traced(
        &mut self,
        inputs: &[&GraphTensor],
        compute: impl FnOnce(&[Tensor]) -> candle_core::Result<Tensor>,
    ) -> Result<GraphTensor> {
        let (mut operands, mut tracked) = (Vec::new(), Vec::new());
        for input in inputs {
            operands.push(match input.id {
                None => input.data.clone(),
                Some(id) => {
                    let variable = Var::from_tensor(&input.data)?.into_inner();
                    tracked.push((id, variable.clone()));
                    variable
                }
            });
        }
        let output = compute(&operands)?;
        let data = output.detach();
        if tracked.is_empty() {
            return Ok(GraphTensor::constant(data));
        }
        Ok(self.record(Step::Traced { inputs: tracked, output }, data))
    }

    /// An elementwise result. `inputs` are those with a gradient: their derivatives have the output's shape, to which the
    /// inputs were broadcast.
    pub(super) fn pointwise(
        &mut self,
        output: GraphTensor,
        inputs: Vec<(&GraphTensor, Vec<f64>)>,
    ) -> Result<GraphTensor> {
        let mut tracked = Vec::new();
        for (input, derivatives) in inputs {
            if let Some(id) = input.id {
                tracked.push((id, input.shape().to_vec(), dense(derivatives, output.shape())?));
            }
        }
        if tracked.is_empty() {
            return Ok(output);
        }
        Ok(self.record(Step::Pointwise { inputs: tracked }, output.data))
    }

    /// A result with its own way back.
    pub(super) fn function(
        &mut self,
        input: &GraphTensor,
        output: GraphTensor,
        backward: impl Fn(&Tensor) -> Result<Tensor> + 'static,
    ) -> GraphTensor {
        match input.id {
            None => output,
            Some(id) => self.record(Step::Function { input: id, backward: Box::new(backward) }, output.data),
        }
    }

    /// The gradient of `loss`, one number, with respect to `leaf`; `None` when the loss does not depend on it.
    pub(super) fn gradient(mut self, loss: &GraphTensor, leaf: &GraphTensor) -> Result<Option<Tensor>> {
        let (Some(loss_id), Some(leaf)) = (loss.id, leaf.id) else { return Ok(None) };
        let mut gradients = Gradients { by_id: vec![None; self.tensors] };
        gradients.add(loss_id, loss.data.ones_like()?)?;
        for (step, id) in std::mem::take(&mut self.steps).into_iter().rev() {
            let Some(gradient) = gradients.take(id) else { continue };
            self.ask_after(gradient.elem_count())?;
            match step {
                Step::Traced { inputs, output } => {
                    let found = output.mul(&gradient)?.sum_all()?.backward()?;
                    for (input, variable) in inputs {
                        if let Some(partial) = found.get(&variable) {
                            gradients.add(input, partial.detach())?;
                        }
                    }
                }
                Step::Pointwise { inputs } => {
                    for (input, shape, derivatives) in inputs {
                        gradients.add(input, sum_to(&gradient.mul(&derivatives)?, &shape)?)?;
                    }
                }
                Step::Function { input, backward } => gradients.add(input, backward(&gradient)?)?,
            }
        }
        Ok(gradients.take(leaf))
    }
}

struct Gradients {
    by_id: Vec<Option<Tensor>>,
}

impl Gradients {
    fn add(&mut self, id: usize, gradient: Tensor) -> Result<()> {
        if let Some(slot) = self.by_id.get_mut(id) {
            *slot = Some(match slot.take() {
                None => gradient,
                Some(sum) => sum.add(&gradient)?,
            });
        }
        Ok(())
    }

    fn take(&mut self, id: usize) -> Option<Tensor> {
        self.by_id.get_mut(id).and_then(Option::take)
    }
}

/// Sums over the dimensions that `shape` was broadcast along, in row-major order.
fn sum_to(gradient: &Tensor, shape: &[usize]) -> Result<Tensor> {
    if gradient.dims() == shape {
        return Ok(gradient.clone());
    }
    let full = gradient.dims().to_vec();
    let added = full.len().saturating_sub(shape.len());
    let mut sums = vec![0.0_f64; volume(shape)];
    let mut position = vec![0_usize; full.len()];
    for value in elements::<f64>(gradient)? {
        let kept = position.iter().skip(added).zip(shape);
        let at = kept.fold(0, |at, (&index, &extent)| at * extent + if extent == 1 { 0 } else { index });
        if let Some(sum) = sums.get_mut(at) {
            *sum += value;
        }
        for (index, &extent) in position.iter_mut().zip(&full).rev() {
            *index += 1;
            if *index < extent {
                break;
            }
            *index = 0;
        }
    }
    dense(sums, shape)
}
