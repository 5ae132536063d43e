// Batch normalisation (Ioffe and Szegedy, 2015), to which another array or its norm may be added, and
// ReLU: y = relu(norm(x) + other). A channel is computed at once, while caches hold it; nothing but
// the inputs and the output is kept for the backward pass.
#include <algorithm>
#include <cmath>
#include <vector>

#include "matrix.h"
#include "operator.h"
#include "random.h"

namespace mxopt {
namespace {

// Inputs: x, gamma, beta, the running mean and variance, draws, and the other array if `added`. With
// added=2 the norm of the other array is added, and its gamma, beta, mean and variance follow it.
enum Input { kX, kGamma, kBeta, kMean, kVariance, kDrawn, kOther };

long added(const Attributes& attributes) { return attribute(attributes, "added", 0); }

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

// An array that is normalised, and the parameters of its channels.
struct Part {
  const float *x, *gamma, *beta;
  float *running_mean, *running_variance;

  Part(std::vector<MXTensor>& tensors, size_t first) {
    const auto data = [&](Input input) { return tensors[first + input].data<float>(); };
    x = data(kX), gamma = data(kGamma), beta = data(kBeta);
    running_mean = data(kMean), running_variance = data(kVariance);
  }
};

// How a channel is normalised: (x - mean) * scale + shift, where scale = gamma * inverse.
struct Channel {
  float mean = 0, variance = 0, inverse = 1, scale = 1, shift = 0;
};

struct Norm {
  std::vector<Part> parts;
  const float* other;  // the other array, normalised or not
  long images, channels, pixels;
  float epsilon, momentum;
  bool relu, training;

  Norm(const Attributes& attributes, std::vector<MXTensor>& tensors, size_t first)
      : parts{Part(tensors, first)} {
    other = added(attributes) ? tensors[first + kOther].data<float>() : nullptr;
    if (added(attributes) == 2) parts.emplace_back(tensors, first + kOther);
    const auto& shape = tensors[first].shape;
    images = shape[0], channels = shape[1], pixels = shape[2] * shape[3];
    epsilon = attribute(attributes, "epsilon", 1e-5);
    momentum = attribute(attributes, "momentum", 0.9);
    relu = attribute(attributes, "relu", 1);
    training = trains(tensors[first + kDrawn].data<float>());
  }

  bool two() const { return parts.size() == 2; }

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

  // Returns how a channel of a part is normalised: by its own statistics or by the running ones.
  Channel statistics(const Part& part, long channel) const {
    Channel own;
    own.mean = part.running_mean[channel], own.variance = part.running_variance[channel];
    if (training) {
      Total total, squares;
      for_channel(channel, [&](long n, auto zero) { total += get(part.x + n, zero); });
      own.mean = total.value() / count();
      for_channel(channel, [&](long n, auto zero) {
        const auto distance = get(part.x + n, zero) - own.mean;
        squares += distance * distance;
      });
      own.variance = squares.value() / count();
    }
    own.inverse = 1 / std::sqrt(own.variance + epsilon);
    own.scale = part.gamma[channel] * own.inverse, own.shift = part.beta[channel];
    return own;
  }

  // Moves the running statistics of a channel towards its own.
  void update(const Part& part, long channel, const Channel& own) const {
    float &mean = part.running_mean[channel], &variance = part.running_variance[channel];
    mean = momentum * mean + (1 - momentum) * own.mean;
    variance = momentum * variance + (1 - momentum) * own.variance;
  }
};

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Norm own(attributes, *inputs, 0);
  float* y = (*outputs)[0].data<float>();
#pragma omp parallel for schedule(static)
  for (long channel = 0; channel < own.channels; ++channel) {
    const Channel first = own.statistics(own.parts[0], channel);
    const Channel second = own.two() ? own.statistics(own.parts[1], channel) : Channel();
    own.for_channel(channel, [&](long n, auto zero) {
      auto v = (get(own.parts[0].x + n, zero) - first.mean) * first.scale + first.shift;
      if (own.other) v += (get(own.other + n, zero) - second.mean) * second.scale + second.shift;
      put(y + n, own.relu ? (v < 0 ? zero : v) : v);
    });
    if (!own.training || own.images * own.pixels == 0) continue;
    own.update(own.parts[0], channel, first);
    if (own.two()) own.update(own.parts[1], channel, second);
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
    const Channel first = own.statistics(own.parts[0], channel);
    const Channel second = own.two() ? own.statistics(own.parts[1], channel) : Channel();
    const auto gradient = [&](long n, auto zero) {
      const auto d = get(dy + n, zero);
      return own.relu ? (get(y + n, zero) > 0 ? d : zero) : d;
    };
    Total total, along_first, along_second;
    own.for_channel(channel, [&](long n, auto zero) {
      const auto d = gradient(n, zero);
      total += d;
      along_first += d * (get(own.parts[0].x + n, zero) - first.mean);
      if (own.two()) {
        along_second += d * (get(own.other + n, zero) - second.mean);
      } else if (own.other) {
        put(to[kOther] + n, d);
      }
    });
    const auto give = [&](const Part& part, const Channel& by, float along, float* const* gradients) {
      gradients[kGamma][channel] = along * by.inverse;
      gradients[kBeta][channel] = total.value();
      const float centre = own.training ? total.value() / own.count() : 0;
      const float slope = own.training ? along * by.inverse * by.inverse / own.count() : 0;
      own.for_channel(channel, [&](long n, auto zero) {
        const auto d = gradient(n, zero);
        put(gradients[kX] + n, by.scale * (d - centre - slope * (get(part.x + n, zero) - by.mean)));
      });
      gradients[kMean][channel] = gradients[kVariance][channel] = 0;
    };
    give(own.parts[0], first, along_first.value(), to.data());
    if (own.two()) give(own.parts[1], second, along_second.value(), to.data() + kOther);
  }
  std::fill_n(to[kDrawn], kDraws, 0.0f);
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes& attributes, int* inputs, int* outputs) {
  const int more[] = {0, 1, 1 + kVariance};
  if (added(attributes) < 0 || added(attributes) > 2)
    return refused("mxopt_batch_norm takes 0, 1 or 2 for added");
  *inputs = kOther + more[added(attributes)], *outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue mutated(const Attributes& attributes, std::vector<int>* inputs) {
  *inputs = {kMean, kVariance};
  if (added(attributes) == 2) inputs->insert(inputs->end(), {kOther + kMean, kOther + kVariance});
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes& attributes, std::vector<Shape>* inputs,
                     std::vector<Shape>* outputs) {
  const Shape& x = (*inputs)[kX];
  // Whether the four arrays of a part have a number for each channel.
  const auto fits = [&](int part) {
    return std::all_of(inputs->begin() + part + kGamma, inputs->begin() + part + kDrawn,
                       [&](const Shape& shape) { return shape == Shape{x[1]}; });
  };
  if (x.size() != 4 || !fits(0) || (*inputs)[kDrawn] != Shape{kDraws} ||
      (added(attributes) && (*inputs)[kOther] != x) || (added(attributes) == 2 && !fits(kOther))) {
    return refused("mxopt_batch_norm takes images (samples, channels, height, width), four arrays "
                   "(channels,), 64 draws, with added=1 another array like the first, and with "
                   "added=2 four more arrays (channels,)");
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
