// Products, for one thread, of matrices that are rounded to bfloat16, by an instruction (AVX512-BF16)
// that multiplies and adds twice as many as of float32. Sums are float32.
#ifndef MXOPT_PAIRS_H_
#define MXOPT_PAIRS_H_

#if defined(__AVX512BF16__)

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "matrix.h"

namespace mxopt {

constexpr long kPairLanes = 16;
constexpr int kSumRows = 8, kSumVectors = 3;  // 24 registers of sums
constexpr long kPackedLanes = 128;  // lanes of a matrix that are packed at once

// Two consecutive elements along the depth of each of 16 rows (or columns), as bfloat16.
struct alignas(64) Pairs {
  uint32_t lane[kPairLanes];
};

// Rounds pairs of an even element, in the lower half of the bits, and an odd one.
inline __m512i rounded_pairs(__m512 even, __m512 odd) {
  alignas(64) static const uint16_t kBeside[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                   21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                   11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(kBeside),
                                  (__m512i)_mm512_cvtne2ps_pbh(odd, even));
}

// Rounds `depth` elements of some lanes; what is missing becomes 0. Element (lane, k) is
// from.data[lane * from.rows + k * from.columns], one of which is 1. Groups of 16 lanes are `apart`.
inline void pack(long lanes, long depth, Strided from, Pairs* to, long apart) {
  if (from.rows == 1) {
    // All lanes of an element after the other, since each element may be in a page of its own.
    for (long k = 0; k < depth; k += 2)
      for (long lane = 0; lane < lanes; lane += kPairLanes) {
        const float* row = from.data + lane + k * from.columns;
        const __mmask16 mask = first_lanes(lanes - lane);
        const __m512 even = _mm512_maskz_loadu_ps(mask, row);
        const __m512 odd = _mm512_maskz_loadu_ps(k + 1 < depth ? mask : 0, row + from.columns);
        _mm512_store_si512(to + lane / kPairLanes * apart + k / 2, rounded_pairs(even, odd));
      }
    return;
  }
  for (long first = 0; first < lanes; first += kPairLanes)
    for (long k = 0; k < depth; k += 2 * kPairLanes) {
      Vector rows[kPairLanes];
      const long left = depth - k;
      for (long n = 0; n < kPairLanes; ++n) {
        const float* row = from.data + (first + n) * from.rows + k;
        const __mmask16 low = first + n < lanes ? first_lanes(left) : 0;
        const __mmask16 high = first + n < lanes ? first_lanes(left - kPairLanes) : 0;
        rows[n] = (Vector)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(high, row + kPairLanes),
                                               _mm512_maskz_loadu_ps(low, row));
      }
      transpose(rows);
      for (long n = 0; n < std::min(kPairLanes, (left + 1) / 2); ++n)
        _mm512_store_ps(to + first / kPairLanes * apart + k / 2 + n, rows[n]);
    }
}

// Computes kSumRows x V * 16 of the product: the rows from `row` on of a group of the left matrix,
// and V groups of the right one that lie `apart`. Adds to what `start` has, if it is given, and
// writes `rows` rows and `columns` columns.
template <int V>
inline void sums_of(long pairs, const Pairs* left, int row, const Pairs* right, long apart,
                    const float* start, long start_pitch, float* to, long pitch, long rows,
                    long columns) {
  __m512 sums[kSumRows][V];
#pragma GCC unroll 8
  for (int r = 0; r < kSumRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sums[r][v] = _mm512_setzero_ps();
  for (long pair = 0; pair < pairs; ++pair) {
    __m512bh factors[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) factors[v] = (__m512bh)_mm512_load_si512(right + v * apart + pair);
#pragma GCC unroll 8
    for (int r = 0; r < kSumRows; ++r) {
      const __m512bh factor = (__m512bh)_mm512_set1_epi32(left[pair].lane[row + r]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], factor, factors[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kSumRows; ++r) {
    if (r >= rows) break;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const __mmask16 mask = first_lanes(columns - v * kPairLanes);
      if (start)
        sums[r][v] += _mm512_maskz_loadu_ps(mask, start + r * start_pitch + v * kPairLanes);
      _mm512_mask_storeu_ps(to + r * pitch + v * kPairLanes, mask, sums[r][v]);
    }
  }
}

// The right factor, as of tiles.h: (groups of 16 columns, pairs of rows).
class PairedRight {
 public:
  // How many columns, and how many rows of them, to take at once: 2 MB, which are read from L3 once for
  // kPackedLanes rows.
  static long at_once(long) { return 1024; }
  static constexpr long kDeepAtOnce = 1024;

  // Takes a matrix whose element (k, column) is from.data[column * from.rows + k * from.columns]; one
  // of both steps is 1.
  void take(long depth, long columns, Strided from) {
    pairs_ = (depth + 1) / 2;
    const size_t count = (columns + kPairLanes - 1) / kPairLanes * pairs_;
    if (packed_.size() < count) packed_.resize(count);
    for (long column = 0; column < columns; column += kPackedLanes)
      pack(std::min(kPackedLanes, columns - column), depth, from.from(column),
           packed_.data() + column / kPairLanes * pairs_, pairs_);
  }

  long pairs() const { return pairs_; }
  const Pairs* at(long column) const { return packed_.data() + column / kPairLanes * pairs_; }

 private:
  std::vector<Pairs> packed_;
  long pairs_ = 0;
};

// c (rows, columns) = a (rows, depth) b (depth, columns), plus `start`, as of tiles.h.
inline void product(long rows, long columns, long depth, Strided a, const PairedRight& b,
                    const float* start, long pitch, float* c, long ldc) {
  static thread_local std::vector<Pairs> left;
  const long pairs = b.pairs();
  const size_t count = kPackedLanes / kPairLanes * pairs;
  if (left.size() < count) left.resize(count);
  for (long block = 0; block < rows; block += kPackedLanes) {
    const long some = std::min(kPackedLanes, rows - block);
    pack(some, depth, a.from(block), left.data(), pairs);
    for (long column = 0, vectors; column < columns; column += vectors * kPairLanes) {
      const long groups = (columns - column + kPairLanes - 1) / kPairLanes;
      vectors = groups == 4 ? 2 : std::min<long>(kSumVectors, groups);  // 2 and 2, not 3 and 1
      const auto compute = vectors == 3 ? sums_of<3> : vectors == 2 ? sums_of<2> : sums_of<1>;
      for (long row = 0; row < some; row += kSumRows)
        compute(pairs, left.data() + row / kPairLanes * pairs, row % kPairLanes, b.at(column), pairs,
                start ? start + (block + row) * pitch + column : nullptr, pitch,
                c + (block + row) * ldc + column, ldc, std::min<long>(kSumRows, some - row),
                columns - column);
    }
  }
}

}  // namespace mxopt

#endif  // __AVX512BF16__

#endif  // MXOPT_PAIRS_H_
