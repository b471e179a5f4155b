// The backward pass of attention on tensor cores.

// What the other kernels of the backward pass read: queries and d_out, [rows][heads], in bf16; and of each row and head, [heads][rows],
// the log-sum-exp over ln 2 and Σ out · d_out. blockIdx.x is the row, a warp has a head.
extern "C" __global__ void __launch_bounds__(128) tensor_attention_prepare(const float* qkv, const float* out, const float* d_out,
                                                                           const float* log_sums, u16* q16, u16* d_out16,
                                                                           float2* sums, u32 heads, u32 head_dim, u32 stride) {
  u32 head = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32;
  if (head >= heads) return;
  u64 at = ((u64)blockIdx.x * heads + head) * head_dim;
  const float* q = qkv + (u64)blockIdx.x * stride + head * head_dim;
  float sum = 0;
  for (u32 i = lane_id() * 4; i < head_dim; i += 128) {
    float4 a = load_four(out + at + i), b = load_four(d_out + at + i), c = load_four(q + i);
    sum = fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
    store_four(q16 + at + i, c);
    store_four(d_out16 + at + i, b);
  }
  sum = warp_sum(sum);
  if (lane_id() == 0)
    sums[(u64)head * gridDim.x + blockIdx.x] = make_float2(log_sums[(u64)blockIdx.x * heads + head] * LOG2_E, sum);
}

// The gradient with respect to the queries. Blocks are those of `forward`.
template <u32 W>
__device__ __forceinline__ void backward_q(const float* qkv, const Tile* tiles, const float* d_out, const float2* sums, float* d_qkv,
                                           u32 rows, SHAPE) {
  __shared__ __align__(128) u16 memory[2][2][KEYS * W];
  Queries queries(tiles[blockIdx.x], heads, kv_heads, head_dim);
  u64 q_width = heads * head_dim, stride = q_width + 2 * queries.kv_width;
  u32 q[W / 16][4], d[W / 16][4];
  queries.as_left_sides<W>(q, memory[0][0], qkv, stride, head_dim);
  queries.as_left_sides<W>(d, memory[0][0], d_out, q_width, head_dim);
  float dq[W / 8][4] = {};
  float2 own[2];
  u32 position[2];
#pragma unroll
  for (u32 part = 0; part < 2; part++) {
    u32 m = queries.own(part);
    position[part] = queries.position(m);
    own[part] = m < queries.used ? sums[(u64)queries.head(m) * rows + queries.row(m)] : make_float2(0, 0);
  }
  uint2 whole = queries.whole(window);
  bool idle = queries.idle();
  Copier<W> copier(head_dim);
  u32 first = queries.first_tile(window), last = queries.last_tile();
  u32 stage = shared_address(memory), other = stage + 2 * KEYS * W * 2;
  queries.load<W>(copier, stage, first, layer, head_dim);
  commit();
  for (u32 tile = first; tile <= last; tile++) {
    if (tile < last) queries.load<W>(copier, other, tile + 1, layer, head_dim);
    commit();
    wait_for_older<1>();
    __syncthreads();
    if (!idle) {
      float c[KEYS / 8][4], g[KEYS / 8][4];
      products<W, KEYS / 8>(c, q, stage);
      products<W, KEYS / 8>(g, d, stage + KEYS * W * 2);
      mask(c, scale * LOG2_E, tile, whole, position, window);
#pragma unroll
      for (u32 n = 0; n < KEYS / 8; n++)
#pragma unroll
        for (u32 e = 0; e < 4; e++) c[n][e] = power(c[n][e] - own[e / 2].x) * (g[n][e] - own[e / 2].y);
#pragma unroll
      for (u32 k = 0; k < KEYS / 16; k++) {
        u32 weights[4];
        as_left(weights, c[2 * k], c[2 * k + 1]);
        add_rows<W>(dq, weights, stage, k * 16);
      }
    }
    __syncthreads();
    u32 free = stage;
    stage = other;
    other = free;
  }
#pragma unroll
  for (u32 part = 0; part < 2; part++) queries.put<W / 8>(d_qkv, stride, part, dq, scale, head_dim);
}

// Queries of a step of the next kernel.
constexpr u32 STEP = 16;

// The gradients with respect to a tile of 64 keys and values of key head blockIdx.y, 16 of which each warp has, over the query heads
// that share them, in each over the queries that see them, in order. Sequences begin at position 0.
template <u32 W>
__device__ __forceinline__ void backward_kv(const u16* q16, const Tile* tiles, const u16* d_out16, const float2* sums, float* d_qkv,
                                            u32 rows, SHAPE) {
  __shared__ __align__(128) u16 cache[2][ROWS * W], steps[2][2][STEP * W];
  Tile tile = tiles[blockIdx.x];
  u32 kv_width = kv_heads * head_dim, shared = heads / kv_heads, warp = threadIdx.x / 32;
  u64 q_width = heads * head_dim;
  Copier<W> copier(head_dim);
  u32 keys = shared_address(cache[0]), values = shared_address(cache[1]);
  for (u32 half = 0; half < ROWS / KEYS; half++) {
    // A second block that does not exist is zeros.
    u32 count = tile.count > half * KEYS ? min(KEYS, tile.count - half * KEYS) : 0;
    const u16* from = cached(tile.blocks, tile.position / KEYS + (count ? half : 0), layer, 0, blockIdx.y, kv_width, head_dim);
    copier.template start<KEYS>(keys + half * KEYS * W * 2, from, count, kv_width);
    copier.template start<KEYS>(values + half * KEYS * W * 2, from + (u64)KEYS * kv_width, count, kv_width);
  }
  u32 last = tile.position + tile.count - 1, end = window && tile.end - last > window ? last + window : tile.end;
  u32 each = (end - tile.position + STEP - 1) / STEP;
  u32 stage = shared_address(steps), other = stage + 2 * STEP * W * 2;
  // Starts the copy of 16 queries of a head and of their d_out.
  auto load = [&](u32 to, u32 head, u32 step) {
    u64 at = (u64)(tile.row + step * STEP) * q_width + (blockIdx.y * shared + head) * head_dim;
    u32 count = min(STEP, end - tile.position - step * STEP);
    copier.template start<STEP>(to, q16 + at, count, (u32)q_width);
    copier.template start<STEP>(to + STEP * W * 2, d_out16 + at, count, (u32)q_width);
  };
  float dk[W / 8][4] = {}, dv[W / 8][4] = {};
  Reader<W> across = Reader<W>::across(), along = Reader<W>::along();
  float scale2 = scale * LOG2_E;
  u32 first_own = tile.position + warp * 16;
  load(stage, 0, 0);
  commit();
  for (u32 head = 0; head < shared; head++)
    for (u32 step = 0; step < each; step++) {
      if (step + 1 < each)
        load(other, head, step + 1);
      else if (head + 1 < shared)
        load(other, head + 1, 0);
      commit();
      wait_for_older<1>();
      __syncthreads();
      u32 q = stage, d = stage + STEP * W * 2, first = tile.position + step * STEP;
      float2 own[2][2];
      const float2* of = sums + (u64)(blockIdx.y * shared + head) * rows + tile.row + step * STEP;
#pragma unroll
      for (u32 n = 0; n < 2; n++)
#pragma unroll
        for (u32 e = 0; e < 2; e++) {
          u32 query = n * 8 + lane_id() % 4 * 2 + e;
          own[n][e] = first + query < end ? of[query] : make_float2(0, 0);
        }
      float c[2][4] = {}, g[2][4] = {};
#pragma unroll
      for (u32 k = 0; k < W / 16; k++) {
        u32 a[4], b[4];
        matrices(a, across.at(keys, warp * 16, k));
        matrices(b, along.at(q, 0, k));
        mma(c[0], a, b);
        mma(c[1], a, b + 2);
        matrices(a, across.at(values, warp * 16, k));
        matrices(b, along.at(d, 0, k));
        mma(g[0], a, b);
        mma(g[1], a, b + 2);
      }
      // Whether each of the 16 queries sees each of the warp's 16 keys.
      bool whole = first >= first_own + 15 && first + STEP <= end && first_own + 15 <= last &&
                   first_own >= first_key(first + STEP - 1, window);
#pragma unroll
      for (u32 n = 0; n < 2; n++)
#pragma unroll
        for (u32 e = 0; e < 4; e++) {
          float score = fmaf(c[n][e], scale2, -own[n][e % 2].x);
          if (!whole) {
            u32 key = first_own + lane_id() / 4 + e / 2 * 8, query = first + n * 8 + lane_id() % 4 * 2 + e % 2;
            bool seen = key <= last && query < end && key <= query && key >= first_key(query, window);
            if (!seen) score = -INFINITE;
          }
          c[n][e] = power(score);
          g[n][e] = c[n][e] * (g[n][e] - own[n][e % 2].y);
        }
      u32 weights[4], scores[4];
      as_left(weights, c[0], c[1]);
      as_left(scores, g[0], g[1]);
      add_rows<W>(dv, weights, d, 0);
      add_rows<W>(dk, scores, q, 0);
      __syncthreads();
      u32 free = stage;
      stage = other;
      other = free;
    }
#pragma unroll
  for (u32 part = 0; part < 2; part++) {
    u32 key = warp * 16 + lane_id() / 4 + part * 8;
    if (key >= tile.count) continue;
    float* to = d_qkv + (u64)(tile.row + key) * (q_width + 2 * kv_width) + q_width + blockIdx.y * head_dim + lane_id() % 4 * 2;
#pragma unroll
    for (u32 i = 0; i < W / 8; i++) {
      if (i * 8 >= head_dim) break;
      *(float2*)(to + i * 8) = make_float2(dk[i][2 * part] * scale, dk[i][2 * part + 1] * scale);
      *(float2*)(to + kv_width + i * 8) = make_float2(dv[i][2 * part], dv[i][2 * part + 1]);
    }
  }
}

#define BACKWARD(W)                                                                                                                \
  extern "C" __global__ void __launch_bounds__(128) tensor_attention_backward_q_##W(                                               \
      const float* qkv, const Tile* tiles, const float* d_out, const float2* sums, float* d_qkv, u32 rows, SHAPE) {                \
    backward_q<W>(qkv, tiles, d_out, sums, d_qkv, rows, heads, kv_heads, head_dim, layer, window, scale);                          \
  }                                                                                                                                \
  extern "C" __global__ void __launch_bounds__(128) tensor_attention_backward_kv_##W(                                              \
      const u16* q16, const Tile* tiles, const u16* d_out16, const float2* sums, float* d_qkv, u32 rows, SHAPE) {                  \
    backward_kv<W>(q16, tiles, d_out16, sums, d_qkv, rows, heads, kv_heads, head_dim, layer, window, scale);                       \
  }

BACKWARD(64)
BACKWARD(128)
