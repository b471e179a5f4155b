// Tokens from rows of logits, to the bit those of the CPU: weights, their sums and the order of candidates are computed in the
// order of `sampling/mod.rs`. blockIdx.x is the request.

struct Request {
  u32 row;
  // 0: no cut.
  u32 top_k;
  float temperature, min_p, top_p;
  u32 report;
  // The row of changed logits that the token is sampled from; NONE: the row itself.
  u32 changed;
};

struct Draw {
  u64 seed, index, position;
};

constexpr u32 SUM = 512, LANES = 16, NONE = 0xffffffffu;

// Ten rounds of Philox4x32 (Salmon et al. 2011), as in `rng.rs`: the numbers in [0, 1) of samples (purpose 0).
extern "C" __global__ void uniforms(const Draw* draws, double* out, u32 count) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  Draw draw = draws[i];
  u64 stream = draw.index & ((1ull << 56) - 1);
  u32 counter[4] = {(u32)draw.position, (u32)(draw.position >> 32), (u32)stream, (u32)(stream >> 32)};
  u32 key[2] = {(u32)draw.seed, (u32)(draw.seed >> 32)};
  for (int round = 0; round < 10; round++) {
    u64 a = 0xD2511F53ull * counter[0], b = 0xCD9E8D57ull * counter[2];
    u32 next[4] = {(u32)(b >> 32) ^ counter[1] ^ key[0], (u32)b, (u32)(a >> 32) ^ counter[3] ^ key[1], (u32)a};
    for (int word = 0; word < 4; word++) counter[word] = next[word];
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  u64 bits = ((u64)counter[1] << 32 | counter[0]) >> 11;
  out[i] = (double)bits / 9007199254740992.0;
}

// exp(x) for x <= 0, 0 below -87 and for NaN: the polynomial of `sampling/mod.rs`.
__device__ __forceinline__ float exp_nonpositive(float x) {
  const float ROUND = 12582912.f;
  float shifted = x * 1.44269504088896340736f + ROUND;
  float n = shifted - ROUND;
  float r = (x - n * 0.6933594f) - n * -2.1219444e-4f;
  float tail = 1.f / 6.f + r * (1.f / 24.f + r * (1.f / 120.f + r * (1.f / 720.f)));
  float fraction = 1.f + (r + r * r * (0.5f + r * tail));
  u32 exponent = (__float_as_uint(shifted) - __float_as_uint(ROUND) + 127u) << 23;
  return x > -87.f ? fraction * __uint_as_float(exponent) : 0.f;
}

__device__ __forceinline__ float weight_of(float logit, float top, Request request) {
  float ratio = exp_nonpositive((logit - top) / request.temperature);
  return ratio >= request.min_p ? ratio : 0.f;
}

// A token by rank: greater is likelier, and of equals the lower id. NaN counts as -inf, -0 as 0. Never 0.
__device__ __forceinline__ u64 rank_of(u32 id, float logit) {
  u32 bits = __float_as_uint(logit != logit ? -INFINITE : logit + 0.f);
  u32 ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
  return (u64)ordered << 32 | (u32)~id;
}

__device__ __forceinline__ u32 id_of(u64 rank) { return ~(u32)rank; }

// Calls f(i, row[i]) for i = first, first + step, ... below `end` in order: sixteen loads before the calls for them.
template <typename F>
__device__ __forceinline__ void each_logit(const float* row, u32 first, u32 end, u32 step, F f) {
  constexpr u32 AHEAD = 16;
  u32 i = first;
  for (; i + (AHEAD - 1) * step < end; i += AHEAD * step) {
    float x[AHEAD];
#pragma unroll
    for (u32 j = 0; j < AHEAD; j++) x[j] = row[i + j * step];
#pragma unroll
    for (u32 j = 0; j < AHEAD; j++) f(i + j * step, x[j]);
  }
  for (; i < end; i += step) f(i, row[i]);
}

// The likeliest token below a rank, or 0 where there is none; in all threads.
__device__ __forceinline__ u64 next_best(const float* row, u32 vocab, u64 bound, u64* shared) {
  u64 best = 0;
  each_logit(row, threadIdx.x, vocab, blockDim.x, [&](u32 id, float logit) {
    u64 rank = rank_of(id, logit);
    if (rank < bound && rank > best) best = rank;
  });
  for (int distance = 16; distance; distance >>= 1) best = max(best, __shfl_xor_sync(ALL, best, distance));
  __syncthreads();
  if (lane_id() == 0) shared[threadIdx.x / 32] = best;
  __syncthreads();
  best = lane_id() < blockDim.x / 32 ? shared[lane_id()] : 0;
  for (int distance = 16; distance; distance >>= 1) best = max(best, __shfl_xor_sync(ALL, best, distance));
  return best;
}

__device__ __forceinline__ float largest(const float* row, u32 vocab, float* shared) {
  float top = -INFINITE;
  each_logit(row, threadIdx.x, vocab, blockDim.x, [&](u32, float logit) { top = fmaxf(top, logit); });
  return block_max(top, shared);
}

// Sums of the weights by block of 512, in f64: half a warp has a block, each lane every 16th weight.
__device__ __forceinline__ void sum_weights(const float* row, u32 vocab, float top, Request request, double* sums) {
  u32 lane = threadIdx.x % LANES, half = threadIdx.x & 16, parts = blockDim.x / LANES;
  u32 blocks = (vocab + SUM - 1) / SUM;
  // Both halves of a warp go around equally often: they shuffle together.
  for (u32 first = 0; first < blocks; first += parts) {
    u32 block = first + threadIdx.x / LANES;
    float sum = 0;
    if (block < blocks)
      each_logit(row, block * SUM + lane, min((block + 1) * SUM, vocab), LANES,
                 [&](u32, float logit) { sum += weight_of(logit, top, request); });
    double total = 0;
    for (u32 other = 0; other < LANES; other++) total += (double)__shfl_sync(ALL, sum, half + other);
    if (block < blocks && lane == 0) sums[block] = total;
  }
  __syncthreads();
}

// The first token, by id, at which the running sum of weights exceeds the target. One thread.
__device__ __forceinline__ u32 pick_by_id(const float* row, u32 vocab, float top, Request request, const double* sums,
                                          double target) {
  u32 blocks = (vocab + SUM - 1) / SUM, start = 0, end = vocab;
  double running = 0;
  bool found = false;
  for (u32 block = 0; block < blocks && !found; block++) {
    if (running + sums[block] > target) {
      start = block * SUM;
      end = min(vocab, start + SUM);
      found = true;
    } else {
      running += sums[block];
      start = end;
    }
  }
  for (u32 id = start; id < end; id++) {
    running += (double)weight_of(row[id], top, request);
    if (running > target) return id;
  }
  for (u32 id = end; id > 0; id--)
    if (weight_of(row[id - 1], top, request) > 0.f) return id - 1;
  return 0;
}

// Samples among the likeliest tokens. All threads; `shared` has 33 elements.
__device__ __forceinline__ u32 pick_ranked(const float* row, u32 vocab, float top, Request request, double total, double uniform,
                                           u64* shared) {
  bool by_rank = request.top_k && request.top_k < vocab;
  float floor = by_rank ? 0.f : (float)(0.5 * (1.0 - (double)request.top_p) * total / (double)vocab);
  u32 most = by_rank ? request.top_k : vocab, candidates = 0;
  double mass = 0;
  if (by_rank) {
    // The mass that top-p cuts is that of the top-k tokens.
    total = 0;
    u64 bound = ~0ull;
    for (u32 i = 0; i < most; i++) {
      bound = next_best(row, vocab, bound, shared);
      float weight = bound ? weight_of(row[id_of(bound)], top, request) : 0.f;
      if (!(weight > 0.f)) break;
      total += (double)weight;
    }
  }
  double limit = request.top_p < 1.f ? (double)request.top_p * total : (double)INFINITE;
  u64 bound = ~0ull;
  while (candidates < most && mass < limit) {
    bound = next_best(row, vocab, bound, shared);
    float weight = bound ? weight_of(row[id_of(bound)], top, request) : 0.f;
    if (!(weight > floor)) break;
    mass += (double)weight;
    candidates++;
  }
  double target = uniform * mass, running = 0;
  u32 token = 0;
  bound = ~0ull;
  for (u32 i = 0; i < candidates; i++) {
    bound = next_best(row, vocab, bound, shared);
    token = id_of(bound);
    running += (double)weight_of(row[token], top, request);
    if (running > target) break;
  }
  return token;
}

__device__ __forceinline__ u32 sample_row(const float* row, u32 vocab, float top, Request request, double uniform,
                                          double* sums, u64* shared) {
  bool finite = top > -INFINITE && top < INFINITE;
  if (!(request.temperature > 0.f) || !finite) {
    // The first of the largest; without one that is a number, the first token.
    u64 best = next_best(row, vocab, ~0ull, shared);
    float found = row[id_of(best)];
    if (found == found) return id_of(best);
    // Every logit is NaN or -inf: the first -inf, if there is one.
    u32 first = vocab;
    for (u32 id = threadIdx.x; id < vocab; id += blockDim.x)
      if (row[id] == -INFINITE) first = min(first, id);
    for (int distance = 16; distance; distance >>= 1) first = min(first, __shfl_xor_sync(ALL, first, distance));
    __syncthreads();
    if (lane_id() == 0) shared[threadIdx.x / 32] = first;
    __syncthreads();
    first = lane_id() < blockDim.x / 32 ? (u32)shared[lane_id()] : vocab;
    for (int distance = 16; distance; distance >>= 1) first = min(first, __shfl_xor_sync(ALL, first, distance));
    return first < vocab ? first : 0;
  }
  sum_weights(row, vocab, top, request, sums);
  double total = 0;
  for (u32 block = 0; block < (vocab + SUM - 1) / SUM; block++) total += sums[block];
  bool cut = (request.top_k && request.top_k < vocab) || request.top_p < 1.f;
  if (cut) return pick_ranked(row, vocab, top, request, total, uniform, shared);
  if (threadIdx.x == 0) shared[32] = pick_by_id(row, vocab, top, request, sums, uniform * total);
  __syncthreads();
  return (u32)shared[32];
}

// For request blockIdx.x the log-sum-exp of scale · row, (largest, Σ exp(x - largest)), put together from parts of `part` tokens in
// the order of the loss head: 256 threads, of which a part uses as many as its width decides.
extern "C" __global__ void __launch_bounds__(256) row_log_sums(const float* logits, const u32* rows, const float* scales,
                                                               float* largest, float* sums, u32 stride, u32 vocab, u32 part) {
  __shared__ float shared[32];
  const float* row = logits + (u64)rows[blockIdx.x] * stride;
  float scale = scales[blockIdx.x], before = -INFINITE, old = 0;
  for (u32 first = 0; first < vocab; first += part) {
    u32 end = min(vocab, first + part), threads = min((end - first + 31) / 32, 8u) * 32;
    bool takes_part = threadIdx.x < threads;
    float top = -INFINITE, sum = 0;
    if (takes_part)
      each_logit(row, first + threadIdx.x, end, threads, [&](u32, float logit) { top = fmaxf(top, logit * scale); });
    top = block_max(top, shared);
    if (takes_part && top > -INFINITE)
      each_logit(row, first + threadIdx.x, end, threads, [&](u32, float logit) { sum += expf(logit * scale - top); });
    sum = block_sum(sum, shared);
    if (top > before) {
      old = old > 0.f ? old * expf(before - top) + sum : sum;
      before = top;
    } else if (top > -INFINITE) {
      old = old + sum * expf(top - before);
    }
  }
  if (threadIdx.x == 0) {
    largest[blockIdx.x] = before;
    sums[blockIdx.x] = old;
  }
}

// A token for each request, by its number in [0, 1) of `uniforms`, its log-probability at the temperature (at 1 when greedy), and
// the `report` likeliest tokens with theirs, [request][reports]. `sums` has a part of (vocab + 511) / 512 for each request.
extern "C" __global__ void __launch_bounds__(512) sample(const float* logits, const float* changed, const Request* requests,
                                                          const double* uniforms, const float* largest_of,
                                                          const float* sums_of, double* sums, u32* tokens, float* logprobs,
                                                          u32* report_ids, float* report_logprobs, u32 vocab, u32 reports) {
  __shared__ float floats[32];
  __shared__ u64 ranks[33];
  Request request = requests[blockIdx.x];
  const float* row = logits + (u64)request.row * vocab;
  const float* from = request.changed == NONE ? row : changed + (u64)request.changed * vocab;
  sums += (u64)blockIdx.x * ((vocab + SUM - 1) / SUM);
  u32 token = sample_row(from, vocab, largest(from, vocab, floats), request, uniforms[blockIdx.x], sums, ranks);
  float scale = request.temperature == 0.f ? 1.f : 1.f / request.temperature;
  float log_sum = largest_of[blockIdx.x] + logf(sums_of[blockIdx.x]);
  if (threadIdx.x == 0) {
    tokens[blockIdx.x] = token;
    logprobs[blockIdx.x] = row[token] * scale - log_sum;
  }
  u64 bound = ~0ull;
  for (u32 i = 0; i < min(request.report, vocab); i++) {
    bound = next_best(row, vocab, bound, ranks);
    if (threadIdx.x == 0) {
      u64 at = (u64)blockIdx.x * reports + i;
      report_ids[at] = id_of(bound);
      report_logprobs[at] = row[id_of(bound)] * scale - log_sum;
    }
  }
}

// The largest logits of a row, best first, with their tokens: counts[blockIdx.x] of them, [request][most].
extern "C" __global__ void __launch_bounds__(512) top_tokens(const float* logits, const u32* rows, const u32* counts, u32* ids,
                                                              float* found, u32 stride, u32 vocab, u32 most) {
  __shared__ u64 ranks[32];
  const float* row = logits + (u64)rows[blockIdx.x] * stride;
  u64 bound = ~0ull;
  for (u32 i = 0; i < min(counts[blockIdx.x], vocab); i++) {
    bound = next_best(row, vocab, bound, ranks);
    if (threadIdx.x == 0) {
      u64 at = (u64)blockIdx.x * most + i;
      ids[at] = id_of(bound);
      // NaN counts as -inf.
      float logit = row[id_of(bound)];
      found[at] = logit != logit ? -INFINITE : logit;
    }
  }
}

// Logits of tokens of rows; -0 of those that are elsewhere.
extern "C" __global__ void token_logits(const float* logits, const u32* rows, const u32* ids, float* out, u32 stride, u32 count) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = ids[i] == NONE ? -0.f : logits[(u64)rows[i] * stride + ids[i]];
}

// A row of logits that is changed: the mask of its tokens is words `mask`.. of all masks; without words no token is masked.
struct Changed {
  u32 row, masked, mask, words;
};

struct Edit {
  // Among the changed rows.
  u32 row, token;
  float bias, repetition, frequency, presence;
};

// Copies row blockIdx.x of those that are changed; tokens that are not allowed get -inf. blockIdx.y is a part of the columns.
extern "C" __global__ void mask_logits(const float* logits, const Changed* rows, const u32* masks, float* out, u32 vocab) {
  u32 id = blockIdx.y * blockDim.x + threadIdx.x;
  if (id >= vocab) return;
  Changed row = rows[blockIdx.x];
  bool allowed = !row.masked || (id / 32 < row.words && masks[row.mask + id / 32] >> id % 32 & 1);
  out[(u64)blockIdx.x * vocab + id] = allowed ? logits[(u64)row.row * vocab + id] : -INFINITE;
}

// Adds a bias to a logit, then the penalties. No two edits are of one logit.
extern "C" __global__ void edit_logits(float* logits, const Edit* edits, u32 count, u32 vocab) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  Edit edit = edits[i];
  float* to = logits + (u64)edit.row * vocab + edit.token;
  float x = *to + edit.bias;
  x = x > 0.f ? x / edit.repetition : x * edit.repetition;
  *to = x - edit.frequency - edit.presence;
}
