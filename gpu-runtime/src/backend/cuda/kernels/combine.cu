// Sums over the experts of rows, and their gradients. The rows of experts are wherever they are: places have addresses.

// onto += Σ weight · part over the experts of row blockIdx.x, ascending, one term after the other. `parts` are [row][slot];
// without weights they are one. blockIdx.y is a part of the columns.
extern "C" __global__ void combine(const float* const* parts, const float* weights, float* onto, u32 slots, u32 width) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= width) return;
  u64 first = (u64)blockIdx.x * slots;
  float* to = onto + (u64)blockIdx.x * width + column;
  float sum = *to;
  for (u32 slot = 0; slot < slots; slot++) {
    float x = parts[first + slot][column];
    sum += weights ? weights[first + slot] * x : x;
  }
  *to = sum;
}

struct Place {
  // A row of an expert's output, and where the gradient with respect to it goes; 0 where neither is here.
  const float* part;
  float* d_part;
};

// The gradients of row blockIdx.x and slot blockIdx.y.
extern "C" __global__ void __launch_bounds__(256) combine_backward(const Place* places, const float* weights,
                                                                   const float* d_out, float* d_weights, u32 width) {
  __shared__ float shared[32];
  u64 at = (u64)blockIdx.x * gridDim.y + blockIdx.y;
  Place place = places[at];
  d_out += (u64)blockIdx.x * width;
  float sum = 0;
  if (place.part)
    for (u32 i = threadIdx.x; i < width; i += blockDim.x) {
      sum = fmaf(d_out[i], place.part[i], sum);
      place.d_part[i] = weights[at] * d_out[i];
    }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) d_weights[at] = sum;
}
