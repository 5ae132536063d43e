// Convolutions of one input, at stride 1 and with dilations of the order of the image's sides, without
// the products whose factor is padding: the branches of DeepLab's head (Chen et al., "Rethinking
// Atrous Convolution for Semantic Image Segmentation", 2017, section 3.3).
//
// Most positions see some of a filter's taps only. Positions that see the same taps are computed
// together, some at a time: for each tap the pixels that they see are gathered and multiplied by the
// tap's weights. As one operator, since the branches' gradients of the input are large and summed.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "matrix.h"
#include "operator.h"

namespace mxopt {
namespace {

constexpr long kAtOnce = 2 * Panels::kColumns;  // positions
constexpr long kMostDilation = 1L << 20;         // far beyond any image's sides
constexpr long kDeep = 512;                      // channels, or for gradients of weights positions

struct Images {
  long count, channels, height, width;

  long pixels() const { return height * width; }
};

struct Position {
  long image, pixel;

  // The offset of its first channel.
  long in(const Images& images) const {
    return image * images.channels * images.pixels() + pixel;
  }
};

// One of the convolutions.
struct Branch {
  Images from, to;  // its input and output, which have the same sides
  long side, dilation;

  long taps() const { return side * side; }
  // The taps' weights are (taps, filters, inputs), with this distance of rows.
  long pitch() const { return row_pitch(from.channels); }
  long step() const { return to.channels * pitch(); }

  // How far from a position the pixel is that it sees through a tap, in rows and columns.
  long down(long tap) const { return dilation * (tap / side - side / 2); }
  long right(long tap) const { return dilation * (tap % side - side / 2); }
  long shift(long tap) const { return down(tap) * from.width + right(tap); }

  bool sees(long pixel, long tap) const {
    const long y = pixel / from.width + down(tap), x = pixel % from.width + right(tap);
    return y >= 0 && y < from.height && x >= 0 && x < from.width;
  }

  // Whether any position sees the image through a tap.
  bool seen(long tap) const {
    return from.count > 0 && std::abs(down(tap)) < from.height && std::abs(right(tap)) < from.width;
  }

  // The branch from gradients of its output to those of its input, whose taps are mirrored.
  Branch transposed() const { return {to, from, side, -dilation}; }
};

// Some positions that see the same taps.
struct Group {
  std::vector<long> taps;
  std::vector<Position> positions;
};

std::vector<Group> groups(const Branch& branch) {
  std::vector<std::vector<Position>> by_taps(1 << branch.taps());
  for (long image = 0; image < branch.from.count; ++image)
    for (long pixel = 0; pixel < branch.from.pixels(); ++pixel) {
      long seen = 0;
      for (long tap = 0; tap < branch.taps(); ++tap) seen |= long(branch.sees(pixel, tap)) << tap;
      by_taps[seen].push_back({image, pixel});
    }
  std::vector<Group> found;
  for (size_t seen = 0; seen < by_taps.size(); ++seen) {
    const auto& all = by_taps[seen];
    for (size_t from = 0; from < all.size(); from += kAtOnce) {
      found.emplace_back();
      for (long tap = 0; tap < branch.taps(); ++tap)
        if (seen >> tap & 1) found.back().taps.push_back(tap);
      const size_t end = std::min(all.size(), from + kAtOnce);
      found.back().positions.assign(all.begin() + from, all.begin() + end);
    }
  }
  return found;
}

// Consecutive elements of a channel, from an offset on.
struct Run {
  long from, count;
};

std::vector<Run> runs_of(const Images& images, const std::vector<Position>& positions, long shift) {
  std::vector<Run> found;
  for (const Position& position : positions) {
    const long at = position.in(images) + shift;
    if (found.empty() || found.back().from + found.back().count != at) found.push_back({at, 0});
    ++found.back().count;
  }
  return found;
}

// Copies runs of some channels, one run behind the other. There has to be space for a vector behind
// the last run of a channel.
void gather(long channels, const std::vector<Run>& runs, const float* x, long pixels, float* to,
            long pitch) {
  constexpr long kAhead = 16;  // channels, which are pages apart
  for (long c = 0; c < channels; ++c, x += pixels) {
    float* out = to + c * pitch;
    const bool readable = (channels - 1 - c) * pixels >= kLanes;  // a vector behind this channel
    for (const Run& run : runs) {
      __builtin_prefetch(x + kAhead * pixels + run.from);
      if (readable)
        for (long i = 0; i < run.count; i += kLanes) store(out + i, load(x + run.from + i));
      else
        std::copy_n(x + run.from, run.count, out);
      out += run.count;
    }
  }
}

// Computes a branch from its input, or adds it to `out`. Element (output, input) of a tap's weights is
// weights.data[tap * step + output * weights.rows + input * weights.columns].
void convolve(const Branch& branch, const float* x, Strided weights, long step, float* out,
              bool add) {
  constexpr long kPitch = kAtOnce + kLanes;
  const auto all = groups(branch);
  const long pixels = branch.from.pixels(), inputs = branch.from.channels;
#pragma omp parallel
  {
    static thread_local Panels panels;
    std::vector<float> seen(kDeep * kPitch), sums(branch.to.channels * kAtOnce);
#pragma omp for schedule(dynamic)
    for (size_t n = 0; n < all.size(); ++n) {
      const Group& group = all[n];
      const long some = group.positions.size();
      for (const long tap : group.taps) {
        const auto runs = runs_of(branch.from, group.positions, branch.shift(tap));
        for (long first = 0; first < inputs; first += kDeep) {
          const long deep = std::min(kDeep, inputs - first);
          gather(deep, runs, x + first * pixels, pixels, seen.data(), kPitch);
          panels.take(deep, some, seen.data(), kPitch);
          product(branch.to.channels, some, deep,
                  {weights.data + tap * step + first * weights.columns, weights.rows, weights.columns},
                  panels, sums.data(), kAtOnce, first > 0 || tap != group.taps[0]);
        }
      }
      const auto runs = runs_of(branch.to, group.positions, 0);
      for (long k = 0; k < branch.to.channels; ++k) {
        const float* sum = sums.data() + k * kAtOnce;
        for (const Run& run : runs) {
          float* to = out + k * pixels + run.from;
          for (long i = 0; i < run.count; ++i) to[i] = (add ? to[i] : 0) + sum[i];
          sum += run.count;
        }
      }
    }
  }
}

// Computes the gradients of a branch's weights.
void weight_gradients(const Branch& branch, const float* x, const float* dout, float* dweights) {
  constexpr long kSome = Panels::kColumns, kPitch = kDeep + kLanes;
  const long pixels = branch.from.pixels(), inputs = branch.from.channels;
  const long filters = branch.to.channels;
  for (long tap = 0; tap < branch.taps(); ++tap) {
    if (!branch.seen(tap)) continue;
    std::vector<Position> positions;
    for (long image = 0; image < branch.from.count; ++image)
      for (long pixel = 0; pixel < pixels; ++pixel)
        if (branch.sees(pixel, tap)) positions.push_back({image, pixel});
    float* const to = dweights + tap * branch.step();
    for (size_t first = 0; first < positions.size(); first += kDeep) {
      const long deep = std::min(kDeep, long(positions.size() - first));
      const std::vector<Position> some(positions.begin() + first, positions.begin() + first + deep);
      const auto in = runs_of(branch.from, some, branch.shift(tap)), of = runs_of(branch.to, some, 0);
      std::vector<float> outputs(filters * kPitch);
#pragma omp parallel
      {
        static thread_local Panels panels;
        std::vector<float> seen(kSome * kPitch);
#pragma omp for schedule(static)
        for (long k = 0; k < filters; k += kSome)
          gather(std::min(kSome, filters - k), of, dout + k * pixels, pixels,
                 outputs.data() + k * kPitch, kPitch);
#pragma omp for schedule(static)
        for (long channel = 0; channel < inputs; channel += kSome) {
          const long count = std::min(kSome, inputs - channel);
          gather(count, in, x + channel * pixels, pixels, seen.data(), kPitch);
          panels.take_transposed(deep, count, seen.data(), kPitch);
          product(filters, count, deep, {outputs.data(), kPitch, 1}, panels, to + channel,
                  branch.pitch(), first > 0);
        }
      }
    }
  }
}

std::vector<long> dilations_of(const Attributes& attributes) {
  std::vector<long> found;
  for (const double dilation : numbers(attributes, "dilations")) {
    if (dilation < 1 || dilation > kMostDilation || dilation != long(dilation))
      refused("mxopt_seen_taps takes dilations that are whole numbers from 1 on");
    found.push_back(dilation);
  }
  if (found.empty()) refused("mxopt_seen_taps takes dilations, one for each convolution");
  return found;
}

// The convolutions of an operator, whose weights follow its input x.
std::vector<Branch> branches_of(const Attributes& attributes, const std::vector<MXTensor>& tensors,
                                size_t x) {
  const auto& shape = tensors[x].shape;
  std::vector<Branch> found;
  for (const long dilation : dilations_of(attributes)) {
    const auto& weight = tensors[x + 1 + found.size()].shape;
    found.push_back({{shape[0], shape[1], shape[2], shape[3]},
                     {shape[0], weight[0], shape[2], shape[3]}, weight[2], dilation});
  }
  return found;
}

// The mean of all pixels of each channel.
void mean_of(const Images& images, const float* x, float* mean) {
#pragma omp parallel for schedule(static)
  for (long n = 0; n < images.count * images.channels; ++n)
    mean[n] = sum(x + n * images.pixels(), images.pixels()) / images.pixels();
}

void mean_backward(const Images& images, const float* dmean, float* dx) {
#pragma omp parallel for schedule(static)
  for (long n = 0; n < images.count * images.channels; ++n)
    for (long pixel = 0; pixel < images.pixels(); ++pixel)
      dx[n * images.pixels() + pixel] += dmean[n] / images.pixels();
}

// Calls `move(seen, count, tap's element, weight's element)` for consecutive inputs of each filter and
// tap: whether any position sees through the tap; and indices of the first in (taps, filters, pitch) and
// in (filters, inputs, taps).
template <class Move>
void for_weights(const Branch& branch, Move move) {
  constexpr long kChannels = 64;  // whose weights, of all taps, the cache holds
  const long inputs = branch.from.channels, taps = branch.taps();
#pragma omp parallel for schedule(static)
  for (long k = 0; k < branch.to.channels; ++k)
    for (long first = 0; first < inputs; first += kChannels)
      for (long tap = 0; tap < taps; ++tap)
        move(branch.seen(tap), std::min(kChannels, inputs - first),
             tap * branch.step() + k * branch.pitch() + first, (k * inputs + first) * taps + tap);
}

// Copies the weights of the taps that any position sees through.
void take_weights(const Branch& branch, const float* weights, float* to) {
  const long taps = branch.taps();
  for_weights(branch, [=](bool seen, long count, long tap, long element) {
    if (!seen) return;
    for (long n = 0; n < count; ++n) to[tap + n] = weights[element + n * taps];
  });
}

// Writes the gradients of the weights, 0 for the taps that none sees through.
void give_weights(const Branch& branch, const float* from, float* weights) {
  const long taps = branch.taps();
  for_weights(branch, [=](bool seen, long count, long tap, long element) {
    for (long n = 0; n < count; ++n) weights[element + n * taps] = seen ? from[tap + n] : 0;
  });
}

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const auto branches = branches_of(attributes, *inputs, 0);
  long size = 0;
  for (const Branch& branch : branches) size = std::max(size, branch.taps() * branch.step());
  float* const taps = lent(size);
  for (size_t n = 0; n < branches.size(); ++n) {
    take_weights(branches[n], (*inputs)[n + 1].data<float>(), taps);
    convolve(branches[n], (*inputs)[0].data<float>(), {taps, branches[n].pitch(), 1},
             branches[n].step(), (*outputs)[n].data<float>(), false);
  }
  if (outputs->size() > branches.size())
    mean_of(branches[0].from, (*inputs)[0].data<float>(), outputs->back().data<float>());
  return MX_SUCCESS;
}

MXReturnValue backward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  // Gradients of the outputs, the input and the weights, the outputs.
  const size_t count = outputs->size() - 1, first = count + attribute(attributes, "mean", 0);
  const auto branches = branches_of(attributes, *inputs, first);
  const float* x = (*inputs)[first].data<float>();
  long size = 0;
  for (const Branch& branch : branches) size = std::max(size, branch.taps() * branch.step());
  float* const taps = lent(size);
  for (size_t n = 0; n < count; ++n) {
    const Branch& branch = branches[n];
    const float* dout = (*inputs)[n].data<float>();
    take_weights(branch, (*inputs)[first + 1 + n].data<float>(), taps);
    convolve(branch.transposed(), dout, {taps, 1, branch.pitch()}, branch.step(),
             (*outputs)[0].data<float>(), n > 0);
    weight_gradients(branch, x, dout, taps);
    give_weights(branch, taps, (*outputs)[n + 1].data<float>());
  }
  if (first > count)
    mean_backward(branches[0].from, (*inputs)[count].data<float>(), (*outputs)[0].data<float>());
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes& attributes, int* inputs, int* outputs) {
  const long convolutions = dilations_of(attributes).size(), mean = attribute(attributes, "mean", 0);
  if (mean != 0 && mean != 1) refused("mxopt_seen_taps takes mean=0 or mean=1");
  *inputs = 1 + convolutions, *outputs = convolutions + mean;
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes&, std::vector<Shape>* inputs, std::vector<Shape>* outputs) {
  const Shape& x = (*inputs)[0];
  for (size_t n = 0; n + 1 < inputs->size(); ++n) {
    const Shape& weight = (*inputs)[n + 1];
    if (x.size() != 4 || weight.size() != 4 || weight[1] != x[1] || weight[2] != weight[3] ||
        (weight[2] != 1 && weight[2] != 3)) {
      return refused("mxopt_seen_taps takes images (samples, channels, height, width) and filters "
                     "of 1 x 1 or 3 x 3");
    }
    (*outputs)[n] = {x[0], weight[0], x[2], x[3]};
  }
  if (outputs->size() == inputs->size()) outputs->back() = {x[0], x[1], 1, 1};  // the mean
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(mxopt_seen_taps)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(count)
    .setInferType(float32)
    .setInferShape(shapes);

}  // namespace mxopt
