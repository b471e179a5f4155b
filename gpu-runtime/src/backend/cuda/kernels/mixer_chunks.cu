// Recurrences by chunk, forward. With S the state at the chunk's start and G the sums of decays' logarithms from there on, a row writes
// and reads, with the delta rule,
//   δ_i = β_i (v_i - e^{G_i} Sᵗk_i - Σ_{j<i} e^{G_i-G_j} (k_i·k_j) δ_j),  o_i = e^{G_i} Sᵗq_i + Σ_{j≤i} e^{G_i-G_j} (q_i·k_j) δ_j,
// and with Mamba-2 δ_i = Δ_i v_i, to which o_i adds its own value. Each element is one chain of fused multiply-adds: along the head, then
// j ascending. So a row has the same bits whether its chunk arrives at once or in pieces.

// Sums of decays' logarithms from the chunk's start on: [row][value head]. blockIdx.x is the chunk, threads have value heads.
extern "C" __global__ void chunk_sums(const float* decays, const Sequence* sequences, const Chunk* chunks, float* sums, u64 state, SHAPE) {
  Shape of = SHAPE_OF;
  Chunk chunk = chunks[blockIdx.x];
  u32 head = column_of();
  if (head >= of.value_heads) return;
  const float* kept = sequences[chunk.sequence].state + state + of.kept_sums() + head * CHUNK;
  float sum = chunk.place ? kept[chunk.place - 1] : 0.f;
  for (u64 row = chunk.row; row < chunk.row + chunk.count; row++) {
    sum += decays[row * of.value_heads + head];
    sums[row * of.value_heads + head] = sum;
  }
}

// The chunk's keys of a key head: those of earlier passes are in the state.
struct Keys {
  const float *kept, *own;
  u32 place, kept_stride, own_stride;

  __device__ __forceinline__ Keys(const Shape& of, const Chunk& chunk, const float* state, const float* parts, u32 head)
      : kept(state + of.kept_keys() + head * of.key_dim),
        own(parts + (u64)chunk.row * of.channels() + of.keys() + head * of.key_dim),
        place(chunk.place),
        kept_stride(of.keys()),
        own_stride(of.channels()) {}

  __device__ __forceinline__ float at(u32 j, u32 d) const {
    return j < place ? kept[j * kept_stride + d] : own[(u64)(j - place) * own_stride + d];
  }
};

// Products of rows' queries, and with the delta rule of keys, with the keys of the chunk: [row][key head][2][CHUNK], up to the row's own
// place, its own excluded for keys. blockIdx.x is the chunk, blockIdx.y the key head.
extern "C" __global__ void __launch_bounds__(256)
    chunk_dots(const float* parts, const Sequence* sequences, const Chunk* chunks, float* dots, u64 state, SHAPE) {
  __shared__ Parts shared;
  Shape of = SHAPE_OF;
  Chunk chunk = chunks[blockIdx.x];
  u32 head = blockIdx.y, j = other_row();
  Keys keys(of, chunk, sequences[chunk.sequence].state + state, parts, head);
  const float* queries = parts + (u64)chunk.row * of.channels() + head * of.key_dim;
  auto key = [&](u32 of_row, u32 d) { return keys.at(of_row, d); };
  for (u32 part = 0; part < (of.is_delta ? 2 : 1); part++) {
    float sums[OF_THREAD] = {};
    const float* from = queries + part * of.keys();
    auto row = [&](u32 i, u32 d) { return from[(u64)i * of.channels() + d]; };
    add_products(chunk.count, row, chunk.place + chunk.count, key, of.key_dim, shared, sums);
#pragma unroll
    for (u32 m = 0; m < OF_THREAD; m++) {
      u32 i = row_of(m);
      if (i < chunk.count && j + part <= chunk.place + i)
        dots[(((u64)(chunk.row + i) * of.key_heads + head) * 2 + part) * CHUNK + j] = sums[m];
    }
  }
}

// Columns of values that a block has, its warps, and the most elements of a key.
constexpr u32 COLUMNS = 32, WARPS = 8, MOST_KEYS = 256;

// Outputs of rows, and where they are wanted what rows wrote, before and after their steps, and states at boundaries between chunks,
// [boundary][value head][key_dim][value_dim]. Moves states to the start of the sequence's last chunk. blockIdx.x is a part of the columns,
// a lane has one; blockIdx.y is the value head, blockIdx.z the sequence, whose chunks follow each other. A warp has a row of a tile.
extern "C" __global__ void __launch_bounds__(256)
    chunk_scan(const float* parts, const float* steps, const float* sums, const float* dots, const float* skip, const Sequence* sequences,
               const Chunk* chunks, float* out, float* residuals, float* written, float* starts, u64 state, SHAPE) {
  __shared__ float held[MOST_KEYS][COLUMNS], wrote[CHUNK][COLUMNS], rest[WARPS][COLUMNS];
  __shared__ float reads[WARPS][CHUNK], takes[WARPS][CHUNK], g[CHUNK];
  Shape of = SHAPE_OF;
  Sequence s = sequences[blockIdx.z];
  u32 lane = lane_id(), warp = threadIdx.x / 32, head = blockIdx.y, key = of.key_of(head), column = blockIdx.x * COLUMNS + lane;
  bool inside = column < of.value_dim;
  float* kept = s.state ? s.state + state : nullptr;
  float* kept_start = kept ? kept + of.kept_start() + (u64)head * of.key_dim * of.value_dim + column : nullptr;
  float* kept_written = kept ? kept + of.kept_written() + (u64)head * CHUNK * of.value_dim + column : nullptr;
  u32 at_value = head * of.value_dim + column;
  float by_skip = skip ? skip[head] : 0.f;
  for (u32 d = warp; d < of.key_dim; d += WARPS) held[d][lane] = kept && inside ? kept_start[d * of.value_dim] : 0.f;
  for (u64 index = s.first_chunk; index < s.end_chunk; index++) {
    Chunk chunk = chunks[index];
    u32 end = chunk.place + chunk.count;
    for (u32 j = warp; j < chunk.place; j += WARPS) wrote[j][lane] = inside ? kept_written[j * of.value_dim] : 0.f;
    for (u32 j = threadIdx.x; j < end; j += blockDim.x)
      g[j] = j < chunk.place ? kept[of.kept_sums() + head * CHUNK + j]
                             : sums[(u64)(chunk.row + j - chunk.place) * of.value_heads + head];
    if (starts && inside && index > s.first_chunk) {
      float* to = starts + ((u64)(chunk.boundary - 1) * of.value_heads + head) * of.key_dim * of.value_dim + column;
      for (u32 d = warp; d < of.key_dim; d += WARPS) to[(u64)d * of.value_dim] = held[d][lane];
    }
    for (u32 tile = 0; tile < chunk.count; tile += WARPS) {
      u32 count = min(WARPS, chunk.count - tile), before = chunk.place + tile;
      __syncthreads();
      for (u32 at = threadIdx.x; at < count * CHUNK; at += blockDim.x) {
        u32 r = at / CHUNK, j = at % CHUNK, i = before + r;
        if (j > i) continue;
        const float* products = dots + (((u64)(chunk.row + tile + r) * of.key_heads + key) * 2) * CHUNK;
        float decay = expf(g[i] - g[j]);
        reads[r][j] = decay * products[j];
        if (of.is_delta && j < i) takes[r][j] = decay * products[CHUNK + j];
      }
      u64 row = chunk.row + tile + warp;
      float own = 0, bracket = 0, value = 0;
      if (warp < count) {
        const float* queries = parts + row * of.channels() + key * of.key_dim;
        float read = 0, of_key = 0;
        for (u32 first = 0; first < of.key_dim; first += 32) {
          u32 some = min(32u, of.key_dim - first);
          float q = lane < some ? queries[first + lane] : 0.f, k = of.is_delta && lane < some ? queries[of.keys() + first + lane] : 0.f;
          for (u32 d = 0; d < some; d++) {
            float x = held[first + d][lane];
            read = fmaf(__shfl_sync(ALL, q, d), x, read);
            if (of.is_delta) of_key = fmaf(__shfl_sync(ALL, k, d), x, of_key);
          }
        }
        float decay = expf(g[before + warp]);
        value = inside ? parts[row * of.channels() + 2 * of.keys() + at_value] : 0.f;
        own = decay * read;
        bracket = of.is_delta ? value - decay * of_key : value;
      }
      __syncthreads();
      if (warp < count) {
        if (of.is_delta)
          for (u32 j = 0; j < before; j++) bracket = fmaf(-takes[warp][j], wrote[j][lane], bracket);
        rest[warp][lane] = bracket;
      }
      __syncthreads();
      // Rows of the tile read each other.
      if (warp == 0) {
        for (u32 r = 0; r < count; r++) {
          float x = rest[r][lane];
          if (of.is_delta)
            for (u32 j = before; j < before + r; j++) x = fmaf(-takes[r][j], wrote[j][lane], x);
          rest[r][lane] = x;
          wrote[before + r][lane] = steps[(u64)(chunk.row + tile + r) * of.value_heads + head] * x;
        }
      }
      __syncthreads();
      if (warp < count) {
        for (u32 j = 0; j <= before + warp; j++) own = fmaf(reads[warp][j], wrote[j][lane], own);
        if (!of.is_delta) own = fmaf(by_skip, value, own);
        if (inside) {
          out[row * of.values() + at_value] = own;
          if (residuals) residuals[row * of.values() + at_value] = rest[warp][lane];
          if (written) written[row * of.values() + at_value] = wrote[before + warp][lane];
        }
      }
    }
    if (end < CHUNK) {
      if (kept && inside)
        for (u32 j = chunk.place + warp; j < end; j += WARPS) kept_written[j * of.value_dim] = wrote[j][lane];
      continue;
    }
    // The state moves to the next chunk.
    Keys keys(of, chunk, kept, parts, key);
    float last = g[CHUNK - 1], decay = expf(last);
    __syncthreads();
    if (threadIdx.x < CHUNK) reads[0][threadIdx.x] = expf(last - g[threadIdx.x]);
    __syncthreads();
    for (u32 d = warp; d < of.key_dim; d += WARPS) {
      float x = held[d][lane] * decay;
      for (u32 j = 0; j < CHUNK; j++) x = fmaf(reads[0][j] * keys.at(j, d), wrote[j][lane], x);
      held[d][lane] = x;
    }
  }
  if (kept && inside)
    for (u32 d = warp; d < of.key_dim; d += WARPS) kept_start[d * of.value_dim] = held[d][lane];
}
