//! The result of a training request whose datums are all computed.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_protocol::{DatumOutput, ForwardBackwardResult, OpError, OpResult, RunId};

use super::routing;
use super::task::TrainTask;
use crate::backend::Backend;
use crate::engine::run::TrainingRun;
use crate::loss::{self, LossFn, PreparedDatum};
use crate::model::{GradientSum, TrainOutput};

/// Adds the gradient of a completed request to its run, and assembles the result.
pub(super) fn finish<B: Backend>(
    backend: &B,
    mut task: TrainTask<B>,
    runs: &mut BTreeMap<RunId, TrainingRun<B>>,
) -> Result<OpResult, OpError> {
    let outputs = task.take_outputs()?;
    if task.trains {
        let run = runs.get_mut(&task.run).ok_or_else(|| OpError::server("the model was unloaded"))?;
        // A replica may have had no datum.
        let grads = task.grads.unwrap_or_else(|| GradientSum::new(run.begin_gradient(backend)));
        let grads = grads.finish(backend, &run.base.model, &run.spec);
        run.accumulate(backend, grads)?;
    }
    let metrics = metrics(&task.loss, &task.data, &outputs);
    let outputs = task
        .data
        .iter()
        .zip(outputs)
        .map(|(datum, output)| DatumOutput {
            shape: datum.shape.clone(),
            logprobs: output.logprobs,
            elementwise_loss: output.value.elementwise,
            entropies: output.entropies,
            kl: output.kl,
        })
        .collect();
    Ok(OpResult::ForwardBackward(ForwardBackwardResult { outputs, metrics }))
}

/// The loss of a request and the loss function's metrics; those of a custom one are summed over the datums in order.
fn metrics(loss: &LossFn, data: &[Arc<PreparedDatum>], outputs: &[TrainOutput]) -> BTreeMap<String, f64> {
    let logprobs = outputs.iter().map(|output| output.logprobs.as_slice());
    let mut metrics = loss::metrics(loss, data.iter().map(|datum| &**datum).zip(logprobs));
    metrics.extend(routing::metrics(&routing::total(outputs.iter().map(|output| &output.expert_tokens))));
    metrics.insert("loss:sum".to_owned(), outputs.iter().map(|output| output.value.sum).sum());
    if let LossFn::Custom(loss) = loss {
        for (at, metric) in loss.metrics.iter().enumerate() {
            let sum: f64 = outputs.iter().filter_map(|o| o.value.metrics.get(at)).sum();
            let divisor = if metric.is_mean() { outputs.len() as f64 } else { 1.0 };
            metrics.insert(metric.key.clone(), sum / divisor);
        }
    }
    metrics
}
