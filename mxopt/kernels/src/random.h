// Dropout without a stored mask: whether an element is dropped is a hash of its position and of a
// seed, so that the backward pass finds the same elements again.
#ifndef MXOPT_RANDOM_H_
#define MXOPT_RANDOM_H_

#include <cstdint>

#include "matrix.h"
#include "operator.h"

namespace mxopt {

typedef uint32_t Bits __attribute__((vector_size(4 * kLanes), aligned(4)));
constexpr int kDraws = 64;

// "lowbias32" of Chris Wellons' hash prospector: every input bit changes half of the output bits.
inline Bits scrambled(Bits x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

// Operators of a library do not learn whether MXNet trains. They are given 64 ones that went through
// MXNet's own Dropout with probability 1/2: in training each is 0 or 2, which makes a seed that
// depends on MXNet's generator, and in prediction all are 1.
inline bool trains(const float* draws) { return draws[0] != 1.0f; }

// Returns the probability with which an operator drops elements.
inline float dropout_of(const Attributes& attributes) {
  const double probability = attribute(attributes, "dropout", 0.0);
  if (!(probability >= 0 && probability < 1)) refused("dropout must be at least 0 and below 1");
  return probability;
}

// Dropout of elements, by what these draws say.
class Dropout {
 public:
  // `salt` tells operators apart that are given the same draws.
  Dropout(const float* draws, float probability, long salt) : scale_(1 / (1 - probability)) {
    uint64_t seed = 0;
    for (int bit = 0; bit < kDraws; ++bit) seed = seed << 1 | (draws[bit] > 1.0f);
    active_ = trains(draws) && probability > 0;
    low_ = static_cast<uint32_t>(seed) + static_cast<uint32_t>(salt) * 0x9e3779b9u;
    high_ = static_cast<uint32_t>(seed >> 32);
    below_ = static_cast<uint32_t>(static_cast<double>(probability) * 4294967296.0);
  }

  bool active() const { return active_; }

  // Returns `v`, whose first element has the number `index`, with some elements 0 and the others
  // scaled up.
  Vector operator()(Vector v, uint32_t index) const {
    Bits lanes;
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = lane;
    const Bits bits = scrambled(scrambled(lanes + index + low_) ^ high_);
    return bits < below_ ? Vector{} : v * scale_;
  }

 private:
  bool active_;
  float scale_;
  uint32_t low_, high_, below_;
};

}  // namespace mxopt

#endif  // MXOPT_RANDOM_H_
