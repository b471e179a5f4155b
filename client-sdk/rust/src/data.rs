//! Training data and loss functions.

use std::collections::BTreeMap;

use crate::image::{Image, PlacedImages};
use crate::proto::Setting;

/// Elements of a tensor, row by row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TensorData {
    /// Numbers such as weights and log-probabilities.
    Float32(Vec<f32>),
    /// Numbers such as token ids.
    Int64(Vec<i64>),
}

/// A dense tensor of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Elements, in the order of rows.
    pub data: TensorData,
    /// Extents, outermost first; one-dimensional when empty.
    pub shape: Vec<i64>,
}

impl Tensor {
    /// Gives the elements a shape.
    #[must_use]
    pub fn shaped(mut self, shape: &[i64]) -> Self {
        self.shape = shape.to_vec();
        self
    }

    /// Returns the elements if their type is float32.
    pub fn as_f32(&self) -> Option<&[f32]> {
        match &self.data {
            TensorData::Float32(values) => Some(values),
            TensorData::Int64(_) => None,
        }
    }

    /// Returns the elements if their type is int64.
    pub fn as_i64(&self) -> Option<&[i64]> {
        match &self.data {
            TensorData::Int64(values) => Some(values),
            TensorData::Float32(_) => None,
        }
    }
}

impl From<Vec<f32>> for Tensor {
    fn from(values: Vec<f32>) -> Self {
        Self { data: TensorData::Float32(values), shape: Vec::new() }
    }
}

impl From<Vec<i64>> for Tensor {
    fn from(values: Vec<i64>) -> Self {
        Self { data: TensorData::Int64(values), shape: Vec::new() }
    }
}

/// An example: its input tokens and the inputs of the loss by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Datum {
    /// Ids of the input tokens.
    pub tokens: Vec<i32>,
    /// Inputs of the loss by name, such as `target_tokens` and `weights`.
    pub loss_fn_inputs: BTreeMap<String, Tensor>,
    pub(crate) images: PlacedImages,
}

impl Datum {
    /// Makes an example without inputs of the loss.
    pub fn new(tokens: impl Into<Vec<i32>>) -> Self {
        Self { tokens: tokens.into(), ..Self::default() }
    }

    /// Adds an input of the loss.
    #[must_use]
    pub fn input(mut self, name: impl Into<String>, values: impl Into<Tensor>) -> Self {
        self.loss_fn_inputs.insert(name.into(), values.into());
        self
    }

    /// Places an image before the token of this index. Inputs of the loss then have as many rows more as the image takes
    /// positions.
    #[must_use]
    pub fn image(mut self, before: usize, image: Image) -> Self {
        self.images.entry(before).or_default().push(image);
        self
    }

    /// Makes an example in which each token of a sequence is predicted from those before it, all with a weight of 1.
    pub fn next_token(tokens: &[i32]) -> Self {
        let targets: Vec<i64> = tokens.iter().skip(1).map(|token| i64::from(*token)).collect();
        let weights = vec![1.0_f32; targets.len()];
        Self::new(&tokens[..targets.len()]).input("target_tokens", targets).input("weights", weights)
    }
}

/// A loss function by name, with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    pub(crate) name: String,
    pub(crate) config: BTreeMap<String, Setting>,
}

impl Loss {
    /// Selects a loss function without settings.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), config: BTreeMap::new() }
    }

    /// Selects the negative log-likelihood of `target_tokens`, weighted by `weights`.
    pub fn cross_entropy() -> Self {
        Self::named("cross_entropy")
    }

    /// Selects the policy gradient with importance ratios, of `target_tokens`, `logprobs` and `advantages`.
    pub fn importance_sampling() -> Self {
        Self::named("importance_sampling")
    }

    /// Selects the clipped policy gradient, of `target_tokens`, `logprobs` and `advantages`.
    pub fn ppo() -> Self {
        Self::named("ppo")
    }

    /// Adds a setting that is a number.
    #[must_use]
    pub fn number(mut self, name: impl Into<String>, value: f64) -> Self {
        self.config.insert(name.into(), Setting::Number(value));
        self
    }

    /// Adds a setting that is a string.
    #[must_use]
    pub fn text(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.config.insert(name.into(), Setting::Text(value.into()));
        self
    }
}
