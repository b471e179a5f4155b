// Sums with a factor. blockIdx.x is a part of the elements; a thread has one.

// to += scale · from, rounded once.
extern "C" __global__ void add_scaled(const float* from, float* to, u64 length, float scale) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < length) to[i] = fmaf(scale, from[i], to[i]);
}
