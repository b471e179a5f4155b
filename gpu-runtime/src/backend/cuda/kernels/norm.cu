// RMSNorm of rows. One block for each row, unless it says otherwise.

// Elements of a row as a thread has them: groups of four, a block's threads apart, of rows that 16 elements of each thread cover; other
// rows are read again where they are needed. The width decides which.
constexpr u32 GROUPS = 4;

__device__ __forceinline__ bool grouped(u32 width) { return width % 4 == 0 && width <= GROUPS * 4 * blockDim.x; }

// Calls f(i, first column) for the groups of this thread.
template <typename F>
__device__ __forceinline__ void each_group(u32 width, F f) {
#pragma unroll
  for (u32 i = 0; i < GROUPS; i++) {
    u32 column = (i * blockDim.x + threadIdx.x) * 4;
    if (column < width) f(i, column);
  }
}

__device__ __forceinline__ float add_squares(float sum, float4 x) {
  return fmaf(x.w, x.w, fmaf(x.z, x.z, fmaf(x.y, x.y, fmaf(x.x, x.x, sum))));
}

// 1 / sqrt(mean(x²) + eps) from the sum of a thread's squares. The order of the sum depends on the width and on the block's size, which
// the width decides.
__device__ __forceinline__ float inverse_rms(float squares, u32 width, float eps, float* shared) {
  return 1.f / sqrtf(block_sum(squares, shared) / (float)width + eps);
}

__device__ __forceinline__ float squares_of(const float* x, u32 width) {
  float squares = 0;
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) squares = fmaf(x[i], x[i], squares);
  return squares;
}

template <typename T>
__device__ __forceinline__ void norm(const float* x, const float* weight, T* y, u32 width, float eps) {
  __shared__ float shared[32];
  x += (u64)blockIdx.x * width;
  y += (u64)blockIdx.x * width;
  if (!grouped(width)) {
    float scale = inverse_rms(squares_of(x, width), width, eps, shared);
    for (u32 i = threadIdx.x; i < width; i += blockDim.x) store(y + i, x[i] * scale * weight[i]);
    return;
  }
  float4 own[GROUPS], weights[GROUPS];
  float squares = 0;
  each_group(width, [&](u32 i, u32 column) {
    own[i] = load_four(x + column);
    weights[i] = load_four(weight + column);
  });
  each_group(width, [&](u32 i, u32) { squares = add_squares(squares, own[i]); });
  float scale = inverse_rms(squares, width, eps, shared);
  each_group(width, [&](u32 i, u32 column) {
    float4 a = own[i], w = weights[i];
    store_four(y + column, make_float4(a.x * scale * w.x, a.y * scale * w.y, a.z * scale * w.z, a.w * scale * w.w));
  });
}

extern "C" __global__ void __launch_bounds__(256) norm_f32(const float* x, const float* weight, float* y, u32 width, float eps) {
  norm(x, weight, y, width, eps);
}

extern "C" __global__ void __launch_bounds__(256) norm_bf16(const float* x, const float* weight, u16* y, u32 width, float eps) {
  norm(x, weight, y, width, eps);
}

// x += norm(y), with the bits of `norm` and an addition.
extern "C" __global__ void __launch_bounds__(256) add_norm(const float* y, const float* weight, float* x, u32 width, float eps) {
  __shared__ float shared[32];
  x += (u64)blockIdx.x * width;
  y += (u64)blockIdx.x * width;
  float squares = 0;
  if (grouped(width))
    each_group(width, [&](u32, u32 column) { squares = add_squares(squares, load_four(y + column)); });
  else
    squares = squares_of(y, width);
  float scale = inverse_rms(squares, width, eps, shared);
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) x[i] += y[i] * scale * weight[i];
}

// Adds the gradient with respect to the input to dx, and writes each row's 1 / rms for the gradient of the weight.
extern "C" __global__ void __launch_bounds__(256) norm_backward(const float* x, const float* weight, const float* dy, float* dx,
                                                                float* scales, u32 width, float eps) {
  __shared__ float shared[32];
  u64 row = (u64)blockIdx.x * width;
  x += row, dy += row, dx += row;
  float products = 0, scale;
  if (!grouped(width)) {
    scale = inverse_rms(squares_of(x, width), width, eps, shared);
    for (u32 i = threadIdx.x; i < width; i += blockDim.x) products = fmaf(dy[i] * weight[i], x[i], products);
    float mean = block_sum(products, shared) * (scale * scale * scale) / (float)width;
    for (u32 i = threadIdx.x; i < width; i += blockDim.x) dx[i] += dy[i] * weight[i] * scale - x[i] * mean;
  } else {
    float4 own[GROUPS], d[GROUPS];
    float squares = 0;
    each_group(width, [&](u32 i, u32 column) {
      float4 dys = load_four(dy + column), w = load_four(weight + column);
      own[i] = load_four(x + column);
      d[i] = make_float4(dys.x * w.x, dys.y * w.y, dys.z * w.z, dys.w * w.w);
    });
    each_group(width, [&](u32 i, u32) {
      float4 a = own[i], b = d[i];
      squares = add_squares(squares, a);
      products = fmaf(b.w, a.w, fmaf(b.z, a.z, fmaf(b.y, a.y, fmaf(b.x, a.x, products))));
    });
    scale = inverse_rms(squares, width, eps, shared);
    float mean = block_sum(products, shared) * (scale * scale * scale) / (float)width;
    each_group(width, [&](u32 i, u32 column) {
      float4 a = own[i], b = d[i], old = load_four(dx + column);
      store_four(dx + column, make_float4(old.x + (b.x * scale - a.x * mean), old.y + (b.y * scale - a.y * mean),
                                          old.z + (b.z * scale - a.z * mean), old.w + (b.w * scale - a.w * mean)));
    });
  }
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
