//! All examples of a request, checked and in the form that passes read.

use std::collections::BTreeMap;

use trainyard_protocol::limits::check_datums;
use trainyard_protocol::{
    BaseModel, Datum, LossFn, ModelExtents, OpError, Prepare, PreparedBatch, PreparedDatum, RawBatch,
};

use super::images::ImageRules;
use super::inputs::prepare;

/// Checks requests against the models that an engine serves.
pub struct Preparer {
    /// Bounds of requests by the model's name.
    models: BTreeMap<String, Rules>,
}

struct Rules {
    extents: ModelExtents,
    images: ImageRules,
}

impl Preparer {
    /// Returns a preparer for requests to these models.
    pub fn new(models: &[BaseModel]) -> Self {
        let rules = |model: &BaseModel| Rules { extents: model.into(), images: ImageRules::new(model) };
        Self { models: models.iter().map(|model| (model.name.clone(), rules(model))).collect() }
    }
}

impl Prepare for Preparer {
    fn prepare(&self, base_model: &str, batch: RawBatch) -> Result<PreparedBatch, OpError> {
        let Some(Rules { extents, images }) = self.models.get(base_model) else {
            return Err(OpError::server(format!("base model {base_model:?} is not served by this engine")));
        };
        let mut prepared = prepare_batch(&batch, *extents)?;
        for (own, datum) in prepared.data.iter_mut().zip(&batch.data) {
            let location = format!("data[{}].model_input", own.index);
            own.images = images.prepare(&location, &datum.tokens, &datum.images, &batch.decoded)?;
        }
        Ok(prepared)
    }
}

/// Checks the examples of a request.
///
/// # Errors
/// A user error that names datum and field.
pub fn prepare_batch(batch: &RawBatch, extents: ModelExtents) -> Result<PreparedBatch, OpError> {
    let data = &batch.data;
    check_datums(data.len())?;
    let loss = match &batch.custom_loss {
        Some(custom) => LossFn::Custom(custom.clone()?),
        None => LossFn::parse(&batch.loss_fn, &batch.loss_fn_config)?,
    };
    let checked = data.iter().enumerate().map(|(index, datum)| prepare_within(&loss, index, datum, extents));
    let data = checked.collect::<Result<_, _>>()?;
    Ok(PreparedBatch { loss, data, extents })
}

fn prepare_within(loss: &LossFn, index: usize, datum: &Datum, extents: ModelExtents) -> Result<PreparedDatum, OpError> {
    let (tokens, context) = (datum.tokens.len(), extents.context);
    if tokens > context {
        return Err(OpError::user(format!(
            "data[{index}].model_input: {tokens} tokens exceed the model's context window of {context}"
        )));
    }
    prepare(loss, index, datum, extents.vocab_size)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_protocol::{Category, Tensor};

    use super::*;

    fn batch(tokens: Vec<i64>) -> RawBatch {
        let inputs = BTreeMap::from([("target_tokens".to_owned(), Tensor::i64(tokens.clone()))]);
        RawBatch {
            data: vec![Datum { tokens, loss_fn_inputs: inputs, images: Vec::new() }],
            loss_fn: "cross_entropy".to_owned(),
            loss_fn_config: BTreeMap::new(),
            custom_loss: None,
            decoded: Default::default(),
        }
    }

    fn preparer() -> Preparer {
        Preparer::new(&[BaseModel {
            name: "m".into(),
            arch: "llama".into(),
            max_context_length: 4,
            vocab_size: 10,
            parameters: 1,
            vision: None,
        }])
    }

    #[test]
    fn a_batch_is_for_the_model_that_it_was_checked_against() {
        let prepared = preparer().prepare("m", batch(vec![1, 2, 3])).unwrap();
        let extents = ModelExtents { vocab_size: 10, context: 4 };
        assert_eq!(prepared, prepare_batch(&batch(vec![1, 2, 3]), extents).unwrap());
        assert!(prepared.clone().checked_for(extents).is_ok());
        let other = prepared.checked_for(ModelExtents { vocab_size: 11, context: 4 }).unwrap_err();
        assert!(other.message.contains("another model"), "{other}");
    }

    #[test]
    fn wrong_examples_are_refused() {
        for (tokens, text) in
            [(vec![10], "vocabulary of 10"), (vec![1; 5], "context window of 4"), (vec![], "at least")]
        {
            let error = preparer().prepare("m", batch(tokens)).unwrap_err();
            assert_eq!(error.category, Category::User);
            assert!(error.message.contains(text), "{error}");
        }
        let none = RawBatch { data: Vec::new(), ..batch(vec![1]) };
        assert!(preparer().prepare("m", none).unwrap_err().message.starts_with("data: at least one datum"));
    }

    #[test]
    fn a_model_that_is_not_served_is_the_servers_error() {
        assert_eq!(preparer().prepare("n", batch(vec![1])).unwrap_err().category, Category::Server);
    }
}
