//! The ops of [`Backend`].

use std::ops::Range;

use super::norm::{norm_row, norm_row_backward};
use super::{EmbeddingSums, KvPool, Matrix, Reference, Rope, activation, add_scaled, attention, head, linear};
use crate::fault::Fault;
use crate::host::{HostParams, OnHost};
use crate::{
    Activation, AdamWStep, AttentionCall, AttentionShape, Backend, BlockId, BufferBytes, DeviceInfo, Dtype,
    EmbeddingGradient, GradientSinks, HeadGradient, Held, KV_BLOCK, LinearCall, Logits, LoraSegment, MatrixRole, Norm,
    Params, Passes, Rotation, RowScores, Rows, SampledToken, ScoreRequest, Source, Span, Targets, Tensors,
    TokenRequest, WeightPart,
};

fn stacked(parts: &[Source<'_, Reference>]) -> Vec<f32> {
    parts.iter().flat_map(|part| part.host().into_owned()).collect()
}

impl OnHost for Reference {}

impl Passes for Reference {
    fn end_pass(&self) {}

    fn limit_unused(&self, _bytes: usize) {}

    fn trim(&self) {}

    fn buffer_bytes(&self) -> BufferBytes {
        BufferBytes::default()
    }

    fn reset_peak(&self) {}
}

impl Tensors for Reference {
    type Rows = Matrix;
    type Lhs = Matrix;
    type Matrix = Matrix;
    type Vector = Vec<f32>;
    type Table = Matrix;
    type Rope = Rope;
    type EmbeddingSums = EmbeddingSums;
    type LowRank = Vec<Matrix>;
    type OutputGradient<'a> = Held<'a, Matrix>;
    type WeightInput<'a> = Held<'a, Matrix>;
    type HeadState = head::HeadState;
    type KvPool = KvPool;

    const ACTIVATION_BYTES: usize = size_of::<f32>();
}

impl Backend for Reference {
    type Family = Self;

    fn device(&self) -> DeviceInfo {
        DeviceInfo { kernels: "reference", threads: 1 }
    }

    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn pack(&self, parts: &[Source<'_, Self>], k: usize, _role: MatrixRole) -> Matrix {
        Matrix::new(stacked(parts), k)
    }

    fn repack(&self, matrices: Vec<(&mut Matrix, Vec<Source<'_, Self>>)>) {
        matrices.into_iter().for_each(|(matrix, parts)| matrix.data = stacked(&parts));
    }

    fn share(&self, matrix: &Matrix) -> Matrix {
        matrix.clone()
    }

    fn matrix_to_host(&self, matrix: &Matrix, (): &()) -> Vec<f32> {
        matrix.data.clone()
    }

    fn matrix_bytes(&self, matrix: &Matrix) -> usize {
        size_of_val(&matrix.data[..])
    }

    fn planned_matrix_bytes(&self, n: usize, k: usize, _role: MatrixRole, _trains: bool) -> usize {
        n * k * size_of::<f32>()
    }

    fn vector(&self, parts: &[Source<'_, Self>], offset: f32) -> Vec<f32> {
        stacked(parts).iter().map(|x| x + offset).collect()
    }

    fn vector_to_host(&self, vector: &Vec<f32>, (): &()) -> Vec<f32> {
        vector.clone()
    }

    fn table(&self, rows: Source<'_, Self>, width: usize) -> Matrix {
        Matrix::new(rows.host().into_owned(), width)
    }

    fn table_to_host(&self, table: &Matrix, (): &()) -> Vec<f32> {
        table.data.clone()
    }

    fn table_bytes(&self, table: &Matrix) -> usize {
        size_of_val(&table.data[..])
    }

    fn rope(&self, half: usize, table: Vec<(f32, f32)>) -> Rope {
        Rope { half, table }
    }

    fn zero_params(&self, lens: &[usize]) -> HostParams {
        HostParams::new(lens.iter().map(|len| vec![0.0; *len]).collect())
    }

    fn upload_params(&self, values: Vec<Vec<f32>>) -> HostParams {
        HostParams::new(values)
    }

    fn begin_gradient(&self, lens: &[usize], _old: Option<HostParams>) -> HostParams {
        self.zero_params(lens)
    }

    fn add_params(&self, to: &mut HostParams, from: &HostParams) {
        to.iter_mut().zip(from.iter()).for_each(|(to, from)| add_scaled(to, from, 1.0));
    }

    fn squared_norms(&self, a: &HostParams, b: Option<&HostParams>) -> Vec<f64> {
        let of = |(i, values): (usize, &[f32])| {
            let sum = |(j, x): (usize, &f32)| f64::from(x + b.map_or(0.0, |b| b[i][j])).powi(2);
            values.iter().enumerate().map(sum).sum::<f64>()
        };
        a.iter().enumerate().map(of).collect()
    }

    fn adamw(&self, steps: Vec<AdamWStep<'_, Self>>) -> Vec<Result<(), Fault>> {
        let done = steps.iter().map(|_| Ok(())).collect();
        for AdamWStep { params, grads, moments: [m, v], hyper, step, grad_scale } in steps {
            let [bias1, bias2] = [hyper.beta1, hyper.beta2].map(|beta| 1.0 - beta.powf(step as f64));
            for i in 0..params.len() {
                for j in 0..params[i].len() {
                    let g = f64::from(grads[i][j] * grad_scale);
                    let (first, second) = (f64::from(m[i][j]), f64::from(v[i][j]));
                    let first = hyper.beta1 * first + (1.0 - hyper.beta1) * g;
                    let second = hyper.beta2 * second + (1.0 - hyper.beta2) * g * g;
                    let denominator = (second / bias2).sqrt() + hyper.eps;
                    let update = if denominator == 0.0 { 0.0 } else { first / bias1 / denominator };
                    let decayed = f64::from(params[i][j]) * (1.0 - hyper.learning_rate * hyper.weight_decay);
                    (m[i][j], v[i][j]) = (first as f32, second as f32);
                    params[i][j] = (decayed - hyper.learning_rate * update) as f32;
                }
            }
        }
        done
    }

    fn alloc(&self, rows: usize, width: usize) -> Matrix {
        // What is not written shows.
        Matrix::new(vec![f32::NAN; rows * width], width)
    }

    fn zeros(&self, rows: usize, width: usize) -> Matrix {
        Matrix::zeros(rows, width)
    }

    fn copy(&self, rows: &Matrix) -> Matrix {
        rows.clone()
    }

    fn gather(&self, from: &Matrix, rows: &[usize]) -> Matrix {
        Matrix::new(rows.iter().flat_map(|row| from.row(*row).to_vec()).collect(), from.width)
    }

    fn scatter(&self, from: &Matrix, rows: &[usize], to: &mut Matrix) {
        rows.iter().enumerate().for_each(|(i, row)| to.row_mut(*row).copy_from_slice(from.row(i)));
    }

    fn embed_table(&self, table: &Matrix, width: usize, tokens: &[u32], scale: f32) -> Matrix {
        let row = |token: &u32| table.row(*token as usize).iter().map(|x| x * scale).collect::<Vec<_>>();
        Matrix::new(tokens.iter().flat_map(row).collect(), width)
    }

    fn embed_tied(&self, head: &Matrix, tokens: &[u32], scale: f32) -> Matrix {
        self.embed_table(head, head.width, tokens, scale)
    }

    fn embed_backward(&self, tokens: &[u32], dx: &Matrix, scale: f32, mut into: EmbeddingGradient<'_, Self>) {
        for (row, token) in tokens.iter().enumerate() {
            let to = match &mut into {
                EmbeddingGradient::Param(params, index) => {
                    &mut params[*index][*token as usize * dx.width..][..dx.width]
                }
                EmbeddingGradient::Sums(sums) => sums.entry(*token).or_insert_with(|| vec![0.0; dx.width]),
            };
            add_scaled(to, dx.row(row), scale);
        }
    }

    fn add_embedding_sums(&self, sums: EmbeddingSums, params: &mut HostParams, index: usize) {
        for (token, sum) in sums {
            add_scaled(&mut params[index][token as usize * sum.len()..], &sum, 1.0);
        }
    }

    fn norm(&self, norm: Norm<'_, Self>, x: &Matrix) -> Matrix {
        Matrix::new((0..x.rows()).flat_map(|row| norm_row(norm, x.row(row))).collect(), x.width)
    }

    fn norm_lhs(&self, norm: Norm<'_, Self>, x: &Matrix) -> Matrix {
        self.norm(norm, x)
    }

    fn add_norm(&self, norm: Norm<'_, Self>, y: &Matrix, x: &mut Matrix) {
        add_scaled(&mut x.data, &self.norm(norm, y).data, 1.0);
    }

    fn norm_backward(
        &self,
        norm: Norm<'_, Self>,
        x: &Matrix,
        dy: &Matrix,
        dx: &mut Matrix,
        mut dw: Option<(&mut HostParams, usize)>,
    ) {
        for row in 0..x.rows() {
            let dw = dw.as_mut().map(|(params, index)| &mut params[*index][..]);
            let d = norm_row_backward(norm, x.row(row), dy.row(row), dw);
            add_scaled(dx.row_mut(row), &d, 1.0);
        }
    }

    fn lhs(&self, x: &Matrix) -> Matrix {
        x.clone()
    }

    fn linear(
        &self,
        call: &LinearCall<'_, Self>,
        x: &Matrix,
        residual: Option<&Matrix>,
        out: &mut Matrix,
    ) -> Vec<Matrix> {
        linear::forward(call, x, residual, out)
    }

    fn output_gradient<'a>(&self, dy: Held<'a, Matrix>, _sequences: &[Range<usize>]) -> Held<'a, Matrix> {
        dy
    }

    fn weight_input<'a>(&self, x: Held<'a, Matrix>, _sequences: &[Range<usize>]) -> Held<'a, Matrix> {
        x
    }

    fn norm_input(&self, norm: Norm<'_, Self>, x: &Matrix, _: &[Range<usize>]) -> Held<'static, Matrix> {
        Held::Owned(self.norm(norm, x))
    }

    fn linear_backward(&self, call: &LinearCall<'_, Self>, dy: &Held<'_, Matrix>, dx: &mut Matrix) -> Vec<Matrix> {
        linear::backward(call, dy, dx)
    }

    fn lora_gradients(
        &self,
        lora: &[LoraSegment<'_, Self>],
        _sequences: &[Range<usize>],
        x: &Held<'_, Matrix>,
        dy: &Held<'_, Matrix>,
        low_rank: [&Vec<Matrix>; 2],
        sinks: &mut [Option<&mut HostParams>],
    ) {
        linear::lora_gradients(lora, x, dy, low_rank, sinks);
    }

    fn weight_gradients(
        &self,
        parts: &[WeightPart],
        _sequences: &[Range<usize>],
        x: &Held<'_, Matrix>,
        dy: &Held<'_, Matrix>,
        grads: &mut HostParams,
    ) {
        linear::weight_gradients(parts, x, dy, grads);
    }

    fn rotate(&self, rotation: &Rotation<'_, Self>, qkv: &mut Matrix, keep: bool) -> Option<Matrix> {
        attention::rotate(rotation, qkv, keep)
    }

    fn rotate_backward(
        &self,
        rotation: &Rotation<'_, Self>,
        before: Option<&Matrix>,
        mut d_qkv: Matrix,
        dw: Option<(&mut HostParams, [usize; 2])>,
        _sequences: &[Range<usize>],
    ) -> Held<'static, Matrix> {
        attention::rotate_backward(rotation, before, &mut d_qkv, dw);
        Held::Owned(d_qkv)
    }

    fn attention(&self, call: AttentionCall<'_>, kv: &KvPool, qkv: &Matrix) -> [Matrix; 2] {
        attention::forward(call, kv, qkv)
    }

    fn attention_backward(
        &self,
        call: AttentionCall<'_>,
        kv: &KvPool,
        qkv: &Matrix,
        forward: [&Matrix; 2],
        d_out: &Matrix,
    ) -> Matrix {
        attention::backward(call, kv, qkv, forward, d_out)
    }

    fn activate(&self, kind: Activation, gate_up: &Matrix) -> Matrix {
        activation::forward(kind, gate_up)
    }

    fn activate_backward(
        &self,
        kind: Activation,
        mut gate_up: Matrix,
        mut d_out: Matrix,
        _sequences: &[Range<usize>],
        _biased: bool,
    ) -> (Held<'static, Matrix>, Held<'static, Matrix>) {
        activation::backward(kind, &mut gate_up, &mut d_out);
        (Held::Owned(gate_up), Held::Owned(d_out))
    }

    fn kv_pool(&self, shape: &AttentionShape) -> KvPool {
        KvPool { shape: *shape, blocks: Vec::new(), index: Vec::new() }
    }

    fn kv_block_bytes(&self, shape: &AttentionShape) -> usize {
        2 * shape.layers * shape.kv_width() * KV_BLOCK * size_of::<f32>() + shape.index.block_bytes()
    }

    fn kv_take(&self, pool: &mut KvPool) -> BlockId {
        let part = || vec![0.0; pool.shape.layers * KV_BLOCK * pool.shape.kv_width()];
        pool.blocks.push([part(), part()]);
        pool.index.push(vec![0.0; pool.shape.index.block_bytes() / size_of::<f32>()]);
        BlockId(pool.blocks.len() as u32 - 1)
    }

    fn kv_release(&self, pool: &mut KvPool, BlockId(block): BlockId) {
        pool.blocks[block as usize] = Default::default();
        pool.index[block as usize] = Vec::new();
    }

    fn kv_copy(&self, pool: &mut KvPool, from: BlockId, to: BlockId) {
        pool.blocks[to.0 as usize] = pool.blocks[from.0 as usize].clone();
        pool.index[to.0 as usize] = pool.index[from.0 as usize].clone();
    }

    fn kv_write(&self, pool: &mut KvPool, shape: &AttentionShape, layer: usize, spans: &[Span], qkv: &Matrix) {
        attention::write(pool, shape, layer, spans, qkv);
    }

    fn target_logprobs(
        &self,
        call: &LinearCall<'_, Self>,
        hidden: &Matrix,
        targets: &Targets,
        _keep_logits: bool,
    ) -> (Vec<f32>, head::HeadState) {
        head::target_logprobs(call, hidden, targets)
    }

    fn head_backward(
        &self,
        call: &LinearCall<'_, Self>,
        hidden: &Matrix,
        gradient: &HeadGradient<'_, Self>,
        state: &head::HeadState,
        param: usize,
        sinks: &mut GradientSinks<'_, '_, Self>,
    ) -> Matrix {
        head::backward(call, hidden, gradient, state, param, sinks)
    }

    fn sample(&self, logits: &Logits<'_, Self>, requests: &[TokenRequest<'_>]) -> Vec<SampledToken> {
        requests.iter().map(|request| head::sample(logits, request)).collect()
    }

    fn score(&self, logits: &Logits<'_, Self>, requests: &[ScoreRequest]) -> Vec<RowScores> {
        requests.iter().map(|request| head::score(logits, request)).collect()
    }
}
