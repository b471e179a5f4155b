//! The elements of parameters that weights are packed from.

use std::borrow::Cow;

use crate::backend::{Backend, Source};
use crate::config::LoadError;

/// The elements of a parameter.
pub(super) enum ParamValue<'a, B: Backend> {
    Host(Cow<'a, [f32]>),
    Param(&'a B::Params, usize),
    /// An array that only this value refers to.
    Own(B::Params, usize),
}

impl<B: Backend> ParamValue<'_, B> {
    pub(super) fn source(&self) -> Source<'_, B> {
        match self {
            Self::Host(values) => Source::Host(values),
            Self::Param(params, index) => Source::Param(*params, *index),
            Self::Own(params, index) => Source::Param(params, *index),
        }
    }
}

/// Reads the parameter of an index.
pub(super) type ReadParam<'r, 'a, B> = dyn FnMut(usize) -> Result<ParamValue<'a, B>, LoadError> + 'r;
