// Rows of ranks that have a part of the vocabulary each.

constexpr u32 NONE = 0xffffffffu;

// Row blockIdx.x of `to` is row places[blockIdx.x] of `from`, or -0 without a place. blockIdx.y is a part of the columns.
extern "C" __global__ void spread(const float* from, const u32* places, float* to, u32 width) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x, place = places[blockIdx.x];
  if (column < width) to[(u64)blockIdx.x * width + column] = place == NONE ? -0.f : from[(u64)place * width + column];
}

// Columns of a rank's logits to columns first.. of all; those from `vocab` on are beyond the vocabulary's end.
extern "C" __global__ void place_columns(const float* own, float* all, u32 width, u32 first, u32 vocab) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column < width && first + column < vocab)
    all[(u64)blockIdx.x * vocab + first + column] = own[(u64)blockIdx.x * width + column];
}
