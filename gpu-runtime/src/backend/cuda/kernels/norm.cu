// RMSNorm of rows. One block for each row, unless it says otherwise.

// 1 / sqrt(mean(x²) + eps). The order of the sum depends on the width and on the block's size, which the width decides.
__device__ __forceinline__ float inverse_rms(const float* x, u32 width, float eps, float* shared) {
  float squares = 0;
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) squares = fmaf(x[i], x[i], squares);
  return 1.f / sqrtf(block_sum(squares, shared) / (float)width + eps);
}

template <typename T>
__device__ __forceinline__ void norm(const float* x, const float* weight, T* y, u32 width, float eps) {
  __shared__ float shared[32];
  x += (u64)blockIdx.x * width;
  y += (u64)blockIdx.x * width;
  float scale = inverse_rms(x, width, eps, shared);
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) store(y + i, x[i] * scale * weight[i]);
}

extern "C" __global__ void __launch_bounds__(256) norm_f32(const float* x, const float* weight, float* y, u32 width, float eps) {
  norm(x, weight, y, width, eps);
}

extern "C" __global__ void __launch_bounds__(256) norm_bf16(const float* x, const float* weight, u16* y, u32 width, float eps) {
  norm(x, weight, y, width, eps);
}

// x += norm(y).
extern "C" __global__ void __launch_bounds__(256) add_norm(const float* y, const float* weight, float* x, u32 width, float eps) {
  __shared__ float shared[32];
  x += (u64)blockIdx.x * width;
  y += (u64)blockIdx.x * width;
  float scale = inverse_rms(y, width, eps, shared);
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) x[i] += y[i] * scale * weight[i];
}

// Adds the gradient with respect to the input to dx, and writes each row's 1 / rms for the gradient of the weight.
extern "C" __global__ void __launch_bounds__(256) norm_backward(const float* x, const float* weight, const float* dy, float* dx,
                                                                float* scales, u32 width, float eps) {
  __shared__ float shared[32];
  u64 row = (u64)blockIdx.x * width;
  x += row, dy += row, dx += row;
  float scale = inverse_rms(x, width, eps, shared);
  float products = 0;
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) products = fmaf(dy[i] * weight[i], x[i], products);
  float mean = block_sum(products, shared) * (scale * scale * scale) / (float)width;
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) dx[i] += dy[i] * weight[i] * scale - x[i] * mean;
  if (threadIdx.x == 0) scales[blockIdx.x] = scale;
}

// Adds the gradient of the weight: one thread for each column, rows in order.
extern "C" __global__ void norm_weight_backward(const float* x, const float* dy, const float* scales, float* dw, u32 rows,
                                                u32 width) {
  u32 column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= width) return;
  float sum = dw[column];
  for (u32 row = 0; row < rows; row++) {
    u64 at = (u64)row * width + column;
    sum += dy[at] * x[at] * scales[row];
  }
  dw[column] = sum;
}
