// Matrix products of single-precision arrays, for one thread.
//
// The right factor is copied into panels first, which a product reads one after the other; the left
// one is read where it is.
#ifndef MXOPT_MATRIX_H_
#define MXOPT_MATRIX_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace mxopt {

// `Vector` is one register of the processor; g++ keeps wider ones on the stack. A product has `kRows`
// times `kVectors` of them for its sums, and `kVectors` for factors.
#if defined(__AVX512F__)
constexpr int kLanes = 16, kRows = 8, kVectors = 3;  // of 32 registers
#elif defined(__AVX__)
constexpr int kLanes = 8, kRows = 6, kVectors = 2;  // of 16
#else
constexpr int kLanes = 4, kRows = 4, kVectors = 3;
#endif
typedef float Vector __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

// Not by memcpy: tuned to an Intel processor, g++ 12 copies 64 bytes as two halves through the stack.
inline Vector load(const float* p) { return *reinterpret_cast<const Vector*>(p); }

inline void store(float* p, Vector v) { *reinterpret_cast<Vector*>(p) = v; }

// The floats of as many vectors as `count` floats need.
inline long in_vectors(long count) { return (count + kLanes - 1) / kLanes * kLanes; }

// A distance of rows of so many floats, an odd number of vectors: rows at a multiple of 4 KB from each
// other would be at the same places of a cache.
inline long row_pitch(long count) { return (in_vectors(count) / kLanes | 1) * kLanes; }

#if defined(__AVX512F__)
// The first `count` of 16 lanes.
inline __mmask16 first_lanes(long count) {
  return count >= kLanes ? 0xffff : count <= 0 ? 0 : (1u << count) - 1;
}
#endif

// Which element each lane of a shuffled vector gets. g++ would compute a vector of them in every call.
typedef int Lanes __attribute__((vector_size(4 * kLanes), may_alias));
struct alignas(64) Places {
  int from[kLanes];

  Lanes lanes() const { return *reinterpret_cast<const Lanes*>(from); }
};

template <class Place>
constexpr Places places(Place place) {
  Places all{};
  for (int lane = 0; lane < kLanes; ++lane) all.from[lane] = place(lane);
  return all;
}

// The first numbers, at most as many as a vector has, and zeros behind them.
inline Vector load(const float* p, long count) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(first_lanes(count), p);
#else
  if (count >= kLanes) return load(p);
  Vector some = {};
  std::copy_n(p, count, reinterpret_cast<float*>(&some));
  return some;
#endif
}

// Combines all lanes of a vector by a function of two vectors.
template <class Combine>
inline float combined(Vector v, Combine combine) {
  static constexpr Places halves[] = {
      places([](int lane) { return lane ^ 1; }), places([](int lane) { return lane ^ 2; }),
      places([](int lane) { return lane ^ 4 % kLanes; }),
      places([](int lane) { return lane ^ 8 % kLanes; })};
#pragma GCC unroll 4
  for (int n = 0; 1 << n < kLanes; ++n) v = combine(v, Vector(__builtin_shuffle(v, halves[n].lanes())));
  return v[0];
}

inline float sum(Vector v) {
  return combined(v, [](Vector a, Vector b) { return a + b; });
}

inline float sum(const float* p, long count) {
  Vector totals = {};
  long i = 0;
  for (; i + kLanes <= count; i += kLanes) totals += load(p + i);
  float total = sum(totals);
  for (; i < count; ++i) total += p[i];
  return total;
}

// The largest of the numbers, which fill whole vectors; -1e30 if there is none above it.
inline float largest(const float* p, long count) {
  const auto larger = [](Vector a, Vector b) { return a > b ? a : b; };
  Vector most = Vector{} - 1e30f;
  for (long i = 0; i < count; i += kLanes) most = larger(most, load(p + i));
  return combined(most, larger);
}

// Values below 0 become 0, those above `top` become `top`; what is not a number stays so.
inline Vector clipped(Vector v, float top) {
  v = v < 0 ? Vector{} : v;
  return v > top ? Vector{} + top : v;
}

// exp(v) for v of at most 0, to about 1e-7: 2^n times a polynomial of what is left. What is not a
// number stays so.
inline Vector exponential(Vector v) {
  typedef int32_t Integers __attribute__((vector_size(4 * kLanes), aligned(4)));
  constexpr float kLog2e = 1.44269504f, kHigh = 0.693359375f, kLow = -2.12194440e-4f;
  constexpr float kRounding = 12582912.0f;  // 1.5 * 2^23: its addition rounds to a whole number
  v = v < -87.0f ? Vector{} - 87.0f : v;
  const Vector shifted = v * kLog2e + kRounding;
  const Vector n = shifted - kRounding;
  const Vector r = v - n * kHigh - n * kLow;
  Vector p = Vector{} + 1.0f / 720;
  for (const float factor : {1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) p = p * r + factor;
  // A cast keeps the bits. The lowest ones of `shifted` are n, which is added to the exponent.
  return (Vector)((Integers)p + ((Integers)shifted << 23));
}

// Transposes a square of kLanes vectors: interleaves both halves as often as kLanes can be halved.
inline void transpose(Vector* square) {
  static constexpr Places kLow = places([](int lane) { return lane / 2 + lane % 2 * kLanes; });
  static constexpr Places kHigh =
      places([](int lane) { return lane / 2 + lane % 2 * kLanes + kLanes / 2; });
  const Lanes low = kLow.lanes(), high = kHigh.lanes();
#pragma GCC unroll 4
  for (int halved = kLanes; halved > 1; halved /= 2) {
    Vector mixed[kLanes];
#pragma GCC unroll 8
    for (int n = 0; n < kLanes / 2; ++n) {
      mixed[2 * n] = __builtin_shuffle(square[n], square[n + kLanes / 2], low);
      mixed[2 * n + 1] = __builtin_shuffle(square[n], square[n + kLanes / 2], high);
    }
#pragma GCC unroll 16
    for (int n = 0; n < kLanes; ++n) square[n] = mixed[n];
  }
}

// A matrix whose element (row, column) is data[row * rows + column * columns].
struct Strided {
  const float* data;
  long rows, columns;

  Strided from(long row) const { return {data + row * rows, rows, columns}; }
};

// A matrix of `lanes` rows, or columns, of `depth` elements that a product adds up over.
struct Side {
  const float* data;
  long lanes, depth;
  long lane_step, depth_step;  // from an element to the next one; one of them is 1

  Strided from(long lane, long k = 0) const {
    return {data + lane * lane_step + k * depth_step, lane_step, depth_step};
  }
};

// A tile of the product. `start`, unless it is null, is added last, so that rounding errors do not grow
// with the number of calls. Inlined, g++ keeps what the loop around it needs in registers, and sums on
// the stack.
template <int R, int V, class Left>
__attribute__((noinline)) void product_tile(long depth, Left a, const float* b, long ldb,
                                            const float* start, long pitch, float* c, long ldc) {
  Vector sums[R][V] = {};
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
    for (int v = 0; v < V; ++v) {
      const Vector sum = sums[r][v];
      store(c + r * ldc + v * kLanes, start ? load(start + r * pitch + v * kLanes) + sum : sum);
    }
}

// A matrix in panels of `kColumns` columns, or, the last, of as many vectors as it needs: (depth,
// columns of the panel), with zeros behind the matrix's last column. Vectors of a panel are aligned.
class Panels {
 public:
  static constexpr long kColumns = kVectors * kLanes;

  // Takes a matrix whose element (k, column) is data[k * pitch + column].
  void take(long depth, long columns, const float* data, long pitch) {
    fit(depth, columns);
    for (long from = 0; from < columns; from += kColumns) {
      const long wide = width(from), some = std::min(wide, columns - from);
      float* to = at(0, from);
      for (long k = 0; k < depth; ++k, to += wide) {
        const float* row = data + k * pitch + from;
        if (some == kColumns) {
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) store(to + v * kLanes, load(row + v * kLanes));
        } else {
          std::copy_n(row, some, to);
          std::fill(to + some, to + wide, 0.0f);
        }
      }
    }
  }

  // Takes a matrix whose element (k, column) is data[column * pitch + k].
  void take_transposed(long depth, long columns, const float* data, long pitch) {
    fit(depth, columns);
    for (long column = 0; column < columns; column += kLanes) {
      const long from = column / kColumns * kColumns, wide = width(from);
      const long some = std::min(long(kLanes), columns - column);
      const float* const rows = data + column * pitch;
      float* to = at(0, from) + column - from;
      for (long k = 0; k < depth; k += kLanes, to += kLanes * wide) {
        const long deep = std::min(long(kLanes), depth - k);
        Vector square[kLanes];
#pragma GCC unroll 16
        for (int n = 0; n < kLanes; ++n)
          square[n] = n < some ? load(rows + n * pitch + k, deep) : Vector{};
        transpose(square);
#pragma GCC unroll 16
        for (int n = 0; n < kLanes; ++n)
          if (n < deep) store(to + n * wide, square[n]);
      }
    }
  }

  // The number of columns of the panel that begins with this one.
  long width(long column) const {
    return std::min(kColumns, in_vectors(columns_ - column));
  }

  // The row k of the panel that begins with this column.
  float* at(long k, long column) {
    return reinterpret_cast<float*>(lines_.data()) + column * depth_ + k * width(column);
  }
  const float* at(long k, long column) const { return const_cast<Panels*>(this)->at(k, column); }

 private:
  struct alignas(64) Line {
    float values[16];
  };

  void fit(long depth, long columns) {
    depth_ = depth, columns_ = columns;
    const size_t floats = in_vectors(columns) * depth;
    if (lines_.size() < floats / 16 + 1) lines_.resize(floats / 16 + 1);
  }

  std::vector<Line> lines_;
  long depth_ = 0, columns_ = 0;
};

// Some rows of a matrix, copied to strips of kRows that a product reads one after the other. Where it
// read them in place, the numbers that it needs at once would often be in the same bank of a cache.
class Strips {
 public:
  static constexpr long kSome = 144;  // rows at once, which stay in L2

  // The rows from one of a strip on.
  struct Rows {
    const float* data;
    long depth;
    static constexpr long rows = 1, columns = kRows;

    Rows from(long row) const { return {data + row / kRows * kRows * depth + row % kRows, depth}; }
  };

  // Takes up to kSome rows. What is behind the last one in its strip means nothing.
  Rows take(long rows, long depth, Strided from) {
    const size_t floats = in_strips(rows) * depth + kLanes;
    if (floats_.size() < floats) floats_.resize(floats);
    for (long row = 0; row < rows; row += kRows) {
      float* const to = floats_.data() + row * depth;
      if (from.rows == 1)
        take_columns(rows - row, depth, from.data + row, from.columns, to);
      else
        take_rows(std::min<long>(kRows, rows - row), depth, from.data + row * from.rows, from.rows, to);
    }
    return {floats_.data(), depth};
  }

 private:
  static_assert(kRows <= kLanes && kSome % kRows == 0);

  static long in_strips(long rows) { return (rows + kRows - 1) / kRows * kRows; }

  // Each vector's last lanes are written over by what follows it.
  static void take_columns(long rows, long depth, const float* data, long pitch, float* to) {
    for (long k = 0; k < depth; ++k, to += kRows) {
      const bool last = k + 1 == depth;
      store(to, last || pitch < kLanes ? load(data + k * pitch, rows) : load(data + k * pitch));
    }
  }

  static void take_rows(long rows, long depth, const float* data, long pitch, float* to) {
    for (long k = 0; k < depth; k += kLanes) {
      const long deep = std::min(long(kLanes), depth - k);
      Vector square[kLanes];
#pragma GCC unroll 16
      for (int n = 0; n < kLanes; ++n)
        square[n] = n < rows ? load(data + n * pitch + k, deep) : Vector{};
      transpose(square);
#pragma GCC unroll 16
      for (int n = 0; n < kLanes; ++n)
        if (n < deep) store(to + (k + n) * kRows, square[n]);
    }
  }

  std::vector<float> floats_;
};

// A tile of `rows` rows, which are at most R.
template <int R, int V, class Left>
inline void product_rows(long rows, long depth, Left a, const float* b, long ldb, const float* start,
                         long pitch, float* c, long ldc) {
  if constexpr (R > 1)
    if (rows < R) return product_rows<R - 1, V>(rows, depth, a, b, ldb, start, pitch, c, ldc);
  product_tile<R, V>(depth, a, b, ldb, start, pitch, c, ldc);
}

// The product with a panel of V vectors, of which the first `columns` columns are kept.
template <int V, class Left>
inline void product_panel(long rows, long columns, long depth, Left a, const float* panel,
                          const float* start, long pitch, float* c, long ldc) {
  constexpr long kWide = V * kLanes;
  float spare[kRows * kWide];
  const bool whole = columns == kWide;
  for (long r = 0; r < rows; r += kRows, start += start ? kRows * pitch : 0) {
    const long some = std::min<long>(kRows, rows - r);
    if (whole) {
      product_rows<kRows, V>(some, depth, a.from(r), panel, kWide, start, pitch, c + r * ldc, ldc);
      continue;
    }
    product_rows<kRows, V>(some, depth, a.from(r), panel, kWide, nullptr, 0, spare, kWide);
    for (long n = 0; n < some; ++n)
      for (long column = 0; column < columns; ++column)
        c[(r + n) * ldc + column] =
            (start ? start[n * pitch + column] : 0) + spare[n * kWide + column];
  }
}

// The product with the rows of b from k on, as many as a has columns.
template <class Left>
inline void product_panels(long rows, long columns, long depth, Left a, const Panels& b, long k,
                           const float* start, long pitch, float* c, long ldc) {
  for (long from = 0; from < columns; from += Panels::kColumns) {
    const long wide = b.width(from);
    const auto compute = wide == kLanes       ? product_panel<1, Left>
                         : wide == 2 * kLanes ? product_panel<std::min(2, kVectors), Left>
                                              : product_panel<kVectors, Left>;
    compute(rows, std::min(wide, columns - from), depth, a, b.at(k, from),
            start ? start + from : nullptr, pitch, c + from, ldc);
  }
}

// Rows of panels to multiply at once: 16 to 96 KB of a panel, which stay in the cache.
constexpr long kPanelRows = kLanes < 16 ? 256 : 512;

// c (rows, columns) = a (rows, depth) b (depth, columns), plus, unless it is null, `start` (rows,
// columns), whose rows are `pitch` floats apart: it may be c, or one row, 0 apart. There may be more
// columns than b has, up to the end of a vector: their products are zeros.
inline void product(long rows, long columns, long depth, Strided a, const Panels& b,
                    const float* start, long pitch, float* c, long ldc) {
  // Rows are worth a copy if several panels read it.
  const bool copies = columns > 3 * Panels::kColumns && rows >= kRows;
  static thread_local Strips strips;
  long k = 0;
  do {
    const long some = std::min(kPanelRows, depth - k);
    for (long row = 0, count; row < rows; row += count) {
      count = copies ? std::min(Strips::kSome, rows - row) : rows;
      const Strided left{a.data + row * a.rows + k * a.columns, a.rows, a.columns};
      float* const to = c + row * ldc;
      const float* const from = k > 0 ? to : start ? start + row * pitch : nullptr;
      const long apart = k > 0 ? ldc : pitch;
      if (copies)
        product_panels(count, columns, some, strips.take(count, some, left), b, k, from, apart, to, ldc);
      else
        product_panels(count, columns, some, left, b, k, from, apart, to, ldc);
    }
    k += some;
  } while (k < depth);
}

// c (rows, columns) = a (rows, depth) b (depth, columns), or c += a b.
inline void product(long rows, long columns, long depth, Strided a, const Panels& b, float* c,
                    long ldc, bool add) {
  product(rows, columns, depth, a, b, add ? c : nullptr, ldc, c, ldc);
}

}  // namespace mxopt

#endif  // MXOPT_MATRIX_H_
