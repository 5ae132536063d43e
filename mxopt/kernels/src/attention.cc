// Scaled dot-product attention of several heads as one operator (Vaswani et al., 2017, section 3.2):
// scores, mask, softmax, dropout, product. Queries, keys and values stay as the dense layer before
// them wrote them, so nothing is transposed: those of a word beside each other in one array, or, if
// the queries are of other words, keys and values beside each other in a second one. The scores of
// one head of one sample are in the cache, and the backward pass computes them again.
#include <algorithm>
#include <cmath>
#include <vector>

#include "operator.h"
#include "random.h"

namespace mxopt {
namespace {

// exp(v) for v of at most 0, to about 1e-7: 2^n times a polynomial of what is left.
inline Vector exponential(Vector v) {
  typedef int32_t Integers __attribute__((vector_size(4 * kLanes), aligned(4)));
  constexpr float kLog2e = 1.44269504f, kHigh = 0.693359375f, kLow = -2.12194440e-4f;
  constexpr float kRounding = 12582912.0f;  // 1.5 * 2^23: its addition rounds to a whole number
  v = v > -87.0f ? v : Vector{} - 87.0f;
  const Vector shifted = v * kLog2e + kRounding;
  const Vector n = shifted - kRounding;
  const Vector r = v - n * kHigh - n * kLow;
  Vector p = Vector{} + 1.0f / 720;
  for (const float factor : {1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) p = p * r + factor;
  // A cast keeps the bits. The lowest ones of `shifted` are n, which is added to the exponent.
  return (Vector)((Integers)p + ((Integers)shifted << 23));
}

struct Heads {
  const float *query, *key, *value, *lengths, *draws;
  long samples, queries, keys, units, heads, width, pitch;  // of a row of scores
  long query_row, key_row;  // from a word's queries to the next word's; the same of keys and values
  bool own, causal;
  float probability, scale;
  long salt;

  Heads(const Attributes& attributes, std::vector<MXTensor>& tensors, size_t first) {
    own = attribute(attributes, "own", 0);
    const MXTensor &asking = tensors[first], &asked = tensors[own ? first : first + 1];
    samples = asking.shape[0], queries = asking.shape[1], keys = asked.shape[1];
    query_row = asking.shape[2], key_row = asked.shape[2];
    units = key_row / (own ? 3 : 2);
    query = tensors[first].data<float>();
    key = own ? query + units : tensors[first + 1].data<float>();
    value = key + units;
    lengths = tensors[first + 2 - own].data<float>();
    draws = tensors[first + 3 - own].data<float>();
    heads = attribute(attributes, "heads", 1);
    width = units / heads, pitch = (keys + kLanes - 1) / kLanes * kLanes;
    causal = attribute(attributes, "causal", 0);
    probability = attribute(attributes, "dropout", 0.0);
    salt = attribute(attributes, "salt", 0);
    scale = 1 / std::sqrt(static_cast<float>(width));
  }

  // Where a head of a sample begins, in an array of (samples, length, row).
  long place(long task, long length, long row) const {
    return task / heads * length * row + task % heads * width;
  }

  // The softmax of the scores of a task, (queries, pitch), 0 for keys that are masked.
  void weights(long task, float* to) const {
    std::fill(to, to + queries * pitch, 0.0f);
    inner(queries, keys, width, query + place(task, queries, query_row), query_row,
          key + place(task, keys, key_row), key_row, to, pitch);
    const long real = std::min(keys, static_cast<long>(lengths[task / heads]));
    for (long q = 0; q < queries; ++q) {
      float* row = to + q * pitch;
      const long seen = causal ? std::min(keys, q + 1) : real;
      std::fill(row + seen, row + pitch, -1e30f);
      float largest = -1e30f;
      for (long k = 0; k < seen; ++k) largest = std::max(largest, row[k]);
      Vector total = {};
      for (long k = 0; k < pitch; k += kLanes) {
        const Vector scores = load(row + k);
        const Vector powers = exponential((scores - largest) * scale);
        const Vector kept = scores > -1e29f ? powers : Vector{};
        store(row + k, kept);
        total += kept;
      }
      const float inverse = seen ? 1 / sum(total) : 0;
      for (long k = 0; k < pitch; k += kLanes) store(row + k, load(row + k) * inverse);
    }
  }

  // Applies dropout to a task's (queries, pitch).
  void drop(const Dropout& dropout, long task, const float* from, float* to) const {
    for (long n = 0; n < queries * pitch; n += kLanes) {
      const Vector v = load(from + n);
      store(to + n, dropout.active() ? dropout(v, task * queries * pitch + n) : v);
    }
  }
};

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Heads all(attributes, *inputs, 0);
  const Dropout dropout(all.draws, all.probability, all.salt);
  float* out = (*outputs)[0].data<float>();
#pragma omp parallel
  {
    std::vector<float> scores(all.queries * all.pitch);
#pragma omp for schedule(static)
    for (long task = 0; task < all.samples * all.heads; ++task) {
      all.weights(task, scores.data());
      all.drop(dropout, task, scores.data(), scores.data());
      product(all.queries, all.width, all.keys, {scores.data(), all.pitch, 1},
              all.value + all.place(task, all.keys, all.key_row), all.key_row,
              out + all.place(task, all.queries, all.units), all.units, false);
    }
  }
  return MX_SUCCESS;
}

MXReturnValue backward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Heads all(attributes, *inputs, 1);
  const Dropout dropout(all.draws, all.probability, all.salt);
  const float* dout = (*inputs)[0].data<float>();
  float* dquery = (*outputs)[0].data<float>();
  float* dkey = all.own ? dquery + all.units : (*outputs)[1].data<float>();
  float* dvalue = dkey + all.units;
#pragma omp parallel
  {
    const long size = all.queries * all.pitch;
    std::vector<float> memory(3 * size);
    float *weights = memory.data(), *dropped = weights + size, *gradient = dropped + size;
#pragma omp for schedule(static)
    for (long task = 0; task < all.samples * all.heads; ++task) {
      const long o = all.place(task, all.queries, all.units);
      const long q = all.place(task, all.queries, all.query_row);
      const long k = all.place(task, all.keys, all.key_row);
      all.weights(task, weights);
      all.drop(dropout, task, weights, dropped);
      product(all.keys, all.width, all.queries, {dropped, 1, all.pitch}, dout + o, all.units,
              dvalue + k, all.key_row, false);
      std::fill(gradient, gradient + size, 0.0f);
      inner(all.queries, all.keys, all.width, dout + o, all.units, all.value + k, all.key_row,
            gradient, all.pitch);
      all.drop(dropout, task, gradient, gradient);
      for (long row = 0; row < all.queries; ++row) {
        const float* p = weights + row * all.pitch;
        float* g = gradient + row * all.pitch;
        Vector total = {};
        for (long n = 0; n < all.pitch; n += kLanes) total += load(p + n) * load(g + n);
        const float mean = sum(total);
        for (long n = 0; n < all.pitch; n += kLanes)
          store(g + n, load(p + n) * (load(g + n) - mean) * all.scale);
      }
      product(all.queries, all.width, all.keys, {gradient, all.pitch, 1}, all.key + k, all.key_row,
              dquery + q, all.query_row, false);
      product(all.keys, all.width, all.queries, {gradient, 1, all.pitch}, all.query + q,
              all.query_row, dkey + k, all.key_row, false);
    }
  }
  float* dlengths = (*outputs)[2 - all.own].data<float>();
  float* ddraws = (*outputs)[3 - all.own].data<float>();
  std::fill(dlengths, dlengths + all.samples, 0.0f);
  std::fill(ddraws, ddraws + kDraws, 0.0f);
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes& attributes, int* inputs, int* outputs) {
  *inputs = attribute(attributes, "own", 0) ? 3 : 4, *outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes& attributes, std::vector<Shape>* inputs,
                     std::vector<Shape>* outputs) {
  const unsigned own = attribute(attributes, "own", 0) != 0;
  const unsigned heads = attribute(attributes, "heads", 1);
  const Shape &asking = (*inputs)[0], &asked = (*inputs)[1 - own];
  const unsigned parts = own ? 3 : 2;
  if (asking.size() != 3 || asked.size() != 3 || asking[0] != asked[0] || asked[2] % parts ||
      (asked[2] / parts) % heads || (!own && asking[2] != asked[2] / parts) ||
      (*inputs)[2 - own] != Shape{asking[0]} || (*inputs)[3 - own] != Shape{kDraws}) {
    MX_ERROR_MSG << "mxopt_attention takes queries, keys and values side by side (samples, length, "
                    "3 units) with own=1, or queries (samples, queries, units) and keys and values "
                    "(samples, keys, 2 units); the samples' lengths; and 64 draws. units must be a "
                    "multiple of the heads";
    return MX_FAIL;
  }
  (*outputs)[0] = {asking[0], asking[1], asked[2] / parts};
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(mxopt_attention)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(count)
    .setInferType(float32)
    .setInferShape(shapes);

}  // namespace mxopt
