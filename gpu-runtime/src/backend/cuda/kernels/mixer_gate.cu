// Norm and gate of a recurrence's output: with the delta rule norm(o) · silu(z) by value head, with one weight for all; with Mamba-2
// norm(o · silu(z)) by group of heads that share a key. blockIdx.x is the row, blockIdx.y what is normalised together.

struct Group {
  u32 width, first, weight;

  __device__ __forceinline__ Group(const Shape& of, u32 group)
      : width(of.is_delta ? of.value_dim : of.values() / of.key_heads), first(group * width), weight(of.is_delta ? 0 : first) {}
};

// 1 / sqrt(mean(x²) + eps) of a group, in an order that its width decides.
template <typename X>
__device__ __forceinline__ float inverse_rms(u32 width, float eps, float* shared, X x) {
  float squares = 0;
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) squares = fmaf(x(i), x(i), squares);
  return 1.f / sqrtf(block_sum(squares, shared) / (float)width + eps);
}

extern "C" __global__ void __launch_bounds__(256)
    gate_norm(const float* inputs, const float* out, const float* weight, float* gated, float eps, SHAPE) {
  __shared__ float shared[32];
  Shape of = SHAPE_OF;
  Group group(of, blockIdx.y);
  u64 row = blockIdx.x;
  const float* z = inputs + row * of.width() + of.gate() + group.first;
  out += row * of.values() + group.first;
  gated += row * of.values() + group.first;
  weight += group.weight;
  if (of.is_delta) {
    float scale = inverse_rms(group.width, eps, shared, [&](u32 i) { return out[i]; });
    for (u32 i = threadIdx.x; i < group.width; i += blockDim.x) gated[i] = out[i] * scale * weight[i] * silu(z[i]);
  } else {
    float scale = inverse_rms(group.width, eps, shared, [&](u32 i) { return out[i] * silu(z[i]); });
    for (u32 i = threadIdx.x; i < group.width; i += blockDim.x) gated[i] = out[i] * silu(z[i]) * scale * weight[i];
  }
}

// The gradients with respect to the output and to the gate, which is among the columns of the inputs; and 1 / rms of each group for the
// gradient of the weight.
extern "C" __global__ void __launch_bounds__(256)
    gate_norm_backward(const float* inputs, const float* out, const float* weight, const float* d_gated, float* d_out, float* d_inputs,
                       float* scales, float eps, SHAPE) {
  __shared__ float shared[32];
  Shape of = SHAPE_OF;
  Group group(of, blockIdx.y);
  u64 row = blockIdx.x, at = row * of.values() + group.first;
  const float* z = inputs + row * of.width() + of.gate() + group.first;
  float* d_z = d_inputs + row * of.width() + of.gate() + group.first;
  out += at, d_gated += at, d_out += at, weight += group.weight;
  // What is normalised, and the gradient with respect to its norm.
  auto x = [&](u32 i) { return of.is_delta ? out[i] : out[i] * silu(z[i]); };
  auto d = [&](u32 i) { return of.is_delta ? d_gated[i] * silu(z[i]) : d_gated[i]; };
  float scale = inverse_rms(group.width, eps, shared, x), products = 0;
  for (u32 i = threadIdx.x; i < group.width; i += blockDim.x) products = fmaf(d(i) * weight[i], x(i), products);
  float mean = block_sum(products, shared) * (scale * scale * scale) / (float)group.width;
  for (u32 i = threadIdx.x; i < group.width; i += blockDim.x) {
    float dx = d(i) * weight[i] * scale - x(i) * mean, by = z[i];
    if (of.is_delta) {
      d_z[i] = d_gated[i] * (out[i] * scale * weight[i]) * silu_slope(by);
      d_out[i] = dx;
    } else {
      d_z[i] = dx * out[i] * silu_slope(by);
      d_out[i] = dx * silu(by);
    }
  }
  if (threadIdx.x == 0) scales[row * gridDim.y + blockIdx.y] = scale;
}

// Adds the gradient of the norm's weight, rows in order: one thread for each element, blockIdx.x has a part of them.
extern "C" __global__ void gate_norm_weights(const float* inputs, const float* out, const float* d_gated, const float* scales, float* dw,
                                             u32 rows, u32 groups, SHAPE) {
  Shape of = SHAPE_OF;
  u32 i = blockIdx.x * blockDim.x + threadIdx.x, width = of.is_delta ? of.value_dim : of.values();
  if (i >= width) return;
  float sum = dw[i];
  for (u64 row = 0; row < rows; row++) {
    // With the delta rule all heads have the weight.
    for (u32 column = i; column < of.values(); column += width) {
      u32 group = of.is_delta ? column / of.value_dim : column / (of.values() / of.key_heads);
      float z = inputs[row * of.width() + of.gate() + column];
      u64 at = row * of.values() + column;
      sum += d_gated[at] * out[at] * silu(z) * scales[row * groups + group];
    }
  }
  dw[i] = sum;
}
