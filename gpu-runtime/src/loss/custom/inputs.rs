//! Inputs that a custom loss reads from a datum.

use trainyard_protocol::custom_loss::CustomLoss;
use trainyard_protocol::{Datum, OpError, Tensor, TensorValues};

use super::error::Result;
use super::tensor::GraphTensor;

/// The inputs of a datum beside the log-probabilities, in the order of the loss's. Inputs that the loss does not read are
/// left out: the client sends all that the datum has.
///
/// # Errors
/// The user's, by datum and field: a missing input, or one of another rank than was declared.
pub(in crate::loss) fn inputs(
    loss: &CustomLoss,
    index: usize,
    datum: &Datum,
) -> std::result::Result<Vec<Tensor>, OpError> {
    let mut found = Vec::new();
    for (at, input) in loss.inputs.iter().enumerate() {
        let key = if at == 0 { "target_tokens" } else { input.name.as_str() };
        let refused = |reason: String| OpError::user(format!("data[{index}].loss_fn_inputs.{key}: {reason}"));
        let Some(tensor) = datum.loss_fn_inputs.get(key) else {
            return Err(refused(format!("missing; custom loss {:?} needs it", loss.name)));
        };
        // A number is sent without a shape, as is a vector of one element.
        let is_number = input.rank == 0 && tensor.shape == [1];
        if tensor.shape.len() != input.rank && !is_number {
            let rank = tensor.shape.len();
            return Err(refused(format!(
                "has {rank} dimensions, custom loss {:?} declared {} with {}",
                loss.name, input.name, input.rank
            )));
        }
        let count = tensor.shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent));
        if count != Some(tensor.len()) {
            return Err(refused(format!("has {} elements, its shape is {:?}", tensor.len(), tensor.shape)));
        }
        if at > 0 {
            found.push(Tensor { shape: if is_number { Vec::new() } else { tensor.shape.clone() }, ..tensor.clone() });
        }
    }
    Ok(found)
}

/// The tensor as the graph computes with it.
pub(super) fn to_graph(tensor: &Tensor) -> Result<GraphTensor> {
    match &tensor.values {
        TensorValues::F32(values) => {
            GraphTensor::floats(values.iter().map(|&value| f64::from(value)).collect(), &tensor.shape)
        }
        TensorValues::I64(values) => GraphTensor::ints(values.clone(), &tensor.shape),
    }
}
