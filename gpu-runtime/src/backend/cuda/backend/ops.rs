//! The ops of [`Backend`], each delegated to the file that computes it.

use std::ops::Range;

use super::Cuda;
use super::attention::KvPool;
use super::elements::{Elements, GradientSide, OutputGradient};
use super::embedding::EmbeddingSums;
use super::head::HeadState;
use super::low_rank::LowRank;
use super::params::CudaParams;
use super::params::step;
use super::weights::{Matrix, vector};
use crate::backend::cuda::device::fence::Fence;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::ops::activation::{activate, activate_backward, activate_backward_rounded};
use crate::backend::cuda::ops::copies::{gather, scatter};
use crate::backend::cuda::ops::norm::{DeviceNorm, add_norm, norm, norm_backward};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::{
    Activation, AdamWStep, AttentionCall, AttentionShape, Backend, BlockId, DeviceInfo, Dtype, EmbeddingGradient,
    GradientSinks, HeadGradient, Held, LinearCall, Logits, LoraSegment, MatrixRole, Norm, Rotation, RowScores,
    SampledToken, ScoreRequest, Source, Span, Targets, Tensors, TokenRequest, WeightPart,
};
use crate::fault::{Fault, guarded, if_memory_suffices};
use half::bf16;

fn of<'a>(norm: Norm<'a, Cuda>) -> DeviceNorm<'a> {
    DeviceNorm { weight: norm.weight, eps: norm.eps }
}

impl Tensors for Cuda {
    type Rows = DeviceRows;
    type Lhs = Elements;
    type Matrix = Matrix;
    type Vector = Slice<f32>;
    type Table = Elements;
    type Rope = DeviceRows;
    type EmbeddingSums = EmbeddingSums;
    type LowRank = LowRank;
    type OutputGradient<'a> = OutputGradient<'a>;
    type WeightInput<'a> = GradientSide<'a>;
    type HeadState = HeadState;
    type KvPool = KvPool;

    const ACTIVATION_BYTES: usize = size_of::<f32>();
}

impl Backend for Cuda {
    type Family = Self;

    fn device(&self) -> DeviceInfo {
        let kernels = match self.device.queue().capability() {
            (8, 0) => "cuda-sm80",
            (8, _) => "cuda-sm8x",
            (9, _) => "cuda-sm90",
            (10, _) => "cuda-sm100",
            (12, _) => "cuda-sm120",
            _ => "cuda",
        };
        DeviceInfo { kernels, threads: 1 }
    }

    fn failure(&self) -> Option<String> {
        self.device.queue().lost()
    }

    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn pack(&self, parts: &[Source<'_, Self>], k: usize, _role: MatrixRole) -> Matrix {
        self.done(Matrix::pack(&self.device, self.dtype, parts, k))
    }

    fn repack(&self, matrices: Vec<(&mut Matrix, Vec<Source<'_, Self>>)>) {
        for (matrix, parts) in matrices {
            self.done(matrix.repack(&self.device, self.dtype, &parts));
        }
    }

    fn share(&self, matrix: &Matrix) -> Matrix {
        Matrix(matrix.0.clone())
    }

    fn matrix_to_host(&self, matrix: &Matrix, fence: &Fence) -> Vec<f32> {
        self.done(matrix.0.to_host_after(fence))
    }

    fn matrix_bytes(&self, matrix: &Matrix) -> usize {
        matrix.0.bytes()
    }

    fn planned_matrix_bytes(&self, outputs: usize, inputs: usize, _role: MatrixRole, _trains: bool) -> usize {
        outputs * inputs * self.dtype.bytes()
    }

    fn vector(&self, parts: &[Source<'_, Self>], offset: f32) -> Slice<f32> {
        self.done(vector(&self.device, parts, offset))
    }

    fn vector_to_host(&self, vector: &Slice<f32>, fence: &Fence) -> Vec<f32> {
        self.done(vector.to_host_after(fence))
    }

    fn table(&self, rows: Source<'_, Self>, width: usize) -> Elements {
        self.done(Elements::pack(&self.device, self.dtype, &[rows], width))
    }

    fn table_to_host(&self, table: &Elements, fence: &Fence) -> Vec<f32> {
        self.done(table.to_host_after(fence))
    }

    fn table_bytes(&self, table: &Elements) -> usize {
        table.bytes()
    }

    fn rope(&self, half: usize, table: Vec<(f32, f32)>) -> DeviceRows {
        let pairs: Vec<f32> = table.into_iter().flat_map(|(cos, sin)| [cos, sin]).collect();
        self.done(DeviceRows::upload(&self.device, &pairs, 2 * half))
    }

    fn zero_params(&self, lens: &[usize]) -> CudaParams {
        self.done(CudaParams::zeros(&self.device, lens))
    }

    fn upload_params(&self, values: Vec<Vec<f32>>) -> CudaParams {
        self.done(CudaParams::upload(&self.device, &values))
    }

    fn begin_gradient(&self, lens: &[usize], old: Option<CudaParams>) -> CudaParams {
        let Some(mut old) = old else { return self.zero_params(lens) };
        self.done(old.clear());
        old
    }

    fn add_params(&self, to: &mut CudaParams, from: &CudaParams) {
        self.done(to.add_all(&self.device, from));
    }

    fn squared_norms(&self, a: &CudaParams, b: Option<&CudaParams>) -> Vec<f64> {
        self.done(a.squared_norms(&self.device, b))
    }

    fn adamw(&self, mut steps: Vec<AdamWStep<'_, Self>>) -> Vec<Result<(), Fault>> {
        const WHAT: &str = "optimizer step";
        let all = guarded(WHAT, || if_memory_suffices(|| self.done(step(&self.device, &mut steps))));
        match all {
            Ok(Some(())) => vec![Ok(()); steps.len()],
            // Nothing was changed. Steps taken one by one need less memory, and a failure affects only one of them.
            Ok(None) => {
                let alone = |step_of: &mut [_]| guarded(WHAT, || self.done(step(&self.device, step_of)));
                steps.chunks_mut(1).map(alone).collect()
            }
            Err(fault) => vec![Err(fault); steps.len()],
        }
    }

    fn alloc(&self, rows: usize, width: usize) -> DeviceRows {
        self.done(DeviceRows::uninitialised(&self.device, rows, width))
    }

    fn zeros(&self, rows: usize, width: usize) -> DeviceRows {
        self.done(DeviceRows::zeros(&self.device, rows, width))
    }

    fn copy(&self, rows: &DeviceRows) -> DeviceRows {
        self.done(rows.copy())
    }

    fn gather(&self, from: &DeviceRows, rows: &[usize]) -> DeviceRows {
        self.done(gather(&self.device, from, rows))
    }

    fn scatter(&self, from: &DeviceRows, rows: &[usize], to: &mut DeviceRows) {
        self.done(scatter(&self.device, from, rows, to));
    }

    fn embed_table(&self, table: &Elements, _width: usize, tokens: &[u32], scale: f32) -> DeviceRows {
        self.done(self.embed_of(table, tokens, scale))
    }

    fn embed_tied(&self, head: &Matrix, tokens: &[u32], scale: f32) -> DeviceRows {
        self.done(self.embed_of(&head.0, tokens, scale))
    }

    fn embed_backward(&self, tokens: &[u32], dx: &DeviceRows, scale: f32, into: EmbeddingGradient<'_, Self>) {
        self.done(self.embed_gradient(tokens, dx, scale, into));
    }

    fn add_embedding_sums(&self, sums: EmbeddingSums, params: &mut CudaParams, index: usize) {
        self.done(self.add_sums(sums, &mut params.0[index]));
    }

    fn norm(&self, norm_of: Norm<'_, Self>, x: &DeviceRows) -> DeviceRows {
        self.done(norm(&self.device, of(norm_of), x))
    }

    fn norm_lhs(&self, norm_of: Norm<'_, Self>, x: &DeviceRows) -> Elements {
        match self.dtype {
            Dtype::F32 => Elements::F32(self.done(norm::<f32>(&self.device, of(norm_of), x))),
            Dtype::Bf16 => Elements::Bf16(self.done(norm::<bf16>(&self.device, of(norm_of), x))),
        }
    }

    fn add_norm(&self, norm: Norm<'_, Self>, y: &DeviceRows, x: &mut DeviceRows) {
        self.done(add_norm(&self.device, of(norm), y, x));
    }

    fn norm_backward(
        &self,
        norm: Norm<'_, Self>,
        x: &DeviceRows,
        dy: &DeviceRows,
        dx: &mut DeviceRows,
        dw: Option<(&mut CudaParams, usize)>,
    ) {
        let dw = dw.map(|(params, index)| &mut params.0[index]);
        self.done(norm_backward(&self.device, of(norm), x, dy, dx, dw));
    }

    fn lhs(&self, x: &DeviceRows) -> Elements {
        self.done(Elements::of(&self.device, self.dtype, x))
    }

    fn linear(
        &self,
        call: &LinearCall<'_, Self>,
        x: &Elements,
        residual: Option<&DeviceRows>,
        out: &mut DeviceRows,
    ) -> LowRank {
        self.done(self.linear_of(call, x, residual, out))
    }

    fn output_gradient<'a>(&self, dy: Held<'a, DeviceRows>, _sequences: &[Range<usize>]) -> OutputGradient<'a> {
        self.done(OutputGradient::new(&self.device, self.dtype, dy))
    }

    fn weight_input<'a>(&self, x: Held<'a, DeviceRows>, _sequences: &[Range<usize>]) -> GradientSide<'a> {
        self.done(GradientSide::new(&self.device, self.dtype, x))
    }

    fn norm_input(&self, norm: Norm<'_, Self>, x: &DeviceRows, _: &[Range<usize>]) -> GradientSide<'static> {
        match self.norm_lhs(norm, x) {
            Elements::F32(rows) => GradientSide::F32(Held::Owned(rows)),
            Elements::Bf16(rows) => GradientSide::Bf16(rows),
        }
    }

    fn linear_backward(&self, call: &LinearCall<'_, Self>, dy: &OutputGradient<'_>, dx: &mut DeviceRows) -> LowRank {
        self.done(self.linear_backward_of(call, dy, dx))
    }

    fn lora_gradients(
        &self,
        lora: &[LoraSegment<'_, Self>],
        sequences: &[Range<usize>],
        x: &GradientSide<'_>,
        dy: &OutputGradient<'_>,
        [z, dz]: [&LowRank; 2],
        sinks: &mut [Option<&mut CudaParams>],
    ) {
        self.done(self.adapter_gradients(lora, sequences, dz, x, z, dy, sinks));
    }

    fn weight_gradients(
        &self,
        parts: &[WeightPart],
        sequences: &[Range<usize>],
        x: &GradientSide<'_>,
        dy: &OutputGradient<'_>,
        grads: &mut CudaParams,
    ) {
        self.done(self.weight_gradients_of(parts, sequences, x, dy, grads));
    }

    fn rotate(&self, rotation: &Rotation<'_, Self>, qkv: &mut DeviceRows, save: bool) -> Option<DeviceRows> {
        self.done(self.rotate_heads(rotation, qkv, save))
    }

    fn rotate_backward(
        &self,
        rotation: &Rotation<'_, Self>,
        before: Option<&DeviceRows>,
        mut d_qkv: DeviceRows,
        dw: Option<(&mut CudaParams, [usize; 2])>,
        sequences: &[Range<usize>],
    ) -> OutputGradient<'static> {
        // Biases need gradients in f32: a model with norms of heads whose gradients are not wanted trains none.
        if let (Dtype::Bf16, Some(before), None, true) = (self.dtype, before, &dw, Self::rotates_at_once(rotation)) {
            return OutputGradient::rounded(self.done(self.rotate_heads_backward_rounded(rotation, before, &d_qkv)));
        }
        self.done(self.rotate_heads_backward(rotation, before, &mut d_qkv, dw));
        self.output_gradient(Held::Owned(d_qkv), sequences)
    }

    fn attention(&self, call: AttentionCall<'_>, kv: &KvPool, qkv: &DeviceRows) -> [DeviceRows; 2] {
        self.done(self.attend(call, kv, qkv))
    }

    fn attention_backward(
        &self,
        call: AttentionCall<'_>,
        kv: &KvPool,
        qkv: &DeviceRows,
        forward: [&DeviceRows; 2],
        d_out: &DeviceRows,
    ) -> DeviceRows {
        self.done(self.attend_backward(call, kv, qkv, forward, d_out))
    }

    fn activate(&self, activation: Activation, gate_up: &DeviceRows) -> Elements {
        match self.dtype {
            Dtype::F32 => Elements::F32(self.done(activate::<f32>(&self.device, activation, gate_up))),
            Dtype::Bf16 => Elements::Bf16(self.done(activate::<bf16>(&self.device, activation, gate_up))),
        }
    }

    fn activate_backward(
        &self,
        activation: Activation,
        mut gate_up: DeviceRows,
        mut d_out: DeviceRows,
        sequences: &[Range<usize>],
        biased: bool,
    ) -> (OutputGradient<'static>, GradientSide<'static>) {
        if self.dtype == Dtype::Bf16 && !biased {
            let [d_gate_up, out] = self.done(activate_backward_rounded(&self.device, activation, &gate_up, &d_out));
            return (OutputGradient::rounded(d_gate_up), GradientSide::Bf16(out));
        }
        self.done(activate_backward(&self.device, activation, &mut gate_up, &mut d_out));
        (self.output_gradient(Held::Owned(gate_up), sequences), self.weight_input(Held::Owned(d_out), sequences))
    }

    fn kv_pool(&self, shape: &AttentionShape) -> KvPool {
        self.done(KvPool::new(self.dtype, shape))
    }

    fn kv_block_bytes(&self, shape: &AttentionShape) -> usize {
        KvPool::block_bytes(self.dtype, shape)
    }

    fn kv_take(&self, pool: &mut KvPool) -> BlockId {
        self.done(pool.take(&self.device))
    }

    fn kv_release(&self, pool: &mut KvPool, block: BlockId) {
        pool.release(block);
    }

    fn kv_copy(&self, pool: &mut KvPool, from: BlockId, to: BlockId) {
        self.done(pool.copy(from, to));
    }

    fn kv_write(&self, pool: &mut KvPool, shape: &AttentionShape, layer: usize, spans: &[Span], qkv: &DeviceRows) {
        let call = AttentionCall { shape, layer, window: None, spans, chosen: None };
        self.done(self.write_kv(pool, call, qkv));
    }

    fn target_logprobs(
        &self,
        head: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        targets: &Targets,
        save_logits: bool,
    ) -> (Vec<f32>, HeadState) {
        self.done(self.head_logprobs(head, hidden, targets, save_logits))
    }

    fn head_backward(
        &self,
        head: &LinearCall<'_, Self>,
        hidden: &DeviceRows,
        gradient: &HeadGradient<'_, Self>,
        state: &HeadState,
        param: usize,
        sinks: &mut GradientSinks<'_, '_, Self>,
    ) -> DeviceRows {
        self.done(self.head_gradient(head, hidden, gradient, state, param, sinks))
    }

    fn sample(&self, logits: &Logits<'_, Self>, requests: &[TokenRequest<'_>]) -> Vec<SampledToken> {
        self.done(self.sample_each(logits, requests))
    }

    fn score(&self, logits: &Logits<'_, Self>, requests: &[ScoreRequest]) -> Vec<RowScores> {
        self.done(self.score_each(logits, requests))
    }
}
