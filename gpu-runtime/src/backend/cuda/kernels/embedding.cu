// Rows of an embedding, and their gradient. blockIdx.x is the row or the token, blockIdx.y a part of the columns.

template <typename T>
__device__ __forceinline__ void embed(const T* table, const u32* tokens, float* out, u32 width, float scale) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= width) return;
  out[(u64)blockIdx.x * width + column] = load(table + (u64)tokens[blockIdx.x] * width + column) * scale;
}

extern "C" __global__ void embed_f32(const float* table, const u32* tokens, float* out, u32 width, float scale) {
  embed(table, tokens, out, width, scale);
}

extern "C" __global__ void embed_bf16(const u16* table, const u32* tokens, float* out, u32 width, float scale) {
  embed(table, tokens, out, width, scale);
}

// Token i of those that occur has the rows rows[first[i]..first[i + 1]], in order: one thread adds them up.
extern "C" __global__ void embed_backward(const float* dx, const u32* tokens, const u32* first, const u32* rows,
                                          float* gradient, u32 width, float scale) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= width) return;
  float* to = gradient + (u64)tokens[blockIdx.x] * width + column;
  float sum = *to;
  for (u32 i = first[blockIdx.x]; i < first[blockIdx.x + 1]; i++) sum += scale * dx[(u64)rows[i] * width + column];
  *to = sum;
}
