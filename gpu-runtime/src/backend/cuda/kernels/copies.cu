// Rows copied from place to place, and elements rounded or shifted. blockIdx.x is the row, blockIdx.y a part of the columns.

// Row i of `to` is row rows[i] of `from`.
extern "C" __global__ void gather_rows(const float* from, const u32* rows, float* to, u32 width) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column < width) to[(u64)blockIdx.x * width + column] = from[(u64)rows[blockIdx.x] * width + column];
}

// Row rows[i] of `to` is row i of `from`.
extern "C" __global__ void scatter_rows(const float* from, const u32* rows, float* to, u32 width) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column < width) to[(u64)rows[blockIdx.x] * width + column] = from[(u64)blockIdx.x * width + column];
}

// The first `width` elements of rows of `stride`.
template <typename T>
__device__ __forceinline__ void part_of_rows(const T* from, float* to, u32 stride, u32 width) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column < width) to[(u64)blockIdx.x * width + column] = load(from + (u64)blockIdx.x * stride + column);
}

extern "C" __global__ void part_of_rows_f32(const float* from, float* to, u32 stride, u32 width) {
  part_of_rows(from, to, stride, width);
}

extern "C" __global__ void part_of_rows_bf16(const u16* from, float* to, u32 stride, u32 width) {
  part_of_rows(from, to, stride, width);
}

// A thread has four elements, which it moves at once where they are aligned.
extern "C" __global__ void round_to_bf16(const float* from, u16* to, u64 length) {
  u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i >= length) return;
  from += i, to += i;
  if (length - i >= 4 && ((u64)from & 15) == 0 && ((u64)to & 7) == 0) {
    store_four(to, load_four(from));
  } else {
    for (u32 j = 0; j < min(4ull, length - i); j++) to[j] = to_bf16(from[j]);
  }
}

extern "C" __global__ void shift(const float* from, float* to, u64 length, float offset) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < length) to[i] = from[i] + offset;
}
