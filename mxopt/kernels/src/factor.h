// Matrix products for one thread in the way that is the fastest here: by tiles of Intel's AMX, with
// `parts` bfloat16 for each number; without AVX-512 by the BLAS that answers MXNet, the OpenBLAS in its
// wheel unless another one was put in front of it; and otherwise by our own loops.
#ifndef MXOPT_FACTOR_H_
#define MXOPT_FACTOR_H_

#include <omp.h>

#include <algorithm>
#include <limits>

#include "matrix.h"
#include "tiles.h"

namespace mxopt {

#if defined(MXOPT_TILES)

template <int parts>
using Right = TiledRight<parts>;

#elif defined(MXOPT_WITH_BLAS) && !defined(__AVX512F__)
#define MXOPT_BLAS

extern "C" void cblas_sgemm(int order, int transposes_a, int transposes_b, int rows, int columns,
                            int depth, float scale, const float* a, int lda, const float* b, int ldb,
                            float keep, float* c, int ldc);

// The right factor, as of tiles.h; it is not copied, and has to be there until it was multiplied.
template <int parts>
class Right {
 public:
  static long at_once(long) { return std::numeric_limits<int>::max(); }
  void take(long, long, Strided from) { from_ = from; }
  Strided from() const { return from_; }

 private:
  Strided from_;
};

// c (rows, columns) = a (rows, depth) b (depth, columns), plus `start`, as of tiles.h. Called by a
// thread of a team, the OpenBLAS in MXNet's wheel, which uses OpenMP too, starts no other ones.
template <int parts>
inline void product(long rows, long columns, long depth, Strided a, const Right<parts>& b,
                    const float* start, long pitch, float* c, long ldc) {
  constexpr int kRowMajor = 101, kAsItIs = 111, kTransposed = 112;
  for (long row = 0; start && start != c && row < rows; ++row)
    std::copy_n(start + row * pitch, columns, c + row * ldc);
  const Strided right = b.from();
  const bool by_rows = a.columns == 1, by_columns = right.columns == 1;
  // Of a single row, or column, the pitch may be anything; it has to be at least the length.
  const long lda = by_rows ? std::max(a.rows, depth) : std::max(a.columns, rows);
  const long ldb = by_columns ? std::max(right.rows, depth) : std::max(right.columns, columns);
  cblas_sgemm(kRowMajor, by_rows ? kAsItIs : kTransposed, by_columns ? kTransposed : kAsItIs, rows,
              columns, depth, 1, a.data, std::max(1L, lda), right.data, std::max(1L, ldb),
              start ? 1 : 0, c, std::max(ldc, columns));
}

#else

// The right factor, as of tiles.h.
template <int parts>
class Right {
 public:
  static long at_once(long) { return 512; }

  // Takes a matrix whose element (k, column) is from.data[column * from.rows + k * from.columns]; one
  // of both steps is 1.
  void take(long depth, long columns, Strided from) {
    if (from.rows == 1)
      panels.take(depth, columns, from.data, from.columns);
    else
      panels.take_transposed(depth, columns, from.data, from.rows);
  }

  Panels panels;
};

// c (rows, columns) = a (rows, depth) b (depth, columns), plus `start`, as of tiles.h.
template <int parts>
inline void product(long rows, long columns, long depth, Strided a, const Right<parts>& b,
                    const float* start, long pitch, float* c, long ldc) {
  for (long row = 0; start && start != c && row < rows; ++row)
    std::copy_n(start + row * pitch, columns, c + row * ldc);
  product(rows, columns, depth, a, b.panels, c, ldc, start != nullptr);
}

#endif

// How many threads may multiply at once. The wheel's OpenBLAS 0.3.13 has memory for 144 products, of
// all contexts together, and ends the process when that is used up.
inline int team() {
#if defined(MXOPT_BLAS)
  return std::min(omp_get_max_threads(), 32);
#else
  return omp_get_max_threads();
#endif
}

}  // namespace mxopt

#endif  // MXOPT_FACTOR_H_
