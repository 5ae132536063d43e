// Updates by SGD and by Adam (Kingma and Ba, 2015), those of many parameters in one call. MXNet's own
// operators compute one element at a time, these as many as a vector register holds.
#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "operator.h"

namespace mxopt {
namespace {

constexpr long kBlock = 1 << 14;  // elements that a thread updates at a time

// Some elements of a parameter. `updated` may be the memory of `weight`; states are Adam's means of
// gradients and of their squares, or SGD's momentum.
struct Block {
  const float *weight, *gradient;
  float *updated, *states[2];
  long count;
  float rate, decay;
};

long parameters(const Attributes& attributes) { return numbers(attributes, "rates").size(); }

// Divides all parameters into blocks; in the inputs, each has a weight, a gradient, and so many states.
std::vector<Block> blocks(const Attributes& attributes, std::vector<MXTensor>& inputs,
                          std::vector<MXTensor>& outputs, long states) {
  const std::vector<double> rates = numbers(attributes, "rates");
  const std::vector<double> decays = numbers(attributes, "decays");
  std::vector<Block> all;
  for (size_t n = 0; n < rates.size(); ++n) {
    MXTensor* given = &inputs[n * (2 + states)];
    const long size = given[0].size();
    for (long first = 0; first < size; first += kBlock) {
      Block block = {given[0].data<float>() + first, given[1].data<float>() + first,
                     outputs[n].data<float>() + first};
      for (long s = 0; s < states; ++s) block.states[s] = given[2 + s].data<float>() + first;
      block.count = std::min(kBlock, size - first);
      block.rate = rates[n], block.decay = decays[n];
      all.push_back(block);
    }
  }
  return all;
}

// What gradients are multiplied by, and the largest magnitude that they then keep.
struct Scale {
  float factor, bound;

  explicit Scale(const Attributes& attributes) {
    factor = attribute(attributes, "rescale", 1.0), bound = attribute(attributes, "clip", -1.0);
    if (bound < 0) bound = std::numeric_limits<float>::infinity();
  }

  float clipped(float x) const { return x > bound ? bound : x < -bound ? -bound : x; }
};

// Calls `update(block, n)` for every element n of every block.
template <class Update>
void for_elements(const std::vector<Block>& all, Update update) {
#pragma omp parallel for schedule(dynamic)
  for (size_t b = 0; b < all.size(); ++b) {
    const Block block = all[b];
#pragma omp simd
    for (long n = 0; n < block.count; ++n) update(block, n);
  }
}

template <bool kMomentum>
MXReturnValue sgd(const Attributes& attributes, std::vector<MXTensor>& inputs,
                  std::vector<MXTensor>& outputs) {
  const Scale scale(attributes);
  const float momentum = attribute(attributes, "momentum", 0.0);
  for_elements(blocks(attributes, inputs, outputs, kMomentum), [=](const Block& block, long n) {
    const float weight = block.weight[n];
    const float gradient = scale.clipped(scale.factor * block.gradient[n]) + block.decay * weight;
    float change = -block.rate * gradient;
    if (kMomentum) block.states[0][n] = change += momentum * block.states[0][n];
    block.updated[n] = weight + change;
  });
  return MX_SUCCESS;
}

MXReturnValue sgd_updates(const Attributes& attributes, std::vector<MXTensor>* inputs,
                          std::vector<MXTensor>* outputs, const OpResource&) {
  const bool momentum = inputs->size() == 3 * outputs->size();
  return (momentum ? sgd<true> : sgd<false>)(attributes, *inputs, *outputs);
}

MXReturnValue adam_updates(const Attributes& attributes, std::vector<MXTensor>* inputs,
                           std::vector<MXTensor>* outputs, const OpResource&) {
  const Scale scale(attributes);
  const float beta1 = attribute(attributes, "beta1", 0.9);
  const float beta2 = attribute(attributes, "beta2", 0.999);
  const float epsilon = attribute(attributes, "epsilon", 1e-8);
  for_elements(blocks(attributes, *inputs, *outputs, 2), [=](const Block& block, long n) {
    const float weight = block.weight[n];
    const float gradient = scale.clipped(scale.factor * block.gradient[n] + block.decay * weight);
    const float mean = beta1 * block.states[0][n] + (1 - beta1) * gradient;
    const float squares = beta2 * block.states[1][n] + (1 - beta2) * gradient * gradient;
    block.states[0][n] = mean, block.states[1][n] = squares;
    block.updated[n] = weight - block.rate * mean / (std::sqrt(squares) + epsilon);
  });
  return MX_SUCCESS;
}

template <long kStates>
MXReturnValue count(const Attributes& attributes, int* inputs, int* outputs) {
  *outputs = parameters(attributes), *inputs = *outputs * (2 + kStates);
  if (*outputs == 0 || numbers(attributes, "decays").size() != size_t(*outputs))
    return refused("mxopt's updates take as many rates as decays, and at least one");
  return MX_SUCCESS;
}

MXReturnValue count_sgd(const Attributes& attributes, int* inputs, int* outputs) {
  const bool momentum = attribute(attributes, "momentum", 0.0) != 0;
  return (momentum ? count<1> : count<0>)(attributes, inputs, outputs);
}

MXReturnValue shapes(const Attributes&, std::vector<Shape>* inputs, std::vector<Shape>* outputs) {
  const size_t each = inputs->size() / outputs->size();
  for (size_t n = 0; n < inputs->size(); ++n) {
    if ((*inputs)[n] != (*inputs)[n - n % each])
      return refused("mxopt's updates take gradients and states of the shapes of their weights");
    (*outputs)[n / each] = (*inputs)[n];
  }
  return MX_SUCCESS;
}

// States are written in place.
MXReturnValue mutated(const Attributes& attributes, std::vector<int>* inputs, int states) {
  const int each = 2 + states, all = parameters(attributes) * each;
  for (int n = 0; n < all; ++n)
    if (n % each >= 2) inputs->push_back(n);
  return MX_SUCCESS;
}

MXReturnValue mutated_by_sgd(const Attributes& attributes, std::vector<int>* inputs) {
  return mutated(attributes, inputs, attribute(attributes, "momentum", 0.0) != 0);
}

MXReturnValue mutated_by_adam(const Attributes& attributes, std::vector<int>* inputs) {
  return mutated(attributes, inputs, 2);
}

}  // namespace

REGISTER_OP(mxopt_sgd_updates)
    .setForward(sgd_updates, "cpu")
    .setParseAttrs(count_sgd)
    .setInferType(float32)
    .setInferShape(shapes)
    .setMutateInputs(mutated_by_sgd);

REGISTER_OP(mxopt_adam_updates)
    .setForward(adam_updates, "cpu")
    .setParseAttrs(count<2>)
    .setInferType(float32)
    .setInferShape(shapes)
    .setMutateInputs(mutated_by_adam);

}  // namespace mxopt
