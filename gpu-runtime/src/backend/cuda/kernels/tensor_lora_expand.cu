// From the rank of adapters to the width of their layer.

// 16 columns of a warp's 16 rows of z as a left side; zeros from `end` on, which is at most `most`.
__device__ __forceinline__ void left_of(u32* a, const u16* z, u32 begin, u32 count, u32 column, u32 end, u32 most) {
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    u32 row = begin + threadIdx.x / 32 * 16 + lane_id() / 4 + i % 2 * 8, at = column + i / 2 * 8 + lane_id() % 4 * 2;
    const u16* from = z + (u64)row * most + at;
    if (row >= count || at >= end)
      a[i] = 0;
    else if (at + 1 < end && most % 2 == 0)
      a[i] = *(const u32*)from;
    else
      a[i] = from[0] | (at + 1 < end ? (u32)from[1] << 16 : 0);
  }
}

// Writes results of 8 N columns to those of a row from `at` on, of which `exist`, added to those of the same row of `addend`: eight loads
// before their stores. Without one they are added to -0, which changes no bits.
template <u32 N>
__device__ __forceinline__ void put_sums(const float* addend, float* out, u64 at, const float (*sum)[4], u32 part, u32 exist) {
  u32 first = lane_id() % 4 * 2;
  const float* from = addend + at;
  float* to = out + at;
  if (exist >= 8 * N && (((u64)to | (u64)addend) & 7) == 0) {
#pragma unroll
    for (u32 base = 0; base < N; base += 8) {
      float2 old[8];
#pragma unroll
      for (u32 n = 0; n < 8; n++) old[n] = addend ? *(const float2*)(from + (base + n) * 8 + first) : make_float2(-0.f, -0.f);
#pragma unroll
      for (u32 n = 0; n < 8; n++) {
        const float* added = sum[base + n] + 2 * part;
        *(float2*)(to + (base + n) * 8 + first) = make_float2(old[n].x + added[0], old[n].y + added[1]);
      }
    }
  } else {
#pragma unroll
    for (u32 n = 0; n < N; n++)
#pragma unroll
      for (u32 e = 0; e < 2; e++)
        if (n * 8 + first + e < exist)
          to[n * 8 + first + e] = (addend ? from[n * 8 + first + e] : -0.f) + sum[n][2 * part + e];
  }
}

// out[.., columns] = addend + z Bᵀ: the sum along the rank, then the addition. Rows without an adapter get the addend,
// which may be `out` itself, or null. blockIdx.x is a tile of 64 rows, y one of 128 outputs; out has rows of `stride` elements.
extern "C" __global__ void __launch_bounds__(128) tensor_lora_expand(const u16* z, TABLE, const float* addend, float* out, u32 most,
                                                                     u32 stride) {
  constexpr u32 OUTPUTS = 128;
  __shared__ __align__(128) u16 weights[OUTPUTS * RANKS];
  Table table = layer(adapters, rows, each, step, blockIdx.z);
  u32 begin = blockIdx.x * ROWS, first = blockIdx.y * OUTPUTS;
  Own own(table.rows, begin, count);
  Present present(table.rows, begin, count);
  z += (u64)blockIdx.z * count * most;
  auto at = [&](u32 part, const Adapter& adapter) { return (u64)own.row[part] * stride + adapter.column + first; };
  if (addend != out) {
    // All adapters of a layer have the same columns.
    const Adapter any = table.adapters[0];
    float nothing[OUTPUTS / 8][4];
#pragma unroll
    for (u32 n = 0; n < OUTPUTS / 8; n++)
#pragma unroll
      for (u32 e = 0; e < 4; e++) nothing[n][e] = -0.f;
#pragma unroll
    for (u32 part = 0; part < 2; part++)
      if (own.row[part] < count && own.adapter[part] == NONE && first < any.outputs)
        put_sums<OUTPUTS / 8>(addend, out, at(part, any), nothing, part, any.outputs - first);
  }
  for (u32 index = present.next(0); index != NONE; index = present.next(index + 1)) {
    const Adapter adapter = table.adapters[index];
    u32 rank = adapter.rank, outputs = adapter.outputs;
    if (first >= outputs) continue;
    float sum[OUTPUTS / 8][4] = {};
    for (u32 r = 0; r < rank; r += RANKS) {
      const u16* from = adapter.b + (u64)first * rank + r;
      load_tile<OUTPUTS, RANKS, THREADS>(threadIdx.x, weights, from, outputs - first, min(RANKS, rank - r), rank);
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
        put_sums<OUTPUTS / 8>(addend, out, at(part, adapter), sum, part, outputs - first);
  }
}

// dx = addend + Σ dz A over the layers: each one's sum along the rank, these in order, then the addition. blockIdx.y is a
// tile of 64 inputs.
extern "C" __global__ void __launch_bounds__(128) tensor_lora_expand_backward(const u16* dz, TABLE, const float* addend, float* dx,
                                                                              u32 layers, u32 most, u32 inputs) {
  constexpr u32 INPUTS = 64;
  __shared__ __align__(128) u16 weights[RANKS * INPUTS];
  u32 begin = blockIdx.x * ROWS, first = blockIdx.y * INPUTS;
  // -0 until a layer adds to it.
  float total[INPUTS / 8][4];
#pragma unroll
  for (u32 n = 0; n < INPUTS / 8; n++)
#pragma unroll
    for (u32 e = 0; e < 4; e++) total[n][e] = -0.f;
  for (u32 i = 0; i < layers; i++) {
    Table table = layer(adapters, rows, each, step, i);
    Own own(table.rows, begin, count);
    Present present(table.rows, begin, count);
    for (u32 index = present.next(0); index != NONE; index = present.next(index + 1)) {
      const Adapter adapter = table.adapters[index];
      u32 rank = adapter.rank;
      float sum[INPUTS / 8][4] = {};
      for (u32 r = 0; r < rank; r += RANKS) {
        const u16* from = adapter.a + (u64)r * inputs + first;
        load_tile<RANKS, INPUTS, THREADS>(threadIdx.x, weights, from, rank - r, min(INPUTS, inputs - first), inputs);
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
    if (row < count) put_sums<INPUTS / 8>(addend, dx, (u64)row * inputs + first, total, part, inputs - first);
  }
}
