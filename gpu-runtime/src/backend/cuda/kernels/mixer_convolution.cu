// Gated short convolutions. A row of inputs has the parts b, c and x; u = b · x is convolved, and c multiplies the sum. A thread has one
// channel. The sum of a row runs over the kernel in order, wherever the row is in a pass.

// The input of channel i's convolution.
__device__ __forceinline__ float written(const float* inputs, u64 row, u32 channels, u32 i) {
  inputs += row * 3 * channels;
  return inputs[i] * inputs[2 * channels + i];
}

// The sum of a row before c multiplies it. States have the inputs of the convolution before the sequence's rows: [kernel - 1][channels].
__device__ __forceinline__ float convolved(const float* inputs, const float* weight, const Sequence& s, u64 state, u64 row, u32 channels,
                                           u32 kernel, u32 i) {
  float sum = 0;
  for (u32 t = 0; t < kernel; t++) {
    u64 at = row - s.first + t;
    if (at >= kernel - 1)
      sum = fmaf(weight[i * kernel + t], written(inputs, s.first + at - (kernel - 1), channels, i), sum);
    else if (s.state)
      sum = fmaf(weight[i * kernel + t], s.state[state + at * channels + i], sum);
  }
  return sum;
}

// blockIdx.x is the row.
extern "C" __global__ void convolve(const float* inputs, const float* weight, const Sequence* sequences, const u32* rows, float* out,
                                    u64 state, u32 channels, u32 kernel) {
  u32 i = column_of(), sequence = rows[blockIdx.x];
  if (i >= channels) return;
  u64 row = blockIdx.x;
  float y = 0;
  if (sequence != NONE)
    y = convolved(inputs, weight, sequences[sequence], state, row, channels, kernel, i) * inputs[(row * 3 + 1) * channels + i];
  out[row * channels + i] = y;
}

// Moves states behind the rows of the pass. blockIdx.x is the sequence.
extern "C" __global__ void convolve_keep(const float* inputs, const Sequence* sequences, u64 state, u32 channels, u32 kernel) {
  u32 i = column_of();
  Sequence s = sequences[blockIdx.x];
  if (i >= channels || !s.state) return;
  float* kept = s.state + state + i;
  for (u32 t = 0; t < kernel - 1; t++) {
    u64 at = s.end - s.first + t;
    kept[t * channels] = at < kernel - 1 ? kept[at * channels] : written(inputs, s.first + at - (kernel - 1), channels, i);
  }
}

// The gradients with respect to inputs. Every sequence begins at position 0. blockIdx.x is the row.
extern "C" __global__ void convolve_backward(const float* inputs, const float* weight, const Sequence* sequences, const u32* rows,
                                             const float* d_out, float* d_inputs, u32 channels, u32 kernel) {
  u32 i = column_of(), sequence = rows[blockIdx.x];
  if (i >= channels) return;
  u64 row = blockIdx.x;
  const float* own = inputs + row * 3 * channels + i;
  float d_sum = 0, d_gate = 0;
  if (sequence != NONE) {
    Sequence s = sequences[sequence];
    d_gate = convolved(inputs, weight, s, 0, row, channels, kernel, i) * d_out[row * channels + i];
    // Later rows see this one through earlier weights.
    for (u32 ahead = 0; ahead < kernel && row + ahead < s.end; ahead++) {
      u64 later = row + ahead;
      d_sum = fmaf(weight[i * kernel + kernel - 1 - ahead], d_out[later * channels + i] * inputs[(later * 3 + 1) * channels + i], d_sum);
    }
  }
  float* to = d_inputs + row * 3 * channels + i;
  to[0] = d_sum * own[2 * channels];
  to[channels] = d_gate;
  to[2 * channels] = d_sum * own[0];
}

// Adds the gradients of the weights, sequence by sequence: one thread for each weight, blockIdx.x has a part of them.
extern "C" __global__ void convolve_weights(const float* inputs, const Sequence* sequences, const float* d_out, float* dw, u32 count,
                                            u32 channels, u32 kernel) {
  u32 of = blockIdx.x * blockDim.x + threadIdx.x, i = of % channels, t = of / channels;
  if (of >= channels * kernel) return;
  float all = dw[i * kernel + t];
  for (u32 index = 0; index < count; index++) {
    Sequence s = sequences[index];
    float sum = 0;
    for (u64 row = s.first + (kernel - 1 - t); row < s.end; row++)
      sum = fmaf(d_out[row * channels + i] * inputs[(row * 3 + 1) * channels + i], written(inputs, row - (kernel - 1 - t), channels, i), sum);
    all += sum;
  }
  dw[i * kernel + t] = all;
}
