// Batch normalisation (Ioffe and Szegedy, 2015), to which another array may be added, and ReLU:
// y = relu(norm(x) + other). A channel is computed at once, while caches hold it; nothing but the
// inputs and the output is kept for the backward pass.
#include <algorithm>
#include <cmath>
#include <vector>

#include "matrix.h"
#include "operator.h"
#include "random.h"

namespace mxopt {
namespace {

// Inputs: x, gamma, beta, the running mean and variance, draws, and the other array if `added`.
enum Input { kX, kGamma, kBeta, kMean, kVariance, kDrawn, kOther };

bool added(const Attributes& attributes) { return attribute(attributes, "added", 0); }

// Calls `use(n, zero)` for all of `count` numbers: for vectors of them that begin at n, and for single
// ones; `zero` is of the type to compute with.
template <class Use>
inline void for_numbers(long count, Use use) {
  long n = 0;
  for (; n + kLanes <= count; n += kLanes) use(n, Vector{});
  for (; n < count; ++n) use(n, 0.0f);
}

inline Vector get(const float* from, Vector) { return load(from); }
inline float get(const float* from, float) { return *from; }
inline void put(float* to, Vector v) { store(to, v); }
inline void put(float* to, float v) { *to = v; }

// A sum of vectors and single numbers.
struct Total {
  Vector vectors = {};
  float singles = 0;

  void operator+=(Vector v) { vectors += v; }
  void operator+=(float v) { singles += v; }
  float value() const { return sum(vectors) + singles; }
};

struct Norm {
  const float *x, *gamma, *beta, *other;
  float *running_mean, *running_variance;
  long images, channels, pixels;
  float epsilon, momentum;
  bool relu, training;

  Norm(const Attributes& attributes, std::vector<MXTensor>& tensors, size_t first) {
    const auto data = [&](Input input) { return tensors[first + input].data<float>(); };
    x = data(kX), gamma = data(kGamma), beta = data(kBeta);
    running_mean = data(kMean), running_variance = data(kVariance);
    other = added(attributes) ? data(kOther) : nullptr;
    const auto& shape = tensors[first].shape;
    images = shape[0], channels = shape[1], pixels = shape[2] * shape[3];
    epsilon = attribute(attributes, "epsilon", 1e-5);
    momentum = attribute(attributes, "momentum", 0.9);
    relu = attribute(attributes, "relu", 1);
    training = trains(data(kDrawn));
  }

  // Calls `use(n, zero)` with all numbers n of a channel, as for_numbers does.
  template <class Use>
  void for_channel(long channel, Use use) const {
    for (long image = 0; image < images; ++image) {
      const long at = (image * channels + channel) * pixels;
      for_numbers(pixels, [&](long n, auto zero) { use(at + n, zero); });
    }
  }

  // How many numbers a channel has; 1 if there are none, to divide by.
  float count() const { return std::max(1L, images * pixels); }

  // Writes the mean that a channel is normalised with, and 1 / its deviation; returns the variance.
  float statistics(long channel, float* mean, float* inverse) const {
    float variance = running_variance[channel];
    *mean = running_mean[channel];
    if (training) {
      Total total, squares;
      for_channel(channel, [&](long n, auto zero) { total += get(x + n, zero); });
      *mean = total.value() / count();
      for_channel(channel, [&](long n, auto zero) {
        const auto distance = get(x + n, zero) - *mean;
        squares += distance * distance;
      });
      variance = squares.value() / count();
    }
    *inverse = 1 / std::sqrt(variance + epsilon);
    return variance;
  }
};

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Norm own(attributes, *inputs, 0);
  float* y = (*outputs)[0].data<float>();
#pragma omp parallel for schedule(static)
  for (long channel = 0; channel < own.channels; ++channel) {
    float mean, inverse;
    const float variance = own.statistics(channel, &mean, &inverse);
    const float scale = own.gamma[channel] * inverse, shift = own.beta[channel];
    own.for_channel(channel, [&](long n, auto zero) {
      auto v = (get(own.x + n, zero) - mean) * scale + shift;
      if (own.other) v += get(own.other + n, zero);
      put(y + n, own.relu ? (v > 0 ? v : zero) : v);
    });
    if (!own.training) continue;
    float &running = own.running_mean[channel], &spread = own.running_variance[channel];
    running = own.momentum * running + (1 - own.momentum) * mean;
    spread = own.momentum * spread + (1 - own.momentum) * variance;
  }
  return MX_SUCCESS;
}

MXReturnValue backward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Norm own(attributes, *inputs, 1);
  const float *dy = (*inputs)[0].data<float>(), *y = inputs->back().data<float>();
  std::vector<float*> to;
  for (auto& tensor : *outputs) to.push_back(tensor.data<float>());
#pragma omp parallel for schedule(static)
  for (long channel = 0; channel < own.channels; ++channel) {
    float mean, inverse;
    own.statistics(channel, &mean, &inverse);
    Total total, along;
    const auto gradient = [&](long n, auto zero) {
      const auto d = get(dy + n, zero);
      return own.relu ? (get(y + n, zero) > 0 ? d : zero) : d;
    };
    own.for_channel(channel, [&](long n, auto zero) {
      const auto d = gradient(n, zero);
      total += d;
      along += d * (get(own.x + n, zero) - mean);
      if (own.other) put(to[kOther] + n, d);
    });
    const float scale = own.gamma[channel] * inverse;
    to[kGamma][channel] = along.value() * inverse;
    to[kBeta][channel] = total.value();
    const float centre = own.training ? total.value() / own.count() : 0;
    const float slope = own.training ? along.value() * inverse * inverse / own.count() : 0;
    own.for_channel(channel, [&](long n, auto zero) {
      const auto d = own.other ? get(to[kOther] + n, zero) : gradient(n, zero);
      put(to[kX] + n, scale * (d - centre - slope * (get(own.x + n, zero) - mean)));
    });
  }
  for (Input input : {kMean, kVariance}) std::fill_n(to[input], own.channels, 0.0f);
  std::fill_n(to[kDrawn], kDraws, 0.0f);
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes& attributes, int* inputs, int* outputs) {
  *inputs = kOther + added(attributes), *outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue mutated(const Attributes&, std::vector<int>* inputs) {
  *inputs = {kMean, kVariance};
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes& attributes, std::vector<Shape>* inputs,
                     std::vector<Shape>* outputs) {
  const Shape& x = (*inputs)[kX];
  if (x.size() != 4 || (*inputs)[kGamma] != Shape{x[1]} || (*inputs)[kDrawn] != Shape{kDraws} ||
      (added(attributes) && (*inputs)[kOther] != x)) {
    MX_ERROR_MSG << "mxopt_batch_norm takes images (samples, channels, height, width), four arrays "
                    "(channels,), 64 draws, and with added=1 another array like the first";
    return MX_FAIL;
  }
  (*outputs)[0] = x;
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(mxopt_batch_norm)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(count)
    .setInferType(float32)
    .setInferShape(shapes)
    .setMutateInputs(mutated);

}  // namespace mxopt
