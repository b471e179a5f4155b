// Causal grouped-query attention over keys and values in blocks of 32 positions, in f32 and without tensor cores. A block of threads
// has a row of queries, keys or values (blockIdx.x) and a head (blockIdx.y): its four warps share the scores of a tile of 32, then
// each thread sums over the tile for one or two elements of the head, in order.

constexpr u32 TILE = 32, THREADS = 128, WARPS = THREADS / 32, MOST = 256, NONE = 0xffffffffu;

// A row of the batch.
struct Row {
  // Of the sequence's first block, among addresses of blocks; where the row's keys and values are written, or 0.
  const u64* blocks;
  void* to;
  // NONE: no sequence.
  u32 position;
  // Behind the sequence's last row.
  u32 end;
};

#define SHAPE u32 heads, u32 kv_heads, u32 head_dim, u32 layer, u32 window, float scale

// Elements of the queries, and of the keys, of a row.
#define Q_WIDTH (heads * head_dim)
#define KV_WIDTH (kv_heads * head_dim)

// Keys (part 0) or values (1) of a position and head. A block has [layer][part][position][head].
__device__ __forceinline__ const float* cached(const u64* blocks, u32 layer, u32 part, u32 position, u32 head, u32 kv_width,
                                               u32 head_dim) {
  const float* block = (const float*)blocks[position / TILE];
  return block + ((u64)(layer * 2 + part) * TILE + position % TILE) * kv_width + head * head_dim;
}

__device__ __forceinline__ u32 first_key(u32 position, u32 window) {
  return window && position + 1 > window ? position + 1 - window : 0;
}

__device__ __forceinline__ float dot(const float* a, const float* b, u32 length) {
  float sum = 0;
  for (u32 i = lane_id(); i < length; i += 32) sum = fmaf(a[i], b[i], sum);
  return warp_sum(sum);
}

// Writes the keys and values of rows into their blocks.
template <typename T>
__device__ __forceinline__ void write(const float* qkv, const Row* rows, u32 stride, u32 q_width, u32 kv_width, u32 layer) {
  u32 i = blockIdx.y * blockDim.x + threadIdx.x;
  T* to = (T*)rows[blockIdx.x].to;
  if (!to || i >= kv_width) return;
  const float* from = qkv + (u64)blockIdx.x * stride + q_width + i;
  for (u32 part = 0; part < 2; part++) store(to + (u64)(layer * 2 + part) * TILE * kv_width + i, from[part * kv_width]);
}

extern "C" __global__ void kv_write_f32(const float* qkv, const Row* rows, u32 stride, u32 q_width, u32 kv_width, u32 layer) {
  write<float>(qkv, rows, stride, q_width, kv_width, layer);
}

extern "C" __global__ void kv_write_bf16(const float* qkv, const Row* rows, u32 stride, u32 q_width, u32 kv_width, u32 layer) {
  write<u16>(qkv, rows, stride, q_width, kv_width, layer);
}

// The output of each row and head, and the log-sum-exp of its scaled scores, [rows][heads]; zeros in rows of no sequence.
extern "C" __global__ void __launch_bounds__(128) attention(const float* qkv, const Row* rows, float* out, float* log_sums,
                                                            SHAPE) {
  __shared__ float q[MOST], scores[TILE];
  Row row = rows[blockIdx.x];
  u32 head = blockIdx.y, kv_head = head / (heads / kv_heads), warp = threadIdx.x / 32;
  if (row.position == NONE) {
    for (u32 i = threadIdx.x; i < head_dim; i += THREADS) out[(u64)blockIdx.x * Q_WIDTH + head * head_dim + i] = 0;
    if (threadIdx.x == 0) log_sums[(u64)blockIdx.x * heads + head] = 0;
    return;
  }
  const float* query = qkv + (u64)blockIdx.x * (Q_WIDTH + 2 * KV_WIDTH) + head * head_dim;
  for (u32 i = threadIdx.x; i < head_dim; i += THREADS) q[i] = query[i];
  u32 first = first_key(row.position, window);
  float sums[2] = {0, 0}, largest = -INFINITE, total = 0;
  for (u32 tile = first / TILE * TILE; tile <= row.position; tile += TILE) {
    __syncthreads();
    for (u32 i = warp; i < TILE; i += WARPS) {
      u32 key = tile + i;
      bool seen = key >= first && key <= row.position;
      float score = seen ? dot(q, cached(row.blocks, layer, 0, key, kv_head, KV_WIDTH, head_dim), head_dim) * scale : -INFINITE;
      if (lane_id() == 0) scores[i] = score;
    }
    __syncthreads();
    float top = largest;
    for (u32 i = 0; i < TILE; i++) top = fmaxf(top, scores[i]);
    float old = expf(largest - top);
    total *= old;
    for (u32 part = 0; part < 2; part++) sums[part] *= old;
    for (u32 i = 0; i < TILE; i++) {
      if (scores[i] == -INFINITE) continue;
      float weight = expf(scores[i] - top);
      total += weight;
      const float* value = cached(row.blocks, layer, 1, tile + i, kv_head, KV_WIDTH, head_dim);
      for (u32 part = 0, at = threadIdx.x; part < 2 && at < head_dim; part++, at += THREADS)
        sums[part] = fmaf(weight, value[at], sums[part]);
    }
    largest = top;
  }
  float* to = out + (u64)blockIdx.x * Q_WIDTH + head * head_dim;
  for (u32 part = 0, at = threadIdx.x; part < 2 && at < head_dim; part++, at += THREADS) to[at] = sums[part] / total;
  if (threadIdx.x == 0) log_sums[(u64)blockIdx.x * heads + head] = largest + logf(total);
}

// The gradient with respect to the queries, and Σ out · d_out of each row and head for the next kernel.
extern "C" __global__ void __launch_bounds__(128) attention_backward_q(const float* qkv, const Row* rows, const float* out,
                                                                       const float* log_sums, const float* d_out, float* d_qkv,
                                                                       float* deltas, SHAPE) {
  __shared__ float scores[TILE];
  Row row = rows[blockIdx.x];
  if (row.position == NONE) return;
  u32 head = blockIdx.y, kv_head = head / (heads / kv_heads), warp = threadIdx.x / 32, first = first_key(row.position, window);
  u64 stride = Q_WIDTH + 2 * KV_WIDTH, at_out = (u64)blockIdx.x * Q_WIDTH + head * head_dim;
  const float* q = qkv + blockIdx.x * stride + head * head_dim;
  float delta = dot(out + at_out, d_out + at_out, head_dim), log_sum = log_sums[(u64)blockIdx.x * heads + head];
  float sums[2] = {0, 0};
  for (u32 tile = first / TILE * TILE; tile <= row.position; tile += TILE) {
    __syncthreads();
    for (u32 i = warp; i < TILE; i += WARPS) {
      u32 key = tile + i;
      float d = 0;
      if (key >= first && key <= row.position) {
        float score = dot(q, cached(row.blocks, layer, 0, key, kv_head, KV_WIDTH, head_dim), head_dim) * scale;
        float product = dot(d_out + at_out, cached(row.blocks, layer, 1, key, kv_head, KV_WIDTH, head_dim), head_dim);
        d = expf(score - log_sum) * (product - delta) * scale;
      }
      if (lane_id() == 0) scores[i] = d;
    }
    __syncthreads();
    for (u32 i = 0; i < TILE && tile + i <= row.position; i++) {
      if (tile + i < first) continue;
      const float* key = cached(row.blocks, layer, 0, tile + i, kv_head, KV_WIDTH, head_dim);
      for (u32 part = 0, at = threadIdx.x; part < 2 && at < head_dim; part++, at += THREADS)
        sums[part] = fmaf(scores[i], key[at], sums[part]);
    }
  }
  float* to = d_qkv + blockIdx.x * stride + head * head_dim;
  for (u32 part = 0, at = threadIdx.x; part < 2 && at < head_dim; part++, at += THREADS) to[at] = sums[part];
  if (threadIdx.x == 0) deltas[(u64)blockIdx.x * heads + head] = delta;
}

// The gradients with respect to a row's keys and values of head blockIdx.y, over the query heads that share it, in each over the
// rows that see the row, in order. Sequences begin at position 0, so that a position's row follows from the sequence's first.
extern "C" __global__ void __launch_bounds__(128) attention_backward_kv(const float* qkv, const Row* rows, const float* log_sums,
                                                                        const float* d_out, const float* deltas, float* d_qkv,
                                                                        SHAPE) {
  __shared__ float weights[TILE], scores[TILE];
  Row row = rows[blockIdx.x];
  if (row.position == NONE) return;
  u32 warp = threadIdx.x / 32, shared = heads / kv_heads;
  u64 stride = Q_WIDTH + 2 * KV_WIDTH, at_key = blockIdx.x * stride + Q_WIDTH + blockIdx.y * head_dim, at_value = at_key + KV_WIDTH;
  const float* key = cached(row.blocks, layer, 0, row.position, blockIdx.y, KV_WIDTH, head_dim);
  const float* value = cached(row.blocks, layer, 1, row.position, blockIdx.y, KV_WIDTH, head_dim);
  u32 end = window && row.end - blockIdx.x > window ? blockIdx.x + window : row.end;
  float d_key[2] = {0, 0}, d_value[2] = {0, 0};
  for (u32 head = blockIdx.y * shared; head < (blockIdx.y + 1) * shared; head++)
    for (u32 tile = blockIdx.x; tile < end; tile += TILE) {
      __syncthreads();
      for (u32 i = warp; i < TILE && tile + i < end; i += WARPS) {
        u64 query = tile + i;
        float score = dot(qkv + query * stride + head * head_dim, key, head_dim) * scale;
        float product = dot(d_out + query * Q_WIDTH + head * head_dim, value, head_dim);
        float weight = expf(score - log_sums[query * heads + head]);
        if (lane_id() == 0) {
          weights[i] = weight;
          scores[i] = weight * (product - deltas[query * heads + head]) * scale;
        }
      }
      __syncthreads();
      for (u32 i = 0; i < TILE && tile + i < end; i++) {
        u64 query = tile + i;
        for (u32 part = 0, at = threadIdx.x; part < 2 && at < head_dim; part++, at += THREADS) {
          d_key[part] = fmaf(scores[i], qkv[query * stride + head * head_dim + at], d_key[part]);
          d_value[part] = fmaf(weights[i], d_out[query * Q_WIDTH + head * head_dim + at], d_value[part]);
        }
      }
    }
  for (u32 part = 0, at = threadIdx.x; part < 2 && at < head_dim; part++, at += THREADS) {
    d_qkv[at_key + at] = d_key[part];
    d_qkv[at_value + at] = d_value[part];
  }
}
