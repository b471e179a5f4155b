// A head with one output.

// x · w + b of row `first` + blockIdx.x.
extern "C" __global__ void __launch_bounds__(256) scalar_head(const float* x, const float* weight, const float* bias,
                                                              float* out, u32 first, u32 width) {
  __shared__ float shared[32];
  x += (u64)(first + blockIdx.x) * width;
  float sum = 0;
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) sum = fmaf(x[i], weight[i], sum);
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) out[blockIdx.x] = sum + *bias;
}

// The gradient with respect to row `first` + blockIdx.x; blockIdx.y is a part of the columns.
extern "C" __global__ void scalar_head_backward(const float* weight, const float* dy, float* dx, u32 first, u32 width) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column < width) dx[(u64)(first + blockIdx.x) * width + column] = dy[blockIdx.x] * weight[column];
}

// Adds the gradients of the weight and, behind them, of the bias: one thread for each, rows in order.
extern "C" __global__ void scalar_head_gradients(const float* x, const float* dy, float* dw, float* db, u32 first, u32 rows,
                                                 u32 width) {
  u32 column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column > width) return;
  float* to = column < width ? dw + column : db;
  float sum = *to;
  for (u32 row = 0; row < rows; row++)
    sum += column < width ? dy[row] * x[(u64)(first + row) * width + column] : dy[row];
  *to = sum;
}
