// Causal grouped-query attention on tensor cores, over keys and values in bf16 in blocks of 32 positions. Queries, keys, values and
// probabilities are rounded to bf16; sums are f32. A block of four warps has a tile of 64 queries: rows of a sequence with all query
// heads of a key head, so that keys are read once for them. Keys and values come by asynchronous copies, a tile ahead.
//
// Heads have at most W columns; columns that they lack are zeros. A tile in shared memory has rows of W elements whose chunks of 8 are
// exchanged by row, so that ldmatrix meets no bank twice.

constexpr u32 KEYS = 32, ROWS = 64, THREADS = 128;

// Rows of a sequence that follow each other.
struct Tile {
  // Of the sequence's first block, among addresses of blocks.
  const u64* blocks;
  // The first row's number in the batch, and its position.
  u32 row, position;
  u32 count;
  // Behind the sequence's last position.
  u32 end;
};

#define SHAPE u32 heads, u32 kv_heads, u32 head_dim, u32 layer, u32 window, float scale

__device__ __forceinline__ u32 first_key(u32 position, u32 window) {
  return window && position + 1 > window ? position + 1 - window : 0;
}

// Where chunk `column` / 8 of a row is.
template <u32 W>
__device__ __forceinline__ u32 place(u32 row, u32 column) {
  return row * W + ((column / 8) ^ (row & 7)) * 8;
}

__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// 16 bytes to shared memory, or zeros, once the thread has waited for them.
__device__ __forceinline__ void copy16(u16* to, const u16* from, bool exists) {
  u32 bytes = exists ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// All but the newest group have arrived.
__device__ __forceinline__ void wait_for_older() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }

__device__ __forceinline__ void ldmatrix(u32* r, const u16* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p))
               : "memory");
}

__device__ __forceinline__ void ldmatrix_transposed(u32* r, const u16* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p))
               : "memory");
}

// d[16][8] += a[16][16] · b[16][8].
__device__ __forceinline__ void mma(float* d, const u32* a, const u32* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two elements, the first one in the lower half.
__device__ __forceinline__ u32 pack(float first, float second) {
  u32 packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
  return packed;
}

__device__ __forceinline__ float low(u32 packed) { return __uint_as_float(packed << 16); }
__device__ __forceinline__ float high(u32 packed) { return __uint_as_float(packed & 0xffff0000u); }

// The left side of an mma from the results of two others, rounded.
__device__ __forceinline__ void as_left(u32* a, const float* first, const float* second) {
  a[0] = pack(first[0], first[1]);
  a[1] = pack(first[2], first[3]);
  a[2] = pack(second[0], second[1]);
  a[3] = pack(second[2], second[3]);
}

// 16 rows and 16 columns as the left side; 16 rows as columns of the right side; and 16 rows of the right side.
template <u32 W>
__device__ __forceinline__ void left(u32* a, const u16* tile, u32 row, u32 column) {
  ldmatrix(a, tile + place<W>(row + (lane_id() & 15), column + (lane_id() >> 4) * 8));
}

template <u32 W>
__device__ __forceinline__ void right(u32* b, const u16* tile, u32 row, u32 column) {
  ldmatrix(b, tile + place<W>(row + (lane_id() & 7) + (lane_id() >> 4) * 8, column + ((lane_id() >> 3) & 1) * 8));
}

template <u32 W>
__device__ __forceinline__ void right_transposed(u32* b, const u16* tile, u32 row, u32 column) {
  ldmatrix_transposed(b, tile + place<W>(row + (lane_id() & 15), column + (lane_id() >> 4) * 8));
}

// Starts the copy of `rows` rows, of which `count` exist, with `pitch` elements between them; zeros elsewhere.
template <u32 W>
__device__ __forceinline__ void load_tile(u16* to, const u16* from, u32 rows, u32 count, u32 pitch, u32 head_dim) {
  u32 chunks = (head_dim + 15) / 16 * 2;
  for (u32 i = threadIdx.x; i < rows * chunks; i += THREADS) {
    u32 row = i / chunks, column = i % chunks * 8;
    bool exists = row < count && column < head_dim;
    copy16(to + place<W>(row, column), exists ? from + (u64)row * pitch + column : from, exists);
  }
}

// Keys (part 0) or values (1) of a block.
__device__ __forceinline__ const u16* cached(const u64* blocks, u32 block, u32 layer, u32 part, u32 kv_head, u32 kv_width,
                                             u32 head_dim) {
  return (const u16*)blocks[block] + (u64)(layer * 2 + part) * KEYS * kv_width + kv_head * head_dim;
}

// A tile of queries: query m is head m % shared of row m / shared.
struct Queries {
  Tile tile;
  u32 shared, kv_head, kv_width, used;

  __device__ __forceinline__ Queries(const Tile& tile, u32 heads, u32 kv_heads, u32 head_dim)
      : tile(tile), shared(heads / kv_heads), kv_head(blockIdx.y), kv_width(kv_heads * head_dim),
        used(tile.count * (heads / kv_heads)) {}

  // Of the two queries that a thread has results of, the one `part`.
  __device__ __forceinline__ u32 own(u32 part) const { return threadIdx.x / 32 * 16 + lane_id() / 4 + part * 8; }
  __device__ __forceinline__ u32 row(u32 m) const { return tile.row + m / shared; }
  __device__ __forceinline__ u32 position(u32 m) const { return tile.position + m / shared; }
  __device__ __forceinline__ u32 head(u32 m) const { return kv_head * shared + m % shared; }
  __device__ __forceinline__ u32 first_tile(u32 window) const { return first_key(tile.position, window) / KEYS; }
  __device__ __forceinline__ u32 last_tile() const { return (tile.position + tile.count - 1) / KEYS; }

  // Starts the copy of keys and values 32 · block.. up to the last one that a query sees.
  template <u32 W>
  __device__ __forceinline__ void load(u16 (*to)[KEYS * W], u32 block, u32 layer, u32 head_dim) const {
    u32 count = min(KEYS, tile.position + tile.count - block * KEYS);
    for (u32 part = 0; part < 2; part++)
      load_tile<W>(to[part], cached(tile.blocks, block, layer, part, kv_head, kv_width, head_dim), KEYS, count, kv_width, head_dim);
  }

  // Each warp's 16 queries of rows of heads as left sides, rounded; `memory` has a tile of them meanwhile.
  template <u32 W>
  __device__ __forceinline__ void as_left_sides(u32 (*to)[4], u16* memory, const float* rows, u64 stride, u32 head_dim) const {
    u32 columns = (head_dim + 15) / 16 * 16;
    for (u32 i = threadIdx.x; i < ROWS * columns; i += THREADS) {
      u32 m = i / columns, column = i % columns;
      bool exists = m < used && column < head_dim;
      float x = exists ? rows[row(m) * stride + head(m) * head_dim + column] : 0.f;
      memory[place<W>(m, column & ~7u) + (column & 7)] = to_bf16(x);
    }
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < W / 16; k++)
      if (k * 16 < head_dim) left<W>(to[k], memory, threadIdx.x / 32 * 16, k * 16);
    __syncthreads();
  }
};

// c[n][..] = a · rows of `tile`ᵀ, 8 rows for each n.
template <u32 W, u32 N>
__device__ __forceinline__ void products(float (*c)[4], const u32 (*a)[4], const u16* tile, u32 head_dim) {
#pragma unroll
  for (u32 n = 0; n < N; n++)
#pragma unroll
    for (u32 e = 0; e < 4; e++) c[n][e] = 0;
#pragma unroll
  for (u32 k = 0; k < W / 16; k++) {
    if (k * 16 >= head_dim) break;
#pragma unroll
    for (u32 n = 0; n < N; n += 2) {
      u32 b[4];
      right<W>(b, tile, n * 8, k * 16);
      mma(c[n], a[k], b);
      mma(c[n + 1], a[k], b + 2);
    }
  }
}

// to += weights · tile, for 16 rows of the tile from `row` on.
template <u32 W>
__device__ __forceinline__ void add_rows(float (*to)[4], const u32* weights, const u16* tile, u32 row, u32 head_dim) {
#pragma unroll
  for (u32 d = 0; d < W / 16; d++) {
    if (d * 16 >= head_dim) break;
    u32 b[4];
    right_transposed<W>(b, tile, row, d * 16);
    mma(to[2 * d], weights, b);
    mma(to[2 * d + 1], weights, b + 2);
  }
}

// The sum over the four lanes that share a row of results, in all of them.
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(ALL, x, 1);
  return x + __shfl_xor_sync(ALL, x, 2);
}

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(ALL, x, 1));
  return fmaxf(x, __shfl_xor_sync(ALL, x, 2));
}

// The output of each query, and the log-sum-exp of its scaled scores, [rows][heads]. blockIdx.x is the tile, blockIdx.y the key head.
template <u32 W>
__device__ __forceinline__ void forward(const float* qkv, const Tile* tiles, float* out, float* log_sums, SHAPE) {
  __shared__ __align__(128) u16 memory[2][2][KEYS * W];
  Queries queries(tiles[blockIdx.x], heads, kv_heads, head_dim);
  u64 q_width = heads * head_dim;
  u32 q[W / 16][4];
  queries.as_left_sides<W>(q, memory[0][0], qkv, q_width + 2 * queries.kv_width, head_dim);
  float o[W / 8][4] = {}, largest[2] = {-INFINITE, -INFINITE}, total[2] = {0, 0}, rounded_total[2] = {0, 0};
  u32 first = queries.first_tile(window), last = queries.last_tile();
  queries.load<W>(memory[0], first, layer, head_dim);
  commit();
  for (u32 tile = first, stage = 0; tile <= last; tile++, stage ^= 1) {
    if (tile < last) queries.load<W>(memory[stage ^ 1], tile + 1, layer, head_dim);
    commit();
    wait_for_older();
    __syncthreads();
    float c[KEYS / 8][4];
    products<W, KEYS / 8>(c, q, memory[stage][0], head_dim);
#pragma unroll
    for (u32 part = 0; part < 2; part++) {
      u32 position = queries.position(queries.own(part)), begin = first_key(position, window);
      float top = largest[part];
#pragma unroll
      for (u32 n = 0; n < KEYS / 8; n++)
#pragma unroll
        for (u32 e = 2 * part; e < 2 * part + 2; e++) {
          u32 key = tile * KEYS + n * 8 + lane_id() % 4 * 2 + e % 2;
          c[n][e] = key >= begin && key <= position ? c[n][e] * scale : -INFINITE;
          top = fmaxf(top, c[n][e]);
        }
      top = quad_max(top);
      // A tile that a query does not see changes nothing of it.
      float old = largest[part] == -INFINITE ? 0.f : expf(largest[part] - top);
      total[part] *= old;
      rounded_total[part] *= old;
#pragma unroll
      for (u32 d = 0; d < W / 8; d++) {
        o[d][2 * part] *= old;
        o[d][2 * part + 1] *= old;
      }
#pragma unroll
      for (u32 n = 0; n < KEYS / 8; n++) {
#pragma unroll
        for (u32 e = 2 * part; e < 2 * part + 2; e++) {
          c[n][e] = c[n][e] == -INFINITE ? 0.f : expf(c[n][e] - top);
          total[part] += c[n][e];
        }
        u32 packed = pack(c[n][2 * part], c[n][2 * part + 1]);
        rounded_total[part] += low(packed);
        rounded_total[part] += high(packed);
      }
      largest[part] = top;
    }
#pragma unroll
    for (u32 k = 0; k < KEYS / 16; k++) {
      u32 weights[4];
      as_left(weights, c[2 * k], c[2 * k + 1]);
      add_rows<W>(o, weights, memory[stage][1], k * 16, head_dim);
    }
    __syncthreads();
  }
#pragma unroll
  for (u32 part = 0; part < 2; part++) {
    float sum = quad_sum(total[part]), divisor = quad_sum(rounded_total[part]);
    u32 m = queries.own(part);
    if (m >= queries.used) continue;
    float* to = out + queries.row(m) * q_width + queries.head(m) * head_dim;
#pragma unroll
    for (u32 d = 0; d < W / 8; d++)
#pragma unroll
      for (u32 e = 0; e < 2; e++) {
        u32 column = d * 8 + lane_id() % 4 * 2 + e;
        if (column < head_dim) to[column] = o[d][2 * part + e] / divisor;
      }
    if (lane_id() % 4 == 0) log_sums[(u64)queries.row(m) * heads + queries.head(m)] = largest[part] + logf(sum);
  }
}

extern "C" __global__ void __launch_bounds__(128) tensor_attention_64(const float* qkv, const Tile* tiles, float* out,
                                                                      float* log_sums, SHAPE) {
  forward<64>(qkv, tiles, out, log_sums, heads, kv_heads, head_dim, layer, window, scale);
}

extern "C" __global__ void __launch_bounds__(128) tensor_attention_128(const float* qkv, const Tile* tiles, float* out,
                                                                       float* log_sums, SHAPE) {
  forward<128>(qkv, tiles, out, log_sums, heads, kv_heads, head_dim, layer, window, scale);
}

// What the other kernels of the backward pass read: queries and d_out, [rows][heads], in bf16, and Σ out · d_out of each row and head.
// blockIdx.x is the row, a warp has a head.
extern "C" __global__ void __launch_bounds__(128) tensor_attention_prepare(const float* qkv, const float* out, const float* d_out,
                                                                           u16* q16, u16* d_out16, float* deltas, u32 heads,
                                                                           u32 head_dim, u32 stride) {
  u32 head = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32;
  if (head >= heads) return;
  u64 at = ((u64)blockIdx.x * heads + head) * head_dim;
  const float* q = qkv + (u64)blockIdx.x * stride + head * head_dim;
  float sum = 0;
  for (u32 i = lane_id(); i < head_dim; i += 32) {
    sum = fmaf(out[at + i], d_out[at + i], sum);
    q16[at + i] = to_bf16(q[i]);
    d_out16[at + i] = to_bf16(d_out[at + i]);
  }
  sum = warp_sum(sum);
  if (lane_id() == 0) deltas[(u64)blockIdx.x * heads + head] = sum;
}

// The gradient with respect to the queries. Blocks are those of `forward`.
template <u32 W>
__device__ __forceinline__ void backward_q(const float* qkv, const Tile* tiles, const float* log_sums, const float* d_out,
                                           const float* deltas, float* d_qkv, SHAPE) {
  __shared__ __align__(128) u16 memory[2][2][KEYS * W];
  Queries queries(tiles[blockIdx.x], heads, kv_heads, head_dim);
  u64 q_width = heads * head_dim, stride = q_width + 2 * queries.kv_width;
  u32 q[W / 16][4], d[W / 16][4];
  queries.as_left_sides<W>(q, memory[0][0], qkv, stride, head_dim);
  queries.as_left_sides<W>(d, memory[0][0], d_out, q_width, head_dim);
  float dq[W / 8][4] = {}, log_sum[2], delta[2];
#pragma unroll
  for (u32 part = 0; part < 2; part++) {
    u32 m = queries.own(part);
    u64 at = (u64)queries.row(m) * heads + queries.head(m);
    log_sum[part] = m < queries.used ? log_sums[at] : 0.f;
    delta[part] = m < queries.used ? deltas[at] : 0.f;
  }
  u32 first = queries.first_tile(window), last = queries.last_tile();
  queries.load<W>(memory[0], first, layer, head_dim);
  commit();
  for (u32 tile = first, stage = 0; tile <= last; tile++, stage ^= 1) {
    if (tile < last) queries.load<W>(memory[stage ^ 1], tile + 1, layer, head_dim);
    commit();
    wait_for_older();
    __syncthreads();
    float c[KEYS / 8][4], g[KEYS / 8][4];
    products<W, KEYS / 8>(c, q, memory[stage][0], head_dim);
    products<W, KEYS / 8>(g, d, memory[stage][1], head_dim);
#pragma unroll
    for (u32 part = 0; part < 2; part++) {
      u32 m = queries.own(part), position = queries.position(m), begin = first_key(position, window);
#pragma unroll
      for (u32 n = 0; n < KEYS / 8; n++)
#pragma unroll
        for (u32 e = 2 * part; e < 2 * part + 2; e++) {
          u32 key = tile * KEYS + n * 8 + lane_id() % 4 * 2 + e % 2;
          bool seen = m < queries.used && key >= begin && key <= position;
          c[n][e] = seen ? expf(c[n][e] * scale - log_sum[part]) * (g[n][e] - delta[part]) : 0.f;
        }
    }
#pragma unroll
    for (u32 k = 0; k < KEYS / 16; k++) {
      u32 weights[4];
      as_left(weights, c[2 * k], c[2 * k + 1]);
      add_rows<W>(dq, weights, memory[stage][0], k * 16, head_dim);
    }
    __syncthreads();
  }
#pragma unroll
  for (u32 part = 0; part < 2; part++) {
    u32 m = queries.own(part);
    if (m >= queries.used) continue;
    float* to = d_qkv + queries.row(m) * stride + queries.head(m) * head_dim;
#pragma unroll
    for (u32 i = 0; i < W / 8; i++)
#pragma unroll
      for (u32 e = 0; e < 2; e++) {
        u32 column = i * 8 + lane_id() % 4 * 2 + e;
        if (column < head_dim) to[column] = dq[i][2 * part + e] * scale;
      }
  }
}

extern "C" __global__ void __launch_bounds__(128) tensor_attention_backward_q_64(const float* qkv, const Tile* tiles,
                                                                                 const float* log_sums, const float* d_out,
                                                                                 const float* deltas, float* d_qkv, SHAPE) {
  backward_q<64>(qkv, tiles, log_sums, d_out, deltas, d_qkv, heads, kv_heads, head_dim, layer, window, scale);
}

extern "C" __global__ void __launch_bounds__(128) tensor_attention_backward_q_128(const float* qkv, const Tile* tiles,
                                                                                  const float* log_sums, const float* d_out,
                                                                                  const float* deltas, float* d_qkv, SHAPE) {
  backward_q<128>(qkv, tiles, log_sums, d_out, deltas, d_qkv, heads, kv_heads, head_dim, layer, window, scale);
}

// Queries of a step of the next kernel.
constexpr u32 STEP = 16;

// The gradients with respect to a tile of 64 keys and values of key head blockIdx.y, 16 of which each warp has, over the query heads
// that share them, in each over the queries that see them, in order. Sequences begin at position 0.
template <u32 W>
__device__ __forceinline__ void backward_kv(const u16* q16, const Tile* tiles, const float* log_sums, const u16* d_out16,
                                            const float* deltas, float* d_qkv, SHAPE) {
  __shared__ __align__(128) u16 cache[2][ROWS * W], steps[2][2][STEP * W];
  Tile tile = tiles[blockIdx.x];
  u32 kv_width = kv_heads * head_dim, shared = heads / kv_heads, warp = threadIdx.x / 32;
  u64 q_width = heads * head_dim;
  for (u32 part = 0; part < 2; part++)
    for (u32 half = 0; half < ROWS / KEYS && half * KEYS < tile.count; half++)
      load_tile<W>(cache[part] + half * KEYS * W,
                   cached(tile.blocks, tile.position / KEYS + half, layer, part, blockIdx.y, kv_width, head_dim), KEYS,
                   min(KEYS, tile.count - half * KEYS), kv_width, head_dim);
  // A second block that does not exist is zeros.
  if (tile.count <= KEYS)
    for (u32 part = 0; part < 2; part++) load_tile<W>(cache[part] + KEYS * W, q16, KEYS, 0, 0, head_dim);
  u32 last = tile.position + tile.count - 1, end = window && tile.end - last > window ? last + window : tile.end;
  u32 each = (end - tile.position + STEP - 1) / STEP, all = shared * each;
  // Starts the copy of 16 queries of a head and of their d_out.
  auto load = [&](u32 step) {
    u32 head = blockIdx.y * shared + step / each, position = tile.position + step % each * STEP;
    u64 at = (u64)(tile.row + position - tile.position) * q_width + head * head_dim;
    u32 count = min(STEP, end - position);
    load_tile<W>(steps[step & 1][0], q16 + at, STEP, count, (u32)q_width, head_dim);
    load_tile<W>(steps[step & 1][1], d_out16 + at, STEP, count, (u32)q_width, head_dim);
  };
  float dk[W / 8][4] = {}, dv[W / 8][4] = {};
  load(0);
  commit();
  for (u32 step = 0; step < all; step++) {
    if (step + 1 < all) load(step + 1);
    commit();
    wait_for_older();
    __syncthreads();
    const u16 *q = steps[step & 1][0], *d = steps[step & 1][1];
    float c[2][4] = {}, g[2][4] = {};
#pragma unroll
    for (u32 k = 0; k < W / 16; k++) {
      if (k * 16 >= head_dim) break;
      u32 a[4], b[4];
      left<W>(a, cache[0], warp * 16, k * 16);
      right<W>(b, q, 0, k * 16);
      mma(c[0], a, b);
      mma(c[1], a, b + 2);
      left<W>(a, cache[1], warp * 16, k * 16);
      right<W>(b, d, 0, k * 16);
      mma(g[0], a, b);
      mma(g[1], a, b + 2);
    }
    u32 head = blockIdx.y * shared + step / each;
#pragma unroll
    for (u32 n = 0; n < 2; n++)
#pragma unroll
      for (u32 e = 0; e < 4; e++) {
        u32 key = tile.position + warp * 16 + lane_id() / 4 + e / 2 * 8;
        u32 query = tile.position + step % each * STEP + n * 8 + lane_id() % 4 * 2 + e % 2;
        bool seen = key <= last && query < end && key <= query && key >= first_key(query, window);
        u64 at = (u64)(tile.row + query - tile.position) * heads + head;
        float weight = seen ? expf(c[n][e] * scale - log_sums[at]) : 0.f;
        c[n][e] = weight;
        g[n][e] = seen ? weight * (g[n][e] - deltas[at]) : 0.f;
      }
    u32 weights[4], scores[4];
    as_left(weights, c[0], c[1]);
    as_left(scores, g[0], g[1]);
    add_rows<W>(dv, weights, d, 0, head_dim);
    add_rows<W>(dk, scores, q, 0, head_dim);
    __syncthreads();
  }
#pragma unroll
  for (u32 part = 0; part < 2; part++) {
    u32 key = warp * 16 + lane_id() / 4 + part * 8;
    if (key >= tile.count) continue;
    float* to = d_qkv + (u64)(tile.row + key) * (q_width + 2 * kv_width) + q_width + blockIdx.y * head_dim;
#pragma unroll
    for (u32 i = 0; i < W / 8; i++)
#pragma unroll
      for (u32 e = 0; e < 2; e++) {
        u32 column = i * 8 + lane_id() % 4 * 2 + e;
        if (column >= head_dim) continue;
        to[column] = dk[i][2 * part + e] * scale;
        to[kv_width + column] = dv[i][2 * part + e];
      }
  }
}

extern "C" __global__ void __launch_bounds__(128) tensor_attention_backward_kv_64(const u16* q16, const Tile* tiles,
                                                                                  const float* log_sums, const u16* d_out16,
                                                                                  const float* deltas, float* d_qkv, SHAPE) {
  backward_kv<64>(q16, tiles, log_sums, d_out16, deltas, d_qkv, heads, kv_heads, head_dim, layer, window, scale);
}

extern "C" __global__ void __launch_bounds__(128) tensor_attention_backward_kv_128(const u16* q16, const Tile* tiles,
                                                                                   const float* log_sums, const u16* d_out16,
                                                                                   const float* deltas, float* d_qkv, SHAPE) {
  backward_kv<128>(q16, tiles, log_sums, d_out16, deltas, d_qkv, heads, kv_heads, head_dim, layer, window, scale);
}
