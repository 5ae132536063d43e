// A 3 x 3 convolution at stride 1, padded by 1, the maxima of its output over windows of 2 x 2, and
// ReLU, as one operator that does not write the convolution's output. Each maximum has its gradient
// from one of four positions, or none after ReLU, so the backward pass computes a quarter of the
// products of a convolution's, or less. Images are copied to (height, width, channels) with a border of
// zeros: what a position reads is three rows of 3 `channels` numbers.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "matrix.h"
#include "operator.h"

namespace mxopt {
namespace {

constexpr long kSide = 3, kPhases = 4;  // phases: the positions of a window, row by row
constexpr float kNone = kPhases;           // in place of a phase: ReLU gives 0
// Windows and vectors of filters that are computed at once, and vectors of a row of the gradients.
constexpr int kWindows = kLanes == 16 ? 2 : 1, kFilters = 2;
constexpr int kMost = kLanes == 16 ? 6 : 4;

struct Problem {
  const float *x, *weight, *bias;
  long images, channels, height, width, filters;
  // Where the first of what a window's phase reads is in an image with a border: (windows, phases).
  std::vector<long> places;

  Problem(std::vector<MXTensor>& tensors, size_t first) {
    const auto& shape = tensors[first].shape;
    x = tensors[first].data<float>(), weight = tensors[first + 1].data<float>();
    bias = tensors[first + 2].data<float>();
    images = shape[0], channels = shape[1], height = shape[2], width = shape[3];
    filters = tensors[first + 1].shape[0];
    for (long y = 0; y + 1 < height; y += 2)
      for (long x = 0; x + 1 < width; x += 2)
        for (long phase = 0; phase < kPhases; ++phase)
          places.push_back((y + phase / 2) * line() + (x + phase % 2) * channels);
  }

  long windows() const { return height / 2 * (width / 2); }
  long outputs() const { return filters * windows(); }  // of an image
  long phases() const { return (outputs() + 3) / 4 * 4; }  // bytes of an image, as floats to MXNet
  long inputs() const { return channels * height * width; }
  long row() const { return kSide * channels; }             // what a position reads of a line
  long line() const { return (width + 2) * channels; }       // of an image with a border
  long bordered() const { return (height + 2) * line() + in_vectors(row()); }
  long padded_filters() const {
    constexpr long kSome = kFilters * kLanes;
    return (filters + kSome - 1) / kSome * kSome;
  }
};

// Copies an image, (channels, height, width), into one with a border, whose border is zeros.
void take_image(const Problem& of, const float* x, float* to) {
  const long pixels = of.height * of.width;
  for (long y = 0; y < of.height; ++y) {
    float* const line = to + (y + 1) * of.line() + of.channels;
    for (long channel = 0; channel < of.channels; channel += kLanes)
      for (long from = 0; from < of.width; from += kLanes) {
        const long some = std::min(long(kLanes), of.channels - channel);
        const long wide = std::min(long(kLanes), of.width - from);
        const float* const rows = x + (channel * of.height + y) * of.width + from;
        float* const out = line + from * of.channels + channel;
        if (some < kLanes) {
          for (long n = 0; n < some; ++n)
            for (long k = 0; k < wide; ++k) out[k * of.channels + n] = rows[n * pixels + k];
          continue;
        }
        Vector square[kLanes];
#pragma GCC unroll 16
        for (int n = 0; n < kLanes; ++n) square[n] = load(rows + n * pixels, wide);
        transpose(square);
#pragma GCC unroll 16
        for (int n = 0; n < kLanes; ++n)
          if (n < wide) store(out + n * of.channels, square[n]);
      }
  }
}

// Copies an image with a border into one without, (channels, height, width).
void give_image(const Problem& of, const float* from, float* x) {
  for (long channel = 0; channel < of.channels; ++channel)
    for (long y = 0; y < of.height; ++y) {
      const float* const line = from + (y + 1) * of.line() + of.channels + channel;
      for (long k = 0; k < of.width; ++k) *x++ = line[k * of.channels];
    }
}

// The weights as the forward pass reads them: (3, 3, channels, padded filters).
std::vector<float> by_input(const Problem& of) {
  const long pitch = of.padded_filters();
  std::vector<float> to(kSide * of.row() * pitch);
#pragma omp parallel for schedule(static)
  for (long filter = 0; filter < of.filters; ++filter)
    for (long channel = 0; channel < of.channels; ++channel)
      for (long tap = 0; tap < kSide * kSide; ++tap)
        to[(tap * of.channels + channel) * pitch + filter] =
            of.weight[(filter * of.channels + channel) * kSide * kSide + tap];
  return to;
}

// The weights as the backward pass reads them: (filters, 3, 3 channels), each row in whole vectors.
std::vector<float> by_filter(const Problem& of) {
  const long pitch = in_vectors(of.row());
  std::vector<float> to(of.filters * kSide * pitch);
#pragma omp parallel for schedule(static)
  for (long filter = 0; filter < of.filters; ++filter)
    for (long channel = 0; channel < of.channels; ++channel)
      for (long tap = 0; tap < kSide * kSide; ++tap)
        to[(filter * kSide + tap / kSide) * pitch + tap % kSide * of.channels + channel] =
            of.weight[(filter * of.channels + channel) * kSide * kSide + tap];
  return to;
}

// Writes the largest of the sums of a window's phases, with the bias and after ReLU, and its phase.
inline void give_largest(const Vector (&sums)[kPhases], Vector bias, float* output, float* phase) {
  Vector most = sums[0], from = {};
#pragma GCC unroll 4
  for (int n = 1; n < kPhases; ++n) {
    from = sums[n] > most ? Vector{} + float(n) : from;
    most = sums[n] > most ? sums[n] : most;
  }
  most += bias;
  store(output, most < 0 ? Vector{} : most);
  store(phase, most > 0 ? from : Vector{} + kNone);
}

// Computes the outputs of N windows from `window` on, of some filters from `filter` on, and the phases
// that they come from: both (windows, padded filters).
template <int N>
void some_windows(const Problem& of, const float* image, const float* weights, const float* bias,
                  long window, long filter, float* outputs, float* phases) {
  const long pitch = of.padded_filters();
  const float* places[N][kPhases];
  Vector sums[N][kFilters][kPhases] = {};
  for (int n = 0; n < N; ++n)
    for (int phase = 0; phase < kPhases; ++phase)
      places[n][phase] = image + of.places[(window + n) * kPhases + phase];
  const float* right = weights + filter;
  for (long line = 0; line < kSide; ++line)
    for (long k = 0; k < of.row(); ++k, right += pitch) {
      Vector factors[kFilters];
#pragma GCC unroll 2
      for (int f = 0; f < kFilters; ++f) factors[f] = load(right + f * kLanes);
#pragma GCC unroll 2
      for (int n = 0; n < N; ++n)
#pragma GCC unroll 4
        for (int phase = 0; phase < kPhases; ++phase) {
          const float pixel = places[n][phase][line * of.line() + k];
#pragma GCC unroll 2
          for (int f = 0; f < kFilters; ++f) sums[n][f][phase] += pixel * factors[f];
        }
    }
#pragma GCC unroll 2
  for (int n = 0; n < N; ++n)
#pragma GCC unroll 2
    for (int f = 0; f < kFilters; ++f) {
      const long at = (window + n) * pitch + filter + f * kLanes;
      give_largest(sums[n][f], load(bias + filter + f * kLanes), outputs + at, phases + at);
    }
}

// Computes all windows of an image in this way.
void by_windows(const Problem& of, const float* image, const float* weights, const float* bias,
                float* outputs, float* phases) {
  const long windows = of.windows();
  for (long filter = 0; filter < of.padded_filters(); filter += kFilters * kLanes) {
    long window = 0;
    for (; window + kWindows <= windows; window += kWindows)
      some_windows<kWindows>(of, image, weights, bias, window, filter, outputs, phases);
    for (; window < windows; ++window)
      some_windows<1>(of, image, weights, bias, window, filter, outputs, phases);
  }
}

// Whether two lines of outputs are a product: a window has too few sums to keep a processor without
// AVX-512 busy.
bool suits_lines(const Problem& of) { return kLanes < 16 && of.row() >= 32; }

// Computes all windows of an image from two lines of the convolution's outputs, (positions, padded
// filters), which are kept in `sums`; `weights` are those of each line.
void by_lines(const Problem& of, const float* image, const Panels* weights, const float* bias,
              std::vector<float>& sums, float* outputs, float* phases) {
  // What positions read begins `channels` numbers apart, also across the border between both lines.
  const long pitch = of.padded_filters(), across = of.width + 2, positions = 2 * across - 2;
  sums.resize(positions * pitch);
  for (long y = 0; y + 1 < of.height; y += 2) {
    for (long line = 0; line < kSide; ++line)
      product(positions, pitch, of.row(), {image + (y + line) * of.line(), of.channels, 1},
              weights[line], sums.data(), pitch, line > 0);
    for (long x = 0; x + 1 < of.width; x += 2, outputs += pitch, phases += pitch)
      for (long filter = 0; filter < pitch; filter += kLanes) {
        const float* const first = sums.data() + x * pitch + filter;
        const float* const second = first + across * pitch;
        give_largest({load(first), load(first + pitch), load(second), load(second + pitch)},
                     load(bias + filter), outputs + filter, phases + filter);
      }
  }
}

// Copies (rows, pitch) to (columns, rows).
template <class Number>
void give_transposed(long rows, long columns, const float* from, long pitch, Number* to) {
  for (long column = 0; column < columns; ++column)
    for (long row = 0; row < rows; ++row) *to++ = from[row * pitch + column];
}

MXReturnValue forward(const Attributes&, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Problem of(*inputs, 0);
  float* const y = (*outputs)[0].data<float>();
  auto* const phases = reinterpret_cast<uint8_t*>((*outputs)[1].data<float>());
  const long pitch = of.padded_filters(), windows = of.windows();
  const std::vector<float> weights = by_input(of);
  std::vector<float> bias(of.bias, of.bias + of.filters);
  bias.resize(pitch);
  Panels panels[kSide];
  for (long line = 0; suits_lines(of) && line < kSide; ++line)
    panels[line].take(of.row(), pitch, weights.data() + line * of.row() * pitch, pitch);
#pragma omp parallel
  {
    std::vector<float> image(of.bordered()), found(windows * pitch), from(windows * pitch), sums;
#pragma omp for schedule(static)
    for (long n = 0; n < of.images; ++n) {
      take_image(of, of.x + n * of.inputs(), image.data());
      if (suits_lines(of))
        by_lines(of, image.data(), panels, bias.data(), sums, found.data(), from.data());
      else
        by_windows(of, image.data(), weights.data(), bias.data(), found.data(), from.data());
      give_transposed(windows, of.filters, found.data(), pitch, y + n * of.outputs());
      give_transposed(windows, of.filters, from.data(), pitch, phases + n * of.phases());
    }
  }
  return MX_SUCCESS;
}

// The windows of a filter that have a gradient: how large it is, and where the three rows begin, in an
// image with a border, that it comes from.
struct Terms {
  std::vector<float> factors;
  std::vector<long> places;
  long count = 0;

  explicit Terms(long windows) : factors(windows + 1), places(windows + 1) {}

  // Takes some windows. Which have a gradient cannot be predicted: all are written, and kept or not.
  void take(const Problem& of, long first, long last, const float* dy, const uint8_t* phases) {
    count = 0;
    for (long window = first; window < last; ++window) {
      const unsigned phase = phases[window];
      factors[count] = dy[window];
      places[count] = of.places[window * kPhases + phase % kPhases];
      count += phase < kPhases;
    }
  }
};

// Adds V vectors of the rows of all terms, times their factors, to three rows.
template <int V>
void collect(const Terms& terms, const float* image, long line, float* to, long pitch) {
  Vector sums[kSide][V] = {};
  for (long term = 0; term < terms.count; ++term) {
    const float factor = terms.factors[term];
    const float* const from = image + terms.places[term];
#pragma GCC unroll 3
    for (int n = 0; n < kSide; ++n)
#pragma GCC unroll 6
      for (int v = 0; v < V; ++v) sums[n][v] += factor * load(from + n * line + v * kLanes);
  }
#pragma GCC unroll 3
  for (int n = 0; n < kSide; ++n)
#pragma GCC unroll 6
    for (int v = 0; v < V; ++v) {
      float* const at = to + n * pitch + v * kLanes;
      store(at, load(at) + sums[n][v]);
    }
}

// Adds V vectors of three rows, times the factor of each term, to its rows.
template <int V>
void spread(const Terms& terms, float* image, long line, const float* from, long pitch) {
  Vector rows[kSide][V];
#pragma GCC unroll 3
  for (int n = 0; n < kSide; ++n)
#pragma GCC unroll 6
    for (int v = 0; v < V; ++v) rows[n][v] = load(from + n * pitch + v * kLanes);
  for (long term = 0; term < terms.count; ++term) {
    const float factor = terms.factors[term];
    float* const to = image + terms.places[term];
#pragma GCC unroll 3
    for (int n = 0; n < kSide; ++n)
#pragma GCC unroll 6
      for (int v = 0; v < V; ++v) {
        float* const at = to + n * line + v * kLanes;
        store(at, load(at) + factor * rows[n][v]);
      }
  }
}

// The same with C numbers of each row. Vectors of neighbouring windows would overlap, which is slow.
template <int C>
void spread_numbers(const Terms& terms, float* image, long line, const float* from, long pitch) {
  float rows[kSide][C];
  for (int n = 0; n < kSide; ++n) std::copy_n(from + n * pitch, C, rows[n]);
  for (long term = 0; term < terms.count; ++term) {
    const float factor = terms.factors[term];
    float* const to = image + terms.places[term];
#pragma GCC unroll 3
    for (int n = 0; n < kSide; ++n)
#pragma GCC unroll 3
      for (int k = 0; k < C; ++k) to[n * line + k] += factor * rows[n][k];
  }
}

// Calls `use` for a row of so many numbers: with where some vectors begin, and how many they are.
template <class Use>
void for_vectors(long count, Use use) {
  long k = 0;
  for (; k + kMost * kLanes <= count; k += kMost * kLanes)
    use(k, std::integral_constant<int, kMost>());
  for (; k < count; k += kLanes) use(k, std::integral_constant<int, 1>());
}

// The gradients of one image: adds those of the weights, as by_filter, and of the biases, and writes
// that of the image, with a border.
void differentiate(const Problem& of, const float* image, const float* weights, const float* dy,
                   const uint8_t* phases, Terms& terms, float* dimage, float* dweight,
                   float* dbias) {
  constexpr long kFirstCache = 24 << 10;  // bytes of both images that some windows read
  const long windows = of.windows(), pitch = in_vectors(of.row()), line = of.line();
  const long whole = of.row() / kLanes * kLanes;
  const long lines = kFirstCache / std::max(1L, 2 * line * long(sizeof(float)));
  const long at_once = std::max(1L, lines / 2 - 1) * (of.width / 2);
  std::fill_n(dimage, of.bordered(), 0.0f);
  for (long first = 0; first < windows; first += at_once)
    for (long filter = 0; filter < of.filters; ++filter) {
      terms.take(of, first, std::min(windows, first + at_once), dy + filter * windows,
                 phases + filter * windows);
      dbias[filter] += sum(terms.factors.data(), terms.count);
      const float* const from = weights + filter * kSide * pitch;
      float* const to = dweight + filter * kSide * pitch;
      for_vectors(pitch, [&](long k, auto vectors) {
        collect<vectors>(terms, image + k, line, to + k, pitch);
      });
      for_vectors(whole, [&](long k, auto vectors) {
        spread<vectors>(terms, dimage + k, line, from + k, pitch);
      });
      long k = whole;
      for (; k + kSide <= of.row(); k += kSide)
        spread_numbers<kSide>(terms, dimage + k, line, from + k, pitch);
      for (; k < of.row(); ++k) spread_numbers<1>(terms, dimage + k, line, from + k, pitch);
    }
}

MXReturnValue backward(const Attributes&, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Problem of(*inputs, 2);  // behind the gradients of both outputs
  const float* const dy = (*inputs)[0].data<float>();
  const auto* const phases = reinterpret_cast<uint8_t*>(inputs->back().data<float>());
  float *dx = (*outputs)[0].data<float>(), *dweight = (*outputs)[1].data<float>();
  float* dbias = (*outputs)[2].data<float>();
  const long pitch = in_vectors(of.row()), size = of.filters * kSide * pitch;
  const std::vector<float> weights = by_filter(of);
  // Each thread adds up the gradients of its images.
  std::vector<std::vector<float>> sums(omp_get_max_threads());
#pragma omp parallel
  {
    std::vector<float> image(of.bordered()), dimage(of.bordered());
    Terms terms(of.windows());
    std::vector<float>& own = sums[omp_get_thread_num()];
#pragma omp for schedule(static)
    for (long n = 0; n < of.images; ++n) {
      if (own.empty()) own.resize(size + of.filters);
      take_image(of, of.x + n * of.inputs(), image.data());
      differentiate(of, image.data(), weights.data(), dy + n * of.outputs(), phases + n * of.phases(),
                    terms, dimage.data(), own.data(), own.data() + size);
      give_image(of, dimage.data(), dx + n * of.inputs());
    }
#pragma omp for schedule(static)
    for (long filter = 0; filter < of.filters; ++filter) {
      const auto total = [&](long n) {
        float all = 0;
        for (const auto& each : sums) all += each.empty() ? 0 : each[n];
        return all;
      };
      for (long channel = 0; channel < of.channels; ++channel)
        for (long tap = 0; tap < kSide * kSide; ++tap)
          dweight[(filter * of.channels + channel) * kSide * kSide + tap] = total(
              (filter * kSide + tap / kSide) * pitch + tap % kSide * of.channels + channel);
      dbias[filter] = total(size + filter);
    }
  }
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes&, int* inputs, int* outputs) {
  *inputs = 3, *outputs = 2;
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes&, std::vector<Shape>* inputs, std::vector<Shape>* outputs) {
  const Shape &x = (*inputs)[0], &weight = (*inputs)[1];
  if (x.size() != 4 || weight.size() != 4 || weight[1] != x[1] || weight[2] != kSide ||
      weight[3] != kSide || (*inputs)[2] != Shape{weight[0]}) {
    return refused("mxopt_pooled_convolution takes images (samples, channels, height, width), filters "
                   "(filters, channels, 3, 3) and biases (filters,)");
  }
  (*outputs)[0] = {x[0], weight[0], x[2] / 2, x[3] / 2};
  (*outputs)[1] = {x[0], (weight[0] * (x[2] / 2) * (x[3] / 2) + 3) / 4};
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(mxopt_pooled_convolution)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(count)
    .setInferType(float32)
    .setInferShape(shapes);

}  // namespace mxopt
