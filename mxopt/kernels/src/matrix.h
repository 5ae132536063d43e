// Matrix products of single-precision arrays, for one thread, with weights of few rows.
//
// Pixels are contiguous in all arrays, so that no array has to be rearranged: a vector holds 16
// pixels. The compiler turns `Vector` into one AVX-512 register, or two of AVX2.
#ifndef MXOPT_MATRIX_H_
#define MXOPT_MATRIX_H_

#include <cstring>
#include <vector>

namespace mxopt {

constexpr int kLanes = 16;
typedef float Vector __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

#if defined(__AVX512F__)
constexpr int kRows = 8, kVectors = 3;    // 24 sums, 3 factors
constexpr int kLeft = 4, kRight = 6;      // 24 sums, 6 factors
#else
constexpr int kRows = 4, kVectors = 1;    // 8 registers of sums, 2 of factors
constexpr int kLeft = 2, kRight = 3;
#endif

// Not by memcpy: tuned to an Intel processor, g++ 12 copies 64 bytes as two halves through the stack.
inline Vector load(const float* p) { return *reinterpret_cast<const Vector*>(p); }

inline void store(float* p, Vector v) { *reinterpret_cast<Vector*>(p) = v; }

inline float sum(Vector v) {
  typedef int Order __attribute__((vector_size(4 * kLanes)));
  v += __builtin_shuffle(v, Order{8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7});
  v += __builtin_shuffle(v, Order{4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11});
  v += __builtin_shuffle(v, Order{2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13});
  return v[0] + v[1];
}

inline float sum(const float* p, long count) {
  Vector totals = {};
  long i = 0;
  for (; i + kLanes <= count; i += kLanes) totals += load(p + i);
  float total = sum(totals);
  for (; i < count; ++i) total += p[i];
  return total;
}

// Values below 0 become 0, those above `top` become `top`.
inline Vector clipped(Vector v, float top) {
  v = v > 0 ? v : Vector{};
  return v < top ? v : Vector{} + top;
}

// A matrix whose element (row, column) is data[row * rows + column * columns].
struct Strided {
  const float* data;
  long rows, columns;
};

template <int R, int V>
inline void product_tile(long depth, Strided a, const float* b, long ldb, float* c, long ldc,
                         bool add) {
  Vector sums[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sums[r][v] = add ? load(c + r * ldc + v * kLanes) : Vector{};
  for (long k = 0; k < depth; ++k) {
    Vector right[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) right[v] = load(b + k * ldb + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const float left = a.data[r * a.rows + k * a.columns];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[r][v] += left * right[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store(c + r * ldc + v * kLanes, sums[r][v]);
}

template <int V>
inline void product_rows(long rows, long depth, Strided a, const float* b, long ldb, float* c,
                         long ldc, bool add) {
  long r = 0;
  for (; r + kRows <= rows; r += kRows)
    product_tile<kRows, V>(depth, {a.data + r * a.rows, a.rows, a.columns}, b, ldb, c + r * ldc,
                           ldc, add);
  for (; r < rows; ++r)
    product_tile<1, V>(depth, {a.data + r * a.rows, a.rows, a.columns}, b, ldb, c + r * ldc, ldc,
                       add);
}

// c (rows, pixels) = a (rows, depth) b (depth, pixels), or c += a b.
inline void product(long rows, long pixels, long depth, Strided a, const float* b, long ldb,
                    float* c, long ldc, bool add) {
  long p = 0;
  for (; p + kVectors * kLanes <= pixels; p += kVectors * kLanes)
    product_rows<kVectors>(rows, depth, a, b + p, ldb, c + p, ldc, add);
  for (; p + kLanes <= pixels; p += kLanes)
    product_rows<1>(rows, depth, a, b + p, ldb, c + p, ldc, add);
  if (p == pixels) return;
  // The last pixels, fewer than a vector: the same with copies that are filled up with zeros.
  const long left = pixels - p;
  static thread_local std::vector<float> factors, sums;
  factors.assign(depth * kLanes, 0);
  sums.resize(rows * kLanes);
  for (long k = 0; k < depth; ++k)
    std::memcpy(&factors[k * kLanes], b + k * ldb + p, left * sizeof(float));
  product_rows<1>(rows, depth, a, factors.data(), kLanes, sums.data(), kLanes, false);
  for (long r = 0; r < rows; ++r)
    for (long q = 0; q < left; ++q) {
      float* to = c + r * ldc + p + q;
      *to = (add ? *to : 0) + sums[r * kLanes + q];
    }
}

template <int L, int R>
inline void inner_tile(long pixels, const float* a, long lda, const float* b, long ldb, float* c,
                       long ldc) {
  Vector sums[L][R] = {};
  long p = 0;
  for (; p + kLanes <= pixels; p += kLanes) {
    Vector right[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) right[r] = load(b + r * ldb + p);
#pragma GCC unroll 8
    for (int l = 0; l < L; ++l) {
      const Vector left = load(a + l * lda + p);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sums[l][r] += left * right[r];
    }
  }
  for (int l = 0; l < L; ++l)
    for (int r = 0; r < R; ++r) {
      float total = sum(sums[l][r]);
      for (long q = p; q < pixels; ++q) total += a[l * lda + q] * b[r * ldb + q];
      c[l * ldc + r] += total;
    }
}

// c (left, right) += a (left, pixels) b (right, pixels) transposed.
inline void inner(long left, long right, long pixels, const float* a, long lda, const float* b,
                  long ldb, float* c, long ldc) {
  constexpr long kAtOnce = 2048;  // pixels whose rows stay in the cache
  for (long p = 0; p < pixels; p += kAtOnce) {
    const long count = pixels - p < kAtOnce ? pixels - p : kAtOnce;
    long r = 0;
    for (; r + kRight <= right; r += kRight) {
      long l = 0;
      for (; l + kLeft <= left; l += kLeft)
        inner_tile<kLeft, kRight>(count, a + l * lda + p, lda, b + r * ldb + p, ldb,
                                  c + l * ldc + r, ldc);
      for (; l < left; ++l)
        inner_tile<1, kRight>(count, a + l * lda + p, lda, b + r * ldb + p, ldb, c + l * ldc + r,
                              ldc);
    }
    for (; r < right; ++r) {
      long l = 0;
      for (; l + kLeft <= left; l += kLeft)
        inner_tile<kLeft, 1>(count, a + l * lda + p, lda, b + r * ldb + p, ldb, c + l * ldc + r,
                             ldc);
      for (; l < left; ++l)
        inner_tile<1, 1>(count, a + l * lda + p, lda, b + r * ldb + p, ldb, c + l * ldc + r, ldc);
    }
  }
}

}  // namespace mxopt

#endif  // MXOPT_MATRIX_H_
