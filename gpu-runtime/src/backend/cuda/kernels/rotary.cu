// Norms and rotation of the heads of q and k in rows of q, k and v. blockIdx.x is the row; a warp has one head. Element i of
// a head pairs with i + head_dim / 2, and one lane has both.

template <typename T>
struct HeadOf {
  T* at;
  const float* weight;
  float eps;
  bool exists;
};

__device__ __forceinline__ u32 head_index() { return blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32; }

template <typename T>
__device__ __forceinline__ HeadOf<T> head_of(T* rows, const float* q_weight, const float* k_weight, u32 stride, u32 heads,
                                             u32 kv_heads, u32 head_dim, float q_eps, float k_eps) {
  u32 head = head_index();
  bool query = head < heads;
  return {rows + (u64)blockIdx.x * stride + head * head_dim, query ? q_weight : k_weight, query ? q_eps : k_eps,
          head < heads + kv_heads};
}

// 1 / sqrt(mean(x²) + eps) of a head, in all lanes, in an order that the head's width decides.
__device__ __forceinline__ float scale_of(float squares, u32 head_dim, float eps) {
  return 1.f / sqrtf(warp_sum(squares) / (float)head_dim + eps);
}

__device__ __forceinline__ float add_squares(float sum, float a, float b) { return fmaf(b, b, fmaf(a, a, sum)); }

__device__ __forceinline__ float head_scale(const float* head, u32 head_dim, float eps) {
  u32 half = head_dim / 2;
  float squares = 0;
  for (u32 i = lane_id(); i < half; i += 32) squares = add_squares(squares, head[i], head[i + half]);
  return scale_of(squares, head_dim, eps);
}

// Whether a lane has two neighbours of each half of a head, all of it at once.
__device__ __forceinline__ bool paired(u32 head_dim) { return head_dim % 4 == 0 && head_dim <= 128; }

// A lane's elements 2 · lane and the next of both halves of a head.
struct Pairs {
  float2 a, b;
};

__device__ __forceinline__ Pairs pairs_of(const float* head, u32 half) {
  return {((const float2*)head)[lane_id()], ((const float2*)(head + half))[lane_id()]};
}

__device__ __forceinline__ void put_pairs(float* head, u32 half, Pairs x) {
  ((float2*)head)[lane_id()] = x.a;
  ((float2*)(head + half))[lane_id()] = x.b;
}

__device__ __forceinline__ void put_pairs(u16* head, u32 half, Pairs x) {
  ((u32*)head)[lane_id()] = pack(x.a.x, x.a.y);
  ((u32*)(head + half))[lane_id()] = pack(x.b.x, x.b.y);
}

// A copy of a head, rounded where it is to bf16.
template <typename T>
__device__ __forceinline__ void copy_head(const float* head, T* to, u32 head_dim) {
  u32 half = head_dim / 2;
  if (paired(head_dim)) {
    if (2 * lane_id() < half) put_pairs(to, half, pairs_of(head, half));
  } else {
    for (u32 i = lane_id(); i < head_dim; i += 32) store(to + i, head[i]);
  }
}

// Rotates by (cos, sin) of two angles; `sign` is -1 for the inverse.
__device__ __forceinline__ Pairs rotated_by(Pairs x, float4 angles, float sign) {
  float first = sign * angles.y, second = sign * angles.w;
  return {make_float2(x.a.x * angles.x - x.b.x * first, x.a.y * angles.z - x.b.y * second),
          make_float2(x.b.x * angles.x + x.a.x * first, x.b.y * angles.z + x.a.y * second)};
}

__device__ __forceinline__ float squares_of(Pairs x) { return add_squares(add_squares(0, x.a.x, x.b.x), x.a.y, x.b.y); }

// From `qkv` to `out`, which may be the same rows; else heads of v, which follow, are copied. `rope` has (cos, sin) of [position][half].
// Without norms their weights are null.
extern "C" __global__ void rotate(const float* qkv, float* out, const float* rope, const u32* positions, const float* q_weight,
                                  const float* k_weight, u32 stride, u32 heads, u32 kv_heads, u32 head_dim, float q_eps,
                                  float k_eps) {
  HeadOf<const float> head = head_of(qkv, q_weight, k_weight, stride, heads, kv_heads, head_dim, q_eps, k_eps);
  float* to = out + (head.at - qkv);
  if (!head.exists) {
    if (out != qkv && head_index() < heads + 2 * kv_heads) copy_head(head.at, to, head_dim);
    return;
  }
  u32 half = head_dim / 2;
  const float* angles = rope + (u64)positions[blockIdx.x] * head_dim;
  if (paired(head_dim)) {
    bool has = 2 * lane_id() < half;
    Pairs x = has ? pairs_of(head.at, half) : Pairs{};
    if (q_weight) {
      float scale = scale_of(squares_of(x), head_dim, head.eps);
      Pairs w = has ? pairs_of(head.weight, half) : Pairs{};
      x = {make_float2(x.a.x * scale * w.a.x, x.a.y * scale * w.a.y), make_float2(x.b.x * scale * w.b.x, x.b.y * scale * w.b.y)};
    }
    if (has) put_pairs(to, half, rotated_by(x, ((const float4*)angles)[lane_id()], 1));
    return;
  }
  float scale = q_weight ? head_scale(head.at, head_dim, head.eps) : 1.f;
  for (u32 i = lane_id(); i < half; i += 32) {
    float a = head.at[i], b = head.at[i + half], cosine = angles[2 * i], sine = angles[2 * i + 1];
    if (q_weight) {
      a = a * scale * head.weight[i];
      b = b * scale * head.weight[i + half];
    }
    to[i] = a * cosine - b * sine;
    to[i + half] = b * cosine + a * sine;
  }
}

// The gradient with respect to the normalised heads, in place of that with respect to the rotated ones. With norms, writes each
// head's 1 / rms of what was rotated, `before`, to `scales`, [row][head].
extern "C" __global__ void rotate_back(float* d_qkv, float* before, const float* rope, const u32* positions, float* scales,
                                       u32 stride, u32 heads, u32 kv_heads, u32 head_dim, float q_eps, float k_eps) {
  HeadOf<float> head = head_of(d_qkv, nullptr, nullptr, stride, heads, kv_heads, head_dim, q_eps, k_eps);
  if (!head.exists) return;
  u32 half = head_dim / 2;
  const float* angles = rope + (u64)positions[blockIdx.x] * head_dim;
  if (paired(head_dim)) {
    if (2 * lane_id() < half)
      put_pairs(head.at, half, rotated_by(pairs_of(head.at, half), ((const float4*)angles)[lane_id()], -1));
  } else {
    for (u32 i = lane_id(); i < half; i += 32) {
      float a = head.at[i], b = head.at[i + half], cosine = angles[2 * i], sine = -angles[2 * i + 1];
      head.at[i] = a * cosine - b * sine;
      head.at[i + half] = b * cosine + a * sine;
    }
  }
  if (!before) return;
  HeadOf<float> input = head_of(before, nullptr, nullptr, stride, heads, kv_heads, head_dim, q_eps, k_eps);
  float scale = paired(head_dim)
                    ? scale_of(2 * lane_id() < half ? squares_of(pairs_of(input.at, half)) : 0.f, head_dim, input.eps)
                    : head_scale(input.at, head_dim, input.eps);
  if (lane_id() == 0) scales[(u64)blockIdx.x * (heads + kv_heads) + head_index()] = scale;
}

// Adds the gradients of q's norm (blockIdx.x 0) or k's (1): one thread for each column, rows and in them heads in order.
extern "C" __global__ void head_norm_weight_backward(const float* d_qkv, const float* before, const float* scales, float* dq,
                                                     float* dk, u32 rows, u32 stride, u32 heads, u32 kv_heads, u32 head_dim) {
  u32 first = blockIdx.x ? heads : 0, end = blockIdx.x ? heads + kv_heads : heads;
  float* dw = blockIdx.x ? dk : dq;
  for (u32 column = threadIdx.x; column < head_dim; column += blockDim.x) {
    float sum = dw[column];
    for (u32 row = 0; row < rows; row++)
      for (u32 head = first; head < end; head++) {
        u64 at = (u64)row * stride + head * head_dim + column;
        sum += d_qkv[at] * before[at] * scales[(u64)row * (heads + kv_heads) + head];
      }
    dw[column] = sum;
  }
}

// The gradient with respect to the heads before their norms, in place.
extern "C" __global__ void head_norm_backward(float* d_qkv, float* before, const float* scales, const float* q_weight,
                                              const float* k_weight, u32 stride, u32 heads, u32 kv_heads, u32 head_dim) {
  HeadOf<float> head = head_of(d_qkv, q_weight, k_weight, stride, heads, kv_heads, head_dim, 0, 0);
  if (!head.exists) return;
  HeadOf<float> input = head_of(before, q_weight, k_weight, stride, heads, kv_heads, head_dim, 0, 0);
  float scale = scales[(u64)blockIdx.x * (heads + kv_heads) + head_index()];
  float cubed = scale * scale * scale;
  if (paired(head_dim)) {
    // Four elements that follow each other.
    bool has = 4 * lane_id() < head_dim;
    float4 d = make_float4(0, 0, 0, 0), x = d;
    if (has) {
      float4 w = ((const float4*)head.weight)[lane_id()];
      d = ((const float4*)head.at)[lane_id()];
      x = ((const float4*)input.at)[lane_id()];
      d = make_float4(d.x * w.x, d.y * w.y, d.z * w.z, d.w * w.w);
    }
    float products = fmaf(d.w, x.w, fmaf(d.z, x.z, fmaf(d.y, x.y, d.x * x.x)));
    float mean = warp_sum(products) * cubed / (float)head_dim;
    if (has)
      ((float4*)head.at)[lane_id()] =
          make_float4(d.x * scale - x.x * mean, d.y * scale - x.y * mean, d.z * scale - x.z * mean, d.w * scale - x.w * mean);
    return;
  }
  float products = 0;
  for (u32 i = lane_id(); i < head_dim; i += 32) products = fmaf(head.at[i] * head.weight[i], input.at[i], products);
  float mean = warp_sum(products) * cubed / (float)head_dim;
  for (u32 i = lane_id(); i < head_dim; i += 32)
    head.at[i] = head.at[i] * head.weight[i] * scale - input.at[i] * mean;
}

// Both of the above at once, and the heads of v, rounded to bf16: the gradient with respect to heads before norms and rotation.
extern "C" __global__ void rotate_back_rounded(const float* d_qkv, const float* before, u16* out, const float* rope,
                                               const u32* positions, const float* q_weight, const float* k_weight, u32 stride,
                                               u32 heads, u32 kv_heads, u32 head_dim, float q_eps, float k_eps) {
  HeadOf<const float> head = head_of(d_qkv, q_weight, k_weight, stride, heads, kv_heads, head_dim, q_eps, k_eps);
  u64 at = head.at - d_qkv;
  u16* to = out + at;
  if (!head.exists) {
    if (head_index() < heads + 2 * kv_heads) copy_head(head.at, to, head_dim);
    return;
  }
  u32 half = head_dim / 2;
  const float *angles = rope + (u64)positions[blockIdx.x] * head_dim, *input = before + at;
  if (paired(head_dim)) {
    bool has = 2 * lane_id() < half;
    Pairs d = {}, x = {};
    if (has) {
      Pairs w = pairs_of(head.weight, half);
      x = pairs_of(input, half);
      d = rotated_by(pairs_of(head.at, half), ((const float4*)angles)[lane_id()], -1);
      d = {make_float2(d.a.x * w.a.x, d.a.y * w.a.y), make_float2(d.b.x * w.b.x, d.b.y * w.b.y)};
    }
    float scale = scale_of(squares_of(x), head_dim, head.eps);
    float products = fmaf(d.b.y, x.b.y, fmaf(d.a.y, x.a.y, fmaf(d.b.x, x.b.x, d.a.x * x.a.x)));
    float mean = warp_sum(products) * (scale * scale * scale) / (float)head_dim;
    if (has)
      put_pairs(to, half, {make_float2(d.a.x * scale - x.a.x * mean, d.a.y * scale - x.a.y * mean),
                           make_float2(d.b.x * scale - x.b.x * mean, d.b.y * scale - x.b.y * mean)});
    return;
  }
  float scale = head_scale(input, head_dim, head.eps), products = 0;
  // (a, b) of a pair, rotated back, times the weights.
  auto weighted = [&](u32 i) {
    float a = head.at[i], b = head.at[i + half], cosine = angles[2 * i], sine = -angles[2 * i + 1];
    return make_float2((a * cosine - b * sine) * head.weight[i], (b * cosine + a * sine) * head.weight[i + half]);
  };
  for (u32 i = lane_id(); i < half; i += 32) {
    float2 d = weighted(i);
    products = fmaf(d.y, input[i + half], fmaf(d.x, input[i], products));
  }
  float mean = warp_sum(products) * (scale * scale * scale) / (float)head_dim;
  for (u32 i = lane_id(); i < half; i += 32) {
    float2 d = weighted(i);
    to[i] = to_bf16(d.x * scale - input[i] * mean);
    to[i + half] = to_bf16(d.y * scale - input[i + half] * mean);
  }
}

// What follows is for other rotations: of the first `rotated` elements of a head, of which element i pairs with i + rotated / 2; of
// queries by a table of their own; and after norms of q, and of k, over all heads together. Tables have (cos, sin) of
// [position][rotated / 2].

// Columns of a row that have one norm: queries (blockIdx.y 0), or keys (1).
struct Joint {
  u32 first, width;
};

__device__ __forceinline__ Joint joint_of(u32 heads, u32 kv_heads, u32 head_dim) {
  return blockIdx.y ? Joint{heads * head_dim, kv_heads * head_dim} : Joint{0, heads * head_dim};
}

// 1 / rms of all queries, and of all keys, of each row, [row][2]. The order of the sum depends on the width and on the block's size,
// which the width of the queries decides.
extern "C" __global__ void __launch_bounds__(256) joint_norm_scales(const float* qkv, float* scales, u32 stride, u32 heads,
                                                                    u32 kv_heads, u32 head_dim, float q_eps, float k_eps) {
  __shared__ float shared[32];
  Joint of = joint_of(heads, kv_heads, head_dim);
  const float* x = qkv + (u64)blockIdx.x * stride + of.first;
  float squares = 0;
  for (u32 i = threadIdx.x; i < of.width; i += blockDim.x) squares = fmaf(x[i], x[i], squares);
  float mean = block_sum(squares, shared) / (float)of.width;
  if (threadIdx.x == 0) scales[2 * (u64)blockIdx.x + blockIdx.y] = 1.f / sqrtf(mean + (blockIdx.y ? k_eps : q_eps));
}

// 1 / rms of a head, whose elements a lane reads as it writes them.
__device__ __forceinline__ float part_scale(const float* head, u32 rotated, u32 head_dim, float eps) {
  u32 half = rotated / 2;
  float squares = 0;
  for (u32 i = lane_id(); i < half; i += 32) squares = add_squares(squares, head[i], head[i + half]);
  for (u32 i = rotated + lane_id(); i < head_dim; i += 32) squares = fmaf(head[i], head[i], squares);
  return scale_of(squares, head_dim, eps);
}

// Like `rotate`. Norms are over all heads together where there are `scales`, [row][2], with weights of all heads.
extern "C" __global__ void rotate_parts(const float* qkv, float* out, const float* q_rope, const float* k_rope,
                                        const u32* positions, const float* q_weight, const float* k_weight, const float* scales,
                                        u32 stride, u32 heads, u32 kv_heads, u32 head_dim, u32 rotated, float q_eps,
                                        float k_eps) {
  HeadOf<const float> head = head_of(qkv, q_weight, k_weight, stride, heads, kv_heads, head_dim, q_eps, k_eps);
  float* to = out + (head.at - qkv);
  if (!head.exists) {
    if (out != qkv && head_index() < heads + 2 * kv_heads) copy_head(head.at, to, head_dim);
    return;
  }
  bool query = head_index() < heads;
  const float* weight = head.weight;
  float scale = 1.f;
  if (weight && scales) {
    scale = scales[2 * (u64)blockIdx.x + !query];
    weight += (query ? head_index() : head_index() - heads) * head_dim;
  } else if (weight) {
    scale = part_scale(head.at, rotated, head_dim, head.eps);
  }
  auto normed = [&](u32 i) { return weight ? head.at[i] * scale * weight[i] : head.at[i]; };
  u32 half = rotated / 2;
  const float* angles = (query ? q_rope : k_rope) + (u64)positions[blockIdx.x] * rotated;
  for (u32 i = lane_id(); i < half; i += 32) {
    float a = normed(i), b = normed(i + half), cosine = angles[2 * i], sine = angles[2 * i + 1];
    to[i] = a * cosine - b * sine;
    to[i + half] = b * cosine + a * sine;
  }
  for (u32 i = rotated + lane_id(); i < head_dim; i += 32) to[i] = normed(i);
}

// Like `rotate_back`; `before` is given where each head has a norm.
extern "C" __global__ void rotate_parts_back(float* d_qkv, const float* before, const float* q_rope, const float* k_rope,
                                             const u32* positions, float* scales, u32 stride, u32 heads, u32 kv_heads,
                                             u32 head_dim, u32 rotated, float q_eps, float k_eps) {
  HeadOf<float> head = head_of(d_qkv, nullptr, nullptr, stride, heads, kv_heads, head_dim, q_eps, k_eps);
  if (!head.exists) return;
  u32 half = rotated / 2;
  const float* angles = (head_index() < heads ? q_rope : k_rope) + (u64)positions[blockIdx.x] * rotated;
  for (u32 i = lane_id(); i < half; i += 32) {
    float a = head.at[i], b = head.at[i + half], cosine = angles[2 * i], sine = -angles[2 * i + 1];
    head.at[i] = a * cosine - b * sine;
    head.at[i + half] = b * cosine + a * sine;
  }
  if (!before) return;
  float scale = part_scale(before + (head.at - d_qkv), rotated, head_dim, head.eps);
  if (lane_id() == 0) scales[(u64)blockIdx.x * (heads + kv_heads) + head_index()] = scale;
}

// Adds the gradients of norms over all heads: one thread for each column of q and of k, rows in order.
extern "C" __global__ void joint_norm_weight_backward(const float* d_qkv, const float* before, const float* scales, float* dq,
                                                      float* dk, u32 rows, u32 stride, u32 heads, u32 kv_heads, u32 head_dim) {
  Joint of = joint_of(heads, kv_heads, head_dim);
  u32 column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= of.width) return;
  float* dw = blockIdx.y ? dk : dq;
  float sum = dw[column];
  for (u32 row = 0; row < rows; row++) {
    u64 at = (u64)row * stride + of.first + column;
    sum += d_qkv[at] * before[at] * scales[2 * (u64)row + blockIdx.y];
  }
  dw[column] = sum;
}

// The gradient with respect to q and k before norms over all heads, in place.
extern "C" __global__ void __launch_bounds__(256) joint_norm_backward(float* d_qkv, const float* before, const float* scales,
                                                                      const float* q_weight, const float* k_weight, u32 stride,
                                                                      u32 heads, u32 kv_heads, u32 head_dim) {
  __shared__ float shared[32];
  Joint of = joint_of(heads, kv_heads, head_dim);
  const float* weight = blockIdx.y ? k_weight : q_weight;
  u64 first = (u64)blockIdx.x * stride + of.first;
  float *d = d_qkv + first, scale = scales[2 * (u64)blockIdx.x + blockIdx.y], products = 0;
  const float* x = before + first;
  for (u32 i = threadIdx.x; i < of.width; i += blockDim.x) products = fmaf(d[i] * weight[i], x[i], products);
  float mean = block_sum(products, shared) * (scale * scale * scale) / (float)of.width;
  for (u32 i = threadIdx.x; i < of.width; i += blockDim.x) d[i] = d[i] * weight[i] * scale - x[i] * mean;
}
