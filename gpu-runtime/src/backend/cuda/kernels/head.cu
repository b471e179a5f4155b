// The loss head over chunks of the vocabulary: rows of `logits`, `stride` elements apart, have `width` of the tokens from `first` on.
// blockIdx.x is the row.
// Row i has the targets offsets[i]..offsets[i + 1].

// Adds a chunk to the running log-sum-exp of each row, (largest, Σ exp(x - largest)), and takes the logits of targets from it.
// The first chunk starts the sum.
extern "C" __global__ void __launch_bounds__(256) head_chunk(const float* logits, const u32* offsets, const u32* ids,
                                                             float* largest, float* sums, float* targets, u32 first,
                                                             u32 width, u32 stride) {
  __shared__ float shared[32];
  const float* row = logits + (u64)blockIdx.x * stride;
  float top = -INFINITE;
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) top = fmaxf(top, row[i]);
  top = block_max(top, shared);
  float sum = 0;
  if (top > -INFINITE)
    for (u32 i = threadIdx.x; i < width; i += blockDim.x) sum += expf(row[i] - top);
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) {
    float before = first ? largest[blockIdx.x] : -INFINITE, old = first ? sums[blockIdx.x] : 0.f;
    if (top > before) {
      old = old > 0.f ? old * expf(before - top) + sum : sum;
      before = top;
    } else if (top > -INFINITE) {
      old = old + sum * expf(top - before);
    }
    largest[blockIdx.x] = before;
    sums[blockIdx.x] = old;
  }
  for (u32 i = offsets[blockIdx.x] + threadIdx.x; i < offsets[blockIdx.x + 1]; i += blockDim.x)
    if (ids[i] >= first && ids[i] - first < width) targets[i] = row[ids[i] - first];
}

// A logit of -inf has the probability p = 0. Its -ln p is as large as a float can be, so that their product is 0.
#define LARGEST __int_as_float(0x7f7fffff)

// Adds a chunk to the entropy of each row, the sum of p * -ln p. The first chunk starts the sum.
extern "C" __global__ void __launch_bounds__(256) head_entropy(const float* logits, const float* log_sums, float* entropies,
                                                               u32 first, u32 width, u32 stride) {
  __shared__ float shared[32];
  const float* row = logits + (u64)blockIdx.x * stride;
  float log_sum = log_sums[blockIdx.x], sum = 0;
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) sum += expf(row[i] - log_sum) * fminf(log_sum - row[i], LARGEST);
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) entropies[blockIdx.x] = first ? entropies[blockIdx.x] + sum : sum;
}

// Adds a chunk to the divergence of each row from that of `others`, which have the chunk alone: the sum of p (ln p - ln q). The first
// chunk starts the sum.
extern "C" __global__ void __launch_bounds__(256) head_divergence(const float* logits, const float* log_sums, const float* others,
                                                                  const float* other_log_sums, float* divergences, u32 first,
                                                                  u32 width, u32 stride) {
  __shared__ float shared[32];
  const float *row = logits + (u64)blockIdx.x * stride, *other = others + (u64)blockIdx.x * width;
  float log_sum = log_sums[blockIdx.x], other_log_sum = other_log_sums[blockIdx.x], sum = 0;
  for (u32 i = threadIdx.x; i < width; i += blockDim.x) {
    float log = fmaxf(row[i] - log_sum, -LARGEST);
    sum += expf(log) * (log - fmaxf(other[i] - other_log_sum, -LARGEST));
  }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) divergences[blockIdx.x] = first ? divergences[blockIdx.x] + sum : sum;
}

// The entropy of a row and the gradient with respect to it.
struct Entropy {
  float value, d;
  // The gradient with respect to the logit of a column of the row, whose targets have the gradient `total`.
  __device__ __forceinline__ float of_logit(float total, float log, u32 column) const {
    log = fmaxf(log, -LARGEST);
    return expf(log) * (-total - d * (log + value));
  }
};

// The same, with the row's divergence from another one.
struct Divergence {
  Entropy entropy;
  const float* other;
  float other_log_sum, value, d;
  __device__ __forceinline__ float of_logit(float total, float log, u32 column) const {
    log = fmaxf(log, -LARGEST);
    float other_log = fmaxf(other[column] - other_log_sum, -LARGEST);
    return expf(log) * (-total - entropy.d * (log + entropy.value) + d * (log - other_log - value));
  }
};

// A loss that depends on neither.
struct NoEntropy {
  __device__ __forceinline__ float of_logit(float total, float log, u32 column) const { return -total * expf(log); }
};

// The gradient with respect to the logits of a chunk: d of the targets, minus their sum times the softmax p, minus the
// gradient of the entropy H times p (ln p + H), and plus that of the divergence D from q times p (ln p - ln q - D).
template <typename E, typename T>
__device__ __forceinline__ void gradient(E entropy, const float* logits, const float* log_sums, const u32* offsets,
                                         const u32* ids, const float* d, T* out, u32 first, u32 width, u32 stride) {
  u32 begin = offsets[blockIdx.x], end = offsets[blockIdx.x + 1];
  float total = 0, log_sum = log_sums[blockIdx.x];
  for (u32 i = begin; i < end; i++) total += d[i];
  for (u32 column = threadIdx.x; column < width; column += blockDim.x) {
    float x = entropy.of_logit(total, logits[(u64)blockIdx.x * stride + column] - log_sum, column);
    for (u32 i = begin; i < end; i++)
      if (ids[i] == first + column) x += d[i];
    store(out + (u64)blockIdx.x * width + column, x);
  }
}

extern "C" __global__ void head_gradient_f32(const float* logits, const float* log_sums, const u32* offsets, const u32* ids,
                                             const float* d, float* out, u32 first, u32 width, u32 stride) {
  gradient(NoEntropy{}, logits, log_sums, offsets, ids, d, out, first, width, stride);
}

extern "C" __global__ void head_gradient_bf16(const float* logits, const float* log_sums, const u32* offsets, const u32* ids,
                                              const float* d, u16* out, u32 first, u32 width, u32 stride) {
  gradient(NoEntropy{}, logits, log_sums, offsets, ids, d, out, first, width, stride);
}

extern "C" __global__ void head_entropy_gradient_f32(const float* logits, const float* log_sums, const u32* offsets,
                                                     const u32* ids, const float* d, float* out, const float* entropies,
                                                     const float* d_entropies, u32 first, u32 width, u32 stride) {
  gradient(Entropy{entropies[blockIdx.x], d_entropies[blockIdx.x]}, logits, log_sums, offsets, ids, d, out, first, width, stride);
}

extern "C" __global__ void head_entropy_gradient_bf16(const float* logits, const float* log_sums, const u32* offsets,
                                                      const u32* ids, const float* d, u16* out, const float* entropies,
                                                      const float* d_entropies, u32 first, u32 width, u32 stride) {
  gradient(Entropy{entropies[blockIdx.x], d_entropies[blockIdx.x]}, logits, log_sums, offsets, ids, d, out, first, width, stride);
}

extern "C" __global__ void head_divergence_gradient_f32(const float* logits, const float* log_sums, const u32* offsets,
                                                         const u32* ids, const float* d, float* out, const float* entropies,
                                                         const float* d_entropies, const float* others,
                                                         const float* other_log_sums, const float* divergences,
                                                         const float* d_divergences, u32 first, u32 width, u32 stride) {
  Entropy entropy = {entropies[blockIdx.x], d_entropies[blockIdx.x]};
  Divergence divergence = {entropy, others + (u64)blockIdx.x * width, other_log_sums[blockIdx.x], divergences[blockIdx.x],
                           d_divergences[blockIdx.x]};
  gradient(divergence, logits, log_sums, offsets, ids, d, out, first, width, stride);
}

extern "C" __global__ void head_divergence_gradient_bf16(const float* logits, const float* log_sums, const u32* offsets,
                                                         const u32* ids, const float* d, u16* out, const float* entropies,
                                                         const float* d_entropies, const float* others,
                                                         const float* other_log_sums, const float* divergences,
                                                         const float* d_divergences, u32 first, u32 width, u32 stride) {
  Entropy entropy = {entropies[blockIdx.x], d_entropies[blockIdx.x]};
  Divergence divergence = {entropy, others + (u64)blockIdx.x * width, other_log_sums[blockIdx.x], divergences[blockIdx.x],
                           d_divergences[blockIdx.x]};
  gradient(divergence, logits, log_sums, offsets, ids, d, out, first, width, stride);
}
