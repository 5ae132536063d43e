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

#include "depthwise.h"
#include "matrix.h"
#include "operator.h"
#include "strips.h"

namespace mxopt {
namespace {

constexpr float kSix = 6.0f;

Block block_of(const Attributes& attributes, std::vector<MXTensor>& tensors, size_t first) {
  Block block{};
  block.expands = attribute(attributes, "expands", 1);
  block.residual = attribute(attributes, "residual", 0);
  block.stride = attribute(attributes, "stride", 1);
  block.dilation = attribute(attributes, "dilation", 1);
  block.six = attribute(attributes, "six", 1);
  block.clips = attribute(attributes, "clips", 0) && !block.expands;
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
  block.below = (block.height + block.stride - 1) / block.stride;
  block.across = (block.width + block.stride - 1) / block.stride;
  return block;
}

// Memory of one thread, kept from call to call. Arrays are (channels, pixels of a strip).
struct Buffers {
  // The block's input; expanded channels before their bias, and in planes; filtered channels before
  // their activation, and after it.
  std::vector<float> in, raw, planes, before, filtered;
  // Gradients: of filtered channels, of one of them in a plane, of expanded channels before their
  // bias, of the block's input.
  std::vector<float> dfiltered, output, draw, din;
  // For products; the transposed ones have a row for each pixel.
  Panels in_panels, in_transposed, filtered_panels, dout_panels, dout_transposed, draw_panels;

  // Vectors may be read and written a little beyond the end.
  static float* grow(std::vector<float>& v, size_t size) {
    if (v.size() < size + 2 * kLanes) v.resize(size + 2 * kLanes);
    return v.data();
  }
};

thread_local Buffers buffers;

// One strip on its way through the block.
struct Pass {
  const Block& block;
  const Strip& strip;
  Buffers& own = buffers;
  long pixels = strip.pixels(block), positions = strip.positions(block);
  Planes layout{block, strip};
  // Channels that are computed at once: some hundred kilobytes, which an L2 cache holds.
  long channels = std::min(block.expanded, std::max(16L, 64 * 1024 / pixels / 16 * 16));
  float *in, *raw, *planes, *before, *filtered;

  Pass(const Block& block, const Strip& strip) : block(block), strip(strip) {
    in = Buffers::grow(own.in, block.inputs * pixels);
    raw = Buffers::grow(own.raw, channels * pixels);
    planes = Buffers::grow(own.planes, channels * layout.size + 2 * block.dilation);
    before = Buffers::grow(own.before, channels * positions);
    filtered = Buffers::grow(own.filtered, channels * positions);
    take_rows(block, strip, block.x, in);
    if (block.expands) own.in_panels.take(block.inputs, pixels, in, pixels);
  }

  // Calls `compute(first, count)` for some channels at a time.
  template <class Compute>
  void for_channels(Compute compute) const {
    for (long first = 0; first < block.expanded; first += channels)
      compute(first, std::min(channels, block.expanded - first));
  }

  // Expands `count` channels from `first` on into planes, filters and activates them; if it `keeps`
  // them, also as they are before their activation.
  template <bool keeps>
  void expand_and_filter(long first, long count) {
    const float top = block.six ? kSix : __builtin_inff();
    if (block.expands)
      product(count, pixels, block.inputs, {block.w1 + first * block.inputs, block.inputs, 1},
              own.in_panels, raw, pixels, false);
    for (long c = 0; c < count; ++c) {
      float* plane = planes + c * layout.size;
      if (block.expands) {
        const float bias = block.b1[first + c];
        into_plane(block, strip, layout, raw + c * pixels,
                   [=](Vector v) { return clipped(v + bias, top); }, plane);
      } else {
        into_plane(block, strip, layout, in + (first + c) * pixels,
                   [=](Vector v) { return block.clips ? clipped(v, top) : v; }, plane);
      }
      const float bias = block.b2[first + c];
      for (long y = 0; y < strip.outs; ++y) {
        const long row = c * positions + y * block.across;
        weighted<kTaps>(plane + y * block.stride * layout.pitch, layout.taps,
                        block.w2 + (first + c) * kTaps, block.across,
                        [to = before + row, active = filtered + row, bias, top](long x, Vector v) {
                          if (keeps) store(to + x, v + bias);
                          store(active + x, clipped(v + bias, top));
                        });
      }
    }
    // `add_taps` multiplies what is behind the last plane by 0: it must be numbers.
    if (keeps) std::fill_n(planes + count * layout.size, 2 * block.dilation + kLanes, 0.0f);
  }
};

void forward_strip(const Block& block, const Strip& strip, float* out) {
  Pass pass(block, strip);
  Panels& panels = pass.own.filtered_panels;
  const long positions = pass.positions, every = block.positions();
  out += strip.image * block.outputs * every + strip.out_from * block.across;
  pass.for_channels([&](long first, long count) {
    pass.expand_and_filter<false>(first, count);
    panels.take(count, positions, pass.filtered, positions);
    product(block.outputs, positions, count, {block.w3 + first, block.expanded, 1}, panels, out,
            every, first > 0);
  });
  const float* x =
      block.x + strip.image * block.inputs * block.pixels() + strip.out_from * block.width;
  for (long channel = 0; channel < block.outputs; ++channel)
    for (long p = 0; p < positions; ++p)
      out[channel * every + p] +=
          block.b3[channel] + (block.residual ? x[channel * block.pixels() + p] : 0);
}

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Block block = block_of(attributes, *inputs, 0);
  float* out = (*outputs)[0].data<float>();
  for_strips(block, [&](const Strip& strip) { forward_strip(block, strip, out); });
  return MX_SUCCESS;
}

// Gradients of the parameters, one after the other in a thread's memory; that of w3 is transposed.
struct Gradients {
  float *w1, *b1, *w2, *b2, *w3, *b3;

  Gradients(const Block& block, float* memory) {
    w1 = memory, b1 = w1 + block.expanded * block.inputs, w2 = b1 + block.expanded;
    b2 = w2 + block.expanded * kTaps, w3 = b2 + block.expanded;
    b3 = w3 + block.expanded * block.outputs;
  }

  static long size(const Block& block) {
    return block.expanded * (block.inputs + 1 + kTaps + 1 + block.outputs) + block.outputs;
  }
};

// The gradient of an activation: 0 where its input is beyond an end. At an end itself MXNet's `clip`
// passes the gradient, and its ReLU does not.
inline Vector through(const Block& block, Vector gradient, Vector input) {
  if (block.six) return input >= 0 && input <= kSix ? gradient : Vector{};
  return input > 0 ? gradient : Vector{};
}

// Adds the gradients of a strip to those of the parameters, and to `dx` of all images.
void backward_strip(const Block& block, const Strip& strip, const float* dout,
                    const Gradients& grads, float* dx) {
  Pass pass(block, strip);
  Buffers& own = pass.own;
  const long pixels = pass.pixels, positions = pass.positions, every = block.positions();
  const OutputPlane layout(block, strip);
  float* const dfiltered = Buffers::grow(own.dfiltered, pass.channels * positions);
  float* const draw = Buffers::grow(own.draw, pass.channels * pixels);
  float* const din = Buffers::grow(own.din, block.inputs * pixels);
  float* const output = Buffers::grow(own.output, layout.size);
  std::fill_n(output, layout.size, 0.0f);
  if (block.expands) own.in_transposed.take_transposed(pixels, block.inputs, pass.in, pixels);
  dout += strip.image * block.outputs * every + strip.out_from * block.across;
  own.dout_panels.take(block.outputs, positions, dout, every);
  own.dout_transposed.take_transposed(positions, block.outputs, dout, every);
  for (long channel = 0; channel < block.outputs; ++channel)
    grads.b3[channel] += sum(dout + channel * every, positions);

  pass.for_channels([&](long first, long count) {
    pass.expand_and_filter<true>(first, count);
    product(count, block.outputs, positions, {pass.filtered, positions, 1}, own.dout_transposed,
            grads.w3 + first * block.outputs, block.outputs, true);
    product(count, positions, block.outputs, {block.w3 + first, 1, block.expanded}, own.dout_panels,
            dfiltered, positions, false);
    for (long c = 0; c < count; ++c) {
      const long channel = first + c;
      for (long y = 0; y < strip.outs; ++y) {
        float* row = output + layout.first + y * layout.pitch;
        const long from = c * positions + y * block.across;
        for (long x = 0; x < block.across; x += kLanes)
          store(row + x, through(block, load(dfiltered + from + x), load(pass.before + from + x)));
        std::fill(row + block.across, row + layout.padded, 0.0f);
      }
      const float* w = block.w2 + channel * kTaps;
      add_taps(block, strip, pass.layout, pass.planes + c * pass.layout.size, layout,
               output + layout.first, grads.w2 + channel * kTaps, grads.b2 + channel);
      const bool active = block.expands || block.clips;
      const float* raw = block.expands ? pass.raw + c * pixels : pass.in + channel * pixels;
      const float bias = block.expands ? block.b1[channel] : 0;
      float* to = block.expands ? draw + c * pixels : din + channel * pixels;
      for (long y = 0; y < strip.ins; ++y)
        filter_backward(block, layout, output, w, strip.above + y, [&](long x, Vector v) {
          const long at = y * block.width + x;
          store(to + at, active ? through(block, v, load(raw + at) + bias) : v);
        });
      if (block.expands) grads.b1[channel] += sum(to, pixels);
    }
    if (!block.expands) return;
    product(count, block.inputs, pixels, {draw, pixels, 1}, own.in_transposed,
            grads.w1 + first * block.inputs, block.inputs, true);
    own.draw_panels.take(count, pixels, draw, pixels);
    product(block.inputs, pixels, count, {block.w1 + first * block.inputs, 1, block.inputs},
            own.draw_panels, din, pixels, first > 0);
  });
  add_rows(block, strip, din, dx);
}

MXReturnValue backward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Block block = block_of(attributes, *inputs, 1);
  const float* dout = (*inputs)[0].data<float>();
  std::vector<float*> out;
  for (auto& tensor : *outputs) out.push_back(tensor.data<float>());
  if (!block.expands) out.insert(out.begin() + 1, 2, nullptr);
  const long threads = omp_get_max_threads(), size = block.inputs * block.pixels();
  const long all = Gradients::size(block);
  static thread_local std::vector<float> kept;
  if (kept.size() < size_t(threads * all)) kept.resize(threads * all);
  float* memory = kept.data();
#pragma omp parallel for schedule(static)
  for (long thread = 0; thread < threads; ++thread) std::fill_n(memory + thread * all, all, 0.0f);
#pragma omp parallel for schedule(static)
  for (long image = 0; image < block.images; ++image) {
    if (block.residual)
      std::copy_n(dout + image * size, size, out[0] + image * size);
    else
      std::fill_n(out[0] + image * size, size, 0.0f);
  }
  for_strips(block, [&](const Strip& strip) {
    backward_strip(block, strip, dout, {block, memory + omp_get_thread_num() * all}, out[0]);
  });
#pragma omp parallel for schedule(static)
  for (long n = 0; n < all; ++n)
    for (long thread = 1; thread < threads; ++thread) memory[n] += memory[thread * all + n];
  const Gradients total(block, memory);
  if (block.expands) {
    std::copy(total.w1, total.b1, out[1]);
    std::copy(total.b1, total.w2, out[2]);
  }
  std::copy(total.w2, total.b2, out[3]);
  std::copy(total.b2, total.w3, out[4]);
  for (long output = 0; output < block.outputs; ++output)
    for (long channel = 0; channel < block.expanded; ++channel)
      out[5][output * block.expanded + channel] = total.w3[channel * block.outputs + output];
  std::copy_n(total.b3, block.outputs, out[6]);
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
  const bool residual = attribute(attributes, "residual", 0);
  const unsigned stride = attribute(attributes, "stride", 1);
  const long dilation = attribute(attributes, "dilation", 1);
  const Shape &x = (*inputs)[0], &project = (*inputs)[expands ? 5 : 3];
  if (x.size() != 4 || project.size() != 4)
    return refused("mxopt_inverted_residual takes images (samples, channels, height, width), and "
                   "filters of four axes");
  if (stride < 1 || stride > 2 || dilation < 1 || (stride == 2 && dilation > 1))
    return refused("mxopt_inverted_residual takes stride=1 and any dilation, or stride=2 without one");
  if (residual && (stride > 1 || project[0] != x[1]))
    return refused("mxopt_inverted_residual adds its input, by residual=1, only at stride=1 and to as "
                   "many channels");
  const unsigned expanded = expands ? project[1] : x[1];
  std::vector<Shape> fitting{{expanded, 1, 3, 3}, {expanded}, {project[0], expanded, 1, 1},
                             {project[0]}};
  if (expands) fitting.insert(fitting.begin(), {{expanded, x[1], 1, 1}, {expanded}});
  if (!std::equal(fitting.begin(), fitting.end(), inputs->begin() + 1))
    return refused("mxopt_inverted_residual takes filters (expanded, channels, 1, 1) unless expands=0, "
                   "(expanded, 1, 3, 3) and (filters, expanded, 1, 1), each followed by its biases");
  const auto side = [=](unsigned pixels) { return (pixels + stride - 1) / stride; };
  (*outputs)[0] = {x[0], project[0], side(x[2]), side(x[3])};
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
