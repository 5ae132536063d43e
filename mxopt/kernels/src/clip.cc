// Clipping by norm (Pascanu, Mikolov and Bengio, 2013): all gradients in one call.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "operator.h"

namespace mxopt {
namespace {

constexpr long kBlock = 1 << 14;  // elements that a thread reads at a time

// Some elements of a gradient. `clipped` may be the memory of `gradient`.
struct Block {
  const float* gradient;
  float* clipped;
  long count;
};

std::vector<Block> blocks(std::vector<MXTensor>& gradients, std::vector<MXTensor>& clipped) {
  std::vector<Block> all;
  for (size_t n = 0; n < gradients.size(); ++n) {
    const long size = gradients[n].size();
    for (long first = 0; first < size; first += kBlock)
      all.push_back({gradients[n].data<float>() + first, clipped[n].data<float>() + first,
                     std::min(kBlock, size - first)});
  }
  return all;
}

// float64 holds the square of every float32, and the sum of as many as fit in memory.
double norm(const std::vector<Block>& all) {
  std::vector<double> sums(all.size());
#pragma omp parallel for schedule(static)
  for (size_t b = 0; b < all.size(); ++b) {
    const Block block = all[b];
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long n = 0; n < block.count; ++n) sum += double(block.gradient[n]) * block.gradient[n];
    sums[b] = sum;
  }
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

MXReturnValue clip(const Attributes& attributes, std::vector<MXTensor>* gradients,
                   std::vector<MXTensor>* clipped, const OpResource&) {
  const std::vector<Block> all = blocks(*gradients, *clipped);
  const double longest = number(attributes, "max_norm", 0.0), found = norm(all);
  double factor = found > longest ? longest / found : 1;
  if (!std::isfinite(found)) factor = std::numeric_limits<double>::quiet_NaN();
#pragma omp parallel for schedule(static)
  for (size_t b = 0; b < all.size(); ++b) {
    const Block block = all[b];
    if (factor == 1 && block.clipped == block.gradient) continue;
#pragma omp simd
    for (long n = 0; n < block.count; ++n) block.clipped[n] = factor * block.gradient[n];
  }
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes& attributes, int* inputs, int* outputs) {
  *inputs = *outputs = attribute(attributes, "arrays", 0);
  if (*inputs < 1) return refused("mxopt_clip_by_norm takes at least one gradient");
  if (!(number(attributes, "max_norm", -1.0) >= 0))
    return refused("mxopt_clip_by_norm takes a max_norm of at least 0");
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes&, std::vector<Shape>* inputs, std::vector<Shape>* outputs) {
  *outputs = *inputs;
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(mxopt_clip_by_norm)
    .setForward(clip, "cpu")
    .setParseAttrs(count)
    .setInferType(float32)
    .setInferShape(shapes);

}  // namespace mxopt
