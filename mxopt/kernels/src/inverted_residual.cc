// MobileNetV2's block as one operator: expand by a 1 x 1 convolution, filter by a depthwise 3 x 3
// one, project by a 1 x 1 one (Sandler et al., 2018, section 3.3).
//
// The expanded images have six times the channels of the block's input. As separate operators they
// are written to memory and read again several times. Here some channels at a time are expanded,
// filtered and projected while they are in the cache, and the backward pass computes them again
// instead of keeping them.
#include <algorithm>
#include <vector>

#include "matrix.h"
#include "operator.h"

namespace mxopt {
namespace {

constexpr float kSix = 6.0f;
constexpr long kTaps = 9;

struct Block {
  long images, inputs, expanded, outputs, height, width, below, across;  // below x across: output
  long stride, dilation;
  bool expands, residual, six;
  const float *x, *w1, *b1, *w2, *b2, *w3, *b3;

  long pixels() const { return height * width; }
  long positions() const { return below * across; }
  long pitch() const { return width + 2 * dilation; }  // of rows with zeros around them
  long plane() const { return pitch() * (height + 2 * dilation); }
  float top() const { return six ? kSix : __builtin_inff(); }
};

Block block_of(const Attributes& attributes, std::vector<MXTensor>& tensors, size_t first) {
  Block block{};
  block.expands = attribute(attributes, "expands", 1);
  block.residual = attribute(attributes, "residual", 0);
  block.stride = attribute(attributes, "stride", 1);
  block.dilation = attribute(attributes, "dilation", 1);
  block.six = attribute(attributes, "six", 1);
  const auto& shape = tensors[first].shape;
  block.images = shape[0], block.inputs = shape[1], block.height = shape[2], block.width = shape[3];
  std::vector<const float*> data;
  for (size_t n = first; n < tensors.size() && data.size() < 7u; ++n) {
    data.push_back(tensors[n].data<float>());
    if (!block.expands && data.size() == 1) data.resize(3);  // no w1 and b1
  }
  block.x = data[0], block.w1 = data[1], block.b1 = data[2], block.w2 = data[3];
  block.b2 = data[4], block.w3 = data[5], block.b3 = data[6];
  const auto& project = tensors[first + (block.expands ? 5 : 3)].shape;
  block.outputs = project[0], block.expanded = project[1];
  block.below = (block.height - 1) / block.stride + 1;
  block.across = (block.width - 1) / block.stride + 1;
  return block;
}

// Memory of one thread, kept from call to call.
struct Buffers {
  // Expanded channels before their bias, and in planes; filtered channels before their activation,
  // and after it; the rest for one channel, or for gradients.
  std::vector<float> raw, planes, wide, before, filtered, gradient, opened;

  void fit(const Block& block, long channels, bool backward) {
    grow(raw, channels * block.pixels());
    grow(planes, channels * block.plane());
    grow(wide, block.plane());
    grow(filtered, channels * block.positions());
    grow(before, channels * block.positions());
    if (!backward) return;
    grow(gradient, channels * block.positions() + block.plane() + kLanes);
    grow(opened, channels * block.pixels());
  }

  // Vectors may be read and written a little beyond the end.
  static void grow(std::vector<float>& v, size_t size) {
    if (v.size() < size + 2 * kLanes) v.resize(size + 2 * kLanes);
  }
};

thread_local Buffers buffers;

// Channels that are computed at once: some hundred kilobytes, which an L2 cache holds.
long at_once(const Block& block) {
  const long fits = 96 * 1024 / std::max(block.pixels(), 1L);
  return std::min(block.expanded, std::max(16L, fits / 16 * 16));
}

// Copies rows of `width` into the middle of a plane of zeros, changed by `change(vector)`. Each row
// is written up to a vector too far, and what follows it after that.
template <class Change>
void into_plane(const Block& block, const float* from, Change change, float* plane) {
  const long pitch = block.pitch(), d = block.dilation;
  std::fill(plane, plane + d * pitch, 0.0f);
  for (long y = 0; y < block.height; ++y) {
    float* to = plane + (y + d) * pitch;
    std::fill(to, to + d, 0.0f);
    for (long x = 0; x < block.width; x += kLanes)
      store(to + d + x, change(load(from + y * block.width + x)));
    std::fill(to + d + block.width, to + pitch, 0.0f);
  }
  std::fill(plane + (d + block.height) * pitch, plane + block.plane(), 0.0f);
}

// The 3 x 3 filter at stride 1, for `count` pixels of a plane one after the other, those between
// the rows included: to[i] = sum of w[t] * plane[i + ...].
void filter(const float* __restrict plane, long pitch, long d, const float* w, long count,
            float* __restrict to) {
  long offsets[kTaps];
  for (long tap = 0; tap < kTaps; ++tap) offsets[tap] = tap / 3 * d * pitch + tap % 3 * d;
  for (long i = 0; i < count; i += kLanes) {
    Vector total = w[0] * load(plane + i);
#pragma GCC unroll 8
    for (int tap = 1; tap < kTaps; ++tap) total += w[tap] * load(plane + i + offsets[tap]);
    store(to + i, total);
  }
}

// Expands `count` channels from `first` on into planes, and filters and activates them.
void expand_and_filter(const Block& block, long image, long first, long count) {
  const float* x = block.x + image * block.inputs * block.pixels();
  const long pitch = block.pitch(), d = block.dilation;
  const float top = block.top();
  Buffers& own = buffers;
  if (block.expands)
    product(count, block.pixels(), block.inputs, {block.w1 + first * block.inputs, block.inputs, 1},
            x, block.pixels(), own.raw.data(), block.pixels(), false);
  else  // from memory beyond whose end nothing may be read
    std::copy(x + first * block.pixels(), x + (first + count) * block.pixels(), own.raw.data());
  for (long c = 0; c < count; ++c) {
    float *plane = own.planes.data() + c * block.plane(), *wide = own.wide.data();
    const float* from = own.raw.data() + c * block.pixels();
    if (block.expands) {
      const float bias = block.b1[first + c];
      into_plane(block, from, [=](Vector v) { return clipped(v + bias, top); }, plane);
    } else {
      into_plane(block, from, [](Vector v) { return v; }, plane);
    }
    const float *w = block.w2 + (first + c) * kTaps, bias = block.b2[first + c];
    float *before = own.before.data() + c * block.positions(),
          *to = own.filtered.data() + c * block.positions();
    if (block.stride == 1) {
      filter(plane, pitch, d, w, block.height * pitch - 2 * d, wide);
      for (long y = 0; y < block.height; ++y)
        for (long x = 0; x < block.width; x += kLanes)
          store(before + y * block.width + x, load(wide + y * pitch + x) + bias);
    } else {
      for (long y = 0; y < block.below; ++y) {
        filter(plane + y * block.stride * pitch, pitch, d, w, block.width, wide);
        for (long x = 0; x < block.across; ++x)
          before[y * block.across + x] = wide[x * block.stride] + bias;
      }
    }
    for (long p = 0; p < block.positions(); p += kLanes)
      store(to + p, clipped(load(before + p), top));
  }
}

// How many threads share an image: more than one only if there are fewer images than threads.
long sharing(const Block& block, long threads) {
  const long channels = at_once(block), parts = (block.expanded + channels - 1) / channels;
  return std::max(1L, std::min(threads / std::max(block.images, 1L), parts));
}

void forward_image(const Block& block, long image, long part, long parts, float* out) {
  const long channels = at_once(block);
  buffers.fit(block, channels, false);
  bool add = false;
  for (long first = part * channels; first < block.expanded; first += parts * channels) {
    const long count = std::min(channels, block.expanded - first);
    expand_and_filter(block, image, first, count);
    product(block.outputs, block.positions(), count, {block.w3 + first, block.expanded, 1},
            buffers.filtered.data(), block.positions(), out, block.positions(), add);
    add = true;
  }
}

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Block block = block_of(attributes, *inputs, 0);
  float* out = (*outputs)[0].data<float>();
  const long size = block.outputs * block.positions();
  const long parts = sharing(block, omp_get_max_threads());
  std::vector<float> more((parts - 1) * block.images * size);
#pragma omp parallel for schedule(static)
  for (long task = 0; task < block.images * parts; ++task) {
    const long image = task / parts, part = task % parts;
    forward_image(block, image, part, parts,
                  part ? more.data() + (image * (parts - 1) + part - 1) * size : out + image * size);
  }
#pragma omp parallel for schedule(static)
  for (long row = 0; row < block.images * block.outputs; ++row) {
    const long image = row / block.outputs, channel = row % block.outputs;
    float* to = out + row * block.positions();
    const float* x = block.x + row * block.pixels();  // where there is a residual
    for (long part = 1; part < parts; ++part) {
      const float* from = more.data() + (image * (parts - 1) + part - 1) * size +
                          channel * block.positions();
      for (long p = 0; p < block.positions(); ++p) to[p] += from[p];
    }
    for (long p = 0; p < block.positions(); ++p)
      to[p] += block.b3[channel] + (block.residual ? x[p] : 0);
  }
  return MX_SUCCESS;
}

// Gradients of the parameters, one after the other in memory.
struct Gradients {
  std::vector<float> values;
  float *w1, *b1, *w2, *b2, *w3;

  explicit Gradients(const Block& block)
      : values(block.expanded * (block.inputs + 1 + kTaps + 1 + block.outputs)) {
    w1 = values.data(), b1 = w1 + block.expanded * block.inputs, w2 = b1 + block.expanded;
    b2 = w2 + block.expanded * kTaps, w3 = b2 + block.expanded;
  }

  // A copy would point into the memory of the original.
  Gradients(const Gradients&) = delete;
  Gradients(Gradients&&) = default;
};

// The gradient of an activation: 0 where its input is beyond an end. At an end itself MXNet's `clip`
// passes the gradient, and its ReLU does not.
inline Vector through(const Block& block, Vector gradient, Vector input) {
  if (block.six) return input >= 0 && input <= kSix ? gradient : Vector{};
  return input > 0 ? gradient : Vector{};
}

// The filter of one channel, backwards: `plane` has its input, `dy` the gradient of its output,
// which goes into `spread`, with zeros around it and, at a stride, between. Adds the gradient of
// the filter to `dw`, and writes that of the input to `wide`, with the pitch of a plane.
void filter_backward(const Block& block, const float* plane, const float* dy, const float* w,
                     float* spread, float* dw, float* wide) {
  const long pitch = block.pitch(), d = block.dilation;
  if (block.stride == 1) {
    into_plane(block, dy, [](Vector v) { return v; }, spread);
  } else {
    std::fill(spread, spread + block.plane(), 0.0f);
    for (long y = 0; y < block.below; ++y)
      for (long x = 0; x < block.across; ++x)
        spread[(y * block.stride + d) * pitch + x * block.stride + d] = dy[y * block.across + x];
  }
  std::fill(spread + block.plane(), spread + block.plane() + kLanes, 0.0f);
  const long count = block.height * pitch - 2 * d;
  Vector sums[kTaps] = {};
  for (long i = 0; i < count; i += kLanes) {
    const Vector gradient = load(spread + d * pitch + d + i);
#pragma GCC unroll 9
    for (int tap = 0; tap < kTaps; ++tap)
      sums[tap] += gradient * load(plane + i + tap / 3 * d * pitch + tap % 3 * d);
  }
  for (long tap = 0; tap < kTaps; ++tap) dw[tap] += sum(sums[tap]);
  float mirrored[kTaps];
  std::reverse_copy(w, w + kTaps, mirrored);
  filter(spread, pitch, d, mirrored, count, wide);
}

void backward_image(const Block& block, long image, long part, long parts, const float* dout,
                    Gradients& grads, float* dx) {
  const long channels = at_once(block), pixels = block.pixels(), positions = block.positions();
  buffers.fit(block, channels, true);
  const long pitch = block.pitch();
  float *opened = buffers.opened.data(), *filtered = buffers.filtered.data();
  float *dy = buffers.gradient.data(), *spread = dy + channels * positions;
  const float* x = block.x + image * block.inputs * pixels;
  bool add = false;
  for (long first = part * channels; first < block.expanded; first += parts * channels) {
    const long count = std::min(channels, block.expanded - first);
    expand_and_filter(block, image, first, count);
    inner(block.outputs, count, positions, dout, positions, filtered, positions,
          grads.w3 + first, block.expanded);
    product(count, positions, block.outputs, {block.w3 + first, 1, block.expanded}, dout,
            positions, dy, positions, false);
    for (long c = 0; c < count; ++c) {
      const long channel = first + c;
      const float *plane = buffers.planes.data() + c * block.plane(),
                  *before = buffers.before.data() + c * positions;
      float *from = dy + c * positions, *wide = buffers.wide.data();
      long p = 0;
      for (; p + kLanes <= positions; p += kLanes)
        store(from + p, through(block, load(from + p), load(before + p)));
      if (p < positions) {  // the next channel's gradient follows
        const Vector last = through(block, load(from + p), load(before + p));
        std::memcpy(from + p, &last, (positions - p) * sizeof(float));
      }
      grads.b2[channel] += sum(from, positions);
      filter_backward(block, plane, from, block.w2 + channel * kTaps, spread,
                      grads.w2 + channel * kTaps, wide);
      if (!block.expands) {
        for (long y = 0; y < block.height; ++y)
          std::copy(wide + y * pitch, wide + y * pitch + block.width,
                    dx + channel * pixels + y * block.width);
        continue;
      }
      const float *input = buffers.raw.data() + c * pixels, bias = block.b1[channel];
      float* to = opened + c * pixels;
      for (long y = 0; y < block.height; ++y)
        for (long x = 0; x < block.width; x += kLanes)
          store(to + y * block.width + x,
                through(block, load(wide + y * pitch + x), load(input + y * block.width + x) + bias));
      grads.b1[channel] += sum(to, pixels);
    }
    if (block.expands) {
      inner(count, block.inputs, pixels, opened, pixels, x, pixels, grads.w1 + first * block.inputs,
            block.inputs);
      product(block.inputs, pixels, count, {block.w1 + first * block.inputs, 1, block.inputs}, opened,
              pixels, dx, pixels, add);
      add = true;
    }
  }
}

MXReturnValue backward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Block block = block_of(attributes, *inputs, 1);
  const float* dout = (*inputs)[0].data<float>();
  std::vector<float*> out;
  for (auto& tensor : *outputs) out.push_back(tensor.data<float>());
  if (!block.expands) out.insert(out.begin() + 1, 2, nullptr);
  const long threads = omp_get_max_threads();
  const long parts = block.expands ? sharing(block, threads) : 1;
  const long size = block.inputs * block.pixels();
  std::vector<float> more((parts - 1) * block.images * size);
  std::vector<Gradients> grads;
  grads.reserve(threads);
  for (long thread = 0; thread < threads; ++thread) grads.emplace_back(block);
#pragma omp parallel for schedule(static)
  for (long task = 0; task < block.images * parts; ++task) {
    const long image = task / parts, part = task % parts;
    float* dx = part ? more.data() + (image * (parts - 1) + part - 1) * size : out[0] + image * size;
    backward_image(block, image, part, parts, dout + image * block.outputs * block.positions(),
                   grads[omp_get_thread_num()], dx);
  }
#pragma omp parallel for schedule(static)
  for (long row = 0; row < block.images * block.inputs; ++row) {
    const long image = row / block.inputs, channel = row % block.inputs;
    float* to = out[0] + row * block.pixels();
    const float* residual = dout + row * block.pixels();
    for (long part = 1; part < parts; ++part) {
      const float* from = more.data() + (image * (parts - 1) + part - 1) * size +
                          channel * block.pixels();
      for (long p = 0; p < block.pixels(); ++p) to[p] += from[p];
    }
    if (block.residual)
      for (long p = 0; p < block.pixels(); ++p) to[p] += residual[p];
  }
  const auto total = [&](float* to, size_t begin, size_t count) {
    for (size_t n = 0; n < count; ++n) {
      float sum = 0;
      for (const Gradients& one : grads) sum += one.values[begin + n];
      to[n] = sum;
    }
  };
  const long width = block.expanded;
  const long counts[] = {width * block.inputs, width, width * kTaps, width, width * block.outputs};
  size_t begin = 0;
  for (int n = 0; n < 5; ++n) {
    if (out[n + 1]) total(out[n + 1], begin, counts[n]);
    begin += counts[n];
  }
  for (long channel = 0; channel < block.outputs; ++channel) {
    double sum = 0;
    for (long image = 0; image < block.images; ++image) {
      const float* row = dout + (image * block.outputs + channel) * block.positions();
      for (long p = 0; p < block.positions(); ++p) sum += row[p];
    }
    out[6][channel] = sum;
  }
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes& attributes, int* inputs, int* outputs) {
  *inputs = attribute(attributes, "expands", 1) ? 7 : 5;
  *outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes& attributes, std::vector<Shape>* inputs,
                     std::vector<Shape>* outputs) {
  const bool expands = attribute(attributes, "expands", 1);
  const Shape &x = (*inputs)[0], &project = (*inputs)[expands ? 5 : 3];
  if (x.size() != 4 || project.size() != 4) {
    MX_ERROR_MSG << "mxopt_inverted_residual takes images (samples, channels, height, width)";
    return MX_FAIL;
  }
  const unsigned stride = attribute(attributes, "stride", 1);
  (*outputs)[0] = {x[0], project[0], (x[2] - 1) / stride + 1, (x[3] - 1) / stride + 1};
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(mxopt_inverted_residual)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(count)
    .setInferType(float32)
    .setInferShape(shapes);

}  // namespace mxopt

mxnet::ext::MXReturnValue initialize(int version) {
  return version >= 10700 ? mxopt::MX_SUCCESS : mxopt::MX_FAIL;
}
