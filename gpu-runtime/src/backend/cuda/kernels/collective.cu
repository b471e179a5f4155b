// Sums over ranks, in their order.

// to[i] = parts[0][i] + parts[1][i] + …, of `ranks` parts of `length` elements.
extern "C" __global__ void sum_ranks(const float* parts, float* to, u64 length, u32 ranks) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= length) return;
  float sum = parts[i];
  for (u32 rank = 1; rank < ranks; rank++) sum += parts[rank * length + i];
  to[i] = sum;
}
