// Layer normalisation of a sum: y = norm(x + dropout(change)) (Ba et al., 2016), as after each
// sublayer of a Transformer. Nothing but the inputs is kept for the backward pass.
#include <algorithm>
#include <cmath>
#include <vector>

#include "operator.h"
#include "random.h"

namespace mxopt {
namespace {

struct Rows {
  const float *x, *change, *gamma, *beta, *draws;
  long count, units;
  float epsilon, probability;
  long salt;

  Rows(const Attributes& attributes, std::vector<MXTensor>& tensors, size_t first) {
    x = tensors[first].data<float>(), change = tensors[first + 1].data<float>();
    gamma = tensors[first + 2].data<float>(), beta = tensors[first + 3].data<float>();
    draws = tensors[first + 4].data<float>();
    units = tensors[first].shape.back();
    count = units ? tensors[first].size() / units : 0;
    epsilon = attribute(attributes, "epsilon", 1e-5);
    probability = dropout_of(attributes);
    salt = attribute(attributes, "salt", 0);
  }

  // Writes the sum of a row, and returns its mean and the inverse of its deviation.
  void sum_of(const Dropout& dropout, long row, float* to, float* mean, float* inverse) const {
    const float *from = x + row * units, *more = change + row * units;
    Vector total = {};
    for (long n = 0; n < units; n += kLanes) {
      Vector v = load(more + n);
      if (dropout.active()) v = dropout(v, row * units + n);
      v += load(from + n);
      store(to + n, v);
      total += v;
    }
    *mean = mxopt::sum(total) / units;
    Vector squares = {};
    for (long n = 0; n < units; n += kLanes) {
      const Vector v = load(to + n) - *mean;
      squares += v * v;
    }
    *inverse = 1 / std::sqrt(mxopt::sum(squares) / units + epsilon);
  }
};

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Rows rows(attributes, *inputs, 0);
  const Dropout dropout(rows.draws, rows.probability, rows.salt);
  float* y = (*outputs)[0].data<float>();
#pragma omp parallel for schedule(static)
  for (long row = 0; row < rows.count; ++row) {
    float *to = y + row * rows.units, mean, inverse;
    rows.sum_of(dropout, row, to, &mean, &inverse);
    for (long n = 0; n < rows.units; n += kLanes)
      store(to + n, (load(to + n) - mean) * inverse * load(rows.gamma + n) + load(rows.beta + n));
  }
  return MX_SUCCESS;
}

MXReturnValue backward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Rows rows(attributes, *inputs, 1);
  const Dropout dropout(rows.draws, rows.probability, rows.salt);
  const long units = rows.units;
  const float* dy = (*inputs)[0].data<float>();
  std::vector<float*> out;
  for (auto& tensor : *outputs) out.push_back(tensor.data<float>());
  const long threads = omp_get_max_threads();
  std::vector<float> sums(threads * 2 * units);
#pragma omp parallel
  {
    std::vector<float> row_sum(units);
    float *dgamma = sums.data() + omp_get_thread_num() * 2 * units, *dbeta = dgamma + units;
#pragma omp for schedule(static)
    for (long row = 0; row < rows.count; ++row) {
      float *s = row_sum.data(), mean, inverse;
      rows.sum_of(dropout, row, s, &mean, &inverse);
      Vector total = {}, along = {};
      for (long n = 0; n < units; n += kLanes) {
        const Vector gradient = load(dy + row * units + n);
        const Vector normal = (load(s + n) - mean) * inverse;
        const Vector scaled = gradient * load(rows.gamma + n);
        store(s + n, normal);
        store(dgamma + n, load(dgamma + n) + gradient * normal);
        store(dbeta + n, load(dbeta + n) + gradient);
        total += scaled;
        along += scaled * normal;
      }
      const float centre = sum(total) / units, slope = sum(along) / units;
      for (long n = 0; n < units; n += kLanes) {
        const Vector scaled = load(dy + row * units + n) * load(rows.gamma + n);
        const Vector ds = inverse * (scaled - centre - slope * load(s + n));
        store(out[0] + row * units + n, ds);
        store(out[1] + row * units + n,
              dropout.active() ? dropout(ds, row * units + n) : ds);
      }
    }
  }
  for (long n = 0; n < 2 * units; ++n) {
    float total = 0;
    for (long thread = 0; thread < threads; ++thread) total += sums[thread * 2 * units + n];
    out[n < units ? 2 : 3][n % units] = total;
  }
  std::fill(out[4], out[4] + kDraws, 0.0f);
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes&, int* inputs, int* outputs) {
  *inputs = 5, *outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes& attributes, std::vector<Shape>* inputs,
                     std::vector<Shape>* outputs) {
  dropout_of(attributes);
  const Shape& x = (*inputs)[0];
  if (x.empty() || x.back() % 16 || (*inputs)[1] != x || (*inputs)[2] != Shape{x.back()} ||
      (*inputs)[3] != Shape{x.back()} || (*inputs)[4] != Shape{kDraws}) {
    return refused("mxopt_residual_norm takes two arrays of one shape, whose last axis is a "
                   "multiple of 16, a gamma and a beta as long as it, and 64 draws");
  }
  (*outputs)[0] = x;
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(mxopt_residual_norm)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(count)
    .setInferType(float32)
    .setInferShape(shapes);

}  // namespace mxopt
