// Gradients of weights: out += Σ left[row, m] · right[row, n] over the rows of some sequences, on tensor cores where both sides are bf16.

// A gradient.
template <typename T>
struct Outer {
  float* out;
  const T* left;
  const T* right;
  u32 left_stride, right_stride;
  // Columns of left and right, and how far apart elements of the gradient are along each.
  u32 m, n, out_m, out_n;
  u32 first_piece, pieces;
};

// A sequence: its first row and how many it has.
struct Piece {
  u32 first, rows;
};

constexpr u32 M = 32, N = 64, ROWS = 16, WARPS = 8, PHASES = N / 8, AT_ONCE = 4;

// A group of rows of both sides, and one that is under way.
struct Tiles {
  u16 left[2][ROWS * M], right[2][ROWS * N];
};

union Memory {
  Tiles tiles[WARPS];
  // Of some of the eight columns of results, each warp's two results as they are in its lanes.
  float4 parts[AT_ONCE][WARPS][2][32];
};

// In bf16, sums f32. A block of eight warps has 32 by 64 elements of a gradient. A sequence's rows are cut into groups of 16, warp w adds
// groups w, w + 8, ...; the sequence's sum is that of the warps in order, and sequences are added to the old values in order: how they form
// batches changes no bits.
extern "C" __global__ void __launch_bounds__(256, 2) tensor_outer_products(const Outer<u16>* gradients, const Piece* pieces) {
  __shared__ __align__(128) Memory memory;
  const Outer<u16>& whole = gradients[blockIdx.z];
  const Outer<u16> of = whole;
  u32 m = blockIdx.y * M, n = blockIdx.x * N, warp = threadIdx.x / 32;
  if (m >= of.m || n >= of.n) return;
  Tiles& tiles = memory.tiles[warp];
  // The elements of the gradient: each thread has one of each phase.
  auto at = [&](u32 phase) -> float* {
    u32 unit = threadIdx.x / 128, lane = threadIdx.x % 128 / 4, e = threadIdx.x % 4;
    u32 row = m + unit * 16 + lane / 4 + e / 2 * 8, column = n + phase * 8 + lane % 4 * 2 + e % 2;
    // Read again: they are needed behind a sequence's rows alone.
    return row < of.m && column < of.n ? whole.out + (u64)row * whole.out_m + (u64)column * whole.out_n : nullptr;
  };
  for (u32 i = 0; i < of.pieces; i++) {
    Piece piece = pieces[of.first_piece + i];
    u32 groups = (piece.rows + ROWS - 1) / ROWS;
    auto load = [&](u32 group, u32 stage) {
      if (group < groups) {
        u32 rows = piece.rows - group * ROWS;
        u64 first = piece.first + group * ROWS;
        load_tile<ROWS, M, 32>(lane_id(), tiles.left[stage], of.left + first * of.left_stride + m, rows, of.m - m, of.left_stride);
        load_tile<ROWS, N, 32>(lane_id(), tiles.right[stage], of.right + first * of.right_stride + n, rows, of.n - n, of.right_stride);
      }
      commit();
    };
    float sum[M / 16][N / 8][4] = {};
    // Parts of the sequence before are no longer read.
    __syncthreads();
    load(warp, 0);
    for (u32 group = warp, stage = 0; group < groups; group += WARPS, stage ^= 1) {
      load(group + WARPS, stage ^ 1);
      wait_for_older<1>();
      __syncwarp();
      u32 a[M / 16][4];
#pragma unroll
      for (u32 unit = 0; unit < M / 16; unit++) left_transposed<M>(a[unit], tiles.left[stage], 0, unit * 16);
#pragma unroll
      for (u32 j = 0; j < N / 8; j += 2) {
        u32 b[4];
        right_transposed<N>(b, tiles.right[stage], 0, j * 8);
#pragma unroll
        for (u32 unit = 0; unit < M / 16; unit++) {
          mma(sum[unit][j], a[unit], b);
          mma(sum[unit][j + 1], a[unit], b + 2);
        }
      }
      __syncwarp();
    }
    u32 used = min(WARPS, groups);
#pragma unroll
    for (u32 base = 0; base < PHASES; base += AT_ONCE) {
      __syncthreads();
#pragma unroll
      for (u32 phase = 0; phase < AT_ONCE; phase++)
#pragma unroll
        for (u32 unit = 0; unit < M / 16; unit++) {
          const float* c = sum[unit][base + phase];
          memory.parts[phase][warp][unit][lane_id()] = make_float4(c[0], c[1], c[2], c[3]);
        }
      __syncthreads();
#pragma unroll
      for (u32 phase = 0; phase < AT_ONCE; phase++) {
        float of_piece = 0;
        for (u32 w = 0; w < used; w++) of_piece += ((const float*)memory.parts[phase][w])[threadIdx.x];
        float* to = at(base + phase);
        if (to) *to += of_piece;
      }
    }
  }
}

// The same in f32, without tensor cores: blockIdx.z is the gradient, threads have elements of it, 32 by 8; rows in order.
extern "C" __global__ void outer_products(const Outer<float>* gradients, const Piece* pieces) {
  const Outer<float> of = gradients[blockIdx.z];
  u32 n = blockIdx.x * 32 + threadIdx.x % 32, m = blockIdx.y * 8 + threadIdx.x / 32;
  if (m >= of.m || n >= of.n) return;
  float* to = of.out + (u64)m * of.out_m + (u64)n * of.out_n;
  float sum = *to;
  for (u32 i = 0; i < of.pieces; i++) {
    Piece piece = pieces[of.first_piece + i];
    for (u64 row = piece.first; row < (u64)piece.first + piece.rows; row++)
      sum = fmaf(of.left[row * of.left_stride + m], of.right[row * of.right_stride + n], sum);
  }
  *to = sum;
}
