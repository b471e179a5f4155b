// What adapters in bf16 add to linear layers, on tensor cores, for rows of any mix of adapters. A tile of rows is multiplied with each
// adapter that one of its rows has, in ascending order, and a row takes the results of its own: its bits do not depend on the others.
//
// Grids follow from the number of rows and the largest extents: blockIdx.z is the layer (columns of the outputs that follow each
// other, q, k and v for one), which has `each` adapters. Row indices of a layer are `step` behind those of the one before.

struct Adapter {
  // A, [rank, inputs], and B, [outputs, rank].
  const u16* a;
  const u16* b;
  u32 rank;
  float scale;
  // The layer's first column among outputs, and how many it has.
  u32 column, outputs;
};

struct Table {
  const Adapter* adapters;
  const u32* rows;
};

#define TABLE const Adapter *adapters, const u32 *rows, u32 count, u32 each, u32 step

constexpr u32 NONE = 0xffffffffu, ROWS = 64, DEPTH = 64, RANKS = 32, THREADS = 128;

// Sums along k are split into 16 at most, each from zero, which are added in order: their width follows from that of k alone.
constexpr u32 SPLITS = 16;
__device__ __forceinline__ u32 split_width(u32 depth) { return (depth + 16 * SPLITS - 1) / (16 * SPLITS) * 16; }

__device__ __forceinline__ Table layer(const Adapter* adapters, const u32* rows, u32 each, u32 step, u32 index) {
  return {adapters + index * each, rows + (u64)index * step};
}

// The adapters of up to 64 rows: each lane has those of two.
struct Present {
  u32 first, second;

  __device__ __forceinline__ Present(const u32* rows, u32 begin, u32 end) {
    u32 row = begin + lane_id();
    first = row < end ? rows[row] : NONE;
    second = row + 32 < end ? rows[row + 32] : NONE;
  }

  // The lowest one from `least` on, the same in all lanes; NONE behind the last one.
  __device__ __forceinline__ u32 next(u32 least) const {
    return __reduce_min_sync(ALL, min(first >= least ? first : NONE, second >= least ? second : NONE));
  }
};

// Starts the copy of N rows of C elements, `pitch` elements apart, of which `n` and `c` exist; zeros elsewhere. Where 16 bytes of a row
// are not where a copy may begin, elements are stored one by one.
template <u32 N, u32 C>
__device__ __forceinline__ void load_tile(u16* to, const u16* from, u32 n, u32 c, u32 pitch) {
  if ((((u64)from | (u64)pitch * 2) & 15) == 0) {
#pragma unroll
    for (u32 i = 0; i < N * C / 8 / THREADS; i++) {
      u32 chunk = threadIdx.x + i * THREADS, row = chunk / (C / 8), column = chunk % (C / 8) * 8;
      bool exists = row < n && column < c;
      copy16(to + place<C>(row, column), exists ? from + (u64)row * pitch + column : from, exists ? min(16, 2 * (c - column)) : 0);
    }
  } else {
    for (u32 i = threadIdx.x; i < N * C; i += THREADS) {
      u32 row = i / C, column = i % C;
      to[place<C>(row, column & ~7u) + (column & 7)] = row < n && column < c ? from[(u64)row * pitch + column] : (u16)0;
    }
  }
}

// Two results of a row's that follow each other: its own number and adapter.
struct Own {
  u32 row[2], adapter[2];

  __device__ __forceinline__ Own(const u32* rows, u32 begin, u32 end) {
#pragma unroll
    for (u32 part = 0; part < 2; part++) {
      row[part] = begin + threadIdx.x / 32 * 16 + lane_id() / 4 + part * 8;
      adapter[part] = row[part] < end ? rows[row[part]] : NONE;
    }
  }
};

// z = scale · (x Aᵀ), [layer][row][most]; BACKWARD: dz = scale · (dy B). Zeros beyond the rank and in rows without an adapter.
// blockIdx.x is a tile of 64 rows, y one of 32 ranks; x has rows of `width` elements.
template <bool BACKWARD>
__device__ __forceinline__ void shrink(const u16* x, TABLE, float* z, u32 width, u32 most) {
  constexpr u32 WIDE = BACKWARD ? RANKS : DEPTH;
  __shared__ __align__(128) u16 tiles[3][ROWS * DEPTH], weights[3][RANKS * DEPTH];
  Table table = layer(adapters, rows, each, step, blockIdx.z);
  u32 begin = blockIdx.x * ROWS, rank = blockIdx.y * RANKS, warp = threadIdx.x / 32;
  Own own(table.rows, begin, count);
  Present present(table.rows, begin, count);
  auto put = [&](u32 part, u32 n, float first, float second) {
    u32 column = rank + n * 8 + lane_id() % 4 * 2;
    float* to = z + ((u64)blockIdx.z * count + own.row[part]) * most + column;
    if (column + 1 < most && most % 2 == 0) {
      *(float2*)to = make_float2(first, second);
    } else {
      if (column < most) to[0] = first;
      if (column + 1 < most) to[1] = second;
    }
  };
#pragma unroll
  for (u32 part = 0; part < 2; part++)
    if (own.row[part] < count && own.adapter[part] == NONE)
      for (u32 n = 0; n < RANKS / 8; n++) put(part, n, 0, 0);
  for (u32 index = present.next(0); index != NONE; index = present.next(index + 1)) {
    const Adapter adapter = table.adapters[index];
    u32 depth = BACKWARD ? adapter.outputs : width, ranks = adapter.rank > rank ? min(RANKS, adapter.rank - rank) : 0;
    u32 steps = ranks ? (depth + DEPTH - 1) / DEPTH : 0, pitch = BACKWARD ? adapter.rank : width;
    const u16* from = x + (u64)begin * width + (BACKWARD ? adapter.column : 0);
    const u16* side = BACKWARD ? adapter.b + rank : adapter.a + (u64)rank * width;
    auto load = [&](u32 i) {
      if (i < steps) {
        u32 k = i * DEPTH, exist = min(DEPTH, depth - k);
        load_tile<ROWS, DEPTH>(tiles[i % 3], from + k, count - begin, exist, width);
        if (BACKWARD)
          load_tile<DEPTH, RANKS>(weights[i % 3], side + (u64)k * pitch, exist, ranks, pitch);
        else
          load_tile<RANKS, DEPTH>(weights[i % 3], side + k, ranks, exist, pitch);
      }
      commit();
    };
    float total[RANKS / 8][4] = {}, sum[RANKS / 8][4] = {};
    auto fold = [&]() {
#pragma unroll
      for (u32 n = 0; n < RANKS / 8; n++)
#pragma unroll
        for (u32 e = 0; e < 4; e++) {
          total[n][e] += sum[n][e];
          sum[n][e] = 0;
        }
    };
    u32 split = split_width(depth), end = split;
    load(0);
    load(1);
    for (u32 i = 0; i < steps; i++) {
      wait_for_older<1>();
      __syncthreads();
      load(i + 2);
#pragma unroll
      for (u32 k = 0; k < DEPTH; k += 16) {
        if (i * DEPTH + k == end) {
          fold();
          end += split;
        }
        u32 a[4];
        left<DEPTH>(a, tiles[i % 3], warp * 16, k);
#pragma unroll
        for (u32 n = 0; n < RANKS / 8; n += 2) {
          u32 b[4];
          if (BACKWARD)
            right_transposed<WIDE>(b, weights[i % 3], k, n * 8);
          else
            right<WIDE>(b, weights[i % 3], n * 8, k);
          mma(sum[n], a, b);
          mma(sum[n + 1], a, b + 2);
        }
      }
    }
    fold();
    float scale = adapter.scale;
#pragma unroll
    for (u32 part = 0; part < 2; part++)
      if (own.adapter[part] == index)
#pragma unroll
        for (u32 n = 0; n < RANKS / 8; n++) put(part, n, total[n][2 * part] * scale, total[n][2 * part + 1] * scale);
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(128) tensor_lora_shrink(const u16* x, TABLE, float* z, u32 width, u32 most) {
  shrink<false>(x, adapters, rows, count, each, step, z, width, most);
}

extern "C" __global__ void __launch_bounds__(128) tensor_lora_shrink_backward(const u16* dy, TABLE, float* dz, u32 width, u32 most) {
  shrink<true>(dy, adapters, rows, count, each, step, dz, width, most);
}

// Two elements of a row, zeros from `end` on. `even`: both are in one word.
__device__ __forceinline__ u32 two(const u16* row, u32 column, u32 end, bool even) {
  if (column >= end) return 0;
  if (even) return *(const u32*)(row + column);
  return row[column] | (column + 1 < end ? (u32)row[column + 1] << 16 : 0);
}

// The bits of `tensor_lora_shrink`, for few rows: each of 16 warps has a split of the sum. A block has 16 rows and 8 ranks.
extern "C" __global__ void __launch_bounds__(512) tensor_lora_shrink_few(const u16* x, TABLE, float* z, u32 width, u32 most) {
  constexpr u32 BATCH = 4;
  __shared__ float sums[SPLITS][128];
  Table table = layer(adapters, rows, each, step, blockIdx.z);
  u32 begin = blockIdx.x * 16, last = min(begin + 16, count), rank = blockIdx.y * 8, warp = threadIdx.x / 32;
  u32 group = lane_id() / 4, pair = lane_id() % 4 * 2;
  bool even = width % 2 == 0;
  Present present(table.rows, begin, last);
  // Threads below 128 have a result each.
  u32 row = begin + threadIdx.x / 8, r = rank + threadIdx.x % 8;
  bool writes = threadIdx.x < 128 && row < last && r < most;
  u32 own = writes ? table.rows[row] : NONE;
  float* to = z + ((u64)blockIdx.z * count + row) * most + r;
  if (writes && own == NONE) *to = 0;
  u32 begin_k = warp * split_width(width), end = min(width, begin_k + split_width(width));
  const u16 *above = x + (u64)(begin + group) * width, *below = above + (u64)8 * width;
  u32 above_end = begin + group < last ? end : 0, below_end = begin + group + 8 < last ? end : 0;
  for (u32 index = present.next(0); index != NONE; index = present.next(index + 1)) {
    const Adapter adapter = table.adapters[index];
    const u16* side = adapter.a + (u64)(rank + group) * width;
    u32 side_end = rank + group < adapter.rank ? end : 0;
    float sum[4] = {};
    for (u32 k = begin_k; k < end; k += 16 * BATCH) {
      u32 a[BATCH][4], b[BATCH][2];
#pragma unroll
      for (u32 i = 0; i < BATCH; i++) {
        u32 column = k + i * 16 + pair;
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
          b[i][half] = two(side, column + half * 8, side_end, even);
          a[i][half * 2] = two(above, column + half * 8, above_end, even);
          a[i][half * 2 + 1] = two(below, column + half * 8, below_end, even);
        }
      }
#pragma unroll
      for (u32 i = 0; i < BATCH; i++) mma(sum, a[i], b[i]);
    }
#pragma unroll
    for (u32 e = 0; e < 4; e++) sums[warp][(group + e / 2 * 8) * 8 + pair + e % 2] = sum[e];
    __syncthreads();
    if (own == index) {
      float total = 0;
      for (u32 split = 0; split < SPLITS; split++) total += sums[split][threadIdx.x];
      *to = total * adapter.scale;
    }
    __syncthreads();
  }
}

// 16 columns of a warp's 16 rows of z as a left side, rounded; zeros from `end` on, which is at most `most`.
__device__ __forceinline__ void left_of(u32* a, const float* z, u32 begin, u32 count, u32 column, u32 end, u32 most) {
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    u32 row = begin + threadIdx.x / 32 * 16 + lane_id() / 4 + i % 2 * 8, at = column + i / 2 * 8 + lane_id() % 4 * 2;
    const float* from = z + (u64)row * most + at;
    float first = 0, second = 0;
    if (row < count && at + 1 < end && most % 2 == 0) {
      float2 both = *(const float2*)from;
      first = both.x;
      second = both.y;
    } else if (row < count && at < end) {
      first = from[0];
      second = at + 1 < end ? from[1] : 0.f;
    }
    a[i] = pack(first, second);
  }
}

// Adds results of 8 N columns to those of a row from `to` on, of which `exist`: all loads before the stores.
template <u32 N>
__device__ __forceinline__ void add_to(float* to, const float (*sum)[4], u32 part, u32 exist) {
  float2 old[N];
  u32 first = lane_id() % 4 * 2;
  if (exist >= 8 * N && ((u64)to & 7) == 0) {
#pragma unroll
    for (u32 n = 0; n < N; n++) old[n] = *(float2*)(to + n * 8 + first);
#pragma unroll
    for (u32 n = 0; n < N; n++)
      *(float2*)(to + n * 8 + first) = make_float2(old[n].x + sum[n][2 * part], old[n].y + sum[n][2 * part + 1]);
  } else {
#pragma unroll
    for (u32 n = 0; n < N; n++)
#pragma unroll
      for (u32 e = 0; e < 2; e++)
        if (n * 8 + first + e < exist) to[n * 8 + first + e] += sum[n][2 * part + e];
  }
}

// out[.., columns] += z Bᵀ: the sum along the rank, then the addition; z is rounded. blockIdx.x is a tile of 64 rows, y one of 128
// outputs; out has rows of `stride` elements.
extern "C" __global__ void __launch_bounds__(128) tensor_lora_expand(const float* z, TABLE, float* out, u32 most, u32 stride) {
  constexpr u32 OUTPUTS = 128;
  __shared__ __align__(128) u16 weights[OUTPUTS * RANKS];
  Table table = layer(adapters, rows, each, step, blockIdx.z);
  u32 begin = blockIdx.x * ROWS, first = blockIdx.y * OUTPUTS;
  Own own(table.rows, begin, count);
  Present present(table.rows, begin, count);
  z += (u64)blockIdx.z * count * most;
  for (u32 index = present.next(0); index != NONE; index = present.next(index + 1)) {
    const Adapter adapter = table.adapters[index];
    u32 rank = adapter.rank, outputs = adapter.outputs;
    if (first >= outputs) continue;
    float sum[OUTPUTS / 8][4] = {};
    for (u32 r = 0; r < rank; r += RANKS) {
      load_tile<OUTPUTS, RANKS>(weights, adapter.b + (u64)first * rank + r, outputs - first, min(RANKS, rank - r), rank);
      commit();
      u32 a[RANKS / 16][4];
#pragma unroll
      for (u32 k = 0; k < RANKS; k += 16) left_of(a[k / 16], z, begin, count, r + k, rank, most);
      wait_for_older<0>();
      __syncthreads();
#pragma unroll
      for (u32 k = 0; k < RANKS; k += 16)
#pragma unroll
        for (u32 n = 0; n < OUTPUTS / 8; n += 2) {
          u32 b[4];
          right<RANKS>(b, weights, n * 8, k);
          mma(sum[n], a[k / 16], b);
          mma(sum[n + 1], a[k / 16], b + 2);
        }
      __syncthreads();
    }
#pragma unroll
    for (u32 part = 0; part < 2; part++)
      if (own.adapter[part] == index)
        add_to<OUTPUTS / 8>(out + (u64)own.row[part] * stride + adapter.column + first, sum, part, outputs - first);
  }
}

// dx += Σ dz A over the layers: each one's sum along the rank, these in order, then the addition; dz is rounded. blockIdx.y is a tile
// of 64 inputs.
extern "C" __global__ void __launch_bounds__(128) tensor_lora_expand_backward(const float* dz, TABLE, float* dx, u32 layers, u32 most,
                                                                              u32 inputs) {
  constexpr u32 INPUTS = 64;
  __shared__ __align__(128) u16 weights[RANKS * INPUTS];
  u32 begin = blockIdx.x * ROWS, first = blockIdx.y * INPUTS;
  float total[INPUTS / 8][4] = {};
  u32 changed = 0;
  for (u32 i = 0; i < layers; i++) {
    Table table = layer(adapters, rows, each, step, i);
    Own own(table.rows, begin, count);
    Present present(table.rows, begin, count);
    for (u32 index = present.next(0); index != NONE; index = present.next(index + 1)) {
      const Adapter adapter = table.adapters[index];
      u32 rank = adapter.rank;
      float sum[INPUTS / 8][4] = {};
      for (u32 r = 0; r < rank; r += RANKS) {
        load_tile<RANKS, INPUTS>(weights, adapter.a + (u64)r * inputs + first, rank - r, min(INPUTS, inputs - first), inputs);
        commit();
        u32 a[RANKS / 16][4];
#pragma unroll
        for (u32 k = 0; k < RANKS; k += 16) left_of(a[k / 16], dz, begin, count, r + k, rank, most);
        wait_for_older<0>();
        __syncthreads();
#pragma unroll
        for (u32 k = 0; k < RANKS; k += 16)
#pragma unroll
          for (u32 n = 0; n < INPUTS / 8; n += 2) {
            u32 b[4];
            right_transposed<INPUTS>(b, weights, k, n * 8);
            mma(sum[n], a[k / 16], b);
            mma(sum[n + 1], a[k / 16], b + 2);
          }
        __syncthreads();
      }
#pragma unroll
      for (u32 part = 0; part < 2; part++) {
        if (own.adapter[part] != index) continue;
        changed |= 1u << part;
#pragma unroll
        for (u32 n = 0; n < INPUTS / 8; n++)
#pragma unroll
          for (u32 e = 2 * part; e < 2 * part + 2; e++) total[n][e] += sum[n][e];
      }
    }
    dz += (u64)count * most;
  }
#pragma unroll
  for (u32 part = 0; part < 2; part++) {
    u32 row = begin + threadIdx.x / 32 * 16 + lane_id() / 4 + part * 8;
    if (changed >> part & 1) add_to<INPUTS / 8>(dx + (u64)row * inputs + first, total, part, inputs - first);
  }
}
