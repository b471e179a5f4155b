//! Norms of heads, and rotary position embedding (Su et al. 2021, arXiv:2104.09864) in the half-split layout: element `i` of a
//! head pairs with the one half a head after it, or half of its rotated elements.

use half::bf16;

use super::norm::DeviceNorm;
use super::rotary_parts;
use super::rows::DeviceRows;
use crate::backend::AttentionShape;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

/// Norms of q heads and of k heads: `[head_dim]` each, or as wide as all heads.
pub(crate) type HeadNorms<'a> = [DeviceNorm<'a>; 2];

/// Ops on q and k between projection and attention: RMSNorm for families with norms, then rotation of the first elements of each
/// head, as many as a row of the table has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceRotation<'a> {
    /// Extents of the columns of `qkv`.
    pub shape: &'a AttentionShape,
    /// Norms of q and k, for families that have them.
    pub norms: Option<HeadNorms<'a>>,
    /// Whether a norm is over all heads of q, or of k, together.
    pub whole_norms: bool,
    /// (cos, sin) of `[position][pair]`, pair by pair: `[positions, 2 · pairs]`.
    pub rope: &'a DeviceRows,
    /// Rotary table of queries, of the same width, if it differs from that of keys.
    pub query_rope: Option<&'a DeviceRows>,
    /// Position of every row.
    pub positions: &'a [u32],
}

impl DeviceRotation<'_> {
    /// Whether whole heads are rotated, by one table, and each of them is normalised by itself. The kernels for that compute it in
    /// fewer launches.
    pub(crate) fn is_plain(&self) -> bool {
        self.rope.width() == self.shape.head_dim && self.query_rope.is_none() && !self.is_joint()
    }

    /// Whether there are norms over all heads.
    pub(super) fn is_joint(&self) -> bool {
        self.norms.is_some() && self.whole_norms
    }

    /// Weights of the norms of q and of k.
    fn norm_widths(&self) -> [usize; 2] {
        if self.whole_norms { [self.shape.q_width(), self.shape.kv_width()] } else { [self.shape.head_dim; 2] }
    }
}

/// Warps of a block: each has a head.
const WARPS: u32 = 4;

/// Extents as kernels take them, once they are checked.
pub(super) struct Checked {
    pub(super) positions: Slice<u32>,
    pub(super) rows: u32,
    /// Elements of a row, heads of q, heads of k, elements of a head.
    extents: [u32; 4],
    eps: [f32; 2],
}

impl Checked {
    fn new(device: &CudaDevice, rotation: &DeviceRotation<'_>, extents: Extents, qkv: &DeviceRows) -> Result<Self> {
        let shape = rotation.shape;
        let [rows, stride] = qkv.expect(extents, "q, k and v", rotation.positions.len(), shape.qkv_width())?;
        extents.check(shape.head_dim.is_multiple_of(2), "the width of a head", shape.head_dim, || "even".to_owned())?;
        let rotated = rotation.rope.width();
        let fits = rotated.is_multiple_of(2) && rotated <= shape.head_dim;
        extents
            .check(fits, "the width of the rotary table", rotated, || format!("even and at most {}", shape.head_dim))?;
        let mut rows_of_tables = rotation.rope.rows();
        if let Some(rope) = rotation.query_rope {
            extents.equal("the width of the queries' rotary table", rope.width(), rotated)?;
            rows_of_tables = rows_of_tables.min(rope.rows());
        }
        for position in rotation.positions {
            extents.below("a position", *position as usize, rows_of_tables)?;
        }
        for (norm, width) in rotation.norms.iter().flatten().zip(rotation.norm_widths()) {
            extents.equal("the weight of a norm", norm.weight.len(), width)?;
        }
        let [heads, kv_heads] = [shape.heads, shape.kv_heads].map(|heads| extents.index("the heads", heads));
        let extents = [stride, heads?, kv_heads?, extents.index("the width of a head", shape.head_dim)?];
        let eps = rotation.norms.map_or([0.0; 2], |norms| norms.map(|norm| norm.eps));
        Ok(Self { positions: device.upload(rotation.positions)?, rows, extents, eps })
    }

    /// Launches a kernel with one warp for each head of q and k, and with `values` for each head of v.
    pub(super) fn launch(
        &self,
        device: &CudaDevice,
        name: &str,
        values: bool,
        arguments: &[&[Argument<'_>]],
    ) -> Result {
        let [_, heads, kv_heads, _] = self.extents;
        let warps = heads + kv_heads + if values { kv_heads } else { 0 };
        device.launch(name, [self.rows, warps.div_ceil(WARPS), 1], 32 * WARPS, &arguments.concat())
    }

    pub(super) fn extents(&self) -> [Argument<'static>; 4] {
        self.extents.map(Argument::from)
    }

    pub(super) fn eps(&self) -> [Argument<'static>; 2] {
        self.eps.map(Argument::from)
    }
}

pub(super) fn weights(norms: Option<HeadNorms<'_>>) -> [Argument<'_>; 2] {
    norms.map_or([Argument::null(); 2], |norms| norms.map(|norm| norm.weight.into()))
}

/// Normalises the heads of q and k where there are norms, then rotates them, in place and in f32; v stays. Where `save` is set and
/// there are norms, returns `qkv` from before, and puts the result into other memory.
pub(crate) fn rotate(
    device: &CudaDevice,
    rotation: &DeviceRotation<'_>,
    qkv: &mut DeviceRows,
    save: bool,
) -> Result<Option<DeviceRows>> {
    let checked = Checked::new(device, rotation, Extents("rotate"), qkv)?;
    let saves = save && rotation.norms.is_some();
    let mut rotated = if saves { Some(DeviceRows::uninitialised(device, qkv.rows(), qkv.width())?) } else { None };
    let from = Argument::address(qkv.data().address());
    let to = rotated.as_mut().unwrap_or(qkv).data_mut().into();
    if rotation.is_plain() {
        let data = [from, to, rotation.rope.data().into(), (&checked.positions).into()];
        let rest = [&weights(rotation.norms)[..], &checked.extents(), &checked.eps()].concat();
        checked.launch(device, "rotate", saves, &[&data, &rest])?;
    } else {
        rotary_parts::rotate(device, rotation, &checked, [from, to], saves)?;
    }
    Ok(rotated.map(|rotated| std::mem::replace(qkv, rotated)))
}

/// Replaces `d_qkv`, the gradient with respect to the result of [`rotate`], by that with respect to its input; those of the norms
/// are added to `dw` (q's, k's), rows and in them heads in order. `before` is what [`rotate`] returned with `save`: present where
/// there are norms.
pub(crate) fn rotate_backward(
    device: &CudaDevice,
    rotation: &DeviceRotation<'_>,
    before: Option<&DeviceRows>,
    d_qkv: &mut DeviceRows,
    dw: Option<[&mut Slice<f32>; 2]>,
) -> Result {
    let extents = Extents("rotate_backward");
    let checked = Checked::new(device, rotation, extents, d_qkv)?;
    let normed = usize::from(rotation.norms.is_some());
    extents.equal("the number of copies before rotation", usize::from(before.is_some()), normed)?;
    if let Some(before) = before {
        before.expect(extents, "q, k and v before rotation", d_qkv.rows(), d_qkv.width())?;
    }
    for (dw, width) in dw.iter().flatten().zip(rotation.norm_widths()) {
        extents.equal("the gradient of a norm", dw.len(), width)?;
    }
    let input = before.map_or_else(Argument::null, |before| before.data().into());
    if rotation.is_joint() {
        return rotary_parts::rotate_backward_joint(device, rotation, &checked, input, d_qkv, dw);
    }
    let heads = rotation.shape.heads + rotation.shape.kv_heads;
    let mut scales = device.uninitialised::<f32>(normed * d_qkv.rows() * heads)?;
    if rotation.is_plain() {
        let data = [
            d_qkv.data_mut().into(),
            input,
            rotation.rope.data().into(),
            (&checked.positions).into(),
            (&mut scales).into(),
        ];
        checked.launch(device, "rotate_back", false, &[&data, &checked.extents(), &checked.eps()])?;
    } else {
        rotary_parts::rotate_back(device, rotation, &checked, input, d_qkv, &mut scales)?;
    }
    if rotation.norms.is_none() {
        return Ok(());
    }
    if let Some([dq, dk]) = dw {
        let [stride, heads, kv_heads, head_dim] = checked.extents();
        let [gradient, scales] = [Argument::from(d_qkv.data()), (&scales).into()];
        let arguments =
            [gradient, input, scales, dq.into(), dk.into(), checked.rows.into(), stride, heads, kv_heads, head_dim];
        device.launch("head_norm_weight_backward", [2, 1, 1], 128, &arguments)?;
    }
    let data = [d_qkv.data_mut().into(), input, (&scales).into()];
    checked.launch(device, "head_norm_backward", false, &[&data, &weights(rotation.norms), &checked.extents()])
}

/// Like [`rotate_backward`], but rounded to bf16, in one launch, and without gradients of the norms; for plain rotations with norms.
pub(crate) fn rotate_backward_rounded(
    device: &CudaDevice,
    rotation: &DeviceRotation<'_>,
    before: &DeviceRows,
    d_qkv: &DeviceRows,
) -> Result<DeviceRows<bf16>> {
    let extents = Extents("rotate_backward");
    let checked = Checked::new(device, rotation, extents, d_qkv)?;
    extents.equal("the norms", usize::from(rotation.norms.is_some()), 1)?;
    let (width, head_dim) = (rotation.rope.width(), rotation.shape.head_dim);
    extents.check(
        rotation.is_plain(),
        "the width of the only rotary table, after norms of each head",
        width,
        || head_dim.to_string(),
    )?;
    before.expect(extents, "q, k and v before rotation", d_qkv.rows(), d_qkv.width())?;
    let mut out = DeviceRows::uninitialised(device, d_qkv.rows(), d_qkv.width())?;
    let data = [d_qkv.data().into(), before.data().into(), out.data_mut().into()];
    let angles = [rotation.rope.data().into(), (&checked.positions).into()];
    let rest = [&weights(rotation.norms)[..], &checked.extents(), &checked.eps()].concat();
    checked.launch(device, "rotate_back_rounded", true, &[&data, &angles, &rest])?;
    Ok(out)
}
