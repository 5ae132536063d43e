// 1 x 1 convolutions at stride 1: for each image a product of the weights, (filters, channels), and the
// image, (channels, pixels), of float32 (factor.h).
#include <omp.h>

#include <algorithm>

#include "factor.h"
#include "operator.h"

namespace mxopt {
namespace {

constexpr long kDepth = 512;    // channels, or pixels, that are packed at once,
constexpr long kColumns = 256;  // and so many pixels, or channels, of each: 0.5 to 0.8 MB
constexpr long kRows = 512;     // rows of a product that a thread computes at once

// `count` things in parts of at most `most`, which have nearly the same size, a multiple of 16.
struct Parts {
  long count, size, parts;

  Parts(long count, long most) : count(count) {
    const long least = std::max(1L, (count + most - 1) / most);
    size = std::max(16L, ((count + least - 1) / least + 15) / 16 * 16);
    parts = (count + size - 1) / size;
  }
  long from(long part) const { return part * size; }
  long length(long part) const { return std::min(size, count - from(part)); }
};

struct Convolution {
  long images, channels, filters, pixels;

  Convolution(const MXTensor& x, const MXTensor& weight)
      : images(x.shape[0]), channels(x.shape[1]), filters(weight.shape[0]),
        pixels(x.shape[2] * x.shape[3]) {}
};

// Computes images of `outs` channels from those of `ins` channels; element (out, in) of the weights is
// weights.data[out * weights.rows + in * weights.columns].
void convolve(long images, long ins, long outs, long pixels, const float* x, Strided weights,
              float* to) {
  const Parts across(pixels, kColumns), down(outs, kRows);
  if (ins == 0) std::fill_n(to, images * outs * pixels, 0.0f);
#pragma omp parallel for schedule(dynamic) collapse(2)
  for (long task = 0; task < images * across.parts; ++task)
    for (long rows = 0; rows < down.parts; ++rows) {
      static thread_local Right<3> right;
      const long image = task / across.parts, part = task % across.parts, some = across.length(part);
      const float* from = x + image * ins * pixels + across.from(part);
      float* out = to + (image * outs + down.from(rows)) * pixels + across.from(part);
      for (long k = 0; k < ins; k += kDepth) {
        const long deep = std::min(kDepth, ins - k);
        right.take(deep, some, {from + k * pixels, 1, pixels});
        product(down.length(rows), some, deep,
                {weights.data + down.from(rows) * weights.rows + k * weights.columns, weights.rows,
                 weights.columns},
                right, k > 0 ? out : nullptr, pixels, out, pixels);
      }
    }
}

// Computes the gradients of the weights; each thread some channels or, if there are more, filters.
void weight_gradients(const Convolution& own, const float* x, const float* dout, float* dweight) {
  const long threads = omp_get_max_threads();
  const long share = (std::max({1L, own.channels, own.filters}) + threads - 1) / threads;
  const bool by_rows = own.filters > own.channels;
  const Parts across(own.channels, by_rows ? kColumns : std::min(kColumns, share));
  const Parts down(own.filters, by_rows ? std::min(kRows, share) : kRows);
  if (own.images * own.pixels == 0) std::fill_n(dweight, own.filters * own.channels, 0.0f);
#pragma omp parallel for schedule(dynamic) collapse(2)
  for (long part = 0; part < across.parts; ++part)
    for (long rows = 0; rows < down.parts; ++rows) {
      static thread_local Right<3> right;
      const long some = across.length(part);
      float* const to = dweight + down.from(rows) * own.channels + across.from(part);
      for (long image = 0; image < own.images; ++image)
        for (long k = 0; k < own.pixels; k += kDepth) {
          const long deep = std::min(kDepth, own.pixels - k);
          right.take(deep, some,
                     {x + (image * own.channels + across.from(part)) * own.pixels + k, own.pixels, 1});
          product(down.length(rows), some, deep,
                  {dout + (image * own.filters + down.from(rows)) * own.pixels + k, own.pixels, 1},
                  right, image + k > 0 ? to : nullptr, own.channels, to, own.channels);
        }
    }
}

MXReturnValue forward(const Attributes&, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Convolution own((*inputs)[0], (*inputs)[1]);
  convolve(own.images, own.channels, own.filters, own.pixels, (*inputs)[0].data<float>(),
           {(*inputs)[1].data<float>(), own.channels, 1}, (*outputs)[0].data<float>());
  return MX_SUCCESS;
}

MXReturnValue backward(const Attributes&, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Convolution own((*inputs)[1], (*inputs)[2]);
  const float* dout = (*inputs)[0].data<float>();
  convolve(own.images, own.filters, own.channels, own.pixels, dout,
           {(*inputs)[2].data<float>(), 1, own.channels}, (*outputs)[0].data<float>());
  weight_gradients(own, (*inputs)[1].data<float>(), dout, (*outputs)[1].data<float>());
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes&, int* inputs, int* outputs) {
  *inputs = 2, *outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes&, std::vector<Shape>* inputs, std::vector<Shape>* outputs) {
  const Shape &x = (*inputs)[0], &weight = (*inputs)[1];
  if (x.size() != 4 || weight.size() != 4 || weight[1] != x[1] || weight[2] != 1 ||
      weight[3] != 1) {
    return refused("mxopt_pointwise takes images (samples, channels, height, width) and 1 x 1 "
                   "filters");
  }
  (*outputs)[0] = {x[0], weight[0], x[2], x[3]};
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(mxopt_pointwise)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(count)
    .setInferType(float32)
    .setInferShape(shapes);

}  // namespace mxopt
