// Biases of rows. blockIdx.y is a part of the columns.

// rows += bias; blockIdx.x is the row.
extern "C" __global__ void add_bias(float* rows, const float* bias, u32 width) {
  u32 column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column < width) rows[(u64)blockIdx.x * width + column] += bias[column];
}

// Adds the sums of columns first.. of dy, rows in order: one thread for each column.
extern "C" __global__ void bias_backward(const float* dy, float* db, u32 rows, u32 stride, u32 first, u32 width) {
  u32 column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= width) return;
  float sum = db[column];
  for (u32 row = 0; row < rows; row++) sum += dy[(u64)row * stride + first + column];
  db[column] = sum;
}
