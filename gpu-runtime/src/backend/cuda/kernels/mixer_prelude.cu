// What kernels of mixers that keep a state share; the compiler gets it behind the prelude.

// A sequence of the pass: its rows, the position of the first one, its chunks, and its state: 0 where it has none and begins at
// position 0.
struct Sequence {
  u64 first, end, start, first_chunk, end_chunk;
  float* state;
};

// Rows of a chunk: the first one, their number, the first one's place in the chunk, and their sequence. `boundary` is the number of
// boundaries between chunks of a sequence before the chunk's end: the index of that at its end, if another chunk follows.
struct Chunk {
  u32 row, count, place, sequence, boundary;
};

// Index of the sequence of rows that have none.
#define NONE 0xffffffffu

// Tokens of a chunk, which begins at a multiple of it in a sequence.
constexpr u32 CHUNK = 64;

__device__ __forceinline__ u32 column_of() { return blockIdx.y * blockDim.x + threadIdx.x; }

__device__ __forceinline__ float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

__device__ __forceinline__ float silu(float x) { return x * sigmoid(x); }

__device__ __forceinline__ float silu_slope(float x) {
  float s = sigmoid(x);
  return s * (1.f + x * (1.f - s));
}

// Extents of a recurrence, and where parts of its rows and states are.
#define SHAPE u32 key_heads, u32 value_heads, u32 key_dim, u32 value_dim, u32 kernel, u32 is_delta
#define SHAPE_OF Shape{key_heads, value_heads, key_dim, value_dim, kernel, is_delta}

struct Shape {
  u32 key_heads, value_heads, key_dim, value_dim, kernel, is_delta;

  __device__ __forceinline__ u32 keys() const { return key_heads * key_dim; }
  __device__ __forceinline__ u32 values() const { return value_heads * value_dim; }

  // Channels of the convolution: queries, keys, values.
  __device__ __forceinline__ u32 channels() const { return 2 * keys() + values(); }

  // The key head of a value head.
  __device__ __forceinline__ u32 key_of(u32 head) const { return head / (value_heads / key_heads); }

  // Columns of a row of inputs.
  __device__ __forceinline__ u32 width() const { return channels() + values() + value_heads * (is_delta ? 2 : 1); }
  __device__ __forceinline__ u32 gate() const { return is_delta ? channels() : 0; }
  __device__ __forceinline__ u32 decays() const { return channels() + values(); }
  __device__ __forceinline__ u32 steps() const { return decays() + value_heads; }

  // The column of the convolution's channel c: with the delta rule q, k, v are in order, with Mamba-2 the gate, v, k, q.
  __device__ __forceinline__ u32 column(u32 c) const {
    if (is_delta) return c;
    if (c < keys()) return 2 * values() + keys() + c;
    return c < 2 * keys() ? 2 * values() + c - keys() : values() + c - 2 * keys();
  }

  // Parts of a state: the convolution's last inputs, [kernel - 1][channels]; by value head the state at the chunk's start,
  // [key_dim][value_dim]; keys of the chunk's rows, [CHUNK][keys]; by value head what they wrote, [CHUNK][value_dim], and sums of
  // decays, [CHUNK].
  __device__ __forceinline__ u64 kept_start() const { return (u64)(kernel - 1) * channels(); }
  __device__ __forceinline__ u64 kept_keys() const { return kept_start() + (u64)values() * key_dim; }
  __device__ __forceinline__ u64 kept_written() const { return kept_keys() + (u64)CHUNK * keys(); }
  __device__ __forceinline__ u64 kept_sums() const { return kept_written() + (u64)CHUNK * values(); }
};

// Threads of a block that computes products of a chunk's rows, and columns of a part of them.
constexpr u32 PRODUCT_THREADS = 256, PART = 16, OF_THREAD = CHUNK * CHUNK / PRODUCT_THREADS;

struct Parts {
  float x[CHUNK][PART + 1], y[CHUNK][PART + 1];
};

// The row of a thread's product m, and the other side's row of all of them.
__device__ __forceinline__ u32 row_of(u32 m) { return threadIdx.x / CHUNK + m * (PRODUCT_THREADS / CHUNK); }
__device__ __forceinline__ u32 other_row() { return threadIdx.x % CHUNK; }

// sums[m] += Σ_c x(row_of(m), c) · y(other_row(), c): each sum is one chain, c ascending, wherever the rows are. All threads call it.
template <typename X, typename Y>
__device__ __forceinline__ void add_products(u32 x_rows, X x, u32 y_rows, Y y, u32 width, Parts& parts, float (&sums)[OF_THREAD]) {
  for (u32 first = 0; first < width; first += PART) {
    u32 count = min(PART, width - first);
    __syncthreads();
    for (u32 at = threadIdx.x; at < CHUNK * PART; at += PRODUCT_THREADS) {
      u32 row = at / PART, c = at % PART;
      parts.x[row][c] = row < x_rows && c < count ? x(row, first + c) : 0.f;
      parts.y[row][c] = row < y_rows && c < count ? y(row, first + c) : 0.f;
    }
    __syncthreads();
#pragma unroll 1
    for (u32 c = 0; c < count; c++) {
      float by = parts.y[other_row()][c];
#pragma unroll
      for (u32 m = 0; m < OF_THREAD; m++)
        if (row_of(m) < x_rows) sums[m] = fmaf(parts.x[row_of(m)][c], by, sums[m]);
    }
  }
}
