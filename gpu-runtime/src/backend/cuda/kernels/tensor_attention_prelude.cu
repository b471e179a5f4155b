// Causal grouped-query attention on tensor cores, over keys and values in bf16 in blocks of 32 positions. Queries, keys, values and
// probabilities are rounded to bf16; sums are f32. A block of four warps has a tile of 64 queries: rows of a sequence with all query
// heads of a key head, so that keys are read once for them. Keys and values come by asynchronous copies, a tile ahead.
//
// Heads have at most W columns; columns that they lack are zeros. Exponentials are powers of two: scores are multiplied by the scale
// and log2(e).
//
// The compiler gets this in front of each source whose name begins with tensor_attention_.

constexpr u32 KEYS = 32, ROWS = 64, THREADS = 128;

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
