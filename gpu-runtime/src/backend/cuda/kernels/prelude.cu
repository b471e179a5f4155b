// What all kernels share; the compiler gets it in front of each of them. Kernels include nothing and are for sm_80 and up.
//
// Multiplications and additions are not contracted (--fmad=false): a sum is fused where the source says fmaf, nowhere else.
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

constexpr u32 ALL = 0xffffffffu;
#define INFINITE __int_as_float(0x7f800000)

__device__ __forceinline__ u32 lane_id() { return threadIdx.x & 31; }

// Elements as f32, from f32 or from bf16, whose bits are a u16.
__device__ __forceinline__ float load(const float* p) { return *p; }
__device__ __forceinline__ float load(const u16* p) { return __uint_as_float((u32)*p << 16); }

__device__ __forceinline__ u16 to_bf16(float x) {
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// Elements from f32, rounded to nearest even where they are bf16.
__device__ __forceinline__ void store(float* p, float x) { *p = x; }
__device__ __forceinline__ void store(u16* p, float x) { *p = to_bf16(x); }

// Two elements in bf16, the first one in the lower half.
__device__ __forceinline__ u32 pack(float first, float second) {
  u32 packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
  return packed;
}

// Four elements that follow each other, where one access may have all of them: at a multiple of its size.
__device__ __forceinline__ float4 load_four(const float* p) { return *(const float4*)p; }
__device__ __forceinline__ void store_four(float* p, float4 x) { *(float4*)p = x; }
__device__ __forceinline__ void store_four(u16* p, float4 x) { *(uint2*)p = make_uint2(pack(x.x, x.y), pack(x.z, x.w)); }

// x as an element of the type of p.
__device__ __forceinline__ float rounded(const float*, float x) { return x; }
__device__ __forceinline__ float rounded(const u16*, float x) { return __uint_as_float((u32)to_bf16(x) << 16); }

// Sum over a warp, in all lanes, with the same bits in each.
template <typename T>
__device__ __forceinline__ T warp_sum(T x) {
  for (int distance = 16; distance; distance >>= 1) x += __shfl_xor_sync(ALL, x, distance);
  return x;
}

__device__ __forceinline__ float warp_max(float x) {
  for (int distance = 16; distance; distance >>= 1) x = fmaxf(x, __shfl_xor_sync(ALL, x, distance));
  return x;
}

// Sum over a block of whole warps, in all threads, in an order that the block's size decides. `shared` has 32 elements.
template <typename T>
__device__ __forceinline__ T block_sum(T x, T* shared) {
  x = warp_sum(x);
  __syncthreads();
  if (lane_id() == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  return warp_sum(lane_id() < blockDim.x / 32 ? shared[lane_id()] : T(0));
}

// Largest over a block of whole warps, in all threads. NaN counts as -inf.
__device__ __forceinline__ float block_max(float x, float* shared) {
  x = warp_max(x);
  __syncthreads();
  if (lane_id() == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  return warp_max(lane_id() < blockDim.x / 32 ? shared[lane_id()] : -INFINITE);
}
