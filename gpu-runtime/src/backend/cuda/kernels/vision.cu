// Ops of vision towers on rows. blockIdx.x is the row.

// LayerNorm of a row by a block: the mean, then the mean of squared differences. The order of sums depends on the width and on the block's
// size, which the width decides.
template <typename T>
__device__ __forceinline__ void layer_norm(const float* x, const float* weight, const float* bias, T* y, u32 width, float eps) {
  __shared__ float shared[32];
  x += (u64)blockIdx.x * width;
  y += (u64)blockIdx.x * width;
  float sum = 0, squares = 0;
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) sum += x[i];
  float mean = block_sum(sum, shared) / (float)width;
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) {
    float difference = x[i] - mean;
    squares = fmaf(difference, difference, squares);
  }
  float scale = 1.f / sqrtf(block_sum(squares, shared) / (float)width + eps);
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) store(y + i, (x[i] - mean) * scale * weight[i] + bias[i]);
}

extern "C" __global__ void __launch_bounds__(256) layer_norm_f32(const float* x, const float* weight, const float* bias, float* y,
                                                                 u32 width, float eps) {
  layer_norm(x, weight, bias, y, width, eps);
}

extern "C" __global__ void __launch_bounds__(256) layer_norm_bf16(const float* x, const float* weight, const float* bias, u16* y,
                                                                  u32 width, float eps) {
  layer_norm(x, weight, bias, y, width, eps);
}

// In the kernels below, blockIdx.y is a part of the columns.
__device__ __forceinline__ u32 column_of() { return blockIdx.y * blockDim.x + threadIdx.x; }

// GELU with the error function, or with the approximation by tanh.
template <typename T>
__device__ __forceinline__ void gelu(const float* x, T* y, u32 width, u32 with_erf) {
  if (column_of() >= width) return;
  u64 at = (u64)blockIdx.x * width + column_of();
  float a = x[at];
  float factor = with_erf ? erff(a * 0.7071067811865475f) : tanhf(0.7978845608028654f * (a + 0.044715f * a * a * a));
  store(y + at, 0.5f * a * (1.f + factor));
}

extern "C" __global__ void gelu_f32(const float* x, float* y, u32 width, u32 with_erf) { gelu(x, y, width, with_erf); }

extern "C" __global__ void gelu_bf16(const float* x, u16* y, u32 width, u32 with_erf) { gelu(x, y, width, with_erf); }

// Sums of `count` rows of a table for each row, times their weights, in order.
extern "C" __global__ void mix_rows(const float* table, const u32* rows, const float* weights, float* out, u32 count, u32 width) {
  u32 column = column_of();
  if (column >= width) return;
  float sum = 0;
  for (u64 i = (u64)blockIdx.x * count; i < (u64)(blockIdx.x + 1) * count; i++)
    sum = fmaf(weights[i], table[(u64)rows[i] * width + column], sum);
  out[(u64)blockIdx.x * width + column] = sum;
}

// Adds row i of `from` to row rows[i] of `to`.
extern "C" __global__ void add_rows(const float* from, const u32* rows, float* to, u32 width) {
  u32 column = column_of();
  if (column < width) to[(u64)rows[blockIdx.x] * width + column] += from[(u64)blockIdx.x * width + column];
}
