// Choice of the experts of tokens, and their weights. A block is one warp and has a row (blockIdx.x).

// Scores are the softmax (groups 0), or sigmoids.
#define RULE u32 experts, u32 per_token, u32 normalised, u32 groups, float scaling, float eps

__device__ __forceinline__ float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

// A score by rank: greater is better, and of equals the lower index. NaN counts as -inf, -0 as 0. Never 0.
__device__ __forceinline__ u64 rank_of(u32 index, float score) {
  u32 bits = __float_as_uint(score != score ? -INFINITE : score + 0.f);
  u32 ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
  return (u64)ordered << 32 | (u32)~index;
}

// The rank of the last of the `chosen` best scores: at least 1 of at least as many.
__device__ __forceinline__ u64 last_of_best(const float* scores, u32 count, u32 chosen) {
  u64 bound = ~0ull;
  for (u32 i = 0; i < chosen; i++) {
    u64 best = 0;
    for (u32 at = lane_id(); at < count; at += 32) {
      u64 rank = rank_of(at, scores[at]);
      if (rank < bound && rank > best) best = rank;
    }
    for (int distance = 16; distance; distance >>= 1) best = max(best, __shfl_xor_sync(ALL, best, distance));
    bound = best;
  }
  return bound;
}

// Σ exp(x - largest) of a row, in all lanes, in an order that its length decides.
__device__ __forceinline__ float exponentials(const float* x, u32 count, float* largest) {
  float top = -INFINITE, sum = 0;
  for (u32 i = lane_id(); i < count; i += 32) top = fmaxf(top, x[i]);
  *largest = top = warp_max(top);
  for (u32 i = lane_id(); i < count; i += 32) sum += expf(x[i] - top);
  return warp_sum(sum);
}

// `keys` are [row][expert], what experts are chosen by, and `sums` [row][group], the sums of a group's two best.
__device__ __forceinline__ void sigmoid_keys(const float* logits, const float* correction, float* keys, float* sums,
                                             u32 experts, u32 groups, u32 chosen_groups) {
  for (u32 i = lane_id(); i < experts; i += 32) {
    float key = sigmoid(logits[i]) + correction[i];
    keys[i] = key != key ? -INFINITE : key;
  }
  if (chosen_groups >= groups) return;
  __syncwarp();
  u32 size = experts / groups;
  for (u32 group = lane_id(); group < groups; group += 32) {
    float best = -INFINITE, second = -INFINITE;
    for (u32 i = group * size; i < (group + 1) * size; i++) {
      second = fmaxf(second, fminf(best, keys[i]));
      best = fmaxf(best, keys[i]);
    }
    sums[group] = size > 1 ? best + second : best;
  }
  __syncwarp();
  u64 last = last_of_best(sums, groups, chosen_groups);
  for (u32 i = lane_id(); i < experts; i += 32)
    if (rank_of(i / size, sums[i / size]) < last) keys[i] = -INFINITE;
}

// The experts of each row, [row][per_token], ascending, with their weights.
extern "C" __global__ void __launch_bounds__(32) route(const float* logits, const float* correction, float* keys, float* sums,
                                                       u32* chosen, float* weights, u32 chosen_groups, RULE) {
  u64 row = blockIdx.x;
  logits += row * experts, chosen += row * per_token, weights += row * per_token;
  const float* by = logits;
  if (groups) {
    by = keys += row * experts;
    // A lane reads the keys that it wrote.
    sigmoid_keys(logits, correction, keys, sums + row * groups, experts, groups, chosen_groups);
  }
  u64 last = last_of_best(by, experts, per_token);
  u32 before = 0;
  for (u32 first = 0; first < experts; first += 32) {
    u32 expert = first + lane_id();
    bool own = expert < experts && rank_of(expert, by[expert]) >= last;
    u32 all = __ballot_sync(ALL, own), place = before + __popc(all & ((1u << lane_id()) - 1));
    if (own) {
      chosen[place] = expert;
      weights[place] = groups ? sigmoid(logits[expert]) : logits[expert];
    }
    before += __popc(all);
  }
  __syncwarp();
  float largest = 0, divisor = 1;
  if (!groups && !normalised) divisor = exponentials(logits, experts, &largest);
  if (!groups && normalised) {
    largest = -INFINITE;
    for (u32 i = 0; i < per_token; i++) largest = fmaxf(largest, weights[i]);
  }
  if (normalised) {
    divisor = 0;
    for (u32 i = 0; i < per_token; i++) divisor += groups ? weights[i] : expf(weights[i] - largest);
    if (groups) divisor += eps;
  }
  __syncwarp();
  for (u32 i = lane_id(); i < per_token; i += 32) {
    float score = weights[i];
    weights[i] = groups ? score / divisor * scaling : expf(score - largest) / divisor;
  }
}

// Σ w_j (g - g_j) over a row's experts. Where one of them has nearly all the weight, g - Σ w_j g_j would cancel.
__device__ __forceinline__ float relative_gradient(float g, const float* weights, const float* d_weights, u32 per_token) {
  float sum = 0;
  for (u32 j = 0; j < per_token; j++) sum += weights[j] * (g - d_weights[j]);
  return sum;
}

// The gradient with respect to the logits, [row][expert].
extern "C" __global__ void __launch_bounds__(32) route_backward(const float* logits, const u32* chosen, const float* weights,
                                                                const float* d_weights, float* d_logits, RULE) {
  u64 row = blockIdx.x;
  logits += row * experts, d_logits += row * experts;
  chosen += row * per_token, weights += row * per_token, d_weights += row * per_token;
  bool all = !groups && !normalised;
  float largest = 0, sum = all ? exponentials(logits, experts, &largest) : 1.f;
  for (u32 i = lane_id(); i < experts; i += 32) d_logits[i] = all ? expf(logits[i] - largest) / sum : 0.f;
  __syncwarp();
  // The weight of the experts that are not chosen.
  float others = 0;
  if (all) {
    for (u32 i = lane_id(); i < per_token; i += 32) d_logits[chosen[i]] = 0.f;
    __syncwarp();
    float mean = 0;
    for (u32 i = 0; i < per_token; i++) mean += weights[i] * d_weights[i];
    for (u32 i = lane_id(); i < experts; i += 32) {
      others += d_logits[i];
      d_logits[i] *= -mean;
    }
    others = warp_sum(others);
    __syncwarp();
  }
  float divisor = eps;
  if (groups && normalised)
    for (u32 i = 0; i < per_token; i++) divisor += sigmoid(logits[chosen[i]]);
  for (u32 i = lane_id(); i < per_token; i += 32) {
    float g = d_weights[i], own = scaling * g, logit = logits[chosen[i]];
    float relative = relative_gradient(g, weights, d_weights, per_token);
    if (groups) {
      float d_score = normalised ? (relative + eps / divisor * own) / divisor : own;
      // 1 - s is the sigmoid of -x.
      d_logits[chosen[i]] = d_score * sigmoid(logit) * sigmoid(-logit);
    } else {
      d_logits[chosen[i]] = weights[i] * (relative + others * g);
    }
  }
}
