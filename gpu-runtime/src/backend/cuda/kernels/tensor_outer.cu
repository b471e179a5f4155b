// Gradients of weights on tensor cores: both sides are rounded to bf16, sums are f32. A block of eight warps has 32 by 64 elements of a
// gradient. A sequence's rows are cut into groups of 16, warp w adds groups w, w + 8, ...; the sequence's sum is that of the
// warps in order, and sequences are added to the old values in order: how they form batches changes no bits.

struct Outer {
  float* out;
  const float* left;
  const float* right;
  u32 left_stride, right_stride;
  // Columns of left and right, and how far apart elements of the gradient are along each.
  u32 m, n, out_m, out_n;
  u32 first_piece, pieces;
};

// A sequence: its first row and how many it has.
struct Piece {
  u32 first, rows;
};

constexpr u32 M = 32, N = 64, WARPS = 8, PHASES = N / 8;

// The rows of a group of 16 that a lane has elements of: of each of its two pairs the first one, from one column on.
struct Lines {
  const float* row[2];
  // Elements between two rows; columns from there on, and rows that exist.
  u32 stride, columns, rows;

  __device__ __forceinline__ Lines(const float* from, u32 stride, u32 first, u32 columns, u32 rows)
      : stride(stride), columns(columns), rows(rows) {
#pragma unroll
    for (u32 i = 0; i < 2; i++) row[i] = from + (line(2 * i) * stride + first + lane_id() / 4);
  }

  __device__ __forceinline__ static u32 line(u32 i) { return lane_id() % 4 * 2 + i % 2 + i / 2 * 8; }

  // Elements of rows 2 · half and 2 · half + 1, rounded. FULL: they exist.
  template <bool FULL>
  __device__ __forceinline__ u32 two(u32 half, u32 column) const {
    bool exists = FULL || column + lane_id() / 4 < columns;
    float first = FULL || (exists && line(2 * half) < rows) ? row[half][column] : 0.f;
    float second = FULL || (exists && line(2 * half + 1) < rows) ? row[half][column + stride] : 0.f;
    return pack(first, second);
  }
};

// Adds leftᵀ · right of up to 16 rows.
template <bool FULL>
__device__ __forceinline__ void add_group(float (*sum)[N / 8][4], const Lines& left, const Lines& right) {
  u32 a[M / 16][4];
#pragma unroll
  for (u32 i = 0; i < M / 16; i++)
#pragma unroll
    for (u32 e = 0; e < 4; e++) a[i][e] = left.two<FULL>(e / 2, i * 16 + e % 2 * 8);
#pragma unroll
  for (u32 j = 0; j < N / 8; j++) {
    u32 b[2] = {right.two<FULL>(0, j * 8), right.two<FULL>(1, j * 8)};
#pragma unroll
    for (u32 i = 0; i < M / 16; i++) mma(sum[i][j], a[i], b);
  }
}

extern "C" __global__ void __launch_bounds__(256, 2) tensor_outer_products(const Outer* gradients, const Piece* pieces) {
  // Of each warp two of its 16 results of eight columns, as they are in its lanes.
  __shared__ float4 parts[WARPS][2][32];
  const Outer of = gradients[blockIdx.z];
  u32 m = blockIdx.y * M, n = blockIdx.x * N, warp = threadIdx.x / 32;
  if (m >= of.m || n >= of.n) return;
  // The elements of the gradient: each thread adds up one of each phase.
  __shared__ float totals[PHASES][WARPS * 32];
  auto at = [&](u32 phase) -> float* {
    u32 unit = threadIdx.x / 128, lane = threadIdx.x % 128 / 4, e = threadIdx.x % 4;
    u32 row = m + unit * 16 + lane / 4 + e / 2 * 8, column = n + phase * 8 + lane % 4 * 2 + e % 2;
    return row < of.m && column < of.n ? of.out + (u64)row * of.out_m + (u64)column * of.out_n : nullptr;
  };
#pragma unroll
  for (u32 phase = 0; phase < PHASES; phase++) {
    float* from = at(phase);
    totals[phase][threadIdx.x] = from ? *from : 0.f;
  }
  for (u32 i = 0; i < of.pieces; i++) {
    Piece piece = pieces[of.first_piece + i];
    float sum[M / 16][N / 8][4] = {};
    for (u32 row = warp * 16; row < piece.rows; row += WARPS * 16) {
      u64 first = piece.first + row;
      u32 rows = piece.rows - row;
      Lines left(of.left + first * of.left_stride, of.left_stride, m, of.m - m, rows);
      Lines right(of.right + first * of.right_stride, of.right_stride, n, of.n - n, rows);
      if (m + M <= of.m && n + N <= of.n && rows >= 16)
        add_group<true>(sum, left, right);
      else
        add_group<false>(sum, left, right);
    }
    u32 used = min(WARPS, (piece.rows + 15) / 16);
#pragma unroll
    for (u32 phase = 0; phase < PHASES; phase++) {
#pragma unroll
      for (u32 unit = 0; unit < 2; unit++) {
        const float* c = sum[unit][phase];
        parts[warp][unit][lane_id()] = make_float4(c[0], c[1], c[2], c[3]);
      }
      __syncthreads();
      float of_piece = 0;
      for (u32 w = 0; w < used; w++) of_piece += ((const float*)parts[w])[threadIdx.x];
      totals[phase][threadIdx.x] += of_piece;
      __syncthreads();
    }
  }
#pragma unroll
  for (u32 phase = 0; phase < PHASES; phase++) {
    float* to = at(phase);
    if (to) *to = totals[phase][threadIdx.x];
  }
}
