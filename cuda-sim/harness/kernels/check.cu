// Kernels that NVIDIA's compiler turns into PTX for the check of the simulator. Without includes, for sm_80 and up.
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

__constant__ float table[4] = {1.f, 2.f, 3.f, 4.f};

__device__ __forceinline__ float from_bf16(u16 x) { return __uint_as_float((u32)x << 16); }

__device__ __forceinline__ u16 to_bf16(float f) {
  u16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(f));
  return r;
}

__device__ __forceinline__ float block_sum(float v, float* sm) {
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if ((threadIdx.x & 31) == 0) sm[threadIdx.x >> 5] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    float t = threadIdx.x < blockDim.x / 32 ? sm[threadIdx.x] : 0.f;
    for (int o = 16; o; o >>= 1) t += __shfl_xor_sync(~0u, t, o);
#ifndef PLANT_RACE
    __syncwarp();
#endif
    if (threadIdx.x == 0) sm[0] = t;
  }
#ifndef PLANT_RACE
  __syncthreads();
#endif
  return sm[0];
}

// y = x * w / rms(x), one block for each row.
extern "C" __global__ void __launch_bounds__(256) rms_norm(const float* x, const u16* w, u16* y, int k, float eps) {
  __shared__ float sm[32];
  const float* row = x + (u64)blockIdx.x * k;
  float s = 0;
  for (int i = threadIdx.x; i < k; i += blockDim.x) s = fmaf(row[i], row[i], s);
  float r = rsqrtf(block_sum(s, sm) / k + eps);
  for (int i = threadIdx.x; i < k; i += blockDim.x)
    y[(u64)blockIdx.x * k + i] = to_bf16(row[i] * r * from_bf16(w[i]));
}

__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void ldmatrix4(u32* r, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}

__device__ __forceinline__ void mma16816(float* d, const u32* a, const u32* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void copy16(void* dst, const void* src, bool ok) {
  int n = ok ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(dst)), "l"(src), "r"(n) : "memory");
}

// C[m,n] in f32 = A[m,k] · B[n,k]ᵀ in bf16: tiles of 64x64, four warps of 32x32, k by 32 in two stages.
constexpr int BM = 64, BN = 64, BK = 32, PAD = 8;

extern "C" __global__ void __launch_bounds__(128) gemm(const u16* A, const u16* B, float* C, int m, int n, int k) {
  __shared__ __align__(16) u16 sa[2][BM][BK + PAD], sb[2][BN][BK + PAD];
  const int bm = blockIdx.y * BM, bn = blockIdx.x * BN, t = threadIdx.x, lane = t & 31, warp = t >> 5;
  const int wm = (warp >> 1) * 32, wn = (warp & 1) * 32;
  float acc[2][4][4] = {};
  auto load = [&](int s, int k0) {
    for (int i = t; i < BM * BK / 8; i += 128) {
      int r = i / (BK / 8), c = i % (BK / 8) * 8;
      copy16(&sa[s][r][c], A + (u64)min(bm + r, m - 1) * k + k0 + c, bm + r < m);
      copy16(&sb[s][r][c], B + (u64)min(bn + r, n - 1) * k + k0 + c, bn + r < n);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  load(0, 0);
  for (int k0 = 0, s = 0; k0 < k; k0 += BK, s ^= 1) {
    if (k0 + BK < k) {
      load(s ^ 1, k0 + BK);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
#ifndef PLANT_RACE
    __syncthreads();
#endif
#pragma unroll
    for (int kk = 0; kk < BK; kk += 16) {
      u32 a[2][4], b[2][4];
      for (int i = 0; i < 2; i++) ldmatrix4(a[i], &sa[s][wm + i * 16 + (lane & 15)][kk + (lane >> 4) * 8]);
      for (int j = 0; j < 2; j++)
        ldmatrix4(b[j], &sb[s][wn + j * 16 + (lane & 7) + (lane >> 4) * 8][kk + ((lane >> 3) & 1) * 8]);
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) mma16816(acc[i][j], a[i], &b[j / 2][j % 2 * 2]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 4; j++)
      for (int e = 0; e < 4; e++) {
        int r = bm + wm + i * 16 + lane / 4 + (e >> 1) * 8, c = bn + wn + j * 8 + lane % 4 * 2 + (e & 1);
        if (r < m && c < n) C[(u64)r * n + c] = acc[i][j][e];
      }
}

struct Options {
  float a;
  int b[5];
  double d;
};

// What compilers make of functions, integers, structs, switches and local arrays.
extern "C" __global__ void functions(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  y[i * 8 + 0] = sinf(v) + cosf(v);
  y[i * 8 + 1] = tanhf(v);
  y[i * 8 + 2] = expf(v) + __expf(v);
  y[i * 8 + 3] = logf(fabsf(v) + 1e-3f);
  y[i * 8 + 4] = powf(fabsf(v), 2.5f);
  y[i * 8 + 5] = sqrtf(fabsf(v)) + 1.f / (fabsf(v) + 0.5f);
  y[i * 8 + 6] = erff(v) + floorf(v) + rintf(v);
  y[i * 8 + 7] = fmodf(v, 3.f) + (float)(long long)(v * 100.f);
}

extern "C" __global__ void integers(Options p, u64* q, u32* counts, int n) {
  extern __shared__ u32 dynamic[];
  int t = threadIdx.x;
  u32 local[16];
  for (int i = 0; i < n; i++) local[i & 15] = t * i;
  dynamic[t] = local[n & 7] + p.b[n % 5] + (u32)table[t & 3];
  __syncthreads();
  u64 h = (u64)(t + 1) * 0x9E3779B97F4A7C15ull;
  h ^= h >> 31;
  h = __umul64hi(h, 0xBF58476D1CE4E5B9ull) + h / (u64)(n + 1) + h % 1000;
  h += __popc(t) + __clz(t) + __ffs(t) + __brev(t) + __byte_perm(t, n, 0x1230) + __funnelshift_l(t, n, 5);
  h += __reduce_add_sync(~0u, (u32)t) + __ballot_sync(~0u, t & 2) + __match_any_sync(~0u, t & 3);
  switch (n) {
    case 0: h += 1; break;
    case 1: h *= 2; break;
    case 12: h -= 5; break;
    case 13: h = 3; break;
    default: h ^= (u64)(p.d * p.a);
  }
  q[t] = h + dynamic[(t + 1) % blockDim.x];
  if (t & 1) atomicAdd(counts, 1u);
  atomicMax(counts + 1, (u32)t);
}
