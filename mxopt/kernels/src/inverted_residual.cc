// MobileNetV2's block as one operator: expand by a 1 x 1 convolution, filter by a depthwise 3 x 3
// one, project by a 1 x 1 one (Sandler et al., 2018, section 3.3).
//
// The expanded images have six times the channels of the block's input. As separate operators they
// are written to memory and read again several times. Here an image is computed in strips of rows,
// and of each strip some channels at a time are expanded, filtered and projected while they are in
// the cache. The backward pass computes them again instead of keeping them. Rows that two strips
// need, because of the filter's size, are expanded in both, and their gradients add up.
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
  float top() const { return six ? kSix : __builtin_inff(); }
};

// Some rows of a block's output, and the rows of its input that they are computed from.
struct Strip {
  long image, outs, out_from;  // output rows
  long ins, in_from;           // input rows inside of the image
  long above;                  // rows of zeros above them, in planes
  long planes;                 // rows of a plane: zeros, input rows, zeros

  Strip(const Block& block, long image, long first, long count)
      : image(image), outs(count), out_from(first) {
    const long d = block.dilation, top = first * block.stride - d;
    planes = (count - 1) * block.stride + 1 + 2 * d;
    in_from = std::max(0L, top);
    ins = std::min(block.height, top + planes) - in_from;
    above = in_from - top;
  }

  long pixels(const Block& block) const { return ins * block.width; }
  long positions(const Block& block) const { return outs * block.across; }
  long plane(const Block& block) const { return planes * block.pitch(); }
};

// How many output rows a strip has. Its overlap with the next one should be small beside it, and it
// has to be so high that strips with another one between them do not overlap.
long strip_rows(const Block& block, long threads) {
  constexpr long kPositions = 2048;
  const long least = std::min(block.below, std::max(8 * block.dilation, kPositions / block.across));
  long strips = std::max(1L, block.below / least);
  if (block.images < threads)
    strips = std::max(strips, std::min(2 * threads, block.below / (2 * block.dilation)));
  return (block.below + strips - 1) / std::max(strips, 1L);
}

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
  std::vector<float> raw, planes, wide, before, filtered, gradient, spread, opened;

  void fit(const Block& block, const Strip& strip, long channels, bool backward) {
    grow(raw, channels * strip.pixels(block));
    grow(planes, channels * strip.plane(block));
    grow(wide, strip.plane(block));
    grow(filtered, channels * strip.positions(block));
    grow(before, channels * strip.positions(block));
    if (!backward) return;
    grow(gradient, channels * strip.positions(block));
    grow(spread, strip.plane(block) + 2 * block.dilation * block.pitch());
    grow(opened, channels * strip.pixels(block));
  }

  // Vectors may be read and written a little beyond the end.
  static void grow(std::vector<float>& v, size_t size) {
    if (v.size() < size + 2 * kLanes) v.resize(size + 2 * kLanes);
  }
};

thread_local Buffers buffers;

// Channels that are computed at once: some hundred kilobytes, which an L2 cache holds.
long at_once(const Block& block, const Strip& strip) {
  const long fits = 96 * 1024 / std::max(strip.pixels(block), 1L);
  return std::min(block.expanded, std::max(16L, fits / 16 * 16));
}

// Copies the input rows of a strip into a plane with zeros around them, changed by
// `change(vector)`. Each row is written up to a vector too far, and what follows it after that.
template <class Change>
void into_plane(const Block& block, const Strip& strip, const float* from, Change change,
                float* plane) {
  const long pitch = block.pitch(), d = block.dilation;
  std::fill(plane, plane + strip.above * pitch, 0.0f);
  for (long y = 0; y < strip.ins; ++y) {
    float* to = plane + (y + strip.above) * pitch;
    std::fill(to, to + d, 0.0f);
    for (long x = 0; x < block.width; x += kLanes)
      store(to + d + x, change(load(from + y * block.width + x)));
    std::fill(to + d + block.width, to + pitch, 0.0f);
  }
  std::fill(plane + (strip.above + strip.ins) * pitch, plane + strip.plane(block), 0.0f);
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

// Expands `count` channels of a strip from `first` on into planes, filters and activates them.
void expand_and_filter(const Block& block, const Strip& strip, long first, long count) {
  const long pitch = block.pitch(), d = block.dilation, whole = block.pixels();
  const long pixels = strip.pixels(block), positions = strip.positions(block);
  const float* x =
      block.x + strip.image * block.inputs * whole + strip.in_from * block.width;
  const float top = block.top();
  Buffers& own = buffers;
  if (block.expands)
    product(count, pixels, block.inputs, {block.w1 + first * block.inputs, block.inputs, 1}, x,
            whole, own.raw.data(), pixels, false);
  else  // from memory beyond whose end nothing may be read
    for (long c = 0; c < count; ++c)
      std::copy_n(x + (first + c) * whole, pixels, own.raw.data() + c * pixels);
  for (long c = 0; c < count; ++c) {
    float *plane = own.planes.data() + c * strip.plane(block), *wide = own.wide.data();
    const float* from = own.raw.data() + c * pixels;
    if (block.expands) {
      const float bias = block.b1[first + c];
      into_plane(block, strip, from, [=](Vector v) { return clipped(v + bias, top); }, plane);
    } else {
      into_plane(block, strip, from, [](Vector v) { return v; }, plane);
    }
    const float *w = block.w2 + (first + c) * kTaps, bias = block.b2[first + c];
    float *before = own.before.data() + c * positions, *to = own.filtered.data() + c * positions;
    if (block.stride == 1) {
      filter(plane, pitch, d, w, strip.outs * pitch - 2 * d, wide);
      for (long y = 0; y < strip.outs; ++y)
        for (long x = 0; x < block.width; x += kLanes)
          store(before + y * block.width + x, load(wide + y * pitch + x) + bias);
    } else {
      for (long y = 0; y < strip.outs; ++y) {
        filter(plane + y * block.stride * pitch, pitch, d, w, block.width, wide);
        for (long x = 0; x < block.across; ++x)
          before[y * block.across + x] = wide[x * block.stride] + bias;
      }
    }
    for (long p = 0; p < positions; p += kLanes) store(to + p, clipped(load(before + p), top));
  }
}

// Calls `compute(strip)` for all strips of all images: first the even ones, then the odd ones, so
// that no two threads write the same rows.
template <class Compute>
void for_strips(const Block& block, Compute compute) {
  const long rows = strip_rows(block, omp_get_max_threads());
  const long strips = (block.below + rows - 1) / rows;
  for (long parity = 0; parity < 2; ++parity) {
    const long some = (strips + 1 - parity) / 2;
#pragma omp parallel for schedule(static)
    for (long task = 0; task < block.images * some; ++task) {
      const long first = (2 * (task % some) + parity) * rows;
      compute(Strip(block, task / some, first, std::min(rows, block.below - first)));
    }
  }
}

void forward_strip(const Block& block, const Strip& strip, float* out) {
  const long channels = at_once(block, strip), positions = strip.positions(block);
  buffers.fit(block, strip, channels, false);
  out += strip.image * block.outputs * block.positions() + strip.out_from * block.across;
  for (long first = 0; first < block.expanded; first += channels) {
    const long count = std::min(channels, block.expanded - first);
    expand_and_filter(block, strip, first, count);
    product(block.outputs, positions, count, {block.w3 + first, block.expanded, 1},
            buffers.filtered.data(), positions, out, block.positions(), first > 0);
  }
  const float* x =
      block.x + strip.image * block.inputs * block.pixels() + strip.out_from * block.width;
  for (long channel = 0; channel < block.outputs; ++channel)
    for (long p = 0; p < positions; ++p)
      out[channel * block.positions() + p] +=
          block.b3[channel] + (block.residual ? x[channel * block.pixels() + p] : 0);
}

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Block block = block_of(attributes, *inputs, 0);
  float* out = (*outputs)[0].data<float>();
  for_strips(block, [&](const Strip& strip) { forward_strip(block, strip, out); });
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
// the filter to `dw`, and writes that of the input rows to `wide`, with the pitch of a plane.
void filter_backward(const Block& block, const Strip& strip, const float* plane, const float* dy,
                     const float* w, float* spread, float* dw, float* wide) {
  const long pitch = block.pitch(), d = block.dilation;
  const long size = strip.plane(block) + 2 * d * pitch;
  std::fill(spread, spread + size + kLanes, 0.0f);
  for (long y = 0; y < strip.outs; ++y) {
    float* to = spread + (y * block.stride + 2 * d) * pitch + d;
    const float* from = dy + y * block.across;
    if (block.stride == 1)
      std::copy_n(from, block.across, to);
    else
      for (long x = 0; x < block.across; ++x) to[x * block.stride] = from[x];
  }
  const long count = ((strip.outs - 1) * block.stride + 1) * pitch - 2 * d;
  Vector sums[kTaps] = {};
  for (long i = 0; i < count; i += kLanes) {
    const Vector gradient = load(spread + 2 * d * pitch + d + i);
#pragma GCC unroll 9
    for (int tap = 0; tap < kTaps; ++tap)
      sums[tap] += gradient * load(plane + i + tap / 3 * d * pitch + tap % 3 * d);
  }
  for (long tap = 0; tap < kTaps; ++tap) dw[tap] += sum(sums[tap]);
  float mirrored[kTaps];
  std::reverse_copy(w, w + kTaps, mirrored);
  filter(spread + strip.above * pitch, pitch, d, mirrored, strip.ins * pitch - 2 * d, wide);
}

// Adds the gradients of a strip to those of the parameters, and to `dx` of all images.
void backward_strip(const Block& block, const Strip& strip, const float* dout, Gradients& grads,
                    float* dx) {
  const long channels = at_once(block, strip), whole = block.pixels();
  const long pixels = strip.pixels(block), positions = strip.positions(block);
  buffers.fit(block, strip, channels, true);
  const long pitch = block.pitch(), every = block.positions();
  float *opened = buffers.opened.data(), *dy = buffers.gradient.data();
  const float* x = block.x + strip.image * block.inputs * whole + strip.in_from * block.width;
  dx += strip.image * block.inputs * whole + strip.in_from * block.width;
  dout += strip.image * block.outputs * every + strip.out_from * block.across;
  for (long first = 0; first < block.expanded; first += channels) {
    const long count = std::min(channels, block.expanded - first);
    expand_and_filter(block, strip, first, count);
    inner(block.outputs, count, positions, dout, every, buffers.filtered.data(), positions,
          grads.w3 + first, block.expanded);
    product(count, positions, block.outputs, {block.w3 + first, 1, block.expanded}, dout, every, dy,
            positions, false);
    for (long c = 0; c < count; ++c) {
      const long channel = first + c;
      const float *plane = buffers.planes.data() + c * strip.plane(block),
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
      filter_backward(block, strip, plane, from, block.w2 + channel * kTaps, buffers.spread.data(),
                      grads.w2 + channel * kTaps, wide);
      if (!block.expands) {
        for (long y = 0; y < strip.ins; ++y)
          for (long x = 0; x < block.width; ++x)
            dx[channel * whole + y * block.width + x] += wide[y * pitch + x];
        continue;
      }
      const float *input = buffers.raw.data() + c * pixels, bias = block.b1[channel];
      float* to = opened + c * pixels;
      for (long y = 0; y < strip.ins; ++y)
        for (long x = 0; x < block.width; x += kLanes)
          store(to + y * block.width + x,
                through(block, load(wide + y * pitch + x), load(input + y * block.width + x) + bias));
      grads.b1[channel] += sum(to, pixels);
    }
    if (block.expands) {
      inner(count, block.inputs, pixels, opened, pixels, x, whole, grads.w1 + first * block.inputs,
            block.inputs);
      product(block.inputs, pixels, count, {block.w1 + first * block.inputs, 1, block.inputs}, opened,
              pixels, dx, whole, true);
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
  const long threads = omp_get_max_threads(), size = block.inputs * block.pixels();
  std::vector<Gradients> grads;
  grads.reserve(threads);
  for (long thread = 0; thread < threads; ++thread) grads.emplace_back(block);
#pragma omp parallel for schedule(static)
  for (long image = 0; image < block.images; ++image) {
    if (block.residual)
      std::copy_n(dout + image * size, size, out[0] + image * size);
    else
      std::fill_n(out[0] + image * size, size, 0.0f);
  }
  for_strips(block, [&](const Strip& strip) {
    backward_strip(block, strip, dout, grads[omp_get_thread_num()], out[0]);
  });
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
