// Causal grouped-query attention on tensor cores, over keys and values in bf16 in blocks of 32 positions. Queries, keys, values and
// probabilities are rounded to bf16; sums are f32. A block of four warps has a tile of 64 queries: rows of a sequence with all query
// heads of a key head, so that keys are read once for them. Keys and values come by asynchronous copies, a tile ahead.
//
// Heads have at most W columns; columns that they lack are zeros. Exponentials are powers of two: scores are multiplied by the scale
// and log2(e).

constexpr u32 KEYS = 32, ROWS = 64, THREADS = 128;

// Tiles of keys of a split: softmax runs over each split from its beginning, and splits are joined in order.
constexpr u32 SPLIT = 4;

#define LOG2_E 1.4426950408889634f
#define LN_2 0.6931471805599453f

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

__device__ __forceinline__ float power(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// Where a lane reads 8x8 matrices of a tile: its row, and its chunk before that of 16 columns is exchanged.
template <u32 W>
struct Reader {
  u32 row, chunk;

  // 16 rows and 16 columns, as a left side or transposed as a right one.
  __device__ __forceinline__ static Reader across() { return {(lane_id() & 15) * W * 2, ((lane_id() >> 4) ^ (lane_id() & 7)) * 16}; }

  // 16 rows as columns of the right side.
  __device__ __forceinline__ static Reader along() {
    return {((lane_id() & 7) + (lane_id() >> 4) * 8) * W * 2, ((lane_id() >> 3 & 1) ^ (lane_id() & 7)) * 16};
  }

  // The address for rows from `first` on and columns from 16 k on.
  __device__ __forceinline__ u32 at(u32 tile, u32 first, u32 k) const { return tile + row + (chunk ^ k * 32) + first * W * 2; }
};

__device__ __forceinline__ void matrices(u32* r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void transposed_matrices(u32* r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// Copies tiles of rows: a thread has chunks of one column, THREADS · 8 / W rows apart.
template <u32 W>
struct Copier {
  static constexpr u32 APART = THREADS * 8 / W;
  u32 row, column, bytes, to;

  __device__ __forceinline__ Copier(u32 head_dim)
      : row(threadIdx.x / (W / 8)), column(threadIdx.x % (W / 8) * 8), bytes(column < head_dim ? 16 : 0),
        to(place<W>(row, column) * 2) {}

  // Starts the copy of N rows, of which `count` exist, with `pitch` elements between them; zeros elsewhere.
  template <u32 N>
  __device__ __forceinline__ void start(u32 tile, const u16* from, u32 count, u32 pitch) const {
    const u16* source = from + row * pitch + column;
#pragma unroll
    for (u32 i = 0; i < N / APART; i++) {
      u32 size = row + i * APART < count ? bytes : 0;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(tile + to + i * APART * W * 2),
                   "l"(size ? source : from), "r"(size)
                   : "memory");
      source += APART * pitch;
    }
  }
};

// Keys (part 0) or values (1) of a block.
__device__ __forceinline__ const u16* cached(const u64* blocks, u32 block, u32 layer, u32 part, u32 kv_head, u32 kv_width,
                                             u32 head_dim) {
  return (const u16*)blocks[block] + (u64)(layer * 2 + part) * KEYS * kv_width + kv_head * head_dim;
}

// A tile of queries: query m is head m % shared of row m / shared. ALL: they see all keys of their sequence, not those up to their own.
template <bool ALL>
struct QueryTile {
  Tile tile;
  u32 shared, kv_head, kv_width, used;

  __device__ __forceinline__ QueryTile(const Tile& tile, u32 heads, u32 kv_heads, u32 head_dim)
      : tile(tile), shared(heads / kv_heads), kv_head(blockIdx.y), kv_width(kv_heads * head_dim),
        used(tile.count * (heads / kv_heads)) {}

  // Of the two queries that a thread has results of, the one `part`.
  __device__ __forceinline__ u32 own(u32 part) const { return threadIdx.x / 32 * 16 + lane_id() / 4 + part * 8; }
  __device__ __forceinline__ u32 row(u32 m) const { return tile.row + m / shared; }
  // The last position that a query sees.
  __device__ __forceinline__ u32 position(u32 m) const { return ALL ? tile.end - 1 : tile.position + m / shared; }
  __device__ __forceinline__ u32 head(u32 m) const { return kv_head * shared + m % shared; }
  __device__ __forceinline__ u32 first_tile(u32 window) const { return first_key(tile.position, window) / KEYS; }
  // Behind the last position that one of them sees.
  __device__ __forceinline__ u32 seen() const { return ALL ? tile.end : tile.position + tile.count; }
  __device__ __forceinline__ u32 last_tile() const { return (seen() - 1) / KEYS; }

  // Whether no query of this warp is one.
  __device__ __forceinline__ bool idle() const { return threadIdx.x / 32 * 16 >= used; }

  // The tiles that all queries of this warp see in full: behind the first number, before the second.
  __device__ __forceinline__ uint2 whole(u32 window) const {
    u32 m = threadIdx.x / 32 * 16;
    return make_uint2((first_key(position(m + 15), window) + KEYS - 1) / KEYS, (position(m) + 1) / KEYS);
  }

  // Starts the copy of keys and values 32 · block.. up to the last one that a query sees.
  template <u32 W>
  __device__ __forceinline__ void load(const Copier<W>& copier, u32 to, u32 block, u32 layer, u32 head_dim) const {
    u32 count = min(KEYS, seen() - block * KEYS);
    const u16* keys = cached(tile.blocks, block, layer, 0, kv_head, kv_width, head_dim);
    copier.template start<KEYS>(to, keys, count, kv_width);
    copier.template start<KEYS>(to + KEYS * W * 2, keys + (u64)KEYS * kv_width, count, kv_width);
  }

  // Each warp's 16 queries of rows of heads as left sides, rounded; `memory` has a tile of them meanwhile.
  template <u32 W>
  __device__ __forceinline__ void as_left_sides(u32 (*to)[4], u16* memory, const float* rows, u64 stride, u32 head_dim) const {
#pragma unroll
    for (u32 i = 0; i < ROWS * W / 8 / THREADS; i++) {
      u32 at = threadIdx.x + i * THREADS, m = at / (W / 8), column = at % (W / 8) * 8;
      uint4 chunk = make_uint4(0, 0, 0, 0);
      if (m < used && column < head_dim) {
        const float4* from = (const float4*)(rows + row(m) * stride + head(m) * head_dim + column);
        float4 first = from[0], second = from[1];
        chunk = make_uint4(pack(first.x, first.y), pack(first.z, first.w), pack(second.x, second.y), pack(second.z, second.w));
      }
      *(uint4*)(memory + place<W>(m, column)) = chunk;
    }
    __syncthreads();
    Reader<W> reader = Reader<W>::across();
    u32 tile = shared_address(memory);
#pragma unroll
    for (u32 k = 0; k < W / 16; k++) matrices(to[k], reader.at(tile, threadIdx.x / 32 * 16, k));
    __syncthreads();
  }

  // Writes results of 8 columns each, times a factor, to the heads of rows that a query has.
  template <u32 N>
  __device__ __forceinline__ void put(float* rows, u64 stride, u32 part, const float (*from)[4], float factor, u32 head_dim) const {
    u32 m = own(part);
    if (m >= used) return;
    float2* to = (float2*)(rows + row(m) * stride + head(m) * head_dim) + lane_id() % 4;
#pragma unroll
    for (u32 i = 0; i < N; i++)
      if (i * 8 < head_dim) to[i * 4] = make_float2(from[i][2 * part] * factor, from[i][2 * part + 1] * factor);
  }
};

using Queries = QueryTile<false>;

// c[n][..] = a · rows of `tile`ᵀ, 8 rows for each n.
template <u32 W, u32 N>
__device__ __forceinline__ void products(float (*c)[4], const u32 (*a)[4], u32 tile) {
  Reader<W> reader = Reader<W>::along();
#pragma unroll
  for (u32 n = 0; n < N; n++)
#pragma unroll
    for (u32 e = 0; e < 4; e++) c[n][e] = 0;
#pragma unroll
  for (u32 k = 0; k < W / 16; k++)
#pragma unroll
    for (u32 n = 0; n < N; n += 2) {
      u32 b[4];
      matrices(b, reader.at(tile, n * 8, k));
      mma(c[n], a[k], b);
      mma(c[n + 1], a[k], b + 2);
    }
}

// to += weights · tile, for 16 rows of the tile from `row` on.
template <u32 W>
__device__ __forceinline__ void add_rows(float (*to)[4], const u32* weights, u32 tile, u32 row) {
  Reader<W> reader = Reader<W>::across();
#pragma unroll
  for (u32 d = 0; d < W / 16; d++) {
    u32 b[4];
    transposed_matrices(b, reader.at(tile, row, d));
    mma(to[2 * d], weights, b);
    mma(to[2 * d + 1], weights, b + 2);
  }
}

// Softmax over some keys: for the two queries of a thread the largest score, the sums of the weights and of the rounded ones, which are
// relative to it, and the weighted sum of values.
template <u32 W>
struct Softmax {
  float largest[2] = {-INFINITE, -INFINITE}, total[2] = {0, 0}, rounded[4] = {}, o[W / 8][4] = {};

  // Factors for what is relative to the old largest score, and to another one, once they are relative to the new one.
  __device__ __forceinline__ static float2 factors(float& largest, float other) {
    float top = fmaxf(largest, other), base = top == -INFINITE ? 0.f : top;
    float2 found = make_float2(power(largest - base), power(other - base));
    largest = top;
    return found;
  }

  // Appends those of the next split, whose totals each lane has a part of.
  __device__ __forceinline__ void join(const Softmax& next) {
#pragma unroll
    for (u32 part = 0; part < 2; part++) {
      float2 by = factors(largest[part], next.largest[part]);
      total[part] = fmaf(quad_sum(next.total[part]), by.y, total[part] * by.x);
      rounded[2 * part] = fmaf(next.rounded[2 * part], by.y, rounded[2 * part] * by.x);
#pragma unroll
      for (u32 d = 0; d < W / 8; d++)
#pragma unroll
        for (u32 e = 2 * part; e < 2 * part + 2; e++) o[d][e] = fmaf(next.o[d][e], by.y, o[d][e] * by.x);
    }
  }

  // Adds a tile of scores, -inf where a query does not see a key, and the values.
  __device__ __forceinline__ void add(float (*c)[4], u32 values) {
#pragma unroll
    for (u32 part = 0; part < 2; part++) {
      float top = largest[part];
#pragma unroll
      for (u32 n = 0; n < KEYS / 8; n++) top = fmaxf(top, fmaxf(c[n][2 * part], c[n][2 * part + 1]));
      top = quad_max(top);
      // A tile that a query does not see changes nothing of it.
      float base = top == -INFINITE ? 0.f : top, old = power(largest[part] - base);
      total[part] *= old;
      rounded[2 * part] *= old;
#pragma unroll
      for (u32 d = 0; d < W / 8; d++) {
        o[d][2 * part] *= old;
        o[d][2 * part + 1] *= old;
      }
#pragma unroll
      for (u32 n = 0; n < KEYS / 8; n++)
#pragma unroll
        for (u32 e = 2 * part; e < 2 * part + 2; e++) {
          c[n][e] = power(c[n][e] - base);
          total[part] += c[n][e];
        }
      largest[part] = top;
    }
    const u32 ones[2] = {0x3f803f80u, 0x3f803f80u};
#pragma unroll
    for (u32 k = 0; k < KEYS / 16; k++) {
      u32 weights[4];
      as_left(weights, c[2 * k], c[2 * k + 1]);
      mma(rounded, weights, ones);
      add_rows<W>(o, weights, values, k * 16);
    }
  }
};

// Scores of a tile of keys, scaled; -inf where a query does not see a key.
__device__ __forceinline__ void mask(float (*c)[4], float scale, u32 tile, uint2 whole, const u32* position, u32 window) {
  if (tile >= whole.x && tile < whole.y) {
#pragma unroll
    for (u32 n = 0; n < KEYS / 8; n++)
#pragma unroll
      for (u32 e = 0; e < 4; e++) c[n][e] *= scale;
    return;
  }
#pragma unroll
  for (u32 part = 0; part < 2; part++) {
    u32 begin = first_key(position[part], window);
#pragma unroll
    for (u32 n = 0; n < KEYS / 8; n++)
#pragma unroll
      for (u32 e = 2 * part; e < 2 * part + 2; e++) {
        u32 key = tile * KEYS + n * 8 + lane_id() % 4 * 2 + e % 2;
        c[n][e] = key >= begin && key <= position[part] ? c[n][e] * scale : -INFINITE;
      }
  }
}

// A split of a row and head: its largest score, and the sums of its weights and of the rounded ones; one load has all of it.
struct __align__(16) State {
  float largest, total, rounded, unused;
};

// The output of each query, and the log-sum-exp of its scaled scores, [rows][heads]. blockIdx.x is the tile, blockIdx.y the key head.
// ONE: of split blockIdx.z alone, what the output is made of, [rows][heads][splits], and its states. ALL: see QueryTile.
template <u32 W, bool ONE, bool ALL>
__device__ __forceinline__ void forward(const float* qkv, const Tile* tiles, float* out, float* log_sums, State* states, SHAPE) {
  __shared__ __align__(128) u16 memory[2][2][KEYS * W];
  QueryTile<ALL> queries(tiles[blockIdx.x], heads, kv_heads, head_dim);
  u64 q_width = heads * head_dim;
  u32 first = queries.first_tile(window), last = queries.last_tile();
  if (ONE) {
    u32 begin = blockIdx.z * SPLIT;
    if (begin > last || begin + SPLIT <= first) {
      for (u32 m = threadIdx.x; m < queries.used; m += THREADS)
        states[((u64)queries.row(m) * heads + queries.head(m)) * gridDim.z + blockIdx.z] = State{-INFINITE, 0, 0};
      return;
    }
    first = max(first, begin);
    last = min(last, begin + SPLIT - 1);
  }
  u32 q[W / 16][4];
  queries.template as_left_sides<W>(q, memory[0][0], qkv, q_width + 2 * queries.kv_width, head_dim);
  Softmax<W> all, split;
  u32 position[2] = {queries.position(queries.own(0)), queries.position(queries.own(1))};
  uint2 whole = queries.whole(window);
  bool idle = queries.idle();
  Copier<W> copier(head_dim);
  u32 stage = shared_address(memory), other = stage + 2 * KEYS * W * 2;
  scale *= LOG2_E;
  queries.template load<W>(copier, stage, first, layer, head_dim);
  commit();
  for (u32 tile = first; tile <= last; tile++) {
    if (tile < last) queries.template load<W>(copier, other, tile + 1, layer, head_dim);
    commit();
    wait_for_older<1>();
    __syncthreads();
    if (!idle) {
      float c[KEYS / 8][4];
      products<W, KEYS / 8>(c, q, stage);
      mask(c, scale, tile, whole, position, window);
      split.add(c, stage + KEYS * W * 2);
      if (!ONE && (tile == last || tile % SPLIT == SPLIT - 1)) {
        all.join(split);
        split = Softmax<W>();
      }
    }
    __syncthreads();
    u32 free = stage;
    stage = other;
    other = free;
  }
#pragma unroll
  for (u32 part = 0; part < 2; part++) {
    u32 m = queries.own(part);
    u64 at = (u64)queries.row(m) * heads + queries.head(m);
    if (ONE) {
      float total = quad_sum(split.total[part]);
      if (m < queries.used && lane_id() % 4 == 0)
        states[at * gridDim.z + blockIdx.z] = State{split.largest[part], total, split.rounded[2 * part], 0};
      float* to = out + blockIdx.z * head_dim - (u64)queries.head(m) * head_dim + (u64)queries.head(m) * gridDim.z * head_dim;
      queries.template put<W / 8>(to, q_width * gridDim.z, part, split.o, 1.f, head_dim);
    } else {
      if (m < queries.used && lane_id() % 4 == 0) log_sums[at] = all.largest[part] * LN_2 + logf(all.total[part]);
      queries.template put<W / 8>(out, q_width, part, all.o, 1.f / all.rounded[2 * part], head_dim);
    }
  }
}

#define FORWARD(W)                                                                                                                 \
  extern "C" __global__ void __launch_bounds__(128)                                                                                \
      tensor_attention_##W(const float* qkv, const Tile* tiles, float* out, float* log_sums, SHAPE) {                              \
    forward<W, false, false>(qkv, tiles, out, log_sums, nullptr, heads, kv_heads, head_dim, layer, window, scale);                 \
  }                                                                                                                                \
  extern "C" __global__ void __launch_bounds__(128)                                                                                \
      tensor_attention_split_##W(const float* qkv, const Tile* tiles, float* parts, State* states, SHAPE) {                        \
    forward<W, true, false>(qkv, tiles, parts, nullptr, states, heads, kv_heads, head_dim, layer, window, scale);                  \
  }                                                                                                                                \
  extern "C" __global__ void __launch_bounds__(128)                                                                                \
      tensor_attention_all_##W(const float* qkv, const Tile* tiles, float* out, float* log_sums, SHAPE) {                          \
    forward<W, false, true>(qkv, tiles, out, log_sums, nullptr, heads, kv_heads, head_dim, layer, window, scale);                  \
  }

FORWARD(64)
FORWARD(128)

// Joins splits in order, with the bits of `forward`: blockIdx.z is the query head among those of key head blockIdx.y, and a thread has a
// column. Eight splits are loaded at once.
extern "C" __global__ void __launch_bounds__(128) tensor_attention_join(const float* parts, const State* states, const Tile* tiles,
                                                                        float* out, float* log_sums, u32 splits, u32 heads,
                                                                        u32 kv_heads, u32 head_dim) {
  constexpr u32 AT_ONCE = 8;
  Tile tile = tiles[blockIdx.x];
  u32 head = blockIdx.y * (heads / kv_heads) + blockIdx.z, column = threadIdx.x;
  for (u32 row = tile.row; row < tile.row + tile.count; row++) {
    u64 at = (u64)row * heads + head;
    float largest = -INFINITE, total = 0, rounded = 0, o = 0;
    for (u32 first = 0; first < splits; first += AT_ONCE) {
      State state[AT_ONCE];
      float part[AT_ONCE];
#pragma unroll
      for (u32 i = 0; i < AT_ONCE; i++) {
        state[i].largest = -INFINITE;
        if (first + i < splits) state[i] = states[at * splits + first + i];
      }
#pragma unroll
      for (u32 i = 0; i < AT_ONCE; i++)
        part[i] = state[i].largest != -INFINITE && column < head_dim ? parts[(at * splits + first + i) * head_dim + column] : 0.f;
#pragma unroll
      for (u32 i = 0; i < AT_ONCE; i++) {
        if (state[i].largest == -INFINITE) continue;
        float2 by = Softmax<64>::factors(largest, state[i].largest);
        total = fmaf(state[i].total, by.y, total * by.x);
        rounded = fmaf(state[i].rounded, by.y, rounded * by.x);
        o = fmaf(part[i], by.y, o * by.x);
      }
    }
    if (column < head_dim) out[at * head_dim + column] = o * (1.f / rounded);
    if (column == 0) log_sums[at] = largest * LN_2 + logf(total);
  }
}

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
