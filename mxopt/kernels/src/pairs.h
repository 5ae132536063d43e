// Products of matrices that are rounded to bfloat16, by an instruction (AVX512-BF16) that multiplies
// and adds twice as many as of float32. Sums are float32.
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
constexpr long kBlockRows = 128;                // rows of the left matrix that are packed at once,
constexpr long kBlockPairs = 512;               // and so many pairs of each: 256 KiB, in L2

// Two consecutive elements along the depth of each of 16 rows (or columns), as bfloat16.
struct alignas(64) Pairs {
  uint32_t lane[kPairLanes];
};

inline long groups_of(const Side& side) { return (side.lanes + kPairLanes - 1) / kPairLanes; }

inline long pairs_of(const Side& side) { return (side.depth + 1) / 2; }

// Rounds pairs of an even element, in the lower half of the bits, and an odd one.
inline __m512i rounded_pairs(__m512 even, __m512 odd) {
  const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(even));
  const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(odd));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// Rounds the pairs `from` to `from + count` of one group of 16 lanes; what is missing becomes 0.
inline void pack(const Side& side, long group, long from, long count, Pairs* to) {
  const long lanes = std::min(kPairLanes, side.lanes - group * kPairLanes);
  const float* data = side.data + group * kPairLanes * side.lane_step;
  if (side.lane_step == 1) {
    for (long pair = 0; pair < count; ++pair) {
      const long k = 2 * (from + pair);
      const __mmask16 mask = first_lanes(lanes);
      const __m512 even = _mm512_maskz_loadu_ps(mask, data + k * side.depth_step);
      const __m512 odd = k + 1 < side.depth
          ? _mm512_maskz_loadu_ps(mask, data + (k + 1) * side.depth_step) : _mm512_setzero_ps();
      _mm512_store_si512(to + pair, rounded_pairs(even, odd));
    }
    return;
  }
  for (long pair = 0; pair < count; pair += kPairLanes) {
    Vector rows[kPairLanes];
    const long k = 2 * (from + pair), left = side.depth - k;
    for (long lane = 0; lane < kPairLanes; ++lane) {
      const float* row = data + lane * side.lane_step + k;
      const __mmask16 low = lane < lanes ? first_lanes(left) : 0;
      const __mmask16 high = lane < lanes ? first_lanes(left - kPairLanes) : 0;
      rows[lane] = (Vector)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(high, row + kPairLanes),
                                                _mm512_maskz_loadu_ps(low, row));
    }
    transpose(rows);
    for (long row = 0; row < std::min(kPairLanes, count - pair); ++row)
      _mm512_store_ps(to + pair + row, rows[row]);
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

// The memory of a thread, kept from call to call; it is not cleared, because it is written first.
inline Pairs* memory(long count) {
  thread_local std::vector<Pairs> kept;
  if (kept.size() < static_cast<size_t>(count)) kept.resize(count);
  return kept.data();
}

// to (left lanes, right lanes) = left times right, plus `bias` (right lanes) if there is one.
inline void multiply(const Side& left, const Side& right, const float* bias, float* to) {
  const long pairs = pairs_of(right), pitch = right.lanes;
  thread_local std::vector<Pairs> kept;
  kept.resize(std::max<size_t>(kept.size(), groups_of(right) * pairs));
  Pairs* packed = kept.data();
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (long group = 0; group < groups_of(right); ++group)
      pack(right, group, 0, pairs, packed + group * pairs);
    Pairs* own = memory(kBlockRows / kPairLanes * kBlockPairs);
#pragma omp for schedule(static)
    for (long block = 0; block < left.lanes; block += kBlockRows) {
      const long rows = std::min(kBlockRows, left.lanes - block);
      for (long from = 0; from == 0 || from < pairs; from += kBlockPairs) {
        const long count = std::min(kBlockPairs, pairs - from);
        for (long group = 0; group * kPairLanes < rows; ++group)
          pack(left, block / kPairLanes + group, from, count, own + group * count);
        for (long group = 0; group < groups_of(right); group += kSumVectors) {
          const long vectors = std::min<long>(kSumVectors, groups_of(right) - group);
          const auto compute = vectors == 3 ? sums_of<3> : vectors == 2 ? sums_of<2> : sums_of<1>;
          const long column = group * kPairLanes;
          for (long row = 0; row < rows; row += kSumRows) {
            float* place = to + (block + row) * pitch + column;
            const float* start = from ? place : bias ? bias + column : nullptr;
            compute(count, own + row / kPairLanes * count, row % kPairLanes,
                    packed + group * pairs + from, pairs, start, from ? pitch : 0, place, pitch,
                    std::min<long>(kSumRows, rows - row), pitch - column);
          }
        }
      }
    }
  }
}

}  // namespace mxopt

#endif  // __AVX512BF16__

#endif  // MXOPT_PAIRS_H_
