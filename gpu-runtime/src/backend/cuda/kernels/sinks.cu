// Attention sinks: a score for each head that takes a part of the softmax and has no value. blockIdx.x is the row.

// log(exp(a) + exp(b)).
__device__ __forceinline__ float log_add(float a, float b) {
  float high = fmaxf(a, b), low = fminf(a, b);
  return high + log1pf(expf(low - high));
}

// Multiplies the output of head blockIdx.y by the part of the softmax that is left to it, and adds the sink to its log-sum-exp.
extern "C" __global__ void __launch_bounds__(256) add_sinks(const float* sinks, float* out, float* log_sums, u32 heads,
                                                            u32 head_dim) {
  u64 head = (u64)blockIdx.x * heads + blockIdx.y;
  float before = log_sums[head], after = log_add(before, sinks[blockIdx.y]), part = expf(before - after);
  for (u32 i = threadIdx.x; i < head_dim; i += blockDim.x) out[head * head_dim + i] *= part;
  __syncthreads();
  if (threadIdx.x == 0) log_sums[head] = after;
}

// What each row adds to the gradients of the sinks, [row][head]: one warp for each head.
extern "C" __global__ void sinks_terms(const float* sinks, const float* out, const float* log_sums, const float* d_out,
                                       float* terms, u32 heads, u32 head_dim) {
  u32 head = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32;
  if (head >= heads) return;
  u64 at = (u64)blockIdx.x * heads + head;
  float sum = 0;
  for (u32 i = lane_id(); i < head_dim; i += 32) sum = fmaf(out[at * head_dim + i], d_out[at * head_dim + i], sum);
  sum = warp_sum(sum);
  if (lane_id() == 0) terms[at] = -expf(sinks[head] - log_sums[at]) * sum;
}
