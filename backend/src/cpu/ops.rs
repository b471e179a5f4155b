//! The ops of [`Backend`], each delegated to the file that computes it.

use std::ops::Range;

use super::attention::{AttentionGradient, attention, attention_backward};
use super::gemm::{PackedLhs, uses_tiles};
use super::head::HeadState;
use super::kv::KvPool;
use super::linear::LowRankRows;
use super::matrix::{EmbeddingTable, Matrix};
use super::operands::{OutputGradient, WeightInput, is_whole_tiles};
use super::rotation::normed_together;
use super::rows::HostRows;
use super::{Cpu, elementwise, embedding, head, kv, linear, matrix, norm, optimizer, rope, sampling};
use crate::fault::Fault;
use crate::host::HostParams;
use crate::{
    Activation, AdamWStep, AttentionCall, AttentionShape, Backend, BlockId, DeviceInfo, Dtype, EmbeddingGradient,
    GradientSinks, HeadGradient, Held, LinearCall, Logits, LoraSegment, MatrixRole, Norm, Params, PlannedPart,
    Rotation, RowScores, Rows, SampledToken, ScoreRequest, Source, Span, Targets, Tensors, TokenRequest, WeightPart,
};

impl Tensors for Cpu {
    type Rows = HostRows;
    type Lhs = PackedLhs;
    type Matrix = Matrix;
    type Vector = Vec<f32>;
    type Table = EmbeddingTable;
    type Rope = rope::Rope;
    type EmbeddingSums = embedding::EmbeddingSums;
    type LowRank = LowRankRows;
    type OutputGradient<'a> = OutputGradient<'a>;
    type WeightInput<'a> = WeightInput<'a>;
    type HeadState = HeadState;
    type KvPool = KvPool;

    const ACTIVATION_BYTES: usize = size_of::<f32>();
}

impl Backend for Cpu {
    type Family = Self;

    fn device(&self) -> DeviceInfo {
        DeviceInfo { kernels: self.isa.name(), threads: self.pool.threads() }
    }

    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn pack(&self, parts: &[Source<'_, Self>], k: usize, role: MatrixRole) -> Matrix {
        Matrix::pack(self, parts, k, role)
    }

    fn repack(&self, matrices: Vec<(&mut Matrix, Vec<Source<'_, Self>>)>) {
        matrix::repack(self, matrices);
    }

    fn share(&self, matrix: &Matrix) -> Matrix {
        matrix.share()
    }

    fn matrix_to_host(&self, matrix: &Matrix, (): &()) -> Vec<f32> {
        matrix.packed().to_rows(self)
    }

    fn matrix_bytes(&self, matrix: &Matrix) -> usize {
        matrix.bytes()
    }

    fn planned_matrix_bytes(&self, outputs: usize, inputs: usize, role: MatrixRole, trains: bool) -> usize {
        Matrix::planned_bytes(self, outputs, inputs, role, trains)
    }

    fn planned_block_bytes(&self, parts: &[PlannedPart], inputs: usize) -> Option<usize> {
        Matrix::planned_block_bytes(self, parts, inputs)
    }

    fn vector(&self, parts: &[Source<'_, Self>], offset: f32) -> Vec<f32> {
        let all = parts.iter().flat_map(|part| part.host().into_owned());
        if offset == 0.0 { all.collect() } else { all.map(|x| x + offset).collect() }
    }

    fn vector_to_host(&self, vector: &Vec<f32>, (): &()) -> Vec<f32> {
        vector.clone()
    }

    fn table(&self, rows: Source<'_, Self>, _width: usize) -> EmbeddingTable {
        EmbeddingTable::new(self, rows)
    }

    fn table_to_host(&self, table: &EmbeddingTable, (): &()) -> Vec<f32> {
        table.to_host()
    }

    fn table_bytes(&self, table: &EmbeddingTable) -> usize {
        table.bytes()
    }

    fn rope(&self, half: usize, table: Vec<(f32, f32)>) -> rope::Rope {
        rope::Rope::new(half, table)
    }

    fn zero_params(&self, lens: &[usize]) -> HostParams {
        optimizer::zeros(self, lens)
    }

    fn upload_params(&self, values: Vec<Vec<f32>>) -> HostParams {
        HostParams::new(values)
    }

    fn begin_gradient(&self, lens: &[usize], old: Option<HostParams>) -> HostParams {
        let Some(mut old) = old else { return HostParams::zeros(lens) };
        assert!(old.lens() == lens, "gradient lengths differ");
        old.clear();
        old
    }

    fn finish_gradient(&self, gradient: &mut HostParams) {
        optimizer::write_zeros(self, gradient, 0..gradient.len());
    }

    fn add_params(&self, to: &mut HostParams, from: &HostParams) {
        to.iter_mut().zip(from.iter()).for_each(|(to, from)| elementwise::add(self, to, from));
    }

    fn squared_norms(&self, a: &HostParams, b: Option<&HostParams>) -> Vec<f64> {
        optimizer::squared_norms(self, a, b)
    }

    fn adamw(&self, steps: Vec<AdamWStep<'_, Self>>) -> Vec<Result<(), Fault>> {
        optimizer::adamw(self, steps)
    }

    fn alloc(&self, rows: usize, width: usize) -> HostRows {
        HostRows::alloc(self, rows, width)
    }

    fn zeros(&self, rows: usize, width: usize) -> HostRows {
        HostRows::zeros(self, rows, width)
    }

    fn copy(&self, rows: &HostRows) -> HostRows {
        rows.copy(self)
    }

    fn gather(&self, from: &HostRows, rows: &[usize]) -> HostRows {
        from.gather(self, rows)
    }

    fn scatter(&self, from: &HostRows, rows: &[usize], to: &mut HostRows) {
        from.scatter(rows, to);
    }

    fn embed_table(&self, table: &EmbeddingTable, width: usize, tokens: &[u32], scale: f32) -> HostRows {
        embedding::embed(self, tokens, width, scale, |token, out| table.row(token, out))
    }

    fn embed_tied(&self, head: &Matrix, tokens: &[u32], scale: f32) -> HostRows {
        let head = head.packed();
        embedding::embed(self, tokens, head.k(), scale, |token, out| head.row(token, out))
    }

    fn embed_backward(&self, tokens: &[u32], dx: &HostRows, scale: f32, mut into: EmbeddingGradient<'_, Self>) {
        if let EmbeddingGradient::Param(grads, index) = &mut into {
            optimizer::write_zeros(self, grads, *index..*index + 1);
        }
        embedding::backward(tokens, dx, scale, into);
    }

    fn add_embedding_sums(&self, sums: Self::EmbeddingSums, params: &mut HostParams, index: usize) {
        embedding::add_sums(sums, params, index);
    }

    fn norm(&self, Norm { weight, eps }: Norm<'_, Self>, x: &HostRows) -> HostRows {
        let mut y = HostRows::alloc(self, x.rows(), x.width());
        norm::rms_norm(self, x, weight, eps, &mut y);
        y
    }

    fn norm_lhs(&self, Norm { weight, eps }: Norm<'_, Self>, x: &HostRows) -> PackedLhs {
        norm::rms_norm_lhs(self, self.dtype, x, weight, eps)
    }

    fn add_norm(&self, Norm { weight, eps }: Norm<'_, Self>, y: &HostRows, x: &mut HostRows) {
        norm::add_rms_norm(self, y, weight, eps, x);
    }

    fn norm_backward(
        &self,
        Norm { weight, eps }: Norm<'_, Self>,
        x: &HostRows,
        dy: &HostRows,
        dx: &mut HostRows,
        dw: Option<(&mut HostParams, usize)>,
    ) {
        let dw = dw.map(|(params, index)| &mut params[index][..]);
        norm::rms_norm_backward(self, x, weight, eps, dy, dx, dw);
    }

    fn lhs(&self, x: &HostRows) -> PackedLhs {
        PackedLhs::new(self, self.dtype, x, x.width())
    }

    fn linear(
        &self,
        call: &LinearCall<'_, Self>,
        x: &PackedLhs,
        residual: Option<&HostRows>,
        out: &mut HostRows,
    ) -> LowRankRows {
        linear::forward(self, call, x, residual, out)
    }

    fn linear_activated(
        &self,
        call: &LinearCall<'_, Self>,
        x: &PackedLhs,
        activation: Activation,
        out: &mut HostRows,
    ) -> (LowRankRows, PackedLhs) {
        linear::forward_activated(self, call, x, activation, out)
    }

    fn output_gradient<'a>(&self, dy: Held<'a, HostRows>, sequences: &[Range<usize>]) -> OutputGradient<'a> {
        OutputGradient::new(self, dy, sequences)
    }

    fn weight_input<'a>(&self, x: Held<'a, HostRows>, sequences: &[Range<usize>]) -> WeightInput<'a> {
        WeightInput::new(self, x, sequences)
    }

    fn norm_input(
        &self,
        Norm { weight, eps }: Norm<'_, Self>,
        x: &HostRows,
        sequences: &[Range<usize>],
    ) -> WeightInput<'static> {
        norm::rms_norm_input(self, x, weight, eps, sequences)
    }

    fn linear_backward(&self, call: &LinearCall<'_, Self>, dy: &OutputGradient<'_>, dx: &mut HostRows) -> LowRankRows {
        linear::backward(self, call, dy, dx)
    }

    fn lora_gradients(
        &self,
        lora: &[LoraSegment<'_, Self>],
        sequences: &[Range<usize>],
        x: &WeightInput<'_>,
        dy: &OutputGradient<'_>,
        low_rank: [&LowRankRows; 2],
        sinks: &mut [Option<&mut HostParams>],
    ) {
        linear::lora_gradients(self, lora, sequences, x, dy, low_rank, sinks);
    }

    fn weight_gradients(
        &self,
        parts: &[WeightPart],
        sequences: &[Range<usize>],
        x: &WeightInput<'_>,
        dy: &OutputGradient<'_>,
        grads: &mut HostParams,
    ) {
        linear::weight_gradients(self, parts, sequences, x, dy, grads);
    }

    fn rotate(&self, rotation: &Rotation<'_, Self>, qkv: &mut HostRows, keep: bool) -> Option<HostRows> {
        let before = (keep && rotation.norms.is_some()).then(|| qkv.copy(self));
        let stride = rotation.shape.qkv_width();
        for (norm, (at, heads)) in rotation.norms.iter().flatten().zip(normed_together(rotation)) {
            norm::rms_norm_heads(self, qkv, stride, at, heads, norm.weight, norm.eps);
        }
        self.turn(rotation, qkv, false);
        before
    }

    fn rotate_backward(
        &self,
        rotation: &Rotation<'_, Self>,
        before: Option<&HostRows>,
        mut d_qkv: HostRows,
        dw: Option<(&mut HostParams, [usize; 2])>,
        sequences: &[Range<usize>],
    ) -> OutputGradient<'static> {
        let shape = rotation.shape;
        if rotation.norms.is_none() && rotation.query_rope.is_none() {
            let (rotated, positions) = (shape.heads + shape.kv_heads, rotation.positions);
            return rotation.rope.invert_gradient(self, d_qkv, rotated, shape.head_dim, positions, sequences);
        }
        self.rotate_gradient(rotation, before, &mut d_qkv, dw);
        OutputGradient::new(self, Held::Owned(d_qkv), sequences)
    }

    fn attention(&self, call: AttentionCall<'_>, kv: &KvPool, qkv: &HostRows) -> [HostRows; 2] {
        let rows = qkv.rows();
        let mut out = HostRows::alloc(self, rows, call.shape.q_width());
        let mut lse = HostRows::alloc(self, rows, call.shape.heads);
        attention(self, call, kv, qkv, &mut out, &mut lse);
        [out, lse]
    }

    fn attention_backward(
        &self,
        call: AttentionCall<'_>,
        kv: &KvPool,
        qkv: &HostRows,
        [out, lse]: [&HostRows; 2],
        d_out: &HostRows,
    ) -> HostRows {
        let mut d_qkv = HostRows::alloc(self, qkv.rows(), qkv.width());
        attention_backward(self, call, kv, &AttentionGradient { qkv, out, lse, d_out }, &mut d_qkv);
        d_qkv
    }

    fn activate(&self, activation: Activation, gate_up: &HostRows) -> PackedLhs {
        elementwise::activate(self, activation, gate_up, activation.outputs(gate_up.width()))
    }

    fn activate_backward(
        &self,
        activation: Activation,
        mut gate_up: HostRows,
        mut d_out: HostRows,
        sequences: &[Range<usize>],
        biased: bool,
    ) -> (OutputGradient<'static>, WeightInput<'static>) {
        let width = d_out.width();
        if uses_tiles(self) && is_whole_tiles(width) && !biased {
            let packed = elementwise::activate_backward_packed(self, activation, &gate_up, &d_out, width, sequences);
            if let Some((lhs, side, input)) = packed {
                return (OutputGradient::packed(None, lhs, side), WeightInput::Packed(input));
            }
        }
        elementwise::activate_backward(self, activation, &mut d_out, width, &mut gate_up);
        let [dy, out] = [gate_up, d_out].map(Held::Owned);
        (OutputGradient::new(self, dy, sequences), WeightInput::new(self, out, sequences))
    }

    fn kv_pool(&self, shape: &AttentionShape) -> KvPool {
        KvPool::new(self, shape)
    }

    fn kv_block_bytes(&self, shape: &AttentionShape) -> usize {
        kv::block_bytes(self, shape)
    }

    fn kv_take(&self, pool: &mut KvPool) -> BlockId {
        pool.alloc()
    }

    fn kv_release(&self, pool: &mut KvPool, block: BlockId) {
        pool.release(block);
    }

    fn kv_copy(&self, pool: &mut KvPool, from: BlockId, to: BlockId) {
        pool.copy(from, to);
    }

    fn kv_write(&self, pool: &mut KvPool, shape: &AttentionShape, layer: usize, spans: &[Span], qkv: &HostRows) {
        kv::write(self, pool, shape, layer, spans, qkv);
    }

    fn target_logprobs(
        &self,
        head: &LinearCall<'_, Self>,
        hidden: &HostRows,
        targets: &Targets,
        keep_logits: bool,
    ) -> (Vec<f32>, HeadState) {
        head::target_logprobs(self, head, hidden, targets, keep_logits)
    }

    fn head_backward(
        &self,
        head: &LinearCall<'_, Self>,
        hidden: &HostRows,
        gradient: &HeadGradient<'_, Self>,
        state: &HeadState,
        param: usize,
        sinks: &mut GradientSinks<'_, '_, Self>,
    ) -> HostRows {
        head::backward(self, head, hidden, gradient, state, param, sinks)
    }

    fn sample(&self, logits: &Logits<'_, Self>, requests: &[TokenRequest<'_>]) -> Vec<SampledToken> {
        sampling::sample(self, logits, requests)
    }

    fn score(&self, logits: &Logits<'_, Self>, requests: &[ScoreRequest]) -> Vec<RowScores> {
        sampling::score(self, logits, requests)
    }
}
