// Inputs of recurrences: the convolution with its state, SiLU, norms of queries and keys, decays and steps; and the gradients. A row's
// bits do not depend on the rows beside it: sums run over the kernel in order, and over a head in an order that its width decides.

// What a head of queries or keys is divided by has this added to the sum of squares.
#define NORM_EPS 1e-6f

// The output of channel c's convolution before SiLU.
__device__ __forceinline__ float convolved(const float* inputs, const float* conv, const float* bias, const Sequence& s, u64 state, u64 row,
                                           const Shape& of, u32 c) {
  float sum = bias ? bias[c] : 0.f;
  for (u32 t = 0; t < of.kernel; t++) {
    u64 at = row - s.first + t;
    if (at >= of.kernel - 1)
      sum = fmaf(conv[c * of.kernel + t], inputs[(s.first + at - (of.kernel - 1)) * of.width() + of.column(c)], sum);
    else if (s.state)
      sum = fmaf(conv[c * of.kernel + t], s.state[state + at * of.channels() + c], sum);
  }
  return sum;
}

// A head of queries, of keys or of values, which a block has.
struct Unit {
  bool is_key;
  u32 head, first, dim;

  // Heads of queries come first, then those of keys, then those of values.
  __device__ __forceinline__ Unit(const Shape& of, u32 unit)
      : is_key(unit < 2 * of.key_heads),
        head(is_key ? unit % of.key_heads : unit - 2 * of.key_heads),
        first(is_key ? unit * of.key_dim : 2 * of.keys() + head * of.value_dim),
        dim(is_key ? of.key_dim : of.value_dim) {}
};

__device__ __forceinline__ float head_scale(const Shape& of, u32 unit) { return unit < of.key_heads ? 1.f / sqrtf((float)of.key_dim) : 1.f; }

// Queries, keys and values by channel, logarithms of decays and steps by value head. blockIdx.x is the row, blockIdx.y the unit.
extern "C" __global__ void __launch_bounds__(256)
    recurrent_inputs(const float* inputs, const float* conv, const float* bias, const float* a_log, const float* dt_bias,
                     const Sequence* sequences, const u32* rows, float* parts, float* decays, float* steps, u64 state, float least, float most,
                     SHAPE) {
  __shared__ float shared[32];
  Shape of = SHAPE_OF;
  Unit unit(of, blockIdx.y);
  u64 row = blockIdx.x;
  u32 sequence = rows[row];
  parts += row * of.channels() + unit.first;
  Sequence s = sequence == NONE ? Sequence{} : sequences[sequence];
  float squares = 0;
#pragma unroll 1
  for (u32 i = threadIdx.x; i < unit.dim; i += blockDim.x) {
    float x = sequence == NONE ? 0.f : silu(convolved(inputs, conv, bias, s, state, row, of, unit.first + i));
    parts[i] = x;
    squares = fmaf(x, x, squares);
  }
  if (unit.is_key) {
    if (!of.is_delta) return;
    float by = 1.f / sqrtf(block_sum(squares, shared) + NORM_EPS) * head_scale(of, blockIdx.y);
#pragma unroll 1
    for (u32 i = threadIdx.x; i < unit.dim; i += blockDim.x) parts[i] *= by;
    return;
  }
  if (threadIdx.x) return;
  float decay = 0, step = 0;
  if (sequence != NONE) {
    const float* own = inputs + row * of.width();
    float x = own[of.decays() + unit.head] + dt_bias[unit.head];
    float soft = fmaxf(x, 0.f) + log1pf(expf(-fabsf(x)));
    if (!of.is_delta) soft = fminf(fmaxf(soft, least), most);
    decay = -expf(a_log[unit.head]) * soft;
    step = of.is_delta ? sigmoid(own[of.steps() + unit.head]) : soft;
  }
  decays[row * of.value_heads + unit.head] = decay;
  steps[row * of.value_heads + unit.head] = step;
}

// Keeps, in states, the convolution's last inputs, and keys and sums of decays of a chunk that goes on. blockIdx.x is the sequence.
extern "C" __global__ void recurrent_keep(const float* inputs, const float* parts, const float* sums, const Sequence* sequences,
                                          const Chunk* chunks, u64 state, SHAPE) {
  Shape of = SHAPE_OF;
  u32 i = column_of();
  Sequence s = sequences[blockIdx.x];
  if (!s.state) return;
  float* kept = s.state + state;
  if (i < of.channels()) {
    for (u32 t = 0; t < of.kernel - 1; t++) {
      u64 at = s.end - s.first + t;
      kept[t * of.channels() + i] = at < of.kernel - 1 ? kept[at * of.channels() + i]
                                                       : inputs[(s.first + at - (of.kernel - 1)) * of.width() + of.column(i)];
    }
  }
  if (s.first_chunk == s.end_chunk) return;
  Chunk chunk = chunks[s.end_chunk - 1];
  if (chunk.place + chunk.count == CHUNK) return;
  for (u64 j = 0; j < chunk.count; j++) {
    u64 row = chunk.row + j, place = chunk.place + j;
    if (i < of.keys()) kept[of.kept_keys() + place * of.keys() + i] = parts[row * of.channels() + of.keys() + i];
    if (i < of.value_heads) kept[of.kept_sums() + i * CHUNK + place] = sums[row * of.value_heads + i];
  }
}

// From gradients with respect to queries, keys and values, those with respect to the convolution's output, in their place; from those
// with respect to decays' logarithms and steps, those with respect to their columns of the inputs. `a_log_terms` gets what each row adds
// to the gradient of the logarithm of a decay's rate. Every sequence begins at position 0.
extern "C" __global__ void __launch_bounds__(256)
    recurrent_inputs_backward(const float* inputs, const float* conv, const float* bias, const float* a_log, const float* dt_bias,
                              const Sequence* sequences, const u32* rows, const float* parts, const float* decays, const float* steps,
                              const float* d_decays, const float* d_steps, float* d_parts, float* d_inputs, float* a_log_terms,
                              float least, float most, SHAPE) {
  __shared__ float shared[32];
  Shape of = SHAPE_OF;
  Unit unit(of, blockIdx.y);
  u64 row = blockIdx.x, at_head = row * of.value_heads + unit.head;
  u32 sequence = rows[row];
  float* own = d_inputs + row * of.width();
  parts += row * of.channels() + unit.first;
  d_parts += row * of.channels() + unit.first;
  if (sequence == NONE) {
#pragma unroll 1
    for (u32 i = threadIdx.x; i < unit.dim; i += blockDim.x) d_parts[i] = 0;
    if (unit.is_key || threadIdx.x) return;
    own[of.decays() + unit.head] = a_log_terms[at_head] = 0;
    if (of.is_delta) own[of.steps() + unit.head] = 0;
    return;
  }
  Sequence s = sequences[sequence];
  float along = 0, across = 1;
  if (unit.is_key && of.is_delta) {
    float squares = 0, products = 0, scale = head_scale(of, blockIdx.y);
#pragma unroll 1
    for (u32 i = threadIdx.x; i < unit.dim; i += blockDim.x) {
      float x = silu(convolved(inputs, conv, bias, s, 0, row, of, unit.first + i));
      squares = fmaf(x, x, squares);
      products = fmaf(parts[i], d_parts[i], products);
    }
    float inverse = 1.f / sqrtf(block_sum(squares, shared) + NORM_EPS);
    // y = scale · x · inverse: dx = scale · inverse · d - y (y·d) · inverse / scale.
    along = block_sum(products, shared) * inverse / scale;
    across = scale * inverse;
  }
#pragma unroll 1
  for (u32 i = threadIdx.x; i < unit.dim; i += blockDim.x) {
    float x = convolved(inputs, conv, bias, s, 0, row, of, unit.first + i), d = d_parts[i];
    if (unit.is_key && of.is_delta) d = across * d - along * parts[i];
    d_parts[i] = d * silu_slope(x);
  }
  if (unit.is_key || threadIdx.x) return;
  float rate = -expf(a_log[unit.head]), d_decay = d_decays[at_head], d_step = d_steps[at_head], step = steps[at_head];
  float slope = sigmoid(inputs[row * of.width() + of.decays() + unit.head] + dt_bias[unit.head]), d;
  if (of.is_delta) {
    d = d_decay * rate * slope;
    own[of.steps() + unit.head] = d_step * step * (1.f - step);
  } else {
    // A step at its bound does not move.
    bool is_bound = step >= most || (least > 0.f && step <= least);
    d = is_bound ? 0.f : (d_decay * rate + d_step) * slope;
  }
  own[of.decays() + unit.head] = d;
  a_log_terms[at_head] = d_decay * decays[at_head];
}

// The gradients with respect to inputs of the convolution, from those with respect to its output. blockIdx.x is the row.
extern "C" __global__ void recurrent_taps_backward(const float* conv, const Sequence* sequences, const u32* rows, const float* d_convolved,
                                                   float* d_inputs, SHAPE) {
  Shape of = SHAPE_OF;
  u32 c = column_of(), sequence = rows[blockIdx.x];
  if (c >= of.channels()) return;
  u64 row = blockIdx.x;
  float d = 0;
  if (sequence != NONE) {
    u64 end = sequences[sequence].end;
    // Later rows see this one through earlier weights.
    for (u32 ahead = 0; ahead < of.kernel && row + ahead < end; ahead++)
      d = fmaf(conv[c * of.kernel + of.kernel - 1 - ahead], d_convolved[(row + ahead) * of.channels() + c], d);
  }
  d_inputs[row * of.width() + of.column(c)] = d;
}

// Adds the gradients of the convolution's weights of channels first.., sequence by sequence: a thread for each, blockIdx.x has a part.
extern "C" __global__ void recurrent_conv_weights(const float* inputs, const Sequence* sequences, const float* d_convolved, float* dw,
                                                  u32 count, u32 first, u32 width, SHAPE) {
  Shape of = SHAPE_OF;
  u32 own = blockIdx.x * blockDim.x + threadIdx.x, i = own % width, t = own / width;
  if (own >= width * of.kernel) return;
  u32 c = first + i, column = of.column(c), behind = of.kernel - 1 - t;
  float all = dw[i * of.kernel + t];
  for (u32 index = 0; index < count; index++) {
    Sequence s = sequences[index];
    float sum = 0;
    for (u64 row = s.first + behind; row < s.end; row++)
      sum = fmaf(d_convolved[row * of.channels() + c], inputs[(row - behind) * of.width() + column], sum);
    all += sum;
  }
  dw[i * of.kernel + t] = all;
}
