//! All examples of a request, checked and in the form that passes read: at the latest when its turn comes, and before
//! that where a thread has time for it.

use std::sync::Arc;

use trainyard_protocol::limits::MAX_DATUMS;
use trainyard_protocol::{Ahead, BaseModel, ForwardBackward, OpError};

use super::{LossFn, PreparedDatum, prepare};

/// The checked examples of a request.
#[derive(Clone, Debug)]
pub struct PreparedBatch {
    /// Its loss.
    pub loss: LossFn,
    /// Its examples, at least one.
    pub data: Vec<PreparedDatum>,
    /// What they were checked against.
    extents: Extents,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extents {
    vocab_size: usize,
    context: usize,
}

/// Checks the examples of a request to a model, off the engine's thread, and leaves them in the form that the engine
/// reads. What is wrong with them the engine says when their turn comes.
pub fn prepare_ahead(request: &mut ForwardBackward, model: &BaseModel) {
    let extents = Extents { vocab_size: model.vocab_size, context: model.max_context_length };
    if let Ok(batch) = PreparedBatch::check(request, extents) {
        (request.data, request.ahead) = (Vec::new(), Ahead::new(batch));
    }
}

impl PreparedBatch {
    /// The examples of a request, checked now if they were not ahead.
    ///
    /// # Errors
    /// What is wrong with them, by datum and field.
    pub fn of(mut request: ForwardBackward, vocab_size: usize, context: usize) -> Result<Self, OpError> {
        let extents = Extents { vocab_size, context };
        match std::mem::take(&mut request.ahead).get::<Self>().map(Arc::unwrap_or_clone) {
            Some(batch) if batch.extents == extents => Ok(batch),
            Some(_) => Err(OpError::server("the request was checked for another model of this name")),
            None => Self::check(&request, extents),
        }
    }

    fn check(request: &ForwardBackward, extents: Extents) -> Result<Self, OpError> {
        let data = &request.data;
        if data.is_empty() {
            return Err(OpError::user("data: must hold at least one datum"));
        }
        if data.len() > MAX_DATUMS {
            return Err(OpError::user(format!("data: {} datums are more than {MAX_DATUMS}", data.len())));
        }
        let loss = LossFn::parse(&request.loss_fn, &request.loss_fn_config)?;
        let Extents { vocab_size, context } = extents;
        let checked = data.iter().enumerate().map(|(i, datum)| {
            if datum.tokens.len() > context {
                return Err(OpError::user(format!(
                    "data[{i}].model_input: {} tokens exceed the model's context window of {context}",
                    datum.tokens.len()
                )));
            }
            prepare(&loss, i, datum, vocab_size)
        });
        Ok(Self { loss, data: checked.collect::<Result<_, _>>()?, extents })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::collections::BTreeMap;

    use trainyard_protocol::{Datum, RunId, Tensor};

    use super::*;

    fn request(tokens: Vec<i64>) -> ForwardBackward {
        let inputs = BTreeMap::from([("target_tokens".to_owned(), Tensor::i64(tokens.clone()))]);
        ForwardBackward {
            run: RunId::new("a"),
            data: vec![Datum { tokens, loss_fn_inputs: inputs }],
            loss_fn: "cross_entropy".to_owned(),
            loss_fn_config: BTreeMap::new(),
            forward_only: false,
            ahead: Ahead::default(),
        }
    }

    fn model(vocab_size: usize) -> BaseModel {
        BaseModel { name: "m".into(), arch: "llama".into(), max_context_length: 4, vocab_size, parameters: 1 }
    }

    #[test]
    fn what_was_checked_ahead_is_what_would_be_checked_now() {
        let mut ahead = request(vec![1, 2, 3]);
        prepare_ahead(&mut ahead, &model(10));
        assert!(ahead.data.is_empty());
        let other = PreparedBatch::of(ahead.clone(), 11, 4).unwrap_err();
        assert!(other.message.contains("another model"), "{other}");
        let now = PreparedBatch::of(request(vec![1, 2, 3]), 10, 4).unwrap();
        assert_eq!(PreparedBatch::of(ahead, 10, 4).unwrap().data, now.data);
    }

    #[test]
    fn what_is_wrong_is_said_when_its_turn_comes() {
        for (tokens, text) in
            [(vec![10], "vocabulary of 10"), (vec![1; 5], "context window of 4"), (vec![], "at least")]
        {
            let mut ahead = request(tokens);
            prepare_ahead(&mut ahead, &model(10));
            assert_eq!(ahead.ahead, Ahead::default());
            let error = PreparedBatch::of(ahead, 10, 4).unwrap_err();
            assert!(error.message.contains(text), "{error}");
        }
    }
}
