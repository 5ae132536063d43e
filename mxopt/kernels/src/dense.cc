// A dense layer that multiplies in bfloat16: factors are rounded to bfloat16, of which one
// instruction (AVX512-BF16) multiplies and adds twice as many as of float32, and sums are float32.
// Input, output, parameters and gradients stay float32.
#if defined(__AVX512BF16__)

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "operator.h"

namespace mxopt {
namespace {

constexpr long kLanes = 16;
constexpr int kTileRows = 8, kTileVectors = 3;  // 24 registers of sums
constexpr long kBlockRows = 128;                // rows of the left matrix that are packed at once,
constexpr long kBlockPairs = 512;               // and so many pairs of each: 256 KiB, in L2

// Two consecutive elements along the depth of each of 16 rows (or columns), as bfloat16.
struct alignas(64) Pairs {
  uint32_t lane[kLanes];
};

// A matrix of `lanes` rows, or columns, of `depth` elements that a product adds up over.
struct Side {
  const float* data;
  long lanes, depth;
  long lane_step, depth_step;  // from an element to the next one; one of them is 1

  long groups() const { return (lanes + kLanes - 1) / kLanes; }
  long pairs() const { return (depth + 1) / 2; }
};

inline __mmask16 first(long count) {
  return count >= kLanes ? 0xffff : count <= 0 ? 0 : (1u << count) - 1;
}

// Swaps rows and columns of 16 x 16 elements, by blocks of 1, 2, 4 and 8.
inline void transpose(__m512i* rows) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
#pragma GCC unroll 4
  for (int block = 1; block < kLanes; block *= 2) {
    const __m512i step = _mm512_set1_epi32(block), second = _mm512_set1_epi32(kLanes);
    const __mmask16 odd = _mm512_test_epi32_mask(lane, step);
    const __m512i low = _mm512_mask_add_epi32(lane, odd, _mm512_sub_epi32(lane, step), second);
    const __m512i high = _mm512_mask_add_epi32(_mm512_add_epi32(lane, step), odd, lane, second);
#pragma GCC unroll 16
    for (int row = 0; row < kLanes; ++row) {
      if (row & block) continue;
      const __m512i upper = rows[row], lower = rows[row + block];
      rows[row] = _mm512_permutex2var_epi32(upper, low, lower);
      rows[row + block] = _mm512_permutex2var_epi32(upper, high, lower);
    }
  }
}

// Rounds the pairs `from` to `from + count` of one group of 16 lanes; what is missing becomes 0.
void pack(const Side& side, long group, long from, long count, Pairs* to) {
  const long lanes = std::min(kLanes, side.lanes - group * kLanes);
  const float* data = side.data + group * kLanes * side.lane_step;
  if (side.lane_step == 1) {
    for (long pair = 0; pair < count; ++pair) {
      const long k = 2 * (from + pair);
      const __mmask16 mask = first(lanes);
      const __m512 even = _mm512_maskz_loadu_ps(mask, data + k * side.depth_step);
      const __m512 odd = k + 1 < side.depth
          ? _mm512_maskz_loadu_ps(mask, data + (k + 1) * side.depth_step) : _mm512_setzero_ps();
      const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(even));
      const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(odd));
      _mm512_store_si512(to + pair, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
    return;
  }
  for (long pair = 0; pair < count; pair += kLanes) {
    __m512i rows[kLanes];
    const long k = 2 * (from + pair), left = side.depth - k;
    for (long lane = 0; lane < kLanes; ++lane) {
      const float* row = data + lane * side.lane_step + k;
      const __mmask16 low = lane < lanes ? first(left) : 0;
      const __mmask16 high = lane < lanes ? first(left - kLanes) : 0;
      rows[lane] = (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(high, row + kLanes),
                                                _mm512_maskz_loadu_ps(low, row));
    }
    transpose(rows);
    for (long row = 0; row < std::min(kLanes, count - pair); ++row)
      _mm512_store_si512(to + pair + row, rows[row]);
  }
}

// A tile of kTileRows x V * 16 of the product: the rows from `row` on of a group of the left matrix,
// and V groups of the right one that lie `apart`. Adds to what `start` has, if it is given, and
// writes `rows` rows and `columns` columns.
template <int V>
void tile(long pairs, const Pairs* left, int row, const Pairs* right, long apart,
          const float* start, long start_pitch, float* to, long pitch, long rows, long columns) {
  __m512 sums[kTileRows][V];
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sums[r][v] = _mm512_setzero_ps();
  for (long pair = 0; pair < pairs; ++pair) {
    __m512bh factors[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) factors[v] = (__m512bh)_mm512_load_si512(right + v * apart + pair);
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) {
      const __m512bh factor = (__m512bh)_mm512_set1_epi32(left[pair].lane[row + r]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], factor, factors[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r) {
    if (r >= rows) break;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const __mmask16 mask = first(columns - v * kLanes);
      if (start)
        sums[r][v] += _mm512_maskz_loadu_ps(mask, start + r * start_pitch + v * kLanes);
      _mm512_mask_storeu_ps(to + r * pitch + v * kLanes, mask, sums[r][v]);
    }
  }
}

// The memory of a thread, kept from call to call; it is not cleared, because it is written first.
Pairs* memory(long count) {
  thread_local std::vector<Pairs> kept;
  if (kept.size() < static_cast<size_t>(count)) kept.resize(count);
  return kept.data();
}

// to (left lanes, right lanes) = left times right, plus `bias` (right lanes) if there is one.
void product(const Side& left, const Side& right, const float* bias, float* to) {
  const long pairs = right.pairs(), pitch = right.lanes;
  thread_local std::vector<Pairs> kept;
  kept.resize(std::max<size_t>(kept.size(), right.groups() * pairs));
  Pairs* packed = kept.data();
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (long group = 0; group < right.groups(); ++group)
      pack(right, group, 0, pairs, packed + group * pairs);
    Pairs* own = memory(kBlockRows / kLanes * kBlockPairs);
#pragma omp for schedule(static)
    for (long block = 0; block < left.lanes; block += kBlockRows) {
      const long rows = std::min(kBlockRows, left.lanes - block);
      for (long from = 0; from == 0 || from < pairs; from += kBlockPairs) {
        const long count = std::min(kBlockPairs, pairs - from);
        for (long group = 0; group * kLanes < rows; ++group)
          pack(left, block / kLanes + group, from, count, own + group * count);
        for (long group = 0; group < right.groups(); group += kTileVectors) {
          const long vectors = std::min<long>(kTileVectors, right.groups() - group);
          const auto compute = vectors == 3 ? tile<3> : vectors == 2 ? tile<2> : tile<1>;
          const long column = group * kLanes;
          for (long row = 0; row < rows; row += kTileRows) {
            float* place = to + (block + row) * pitch + column;
            const float* start = from ? place : bias ? bias + column : nullptr;
            compute(count, own + row / kLanes * count, row % kLanes,
                    packed + group * pairs + from, pairs, start, from ? pitch : 0, place, pitch,
                    std::min<long>(kTileRows, rows - row), pitch - column);
          }
        }
      }
    }
  }
}

struct Dense {
  const float *x, *weight, *bias;
  long rows, inputs, units;

  Dense(std::vector<MXTensor>& tensors, size_t first, bool biased) {
    x = tensors[first].data<float>(), weight = tensors[first + 1].data<float>();
    bias = biased ? tensors[first + 2].data<float>() : nullptr;
    units = tensors[first + 1].shape[0], inputs = tensors[first + 1].shape[1];
    rows = inputs ? tensors[first].size() / inputs : 0;
  }
};

bool biased(const Attributes& attributes) { return !attribute(attributes, "no_bias", 0); }

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Dense dense(*inputs, 0, biased(attributes));
  const Side x{dense.x, dense.rows, dense.inputs, dense.inputs, 1};
  const Side weight{dense.weight, dense.units, dense.inputs, dense.inputs, 1};
  product(x, weight, dense.bias, (*outputs)[0].data<float>());
  return MX_SUCCESS;
}

MXReturnValue backward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Dense dense(*inputs, 1, biased(attributes));
  const float* dy = (*inputs)[0].data<float>();
  const long rows = dense.rows, inner = dense.inputs, units = dense.units;
  product({dy, rows, units, units, 1}, {dense.weight, inner, units, 1, inner}, nullptr,
          (*outputs)[0].data<float>());
  product({dy, units, rows, 1, units}, {dense.x, inner, rows, 1, inner}, nullptr,
          (*outputs)[1].data<float>());
  if (!dense.bias) return MX_SUCCESS;
  float* dbias = (*outputs)[2].data<float>();
#pragma omp parallel for schedule(static)
  for (long from = 0; from < units; from += kLanes) {
    const __mmask16 mask = first(units - from);
    __m512 total = _mm512_setzero_ps();
    for (long row = 0; row < rows; ++row)
      total = _mm512_add_ps(total, _mm512_maskz_loadu_ps(mask, dy + row * units + from));
    _mm512_mask_storeu_ps(dbias + from, mask, total);
  }
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes& attributes, int* inputs, int* outputs) {
  *inputs = biased(attributes) ? 3 : 2, *outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes& attributes, std::vector<Shape>* inputs,
                     std::vector<Shape>* outputs) {
  const Shape &x = (*inputs)[0], &weight = (*inputs)[1];
  if (x.empty() || weight.size() != 2 || x.back() != weight[1] ||
      (biased(attributes) && (*inputs)[2] != Shape{weight[0]})) {
    MX_ERROR_MSG << "mxopt_dense takes an input (..., n), a weight (units, n), and a bias (units,) "
                    "unless no_bias=1";
    return MX_FAIL;
  }
  (*outputs)[0] = x;
  (*outputs)[0].back() = weight[0];
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(mxopt_dense)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(count)
    .setInferType(float32)
    .setInferShape(shapes);

}  // namespace mxopt

#endif  // __AVX512BF16__
