// Gated activations of rows of gate, then up. blockIdx.x is the row, blockIdx.y a part of the columns; a thread has four columns, which it
// moves at once where rows are multiples of four.

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

// Elements of four columns.
struct Four {
  float x[4];
};

// Of these `count` exist, and the others are zeros; where rows are `whole`, four do, and one load may have them.
__device__ __forceinline__ Four load_columns(const float* p, u32 count, bool whole) {
  if (whole) {
    float4 all = load_four(p);
    return {all.x, all.y, all.z, all.w};
  }
  Four some = {};
  for (u32 i = 0; i < count; i++) some.x[i] = p[i];
  return some;
}

template <typename T>
__device__ __forceinline__ void store_columns(T* p, Four x, u32 count, bool whole) {
  if (whole) return store_four(p, make_float4(x.x[0], x.x[1], x.x[2], x.x[3]));
  for (u32 i = 0; i < count; i++) store(p + i, x.x[i]);
}

// The columns of a thread: the first one, and how many of four exist.
struct Columns {
  u32 first, count;
  bool whole;

  __device__ __forceinline__ Columns(u32 width)
      : first((blockIdx.y * blockDim.x + threadIdx.x) * 4), count(first < width ? min(4, width - first) : 0), whole(width % 4 == 0) {}
};

template <typename T>
__device__ __forceinline__ void activate(const float* gate_up, T* out, u32 width, u32 kind) {
  Columns columns(width);
  if (!columns.count) return;
  const float* row = gate_up + (u64)blockIdx.x * 2 * width + columns.first;
  Four gate = load_columns(row, columns.count, columns.whole), up = load_columns(row + width, columns.count, columns.whole);
#pragma unroll
  for (u32 i = 0; i < 4; i++) gate.x[i] = activation(kind, gate.x[i]).value * factor(kind, up.x[i]).value;
  store_columns(out + (u64)blockIdx.x * width + columns.first, gate, columns.count, columns.whole);
}

extern "C" __global__ void activate_f32(const float* gate_up, float* out, u32 width, u32 kind) {
  activate(gate_up, out, width, kind);
}

extern "C" __global__ void activate_bf16(const float* gate_up, u16* out, u32 width, u32 kind) {
  activate(gate_up, out, width, kind);
}

// The gradients with respect to (gate, up), and the output, from the gradient with respect to it. In f32 they may take the place of
// (gate, up) and of that gradient.
template <typename T>
__device__ __forceinline__ void activate_backward(const float* gate_up, const float* d_out, T* d_gate_up, T* out, u32 width, u32 kind) {
  Columns columns(width);
  if (!columns.count) return;
  u64 row = (u64)blockIdx.x * width + columns.first, wide = (u64)blockIdx.x * 2 * width + columns.first;
  Four gate = load_columns(gate_up + wide, columns.count, columns.whole);
  Four up = load_columns(gate_up + wide + width, columns.count, columns.whole), d = load_columns(d_out + row, columns.count, columns.whole);
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    Value act = activation(kind, gate.x[i]), by = factor(kind, up.x[i]);
    gate.x[i] = d.x[i] * by.value * act.slope;
    up.x[i] = d.x[i] * act.value * by.slope;
    d.x[i] = act.value * by.value;
  }
  store_columns(d_gate_up + wide, gate, columns.count, columns.whole);
  store_columns(d_gate_up + wide + width, up, columns.count, columns.whole);
  store_columns(out + row, d, columns.count, columns.whole);
}

extern "C" __global__ void activate_backward_f32(const float* gate_up, const float* d_out, float* d_gate_up, float* out, u32 width,
                                                 u32 kind) {
  activate_backward(gate_up, d_out, d_gate_up, out, width, kind);
}

extern "C" __global__ void activate_backward_bf16(const float* gate_up, const float* d_out, u16* d_gate_up, u16* out, u32 width,
                                                  u32 kind) {
  activate_backward(gate_up, d_out, d_gate_up, out, width, kind);
}
