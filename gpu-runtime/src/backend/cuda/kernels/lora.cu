// What adapters in f32 add to linear layers, without tensor cores, for rows of any mix of adapters. Gradients of
// weights are in tensor_outer.cu. Tables are those of tensor_lora.cu, which has the kernels for bf16. blockIdx.x is the row, blockIdx.z the
// layer.

struct Adapter {
  // A, [rank, inputs], and B, [outputs, rank].
  const float* a;
  const float* b;
  u32 rank;
  float scale;
  // The layer's first column among outputs, and how many it has.
  u32 column, outputs;
};

#define TABLE const Adapter *adapters, const u32 *rows, u32 count, u32 each, u32 step

constexpr u32 NONE = 0xffffffffu, TILE = 32;

// z = scale · (x Aᵀ), [layer][row][most]: a warp has one column of z; zeros beyond the adapter's rank and in rows without one.
extern "C" __global__ void lora_shrink(const float* x, TABLE, float* z, u32 width, u32 most) {
  u32 r = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32, index = rows[(u64)blockIdx.z * step + blockIdx.x];
  if (r >= most) return;
  const Adapter* adapter = adapters + blockIdx.z * each + index;
  float sum = 0;
  if (index != NONE && r < adapter->rank) {
    const float* a = adapter->a + (u64)r * width;
    x += (u64)blockIdx.x * width;
    for (u32 i = lane_id(); i < width; i += 32) sum = fmaf(x[i], a[i], sum);
    sum = warp_sum(sum) * adapter->scale;
  }
  if (lane_id() == 0) z[((u64)blockIdx.z * count + blockIdx.x) * most + r] = sum;
}

// out[.., columns] += z Bᵀ, along the rank in sequence.
extern "C" __global__ void lora_expand(const float* z, TABLE, float* out, u32 most, u32 stride) {
  u32 n = blockIdx.y * blockDim.x + threadIdx.x, index = rows[(u64)blockIdx.z * step + blockIdx.x];
  const Adapter* adapter = adapters + blockIdx.z * each + index;
  if (index == NONE || n >= adapter->outputs) return;
  u32 rank = adapter->rank;
  const float* b = adapter->b + (u64)n * rank;
  z += ((u64)blockIdx.z * count + blockIdx.x) * most;
  float* to = out + (u64)blockIdx.x * stride + adapter->column + n;
  float sum = *to;
  for (u32 r = 0; r < rank; r++) sum = fmaf(z[r], b[r], sum);
  *to = sum;
}

// dz = scale · (dy B): eight warps share the outputs, a lane has one column of dz.
extern "C" __global__ void __launch_bounds__(256) lora_shrink_backward(const float* dy, TABLE, float* dz, u32 width, u32 most) {
  __shared__ float parts[8][TILE];
  u32 r = blockIdx.y * TILE + lane_id(), warp = threadIdx.x / 32, index = rows[(u64)blockIdx.z * step + blockIdx.x];
  const Adapter* adapter = adapters + blockIdx.z * each + index;
  float sum = 0;
  if (index != NONE && r < adapter->rank) {
    u32 rank = adapter->rank, outputs = adapter->outputs;
    const float* b = adapter->b + r;
    dy += (u64)blockIdx.x * width + adapter->column;
    for (u32 n = warp; n < outputs; n += 8) sum = fmaf(dy[n], b[(u64)n * rank], sum);
  }
  parts[warp][lane_id()] = sum;
  __syncthreads();
  if (warp || r >= most) return;
  sum = 0;
  for (u32 part = 0; part < 8; part++) sum += parts[part][lane_id()];
  dz[((u64)blockIdx.z * count + blockIdx.x) * most + r] = index == NONE ? 0.f : sum * adapter->scale;
}

// dx += Σ dz A over the layers in order, along the rank in sequence.
extern "C" __global__ void lora_expand_backward(const float* dz, TABLE, float* dx, u32 layers, u32 most, u32 inputs) {
  u32 k = blockIdx.y * blockDim.x + threadIdx.x;
  if (k >= inputs) return;
  float* to = dx + (u64)blockIdx.x * inputs + k;
  float sum = *to;
  for (u32 i = 0; i < layers; i++) {
    u32 index = rows[(u64)i * step + blockIdx.x];
    if (index == NONE) continue;
    const Adapter* adapter = adapters + i * each + index;
    const float* row = dz + ((u64)i * count + blockIdx.x) * most;
    for (u32 r = 0; r < adapter->rank; r++) sum = fmaf(row[r], adapter->a[(u64)r * inputs + k], sum);
  }
  *to = sum;
}
