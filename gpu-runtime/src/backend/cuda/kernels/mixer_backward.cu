// Recurrences by chunk, backward, over whole sequences. With the gradients ō of outputs, S̄ of the state at the chunk's end,
// ū_i = β_i δ̄_i and D_ij = e^{G_i - G_j}:
//   δ̄_j = Σ_{i≥j} D_ij (q_i·k_j) ō_i + D_Cj S̄ᵗk_j - Σ_{i>j} D_ij (k_i·k_j) ū_i,
//   q̄_i = e^{G_i} S ō_i + Σ_{j≤i} A_ij k_j  with A_ij = D_ij (ō_i·δ_j),
//   k̄_i = -e^{G_i} S ū_i - Σ_{j<i} B_ij k_j + Σ_{l≥i} A_li q_l - Σ_{l>i} B_li k_l + D_Ci S̄ δ_i  with B_ij = D_ij (ū_i·δ_j),
//   S̄ ← e^{G_C} S̄ + Σ_i e^{G_i} (q_i ō_iᵗ - k_i ū_iᵗ).
// The gradient of a decay's logarithm sums those of all G from its row to the chunk's end. With Mamba-2 nothing has k_i·k_j or ū.

constexpr u32 COLUMNS = 32, WARPS = 8, MOST_KEYS = 256;

// The gradients δ̄ of rows, and S̄ at boundaries between chunks, [boundary][value head][key_dim][value_dim]. The grid is that of `chunk_scan`; chunks
// run from the last one on.
extern "C" __global__ void __launch_bounds__(256)
    chunk_scan_backward(const float* parts, const float* steps, const float* sums, const float* dots, const float* d_out,
                        const Sequence* sequences, const Chunk* chunks, float* d_written, float* ends, SHAPE) {
  __shared__ float d_held[MOST_KEYS][COLUMNS], taken[CHUNK][COLUMNS], rest[WARPS][COLUMNS];
  __shared__ float reads[WARPS][CHUNK], takes[WARPS][CHUNK], g[CHUNK];
  Shape of = SHAPE_OF;
  Sequence s = sequences[blockIdx.z];
  u32 lane = lane_id(), warp = threadIdx.x / 32, head = blockIdx.y, key = of.key_of(head), column = blockIdx.x * COLUMNS + lane;
  bool inside = column < of.value_dim;
  u32 at_value = head * of.value_dim + column;
  for (u32 d = warp; d < of.key_dim; d += WARPS) d_held[d][lane] = 0;
  for (u64 index = s.end_chunk; index-- > s.first_chunk;) {
    Chunk chunk = chunks[index];
    u32 rows = chunk.count;
    const float* keys = parts + (u64)chunk.row * of.channels() + of.keys() + key * of.key_dim;
    auto gradient = [&](u32 i) { return inside ? d_out[(u64)(chunk.row + i) * of.values() + at_value] : 0.f; };
    for (u32 i = threadIdx.x; i < rows; i += blockDim.x) g[i] = sums[(u64)(chunk.row + i) * of.value_heads + head];
    if (inside && index + 1 < s.end_chunk) {
      float* to = ends + ((u64)chunk.boundary * of.value_heads + head) * of.key_dim * of.value_dim + column;
      for (u32 d = warp; d < of.key_dim; d += WARPS) to[(u64)d * of.value_dim] = d_held[d][lane];
    }
    for (u32 tile = (rows - 1) / WARPS * WARPS;; tile -= WARPS) {
      u32 count = min(WARPS, rows - tile);
      __syncthreads();
      for (u32 at = threadIdx.x; at < count * CHUNK; at += blockDim.x) {
        u32 r = at / CHUNK, i = at % CHUNK, j = tile + r;
        if (i < j || i >= rows) continue;
        const float* products = dots + (((u64)(chunk.row + i) * of.key_heads + key) * 2) * CHUNK;
        float decay = expf(g[i] - g[j]);
        reads[r][i] = decay * products[j];
        if (of.is_delta && i > j) takes[r][i] = decay * products[CHUNK + j];
      }
      __syncthreads();
      if (warp < count) {
        u32 j = tile + warp;
        float x = 0;
        for (u32 first = 0; first < of.key_dim; first += 32) {
          u32 some = min(32u, of.key_dim - first);
          float k = lane < some ? keys[(u64)j * of.channels() + first + lane] : 0.f;
          for (u32 d = 0; d < some; d++) x = fmaf(__shfl_sync(ALL, k, d), d_held[first + d][lane], x);
        }
        x *= expf(g[rows - 1] - g[j]);
        for (u32 i = j; i < rows; i++) x = fmaf(reads[warp][i], gradient(i), x);
        if (of.is_delta)
          for (u32 i = tile + count; i < rows; i++) x = fmaf(-takes[warp][i], taken[i][lane], x);
        rest[warp][lane] = x;
      }
      __syncthreads();
      // Rows of the tile are read by later ones of it.
      if (warp == 0) {
        for (u32 r = count; r-- > 0;) {
          float x = rest[r][lane];
          if (of.is_delta)
            for (u32 i = tile + r + 1; i < tile + count; i++) x = fmaf(-takes[r][i], taken[i][lane], x);
          u64 row = chunk.row + tile + r;
          if (inside) d_written[row * of.values() + at_value] = x;
          taken[tile + r][lane] = steps[row * of.value_heads + head] * x;
        }
      }
      if (!tile) break;
    }
    __syncthreads();
    if (threadIdx.x < rows) reads[0][threadIdx.x] = expf(g[threadIdx.x]);
    __syncthreads();
    float decay = reads[0][rows - 1];
    for (u32 d = warp; d < of.key_dim; d += WARPS) {
      float x = d_held[d][lane] * decay;
      for (u32 i = 0; i < rows; i++) {
        const float* k = keys + (u64)i * of.channels() + d;
        x = fmaf(reads[0][i] * *(k - of.keys()), gradient(i), x);
        if (of.is_delta) x = fmaf(-(reads[0][i] * *k), taken[i][lane], x);
      }
      d_held[d][lane] = x;
    }
  }
}

// Gradients with respect to queries, keys and values by channel, and with respect to decays' logarithms and steps by value head; what each
// row adds to the gradient of the factor of its own value. States at the starts of sequences, and gradients at their ends, are zeros.
// blockIdx.x is the chunk, blockIdx.y the key head, whose value heads follow each
// other.
extern "C" __global__ void __launch_bounds__(256, 1)
    chunk_gradients(const float* parts, const float* steps, const float* sums, const float* dots, const float* skip, const float* d_out,
                    const float* residuals, const float* written, const float* d_written, const float* starts, const float* ends,
                    const Sequence* sequences, const Chunk* chunks, float* d_parts, float* d_decays, float* d_steps, float* skip_terms, SHAPE) {
  __shared__ Parts shared;
  __shared__ float a[CHUNK][CHUNK + 1], b[CHUNK][CHUNK + 1];
  __shared__ float g[CHUNK], step[CHUNK], d_sums[CHUNK], halves[2][2][CHUNK], of_block[32];
  Shape of = SHAPE_OF;
  Chunk chunk = chunks[blockIdx.x];
  u32 rows = chunk.count, key = blockIdx.y, values = of.value_heads / of.key_heads, j = other_row();
  u32 lane = lane_id(), warp = threadIdx.x / 32;
  u64 first_row = chunk.row;
  bool has_start = blockIdx.x > sequences[chunk.sequence].first_chunk, has_end = blockIdx.x + 1 < sequences[chunk.sequence].end_chunk;
  const float* queries = parts + first_row * of.channels() + key * of.key_dim;
  const float* keys = queries + of.keys();
  float* d_queries = d_parts + first_row * of.channels() + key * of.key_dim;
  float* d_keys = d_queries + of.keys();
  for (u32 value = 0; value < values; value++) {
    u32 head = key * values + value;
    u64 at_values = first_row * of.values() + head * of.value_dim, at_heads = first_row * of.value_heads + head;
    u64 state_size = (u64)of.key_dim * of.value_dim;
    const float* start_state = starts + ((u64)(chunk.boundary - has_start) * of.value_heads + head) * state_size;
    const float* end_state = ends + ((u64)chunk.boundary * of.value_heads + head) * state_size;
    __syncthreads();
    for (u32 i = threadIdx.x; i < rows; i += blockDim.x) {
      g[i] = sums[at_heads + i * of.value_heads];
      step[i] = steps[at_heads + i * of.value_heads];
    }
    __syncthreads();
    auto outs = [&](u32 i, u32 c) { return d_out[at_values + (u64)i * of.values() + c]; };
    auto takes = [&](u32 i, u32 c) { return step[i] * d_written[at_values + (u64)i * of.values() + c]; };
    auto wrote = [&](u32 i, u32 c) { return written[at_values + (u64)i * of.values() + c]; };
    float of_reads[OF_THREAD] = {}, of_takes[OF_THREAD] = {};
    add_products(rows, outs, rows, wrote, of.value_dim, shared, of_reads);
    if (of.is_delta) add_products(rows, takes, rows, wrote, of.value_dim, shared, of_takes);
#pragma unroll
    for (u32 m = 0; m < OF_THREAD; m++) {
      u32 i = row_of(m);
      if (i >= rows) continue;
      float decay = j <= i ? expf(g[i] - g[j]) : 0.f;
      a[i][j] = j <= i ? decay * of_reads[m] : 0.f;
      b[i][j] = of.is_delta && j < i ? decay * of_takes[m] : 0.f;
    }
    __syncthreads();
    // Gradients of sums of decays: those of D_ij first, a thread for each row.
    float d_sum = 0, moved = 0;
    if (threadIdx.x < rows) {
      u32 i = threadIdx.x;
      auto along = [&](u32 later, u32 earlier) {
        const float* products = dots + ((first_row + later) * of.key_heads + key) * 2 * CHUNK + earlier;
        return a[later][earlier] * products[0] - (of.is_delta ? b[later][earlier] * products[CHUNK] : 0.f);
      };
      for (u32 earlier = 0; earlier < i; earlier++) d_sum += along(i, earlier);
      for (u32 later = i + 1; later < rows; later++) d_sum -= along(later, i);
    }
    for (u32 first = 0; first < of.key_dim; first += CHUNK) {
      u32 some = min(CHUNK, of.key_dim - first), d = first + j;
      auto start = [&](u32 of_key, u32 c) { return start_state[(u64)(first + of_key) * of.value_dim + c]; };
      auto end = [&](u32 of_key, u32 c) { return end_state[(u64)(first + of_key) * of.value_dim + c]; };
      float dq[OF_THREAD] = {}, dk[OF_THREAD] = {}, writes[OF_THREAD] = {};
      if (has_start) add_products(rows, outs, some, start, of.value_dim, shared, dq);
      if (has_start && of.is_delta) add_products(rows, takes, some, start, of.value_dim, shared, dk);
      if (has_end) add_products(rows, wrote, some, end, of.value_dim, shared, writes);
#pragma unroll
      for (u32 m = 0; m < OF_THREAD; m++) {
        u32 i = row_of(m);
        if (i >= rows) continue;
        float q = 0, k = 0, decay = expf(g[i]);
        if (j < some) q = queries[(u64)i * of.channels() + d], k = keys[(u64)i * of.channels() + d];
        dq[m] *= decay;
        dk[m] *= -decay;
        writes[m] *= expf(g[rows - 1] - g[i]);
        float read = warp_sum(q * dq[m] + k * dk[m]), write = warp_sum(k * writes[m]);
        if (lane == 0) halves[warp % 2][0][i] = read, halves[warp % 2][1][i] = write;
        dk[m] += writes[m];
      }
      __syncthreads();
      if (threadIdx.x < rows) {
        float write = halves[0][1][threadIdx.x] + halves[1][1][threadIdx.x];
        d_sum += halves[0][0][threadIdx.x] + halves[1][0][threadIdx.x] - write;
        moved += write;
      }
      if (j < some) {
#pragma unroll 1
        for (u32 l = 0; l < rows; l++) {
          float q = queries[(u64)l * of.channels() + d], k = keys[(u64)l * of.channels() + d];
#pragma unroll
          for (u32 m = 0; m < OF_THREAD; m++) {
            u32 i = row_of(m);
            if (i >= rows) continue;
            dq[m] = fmaf(a[i][l], k, dq[m]);
            dk[m] = fmaf(a[l][i], q, dk[m]);
            if (of.is_delta) dk[m] = fmaf(-(b[i][l] + b[l][i]), k, dk[m]);
          }
        }
#pragma unroll
        for (u32 m = 0; m < OF_THREAD; m++) {
          u64 at = (u64)row_of(m) * of.channels() + d;
          if (row_of(m) >= rows) continue;
          d_queries[at] = value ? d_queries[at] + dq[m] : dq[m];
          d_keys[at] = value ? d_keys[at] + dk[m] : dk[m];
        }
      }
      __syncthreads();
    }
    // The state's own decay moves with the chunk's last sum, as does what was written to the state at the end.
    float products = 0;
    for (u32 at = threadIdx.x; has_start && has_end && at < state_size; at += blockDim.x)
      products = fmaf(start_state[at], end_state[at], products);
    products = block_sum(products, of_block);
    if (threadIdx.x < rows) d_sums[threadIdx.x] = d_sum, halves[0][0][threadIdx.x] = moved;
    __syncthreads();
    if (threadIdx.x == 0) {
      float sum = expf(g[rows - 1]) * products;
      for (u32 i = 0; i < rows; i++) sum += halves[0][0][i];
      for (u32 i = rows; i-- > 0;) {
        sum += d_sums[i];
        d_decays[at_heads + (u64)i * of.value_heads] = sum;
      }
    }
    // Rows of values: a warp has a row.
    for (u32 i = warp; i < rows; i += PRODUCT_THREADS / 32) {
      float d_step = 0, own = 0, by_skip = skip ? skip[head] : 0.f;
      for (u32 c = lane; c < of.value_dim; c += 32) {
        u64 at = at_values + (u64)i * of.values() + c;
        d_step = fmaf(d_written[at], residuals[at], d_step);
        float d = step[i] * d_written[at];
        if (!of.is_delta) {
          own = fmaf(residuals[at], d_out[at], own);
          d = fmaf(by_skip, d_out[at], d);
        }
        d_parts[(first_row + i) * of.channels() + 2 * of.keys() + head * of.value_dim + c] = d;
      }
      d_step = warp_sum(d_step), own = warp_sum(own);
      if (lane) continue;
      d_steps[at_heads + (u64)i * of.value_heads] = d_step;
      if (skip_terms) skip_terms[at_heads + (u64)i * of.value_heads] = own;
    }
  }
}
