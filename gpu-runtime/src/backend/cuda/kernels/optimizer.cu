// AdamW, and sums of squares, over all arrays of several sets of parameters in one launch. A block has one chunk of an array:
// array i has the blocks first[i]..first[i + 1].

constexpr u32 CHUNK = 4096;

struct Array {
  float* param;
  const float* gradient;
  float* first_moment;
  float* second_moment;
  u64 length;
  u64 rule;
};

struct Rule {
  float grad_scale, keep, blend, beta2, rest2, step_size, correction, eps;
};

// The array of a block.
__device__ __forceinline__ u32 array_of(const u32* first, u32 arrays) {
  u32 low = 0, high = arrays - 1;
  while (low < high) {
    u32 middle = (low + high + 1) / 2;
    if (first[middle] <= blockIdx.x) low = middle;
    else high = middle - 1;
  }
  return low;
}

// In the order of operations of torch.optim.AdamW; see AdamWRule for the numbers.
extern "C" __global__ void adamw(const Array* arrays, const Rule* rules, const u32* first, u32 count) {
  u32 index = array_of(first, count);
  Array array = arrays[index];
  Rule rule = rules[array.rule];
  u64 start = (u64)(blockIdx.x - first[index]) * CHUNK;
  u64 end = min((u64)(start + CHUNK), array.length);
  for (u64 i = start + threadIdx.x; i < end; i += blockDim.x) {
    float g = array.gradient[i] * rule.grad_scale, m = array.first_moment[i], v = array.second_moment[i];
    float decayed = array.param[i] * rule.keep;
    m = rule.blend < 0.5f ? m + rule.blend * (g - m) : g - (g - m) * (1.f - rule.blend);
    v = v * rule.beta2 + rule.rest2 * g * g;
    float denominator = sqrtf(v) / rule.correction + rule.eps;
    float update = denominator == 0.f ? 0.f : rule.step_size * m / denominator;
    array.first_moment[i] = m;
    array.second_moment[i] = v;
    array.param[i] = decayed - update;
  }
}

struct Terms {
  const float* a;
  const float* b;
  u64 length;
};

// For each block the sum of squares of its chunk of a, or of a + b, in f64.
extern "C" __global__ void squares(const Terms* arrays, const u32* first, u32 count, double* partial) {
  __shared__ double shared[32];
  u32 index = array_of(first, count);
  Terms array = arrays[index];
  u64 start = (u64)(blockIdx.x - first[index]) * CHUNK;
  u64 end = min((u64)(start + CHUNK), array.length);
  double sum = 0;
  for (u64 i = start + threadIdx.x; i < end; i += blockDim.x) {
    double x = array.b ? array.a[i] + array.b[i] : array.a[i];
    sum += x * x;
  }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// Adds up the blocks of each array; blockIdx.x is the array.
extern "C" __global__ void sum_partials(const double* partial, const u32* first, double* sums) {
  __shared__ double shared[32];
  double sum = 0;
  for (u32 i = first[blockIdx.x] + threadIdx.x; i < first[blockIdx.x + 1]; i += blockDim.x) sum += partial[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// to += from.
extern "C" __global__ void add(float* to, const float* from, u64 length) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < length) to[i] += from[i];
}
