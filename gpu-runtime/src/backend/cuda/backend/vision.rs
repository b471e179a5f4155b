//! Vision towers, which this backend does not support yet: images are refused before a pass is planned.

use std::ops::Range;

use super::Cuda;
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::{Gelu, LayerNorm, LinearCall, RowMix, Tensors, VisionOps};

const REFUSED: &str = "images are refused before a pass is planned";

impl VisionOps<Self> for Cuda {
    const HAS_VISION: bool = false;

    fn upload_rows(_: &Self, _: &[f32], _: usize) -> DeviceRows {
        unreachable!("{REFUSED}")
    }

    fn layer_norm(_: &Self, _: LayerNorm<'_, Self>, _: &DeviceRows) -> DeviceRows {
        unreachable!("{REFUSED}")
    }

    fn gelu(_: &Self, _: Gelu, _: &DeviceRows) -> <Self as Tensors>::Lhs {
        unreachable!("{REFUSED}")
    }

    fn linear_gelu(_: &Self, _: &LinearCall<'_, Self>, _: Gelu, _: &<Self as Tensors>::Lhs) -> <Self as Tensors>::Lhs {
        unreachable!("{REFUSED}")
    }

    fn mix_rows(_: &Self, _: &DeviceRows, _: &RowMix) -> DeviceRows {
        unreachable!("{REFUSED}")
    }

    fn attend_all(_: &Self, _: usize, _: &[Range<usize>], _: &DeviceRows) -> DeviceRows {
        unreachable!("{REFUSED}")
    }

    fn join_rows(_: &Self, _: DeviceRows, _: usize) -> DeviceRows {
        unreachable!("{REFUSED}")
    }

    fn add_rows(_: &Self, _: &DeviceRows, _: &[usize], _: &mut DeviceRows) {
        unreachable!("{REFUSED}")
    }
}
