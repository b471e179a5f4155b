// What kernels on tensor cores share: the compiler gets it between the prelude and each source whose name begins with tensor_.
//
// Elements are bf16 (their bits a u16), sums f32. A tile in shared memory has rows of W elements whose chunks of 8 are exchanged by
// row, so that ldmatrix meets no bank twice.

// Where chunk `column` / 8 of a row of W elements is.
template <u32 W>
__device__ __forceinline__ u32 place(u32 row, u32 column) {
  return row * W + ((column / 8) ^ (W == 32 ? row / 2 & 3 : row & 7)) * 8;
}

__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// 16 bytes to shared memory, once the thread has waited for them: the first `bytes` of them are copied, the others zeros.
__device__ __forceinline__ void copy16(u16* to, const u16* from, u32 bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// All but the newest N groups have arrived.
template <u32 N>
__device__ __forceinline__ void wait_for_older() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// Starts the copy of N rows of C elements, `pitch` elements apart, of which `n` and `c` exist; zeros elsewhere. Each of T threads has a
// share. Where 16 bytes of a row are not where a copy may begin, elements are stored one by one.
template <u32 N, u32 C, u32 T>
__device__ __forceinline__ void load_tile(u32 thread, u16* to, const u16* from, u32 n, u32 c, u32 pitch) {
  if ((((u64)from | (u64)pitch * 2) & 15) == 0) {
#pragma unroll
    for (u32 i = 0; i < N * C / 8 / T; i++) {
      u32 chunk = thread + i * T, row = chunk / (C / 8), column = chunk % (C / 8) * 8;
      bool exists = row < n && column < c;
      copy16(to + place<C>(row, column), exists ? from + (u64)row * pitch + column : from, exists ? min(16, 2 * (c - column)) : 0);
    }
  } else {
    for (u32 i = thread; i < N * C; i += T) {
      u32 row = i / C, column = i % C;
      to[place<C>(row, column & ~7u) + (column & 7)] = row < n && column < c ? from[(u64)row * pitch + column] : (u16)0;
    }
  }
}

__device__ __forceinline__ void ldmatrix(u32* r, const u16* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p))
               : "memory");
}

__device__ __forceinline__ void ldmatrix_transposed(u32* r, const u16* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p))
               : "memory");
}

// d[16][8] += a[16][16] · b[16][8].
__device__ __forceinline__ void mma(float* d, const u32* a, const u32* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The two elements of `pack`.
__device__ __forceinline__ float low(u32 packed) { return __uint_as_float(packed << 16); }
__device__ __forceinline__ float high(u32 packed) { return __uint_as_float(packed & 0xffff0000u); }

// The left side of an mma from the results of two others, rounded.
__device__ __forceinline__ void as_left(u32* a, const float* first, const float* second) {
  a[0] = pack(first[0], first[1]);
  a[1] = pack(first[2], first[3]);
  a[2] = pack(second[0], second[1]);
  a[3] = pack(second[2], second[3]);
}

// 16 rows and 16 columns as the left side; 16 rows as columns of the right side; and 16 rows of the right side.
template <u32 W>
__device__ __forceinline__ void left(u32* a, const u16* tile, u32 row, u32 column) {
  ldmatrix(a, tile + place<W>(row + (lane_id() & 15), column + (lane_id() >> 4) * 8));
}

template <u32 W>
__device__ __forceinline__ void right(u32* b, const u16* tile, u32 row, u32 column) {
  ldmatrix(b, tile + place<W>(row + (lane_id() & 7) + (lane_id() >> 4) * 8, column + ((lane_id() >> 3) & 1) * 8));
}

template <u32 W>
__device__ __forceinline__ void right_transposed(u32* b, const u16* tile, u32 row, u32 column) {
  ldmatrix_transposed(b, tile + place<W>(row + (lane_id() & 15), column + (lane_id() >> 4) * 8));
}

// 16 rows of the left side's columns: the left side is the tile's transpose.
template <u32 W>
__device__ __forceinline__ void left_transposed(u32* a, const u16* tile, u32 row, u32 column) {
  ldmatrix_transposed(a, tile + place<W>(row + (lane_id() & 7) + (lane_id() >> 4) * 8, column + ((lane_id() >> 3) & 1) * 8));
}

// The sum over the four lanes that share a row of results, in all of them.
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(ALL, x, 1);
  return x + __shfl_xor_sync(ALL, x, 2);
}

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(ALL, x, 1));
  return fmaxf(x, __shfl_xor_sync(ALL, x, 2));
}
