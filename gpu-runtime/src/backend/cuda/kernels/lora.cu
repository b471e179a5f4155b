// What adapters add to linear layers, for rows of any mix of adapters: a table of adapters and each row's index in it are on the
// device, so that the grid depends on the number of rows and on the largest rank alone. blockIdx.x is the row.

struct Adapter {
  // A, [rank, inputs], and B, [outputs, rank], in f32 or bf16.
  const void* a;
  const void* b;
  u32 rank;
  float scale;
};

constexpr u32 NONE = 0xffffffffu, TILE = 32;

// z = scale · (x Aᵀ): a warp has one column of z; zeros beyond the adapter's rank and in rows without one.
template <typename T>
__device__ __forceinline__ void shrink(const T* x, const Adapter* adapters, const u32* rows, float* z, u32 inputs, u32 most) {
  u32 r = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32, index = rows[blockIdx.x];
  if (r >= most) return;
  float sum = 0;
  if (index != NONE && r < adapters[index].rank) {
    const T* a = (const T*)adapters[index].a + (u64)r * inputs;
    x += (u64)blockIdx.x * inputs;
    for (u32 i = lane_id(); i < inputs; i += 32) sum = fmaf(load(x + i), load(a + i), sum);
    sum = warp_sum(sum) * adapters[index].scale;
  }
  if (lane_id() == 0) z[(u64)blockIdx.x * most + r] = sum;
}

extern "C" __global__ void lora_shrink_f32(const float* x, const Adapter* adapters, const u32* rows, float* z, u32 inputs,
                                           u32 most) {
  shrink(x, adapters, rows, z, inputs, most);
}

extern "C" __global__ void lora_shrink_bf16(const u16* x, const Adapter* adapters, const u32* rows, float* z, u32 inputs,
                                            u32 most) {
  shrink(x, adapters, rows, z, inputs, most);
}

// out[.., column..] += z Bᵀ, along the rank in sequence; z is rounded as B's elements are.
template <typename T>
__device__ __forceinline__ void expand(const float* z, const Adapter* adapters, const u32* rows, float* out, u32 outputs,
                                       u32 most, u32 stride, u32 column) {
  u32 n = blockIdx.y * blockDim.x + threadIdx.x, index = rows[blockIdx.x];
  if (n >= outputs || index == NONE) return;
  u32 rank = adapters[index].rank;
  const T* b = (const T*)adapters[index].b + (u64)n * rank;
  z += (u64)blockIdx.x * most;
  float* to = out + (u64)blockIdx.x * stride + column + n;
  float sum = *to;
  for (u32 r = 0; r < rank; r++) sum = fmaf(rounded(b, z[r]), load(b + r), sum);
  *to = sum;
}

extern "C" __global__ void lora_expand_f32(const float* z, const Adapter* adapters, const u32* rows, float* out, u32 outputs,
                                           u32 most, u32 stride, u32 column) {
  expand<float>(z, adapters, rows, out, outputs, most, stride, column);
}

extern "C" __global__ void lora_expand_bf16(const float* z, const Adapter* adapters, const u32* rows, float* out, u32 outputs,
                                            u32 most, u32 stride, u32 column) {
  expand<u16>(z, adapters, rows, out, outputs, most, stride, column);
}

// dz = scale · (dy B): eight warps share the outputs, a lane has one column of dz.
template <typename T>
__device__ __forceinline__ void shrink_backward(const T* dy, const Adapter* adapters, const u32* rows, float* dz, u32 outputs,
                                                u32 most, u32 stride, u32 column) {
  __shared__ float parts[8][TILE];
  u32 r = blockIdx.y * TILE + lane_id(), warp = threadIdx.x / 32, index = rows[blockIdx.x];
  float sum = 0;
  if (index != NONE && r < adapters[index].rank) {
    u32 rank = adapters[index].rank;
    const T* b = (const T*)adapters[index].b + r;
    dy += (u64)blockIdx.x * stride + column;
    for (u32 n = warp; n < outputs; n += 8) sum = fmaf(load(dy + n), load(b + (u64)n * rank), sum);
  }
  parts[warp][lane_id()] = sum;
  __syncthreads();
  if (warp || r >= most) return;
  sum = 0;
  for (u32 part = 0; part < 8; part++) sum += parts[part][lane_id()];
  dz[(u64)blockIdx.x * most + r] = index == NONE ? 0.f : sum * adapters[index].scale;
}

extern "C" __global__ void __launch_bounds__(256) lora_shrink_backward_f32(const float* dy, const Adapter* adapters,
                                                                           const u32* rows, float* dz, u32 outputs, u32 most,
                                                                           u32 stride, u32 column) {
  shrink_backward(dy, adapters, rows, dz, outputs, most, stride, column);
}

extern "C" __global__ void __launch_bounds__(256) lora_shrink_backward_bf16(const u16* dy, const Adapter* adapters,
                                                                            const u32* rows, float* dz, u32 outputs, u32 most,
                                                                            u32 stride, u32 column) {
  shrink_backward(dy, adapters, rows, dz, outputs, most, stride, column);
}

// dx += dz A, along the rank in sequence; dz is rounded as A's elements are.
template <typename T>
__device__ __forceinline__ void expand_backward(const float* dz, const Adapter* adapters, const u32* rows, float* dx, u32 inputs,
                                                u32 most) {
  u32 k = blockIdx.y * blockDim.x + threadIdx.x, index = rows[blockIdx.x];
  if (k >= inputs || index == NONE) return;
  const T* a = (const T*)adapters[index].a + k;
  dz += (u64)blockIdx.x * most;
  float* to = dx + (u64)blockIdx.x * inputs + k;
  float sum = *to;
  for (u32 r = 0; r < adapters[index].rank; r++) sum = fmaf(rounded(a, dz[r]), load(a + (u64)r * inputs), sum);
  *to = sum;
}

extern "C" __global__ void lora_expand_backward_f32(const float* dz, const Adapter* adapters, const u32* rows, float* dx,
                                                    u32 inputs, u32 most) {
  expand_backward<float>(dz, adapters, rows, dx, inputs, most);
}

extern "C" __global__ void lora_expand_backward_bf16(const float* dz, const Adapter* adapters, const u32* rows, float* dx,
                                                     u32 inputs, u32 most) {
  expand_backward<u16>(dz, adapters, rows, dx, inputs, most);
}

// A gradient of a weight: out[m, n] += Σ left[row, m] · right[row, n] over some rows.
struct Outer {
  float* out;
  u32 first, rows;
  u32 m, n;
};

// blockIdx.z is the gradient, threads have elements of it, 32 by 8: rows in order.
extern "C" __global__ void outer_products(const float* left, const float* right, const Outer* gradients, u32 left_stride,
                                          u32 left_column, u32 right_stride, u32 right_column) {
  Outer gradient = gradients[blockIdx.z];
  u32 n = blockIdx.x * 32 + threadIdx.x % 32, m = blockIdx.y * 8 + threadIdx.x / 32;
  if (m >= gradient.m || n >= gradient.n) return;
  float* to = gradient.out + (u64)m * gradient.n + n;
  float sum = *to;
  for (u64 row = gradient.first; row < (u64)gradient.first + gradient.rows; row++)
    sum = fmaf(left[row * left_stride + left_column + m], right[row * right_stride + right_column + n], sum);
  *to = sum;
}
