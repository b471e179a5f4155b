// The forward pass of attention on tensor cores.

// Tiles of keys of a split: softmax runs over each split from its beginning, and splits are joined in order.
constexpr u32 SPLIT = 4;

// A split of a row and head: its largest score, and the sums of its weights and of the rounded ones; one load has all of it.
struct __align__(16) State {
  float largest, total, rounded, unused;
};

// The output of each query, and the log-sum-exp of its scaled scores, [rows][heads]. blockIdx.x is the tile, blockIdx.y the key head.
// ONE: of split blockIdx.z alone, what the output is made of, [rows][heads][splits], and its states. ALL: see QueryTile.
template <u32 W, bool ONE, bool ALL>
__device__ __forceinline__ void forward(const float* qkv, const Tile* tiles, float* out, float* log_sums, State* states, SHAPE) {
  __shared__ __align__(128) u16 memory[2][2][KEYS * W];
  QueryTile<ALL> queries(tiles[blockIdx.x], heads, kv_heads, head_dim);
  u64 q_width = heads * head_dim;
  u32 first = queries.first_tile(window), last = queries.last_tile();
  if (ONE) {
    u32 begin = blockIdx.z * SPLIT;
    if (begin > last || begin + SPLIT <= first) {
      for (u32 m = threadIdx.x; m < queries.used; m += THREADS)
        states[((u64)queries.row(m) * heads + queries.head(m)) * gridDim.z + blockIdx.z] = State{-INFINITE, 0, 0};
      return;
    }
    first = max(first, begin);
    last = min(last, begin + SPLIT - 1);
  }
  u32 q[W / 16][4];
  queries.template as_left_sides<W>(q, memory[0][0], qkv, q_width + 2 * queries.kv_width, head_dim);
  Softmax<W> all, split;
  u32 position[2] = {queries.position(queries.own(0)), queries.position(queries.own(1))};
  uint2 whole = queries.whole(window);
  bool idle = queries.idle();
  Copier<W> copier(head_dim);
  u32 stage = shared_address(memory), other = stage + 2 * KEYS * W * 2;
  scale *= LOG2_E;
  queries.template load<W>(copier, stage, first, layer, head_dim);
  commit();
  for (u32 tile = first; tile <= last; tile++) {
    if (tile < last) queries.template load<W>(copier, other, tile + 1, layer, head_dim);
    commit();
    wait_for_older<1>();
    __syncthreads();
    if (!idle) {
      float c[KEYS / 8][4];
      products<W, KEYS / 8>(c, q, stage);
      mask(c, scale, tile, whole, position, window);
      split.add(c, stage + KEYS * W * 2);
      if (!ONE && (tile == last || tile % SPLIT == SPLIT - 1)) {
        all.join(split);
        split = Softmax<W>();
      }
    }
    __syncthreads();
    u32 free = stage;
    stage = other;
    other = free;
  }
#pragma unroll
  for (u32 part = 0; part < 2; part++) {
    u32 m = queries.own(part);
    u64 at = (u64)queries.row(m) * heads + queries.head(m);
    if (ONE) {
      float total = quad_sum(split.total[part]);
      if (m < queries.used && lane_id() % 4 == 0)
        states[at * gridDim.z + blockIdx.z] = State{split.largest[part], total, split.rounded[2 * part], 0};
      float* to = out + blockIdx.z * head_dim - (u64)queries.head(m) * head_dim + (u64)queries.head(m) * gridDim.z * head_dim;
      queries.template put<W / 8>(to, q_width * gridDim.z, part, split.o, 1.f, head_dim);
    } else {
      if (m < queries.used && lane_id() % 4 == 0) log_sums[at] = all.largest[part] * LN_2 + logf(all.total[part]);
      queries.template put<W / 8>(out, q_width, part, all.o, 1.f / all.rounded[2 * part], head_dim);
    }
  }
}

#define FORWARD(W)                                                                                                                 \
  extern "C" __global__ void __launch_bounds__(128)                                                                                \
      tensor_attention_##W(const float* qkv, const Tile* tiles, float* out, float* log_sums, SHAPE) {                              \
    forward<W, false, false>(qkv, tiles, out, log_sums, nullptr, heads, kv_heads, head_dim, layer, window, scale);                 \
  }                                                                                                                                \
  extern "C" __global__ void __launch_bounds__(128)                                                                                \
      tensor_attention_split_##W(const float* qkv, const Tile* tiles, float* parts, State* states, SHAPE) {                        \
    forward<W, true, false>(qkv, tiles, parts, nullptr, states, heads, kv_heads, head_dim, layer, window, scale);                  \
  }                                                                                                                                \
  extern "C" __global__ void __launch_bounds__(128)                                                                                \
      tensor_attention_all_##W(const float* qkv, const Tile* tiles, float* out, float* log_sums, SHAPE) {                          \
    forward<W, false, true>(qkv, tiles, out, log_sums, nullptr, heads, kv_heads, head_dim, layer, window, scale);                  \
  }

FORWARD(64)
FORWARD(128)

// Joins splits in order, with the bits of `forward`: blockIdx.z is the query head among those of key head blockIdx.y, and a thread has a
// column. Eight splits are loaded at once.
extern "C" __global__ void __launch_bounds__(128) tensor_attention_join(const float* parts, const State* states, const Tile* tiles,
                                                                        float* out, float* log_sums, u32 splits, u32 heads,
                                                                        u32 kv_heads, u32 head_dim) {
  constexpr u32 AT_ONCE = 8;
  Tile tile = tiles[blockIdx.x];
  u32 head = blockIdx.y * (heads / kv_heads) + blockIdx.z, column = threadIdx.x;
  for (u32 row = tile.row; row < tile.row + tile.count; row++) {
    u64 at = (u64)row * heads + head;
    float largest = -INFINITE, total = 0, rounded = 0, o = 0;
    for (u32 first = 0; first < splits; first += AT_ONCE) {
      State state[AT_ONCE];
      float part[AT_ONCE];
#pragma unroll
      for (u32 i = 0; i < AT_ONCE; i++) {
        state[i].largest = -INFINITE;
        if (first + i < splits) state[i] = states[at * splits + first + i];
      }
#pragma unroll
      for (u32 i = 0; i < AT_ONCE; i++)
        part[i] = state[i].largest != -INFINITE && column < head_dim ? parts[(at * splits + first + i) * head_dim + column] : 0.f;
#pragma unroll
      for (u32 i = 0; i < AT_ONCE; i++) {
        if (state[i].largest == -INFINITE) continue;
        float2 by = Softmax<64>::factors(largest, state[i].largest);
        total = fmaf(state[i].total, by.y, total * by.x);
        rounded = fmaf(state[i].rounded, by.y, rounded * by.x);
        o = fmaf(part[i], by.y, o * by.x);
      }
    }
    if (column < head_dim) out[at * head_dim + column] = o * (1.f / rounded);
    if (column == 0) log_sums[at] = largest * LN_2 + logf(total);
  }
}
