// Activations without a gate: the square of what is above zero. blockIdx.x is a part of the elements; a thread has one.

__device__ __forceinline__ u64 element_of() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

// NaN stays NaN.
__device__ __forceinline__ float above_zero(float x) { return x < 0.f ? 0.f : x; }

template <typename T>
__device__ __forceinline__ void squared_relu(const float* x, T* out, u64 length) {
  u64 i = element_of();
  if (i >= length) return;
  float above = above_zero(x[i]);
  store(out + i, above * above);
}

extern "C" __global__ void squared_relu_f32(const float* x, float* out, u64 length) { squared_relu(x, out, length); }

extern "C" __global__ void squared_relu_bf16(const float* x, u16* out, u64 length) { squared_relu(x, out, length); }

// The gradient with respect to x, and the output, from the gradient with respect to it. In f32 they may take the place of x and of that
// gradient.
template <typename T>
__device__ __forceinline__ void squared_relu_backward(const float* x, const float* d_out, T* d_x, T* out, u64 length) {
  u64 i = element_of();
  if (i >= length) return;
  float above = above_zero(x[i]), d = d_out[i];
  store(d_x + i, 2.f * above * d);
  store(out + i, above * above);
}

extern "C" __global__ void squared_relu_backward_f32(const float* x, const float* d_out, float* d_x, float* out, u64 length) {
  squared_relu_backward(x, d_out, d_x, out, length);
}

extern "C" __global__ void squared_relu_backward_bf16(const float* x, const float* d_out, u16* d_x, u16* out, u64 length) {
  squared_relu_backward(x, d_out, d_x, out, length);
}
