// What adapters in bf16 add to linear layers, on tensor cores, for rows of any mix of adapters. A tile of rows is multiplied with each
// adapter that one of its rows has, in ascending order, and a row takes the results of its own: its bits do not depend on the others.
//
// Grids follow from the number of rows and the largest extents: blockIdx.z is the layer (columns of the outputs that follow each
// other, q, k and v for one), which has `each` adapters. Row indices of a layer are `step` behind those of the one before.
//
// The compiler gets this in front of each source whose name begins with tensor_lora_.

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

constexpr u32 NONE = 0xffffffffu, ROWS = 64, RANKS = 32, THREADS = 128;

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
