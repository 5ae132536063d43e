// Matrix products for one thread: by tiles of Intel's AMX, with `parts` bfloat16 for each number; or in
// float32 by the loops of matrix.h and, where there are instructions for it, of numbers rounded to
// bfloat16 (pairs.h), which is one part.
#ifndef MXOPT_FACTOR_H_
#define MXOPT_FACTOR_H_

#include <algorithm>
#include <type_traits>

#include "matrix.h"
#include "pairs.h"
#include "tiles.h"

namespace mxopt {

#if defined(MXOPT_TILES)

template <int parts>
using Right = TiledRight<parts>;

#else

// The right factor, as of tiles.h.
class FloatRight {
 public:
  // How many columns, and how many rows of them, to take at once: 1 MB.
  static long at_once(long) { return (1L << 18) / kPanelRows; }
  static constexpr long kDeepAtOnce = kPanelRows;

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

#if defined(__AVX512BF16__)
template <int parts>
using Right = std::conditional_t<parts == 1, PairedRight, FloatRight>;
#else
template <int>
using Right = FloatRight;
#endif

// c (rows, columns) = a (rows, depth) b (depth, columns), plus `start`, as of tiles.h.
inline void product(long rows, long columns, long depth, Strided a, const FloatRight& b,
                    const float* start, long pitch, float* c, long ldc) {
  product(rows, columns, depth, a, b.panels, start, pitch, c, ldc);
}

#endif

}  // namespace mxopt

#endif  // MXOPT_FACTOR_H_
