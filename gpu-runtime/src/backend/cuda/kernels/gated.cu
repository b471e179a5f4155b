// Attention whose output is multiplied by a gate for each of its elements. blockIdx.x is the row, threads have columns.

__device__ __forceinline__ float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

__device__ __forceinline__ u32 column_of() { return blockIdx.y * blockDim.x + threadIdx.x; }

// Where column i of a projection is, in whose rows each query head is followed by its gate: in q, k and v, or among the gates.
struct Place {
  bool gate;
  u32 column;

  __device__ __forceinline__ Place(u32 i, u32 q_width, u32 head_dim) : gate(false), column(i - q_width) {
    if (i >= 2 * q_width) return;
    u32 head = i / (2 * head_dim), at = i % (2 * head_dim);
    gate = at >= head_dim;
    column = head * head_dim + (gate ? at - head_dim : at);
  }
};

// From a projection's rows to rows of q, k and v, and of gates.
extern "C" __global__ void split_gates(const float* projected, float* qkv, float* gates, u32 width, u32 q_width, u32 head_dim) {
  u32 i = column_of();
  if (i >= width) return;
  Place place(i, q_width, head_dim);
  u64 row = blockIdx.x;
  float* to = place.gate ? gates + row * q_width : qkv + row * (width - q_width);
  to[place.column] = projected[row * width + i];
}

// The inverse.
extern "C" __global__ void join_gates(const float* qkv, const float* gates, float* projected, u32 width, u32 q_width, u32 head_dim) {
  u32 i = column_of();
  if (i >= width) return;
  Place place(i, q_width, head_dim);
  u64 row = blockIdx.x;
  const float* from = place.gate ? gates + row * q_width : qkv + row * (width - q_width);
  projected[row * width + i] = from[place.column];
}

// The product of heads and the sigmoids of their gates.
extern "C" __global__ void gate_heads(const float* heads, const float* gates, float* out, u32 width) {
  if (column_of() >= width) return;
  u64 at = (u64)blockIdx.x * width + column_of();
  out[at] = heads[at] * sigmoid(gates[at]);
}

// The gradients with respect to heads and gates, from that with respect to the product.
extern "C" __global__ void gate_heads_backward(const float* heads, const float* gates, const float* d_out, float* d_heads,
                                               float* d_gates, u32 width) {
  if (column_of() >= width) return;
  u64 at = (u64)blockIdx.x * width + column_of();
  float s = sigmoid(gates[at]), d = d_out[at];
  d_heads[at] = d * s;
  d_gates[at] = d * heads[at] * (s * (1.f - s));
}
