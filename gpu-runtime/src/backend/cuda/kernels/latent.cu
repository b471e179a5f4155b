// Heads of multi-head latent attention. blockIdx.x is the row, threads have columns of the output.

// Columns of rows to columns of other rows.
extern "C" __global__ void copy_columns(const float* from, float* to, u32 from_stride, u32 from_first, u32 to_stride,
                                        u32 to_first, u32 width) {
  u32 i = blockIdx.y * blockDim.x + threadIdx.x;
  if (i < width) to[(u64)blockIdx.x * to_stride + to_first + i] = from[(u64)blockIdx.x * from_stride + from_first + i];
}

#define HEADS u32 heads, u32 nope, u32 rope, u32 value, u32 width, u32 interleaved

// Column i of a pair's elements, of which there are rope / 2 pairs: of the pair's first or second element.
__device__ __forceinline__ u32 element(u32 pair, u32 second, u32 rope, u32 interleaved) {
  return interleaved ? 2 * pair + second : pair + second * (rope / 2);
}

// Element i of the rotated `from`; a pair's first elements come before the second ones. `angles` has (cos, sin) by pair.
__device__ __forceinline__ float rotated(const float* from, const float* angles, u32 i, u32 rope, u32 interleaved) {
  u32 half = rope / 2, pair = i % half;
  float a = from[element(pair, 0, rope, interleaved)], b = from[element(pair, 1, rope, interleaved)];
  float cosine = angles[2 * pair], sine = angles[2 * pair + 1];
  return i < half ? a * cosine - b * sine : b * cosine + a * sine;
}

// Queries, keys and values, padded with zeros to `width`: of q, of kv, and of the last columns of `down`.
extern "C" __global__ void join_heads(const float* q, const float* kv, const float* down, const float* angles,
                                      const u32* positions, float* out, u32 down_width, HEADS) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x, all = heads * width;
  if (column >= 3 * all) return;
  u64 row = blockIdx.x;
  u32 part = column / all, head = column % all / width, i = column % width;
  angles += (u64)positions[row] * rope;
  q += (row * heads + head) * (nope + rope);
  kv += (row * heads + head) * (nope + value);
  down += row * down_width + down_width - rope;
  float x = 0;
  if (part == 2) {
    if (i < value) x = kv[nope + i];
  } else if (i < nope) {
    x = part ? kv[i] : q[i];
  } else if (i < nope + rope) {
    x = rotated(part ? down : q + nope, angles, i - nope, rope, interleaved);
  }
  out[row * 3 * all + column] = x;
}

// The gradients with respect to q, kv, and the common part of keys, which adds up heads in order before it is rotated back.
extern "C" __global__ void split_heads(const float* d_qkv, const float* angles, const u32* positions, float* d_q, float* d_kv,
                                       float* d_common, HEADS) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x, all = heads * width;
  u32 q_width = heads * (nope + rope), kv_width = heads * (nope + value);
  if (column >= q_width + kv_width + rope) return;
  u64 row = blockIdx.x;
  d_qkv += row * 3 * all;
  angles += (u64)positions[row] * rope;
  if (column >= q_width && column < q_width + kv_width) {
    u32 at = column - q_width, head = at / (nope + value), i = at % (nope + value);
    d_kv[row * kv_width + at] = i < nope ? d_qkv[all + head * width + i] : d_qkv[2 * all + head * width + i - nope];
    return;
  }
  bool query = column < q_width;
  u32 head = query ? column / (nope + rope) : 0, i = query ? column % (nope + rope) : nope + column - q_width - kv_width;
  if (i < nope) {
    d_q[row * q_width + column] = d_qkv[head * width + i];
    return;
  }
  u32 half = rope / 2, place = i - nope, pair = interleaved ? place / 2 : place % half;
  bool second = interleaved ? place % 2 : place >= half;
  float low = 0, high = 0;
  for (u32 of = query ? head : heads; of < (query ? head + 1 : 2 * heads); of++) {
    low += d_qkv[of * width + nope + pair];
    high += d_qkv[of * width + nope + half + pair];
  }
  float cosine = angles[2 * pair], sine = angles[2 * pair + 1];
  float d = second ? high * cosine - low * sine : low * cosine + high * sine;
  (query ? d_q + row * q_width + column : d_common + row * rope + place)[0] = d;
}
