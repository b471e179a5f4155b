// Gated activations of rows of gate, then up. blockIdx.x is the row, blockIdx.y a part of the columns.

enum Kind { SILU, GELU_TANH, CLAMPED_SWISH };

struct Value {
  float value, slope;
};

__device__ __forceinline__ float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

// The activation of a gate and its derivative.
__device__ __forceinline__ Value activation(u32 kind, float x) {
  if (kind == SILU) {
    float s = sigmoid(x);
    return {x * s, s * (1.f + x * (1.f - s))};
  }
  if (kind == CLAMPED_SWISH) {
    float slope = x > 7.f ? 0.f : 1.f;
    x = x > 7.f ? 7.f : x;
    float s = sigmoid(1.702f * x);
    return {x * s, slope * s * (1.f + 1.702f * x * (1.f - s))};
  }
  const float c = 0.7978845608028654f;
  float t = tanhf(c * (x + 0.044715f * x * x * x));
  return {0.5f * x * (1.f + t), 0.5f * (1.f + t) + 0.5f * x * (1.f - t * t) * c * (1.f + 3.f * 0.044715f * x * x)};
}

// What multiplies the activation, from up, and its derivative.
__device__ __forceinline__ Value factor(u32 kind, float up) {
  if (kind != CLAMPED_SWISH) return {up, 1.f};
  if (up > 7.f) return {8.f, 0.f};
  if (up < -7.f) return {-6.f, 0.f};
  return {up + 1.f, 1.f};
}

template <typename T>
__device__ __forceinline__ void activate(const float* gate_up, T* out, u32 width, u32 kind) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= width) return;
  const float* row = gate_up + (u64)blockIdx.x * 2 * width;
  store(out + (u64)blockIdx.x * width + column, activation(kind, row[column]).value * factor(kind, row[width + column]).value);
}

extern "C" __global__ void activate_f32(const float* gate_up, float* out, u32 width, u32 kind) {
  activate(gate_up, out, width, kind);
}

extern "C" __global__ void activate_bf16(const float* gate_up, u16* out, u32 width, u32 kind) {
  activate(gate_up, out, width, kind);
}

// Replaces (gate, up) by the gradients with respect to them, and the gradient with respect to the output by the output.
extern "C" __global__ void activate_backward(float* gate_up, float* d_out, u32 width, u32 kind) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= width) return;
  float* gate = gate_up + (u64)blockIdx.x * 2 * width + column;
  float* out = d_out + (u64)blockIdx.x * width + column;
  Value act = activation(kind, *gate), up = factor(kind, gate[width]);
  float d = *out;
  *gate = d * up.value * act.slope;
  gate[width] = d * act.value * up.slope;
  *out = act.value * up.value;
}
