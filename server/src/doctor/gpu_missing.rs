//! A GPU in a build without the feature `cuda`.

use std::path::Path;

use trainyard_gpu_runtime::Dtype;

use super::Check;
use crate::config::Shapes;
use crate::features::{self, NotInBuild};

pub(super) fn nccl(_: &[u16]) -> Result<Vec<Check>, NotInBuild> {
    Err(features::CUDA)
}

pub(super) fn examine(_: u16, _: Dtype, _: Option<&Path>, _: Shapes) -> Result<Vec<Check>, NotInBuild> {
    Err(features::CUDA)
}
