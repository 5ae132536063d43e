// A dense layer whose products are those of float32 (factor.h), or whose factors are rounded to
// bfloat16. Input, output, parameters and gradients are float32.
#include <omp.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "factor.h"
#include "operator.h"

namespace mxopt {
namespace {

constexpr long kSums = 8;  // vectors of a gradient of biases that are added up together

// to (left lanes, right lanes) = left times right, plus `bias` (right lanes) if there is one. Each
// thread computes some rows, or columns, and takes what it needs of both factors itself: what another
// core has just written is read slowly.
template <int parts>
void multiply(const Side& left, const Side& right, const float* bias, float* to) {
  const long at_once = Right<parts>::at_once(right.depth);
  const long deep_at_once = Right<parts>::kDeepAtOnce;
  const long pitch = right.lanes, threads = omp_get_max_threads();
  const bool by_rows = left.lanes >= right.lanes;
  const long most = (std::max(left.lanes, right.lanes) + threads - 1) / threads;
  const long share = (most + 15) / 16 * 16;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (long thread = 0; thread < threads; ++thread) {
    static thread_local Right<parts> taken;
    const long row = by_rows ? thread * share : 0;
    const long rows = by_rows ? std::min(share, left.lanes - row) : left.lanes;
    const long end = by_rows ? right.lanes : std::min(right.lanes, (thread + 1) * share);
    for (long column = by_rows ? 0 : thread * share; rows > 0 && column < end; column += at_once) {
      const long wide = std::min(at_once, end - column);
      float* const own = to + row * pitch + column;
      long k = 0;
      do {
        const long deep = std::min(deep_at_once, right.depth - k);
        taken.take(deep, wide, right.from(column, k));
        const float* const start = k > 0 ? own : bias ? bias + column : nullptr;
        product(rows, wide, deep, left.from(row, k), taken, start, k > 0 ? pitch : 0, own, pitch);
        k += deep;
      } while (k < right.depth);
    }
  }
}

// Of how many bfloat16 a factor is. Without tiles, 3 is a number of float32.
long parts_of(const Attributes& attributes) { return attribute(attributes, "parts", 3); }

void multiply(long parts, const Side& left, const Side& right, const float* bias, float* to) {
  const auto compute = parts == 1 ? multiply<1> : multiply<3>;
  compute(left, right, bias, to);
}

struct Dense {
  const float *x, *weight, *bias;
  long rows, inputs, units;

  Dense(std::vector<MXTensor>& tensors, size_t first, bool biased) {
    x = tensors[first].data<float>(), weight = tensors[first + 1].data<float>();
    bias = biased ? tensors[first + 2].data<float>() : nullptr;
    units = tensors[first + 1].shape[0], inputs = tensors[first + 1].shape[1];
    const auto& shape = tensors[first].shape;
    rows = std::accumulate(shape.begin(), shape.end() - 1, 1L, std::multiplies<>());
  }
};

bool biased(const Attributes& attributes) { return !attribute(attributes, "no_bias", 0); }

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Dense dense(*inputs, 0, biased(attributes));
  const Side x{dense.x, dense.rows, dense.inputs, dense.inputs, 1};
  const Side weight{dense.weight, dense.units, dense.inputs, dense.inputs, 1};
  multiply(parts_of(attributes), x, weight, dense.bias, (*outputs)[0].data<float>());
  return MX_SUCCESS;
}

MXReturnValue backward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Dense dense(*inputs, 1, biased(attributes));
  const float* dy = (*inputs)[0].data<float>();
  const long rows = dense.rows, inner = dense.inputs, units = dense.units;
  const long parts = parts_of(attributes);
  multiply(parts, {dy, rows, units, units, 1}, {dense.weight, inner, units, 1, inner}, nullptr,
           (*outputs)[0].data<float>());
  multiply(parts, {dy, units, rows, 1, units}, {dense.x, inner, rows, 1, inner}, nullptr,
           (*outputs)[1].data<float>());
  if (!dense.bias) return MX_SUCCESS;
  float* dbias = (*outputs)[2].data<float>();
#pragma omp parallel for schedule(static)
  for (long from = 0; from < units; from += kSums * kLanes) {
    Vector totals[kSums] = {};
    for (long row = 0; row < rows; ++row)
#pragma GCC unroll 8
      for (long n = 0; n < kSums; ++n)
        totals[n] += load(dy + row * units + from + n * kLanes, units - from - n * kLanes);
    std::copy_n(reinterpret_cast<const float*>(totals), std::min(kSums * kLanes, units - from),
                dbias + from);
  }
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes& attributes, int* inputs, int* outputs) {
  *inputs = biased(attributes) ? 3 : 2, *outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes& attributes, std::vector<Shape>* inputs,
                     std::vector<Shape>* outputs) {
#if defined(__AVX512BF16__)
  const bool possible = parts_of(attributes) == 1 || parts_of(attributes) == 3;
#else
  const bool possible = parts_of(attributes) == 3;
#endif
  if (!possible)
    return refused("mxopt_dense takes parts=3, or, on a processor with AVX512-BF16, parts=1");
  const Shape &x = (*inputs)[0], &weight = (*inputs)[1];
  if (x.empty() || weight.size() != 2 || x.back() != weight[1] ||
      (biased(attributes) && (*inputs)[2] != Shape{weight[0]})) {
    return refused("mxopt_dense takes an input (..., n), a weight (units, n), and a bias (units,) "
                   "unless no_bias=1");
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
