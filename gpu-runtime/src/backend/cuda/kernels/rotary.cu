// Norms and rotation of the heads of q and k in rows of q, k and v. blockIdx.x is the row; a warp has one head. Element i of
// a head pairs with i + head_dim / 2, and one lane has both.

struct Head {
  float* at;
  const float* weight;
  float eps;
  bool exists;
};

__device__ __forceinline__ u32 head_index() { return blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32; }

__device__ __forceinline__ Head head_of(float* rows, const float* q_weight, const float* k_weight, u32 stride, u32 heads,
                                        u32 kv_heads, u32 head_dim, float q_eps, float k_eps) {
  u32 head = head_index();
  bool query = head < heads;
  return {rows + (u64)blockIdx.x * stride + head * head_dim, query ? q_weight : k_weight, query ? q_eps : k_eps,
          head < heads + kv_heads};
}

// 1 / sqrt(mean(x²) + eps) of a head, in all lanes, in an order that the head's width decides.
__device__ __forceinline__ float head_scale(const float* head, u32 head_dim, float eps) {
  u32 half = head_dim / 2;
  float squares = 0;
  for (u32 i = lane_id(); i < half; i += 32) {
    squares = fmaf(head[i], head[i], squares);
    squares = fmaf(head[i + half], head[i + half], squares);
  }
  return 1.f / sqrtf(warp_sum(squares) / (float)head_dim + eps);
}

// `rope` has (cos, sin) of [position][half]. Without norms their weights are null.
extern "C" __global__ void rotate(float* qkv, const float* rope, const u32* positions, const float* q_weight,
                                  const float* k_weight, u32 stride, u32 heads, u32 kv_heads, u32 head_dim, float q_eps,
                                  float k_eps) {
  Head head = head_of(qkv, q_weight, k_weight, stride, heads, kv_heads, head_dim, q_eps, k_eps);
  if (!head.exists) return;
  u32 half = head_dim / 2;
  const float* angles = rope + (u64)positions[blockIdx.x] * head_dim;
  float scale = q_weight ? head_scale(head.at, head_dim, head.eps) : 1.f;
  for (u32 i = lane_id(); i < half; i += 32) {
    float a = head.at[i], b = head.at[i + half], cosine = angles[2 * i], sine = angles[2 * i + 1];
    if (q_weight) {
      a = a * scale * head.weight[i];
      b = b * scale * head.weight[i + half];
    }
    head.at[i] = a * cosine - b * sine;
    head.at[i + half] = b * cosine + a * sine;
  }
}

// The gradient with respect to the normalised heads, in place of that with respect to the rotated ones. With norms, writes each
// head's 1 / rms of what was rotated, `before`, to `scales`, [row][head].
extern "C" __global__ void rotate_back(float* d_qkv, float* before, const float* rope, const u32* positions, float* scales,
                                       u32 stride, u32 heads, u32 kv_heads, u32 head_dim, float q_eps, float k_eps) {
  Head head = head_of(d_qkv, nullptr, nullptr, stride, heads, kv_heads, head_dim, q_eps, k_eps);
  if (!head.exists) return;
  u32 half = head_dim / 2;
  const float* angles = rope + (u64)positions[blockIdx.x] * head_dim;
  for (u32 i = lane_id(); i < half; i += 32) {
    float a = head.at[i], b = head.at[i + half], cosine = angles[2 * i], sine = -angles[2 * i + 1];
    head.at[i] = a * cosine - b * sine;
    head.at[i + half] = b * cosine + a * sine;
  }
  if (!before) return;
  Head input = head_of(before, nullptr, nullptr, stride, heads, kv_heads, head_dim, q_eps, k_eps);
  float scale = head_scale(input.at, head_dim, input.eps);
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
  Head head = head_of(d_qkv, q_weight, k_weight, stride, heads, kv_heads, head_dim, 0, 0);
  if (!head.exists) return;
  Head input = head_of(before, q_weight, k_weight, stride, heads, kv_heads, head_dim, 0, 0);
  float scale = scales[(u64)blockIdx.x * (heads + kv_heads) + head_index()];
  float products = 0;
  for (u32 i = lane_id(); i < head_dim; i += 32) products = fmaf(head.at[i] * head.weight[i], input.at[i], products);
  float mean = warp_sum(products) * (scale * scale * scale) / (float)head_dim;
  for (u32 i = lane_id(); i < head_dim; i += 32)
    head.at[i] = head.at[i] * head.weight[i] * scale - input.at[i] * mean;
}
