// From the width of a layer to the rank of its adapters.

constexpr u32 DEPTH = 64;

// Sums along k are split into 16 at most, each from zero, which are added in order: their width follows from that of k alone.
constexpr u32 SPLITS = 16;
__device__ __forceinline__ u32 split_width(u32 depth) { return (depth + 16 * SPLITS - 1) / (16 * SPLITS) * 16; }

// An element of z, in f32 or rounded.
__device__ __forceinline__ void put_element(void* z, u64 at, float x, u32 wide) {
  if (wide)
    ((float*)z)[at] = x;
  else
    ((u16*)z)[at] = to_bf16(x);
}

// z = scale · (x Aᵀ), [layer][row][most]; BACKWARD: dz = scale · (dy B). Zeros beyond the rank and in rows without an adapter. In f32
// where it is `wide`, else rounded.
// blockIdx.x is a tile of 64 rows, y one of 32 ranks; x has rows of `width` elements.
template <bool BACKWARD>
__device__ __forceinline__ void shrink(const u16* x, TABLE, void* z, u32 width, u32 most, u32 wide) {
  constexpr u32 WIDE = BACKWARD ? RANKS : DEPTH;
  __shared__ __align__(128) u16 tiles[3][ROWS * DEPTH], weights[3][RANKS * DEPTH];
  Table table = layer(adapters, rows, each, step, blockIdx.z);
  u32 begin = blockIdx.x * ROWS, rank = blockIdx.y * RANKS, warp = threadIdx.x / 32;
  Own own(table.rows, begin, count);
  Present present(table.rows, begin, count);
  auto put = [&](u32 part, u32 n, float first, float second) {
    u32 column = rank + n * 8 + lane_id() % 4 * 2;
    u64 at = ((u64)blockIdx.z * count + own.row[part]) * most + column;
    if (column + 1 < most && most % 2 == 0) {
      if (wide)
        *(float2*)((float*)z + at) = make_float2(first, second);
      else
        *(u32*)((u16*)z + at) = pack(first, second);
    } else {
      if (column < most) put_element(z, at, first, wide);
      if (column + 1 < most) put_element(z, at + 1, second, wide);
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
        load_tile<ROWS, DEPTH, THREADS>(threadIdx.x, tiles[i % 3], from + k, count - begin, exist, width);
        if (BACKWARD)
          load_tile<DEPTH, RANKS, THREADS>(threadIdx.x, weights[i % 3], side + (u64)k * pitch, exist, ranks, pitch);
        else
          load_tile<RANKS, DEPTH, THREADS>(threadIdx.x, weights[i % 3], side + k, ranks, exist, pitch);
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

extern "C" __global__ void __launch_bounds__(128) tensor_lora_shrink(const u16* x, TABLE, void* z, u32 width, u32 most, u32 wide) {
  shrink<false>(x, adapters, rows, count, each, step, z, width, most, wide);
}

extern "C" __global__ void __launch_bounds__(128) tensor_lora_shrink_backward(const u16* dy, TABLE, void* dz, u32 width, u32 most,
                                                                              u32 wide) {
  shrink<true>(dy, adapters, rows, count, each, step, dz, width, most, wide);
}

// Eight elements of a row from `column` on, zeros from `end` on, one by one.
__device__ __forceinline__ uint4 eight(const u16* row, u32 column, u32 end) {
  u64 words[2] = {0, 0};
  // Not unrolled: it would take registers from the other path.
#pragma unroll 1
  for (u32 i = 0; i < 8 && column + i < end; i++) {
    u64 bits = (u64)row[column + i] << i % 4 * 16;
    words[0] |= i < 4 ? bits : 0;
    words[1] |= i < 4 ? 0 : bits;
  }
  return make_uint4((u32)words[0], (u32)(words[0] >> 32), (u32)words[1], (u32)(words[1] >> 32));
}

// The bits of `tensor_lora_shrink`, for few rows: each of 16 warps has a split of the sum. A block has 8 rows, the upper half of an mma's,
// and 8 ranks. A lane loads eight elements of a row at once, which ldmatrix gives to the lanes whose operands they are. Where there are
// fewer rows or ranks the last one is loaded in place of others, whose results are not stored.
extern "C" __global__ void __launch_bounds__(512) tensor_lora_shrink_few(const u16* x, TABLE, void* z, u32 width, u32 most,
                                                                         u32 wide) {
  // Columns that eight rows have in a tile, and how many tiles are loaded at once.
  constexpr u32 COLUMNS = 32, BATCH = 4, STEP = BATCH * COLUMNS, FEW = 8;
  __shared__ __align__(128) u16 tiles[SPLITS][BATCH][FEW * COLUMNS];
  __shared__ float sums[SPLITS][FEW * 8];
  Table table = layer(adapters, rows, each, step, blockIdx.z);
  u32 begin = blockIdx.x * FEW, last = min(begin + FEW, count), rank = blockIdx.y * 8, warp = threadIdx.x / 32;
  u32 group = lane_id() / 4, quarter = lane_id() % 4;
  Present present(table.rows, begin, last);
  // The first 64 threads have a result each.
  u32 row = begin + threadIdx.x / 8, r = rank + threadIdx.x % 8;
  bool writes = threadIdx.x < FEW * 8 && row < last && r < most;
  u32 own = writes ? table.rows[row] : NONE;
  u64 at = ((u64)blockIdx.z * count + row) * most + r;
  if (writes && own == NONE) put_element(z, at, 0, wide);
  u32 begin_k = warp * split_width(width), end = min(width, begin_k + split_width(width));
  const u16* input = x + (u64)min(begin + group, last - 1) * width;
  // Row g of matrix m, eight columns, is chunk 8 m + (g + 2 m) % 8 of a tile, so that neither access meets a bank twice.
  u16* put = tiles[warp][0] + (quarter * 8 + ((group + 2 * quarter) & 7)) * 8;
  const u16* get = tiles[warp][0] + ((lane_id() & 24) + ((lane_id() + lane_id() / 8 * 2) & 7)) * 8;
  auto operands = [&](u32 (*to)[4], const uint4* from) {
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < BATCH; i++) *(uint4*)(put + i * FEW * COLUMNS) = from[i];
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < BATCH; i++) ldmatrix(to[i], get + i * FEW * COLUMNS);
  };
  struct Batch {
    uint4 a[BATCH], b[BATCH];
  };
  for (u32 index = present.next(0); index != NONE; index = present.next(index + 1)) {
    const Adapter adapter = table.adapters[index];
    const u16* side = adapter.a + (u64)min(rank + group, adapter.rank - 1) * width;
    bool aligned = (((u64)x | (u64)adapter.a | (u64)width * 2) & 15) == 0;
    auto fetch = [&](Batch& to, u32 k) {
      if (k >= end) return;
      u32 column = k + quarter * 8;
      const uint4 *of_side = (const uint4*)(side + column), *of_input = (const uint4*)(input + column);
      if (aligned && k + STEP <= end) {
#pragma unroll
        for (u32 i = 0; i < BATCH; i++) to.b[i] = of_side[i * COLUMNS / 8];
#pragma unroll
        for (u32 i = 0; i < BATCH; i++) to.a[i] = of_input[i * COLUMNS / 8];
      } else if (aligned) {
        // Splits and the width are multiples of eight: all eight elements exist, or none.
        const uint4 zeros = make_uint4(0, 0, 0, 0);
#pragma unroll
        for (u32 i = 0; i < BATCH; i++) to.b[i] = column + i * COLUMNS < end ? of_side[i * COLUMNS / 8] : zeros;
#pragma unroll
        for (u32 i = 0; i < BATCH; i++) to.a[i] = column + i * COLUMNS < end ? of_input[i * COLUMNS / 8] : zeros;
      } else {
#pragma unroll
        for (u32 i = 0; i < BATCH; i++) {
          to.b[i] = eight(side, column + i * COLUMNS, end);
          to.a[i] = eight(input, column + i * COLUMNS, end);
        }
      }
    };
    float sum[4] = {};
    auto add = [&](const Batch& of) {
      u32 a[BATCH][4], b[BATCH][4];
      operands(b, of.b);
      operands(a, of.a);
#pragma unroll
      for (u32 i = 0; i < BATCH; i++)
#pragma unroll
        for (u32 half = 0; half < 4; half += 2) {
          u32 upper[4] = {a[i][half], 0, a[i][half + 1], 0};
          mma(sum, upper, b[i] + half);
        }
    };
    Batch first, second;
    fetch(first, begin_k);
    fetch(second, begin_k + STEP);
    for (u32 k = begin_k; k < end; k += 2 * STEP) {
      add(first);
      fetch(first, k + 2 * STEP);
      if (k + STEP >= end) break;
      add(second);
      fetch(second, k + 3 * STEP);
    }
#pragma unroll
    for (u32 e = 0; e < 2; e++) sums[warp][group * 8 + quarter * 2 + e] = sum[e];
    __syncthreads();
    if (own == index) {
      float total = 0;
      for (u32 split = 0; split < SPLITS; split++) total += sums[split][threadIdx.x];
      put_element(z, at, r < adapter.rank ? total * adapter.scale : 0.f, wide);
    }
    __syncthreads();
  }
}
