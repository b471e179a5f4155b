//! The elements of parameters that weights are packed from.

use std::borrow::Cow;

use crate::backend::{Backend, Source};
use crate::blocks::BlockRows;
use crate::config::LoadError;

/// The elements of a parameter.
pub(crate) enum ParamValue<'a, B: Backend> {
    Host(Cow<'a, [f32]>),
    /// Rows in the blocks of a file.
    Blocks(BlockRows),
    Param(&'a B::Params, usize),
    /// An array that only this value refers to.
    Own(B::Params, usize),
}

impl<B: Backend> ParamValue<'_, B> {
    pub(super) fn source(&self) -> Source<'_, B> {
        match self {
            Self::Host(values) => Source::Host(values),
            Self::Blocks(blocks) => Source::Blocks(blocks),
            Self::Param(params, index) => Source::Param(*params, *index),
            Self::Own(params, index) => Source::Param(params, *index),
        }
    }
}

/// Reads the parameter of an index.
pub(crate) type ReadParam<'r, 'a, B> = dyn FnMut(usize) -> Result<ParamValue<'a, B>, LoadError> + 'r;
