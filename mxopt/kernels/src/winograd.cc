// 3 x 3 convolutions at stride 1 by Winograd's minimal filtering, F(4 x 4, 3 x 3): 36 products for 16
// outputs instead of 144.
//
// Weights are transformed to 36 factors for each filter and channel, the input to 36 for each window
// and channel. Each of the 36 is a matrix product over the channels, whose results are transformed to
// outputs; so no more than 36 threads compute products. Some rows of windows are computed at once,
// to keep what is between the steps in the shared cache. The backward pass transposes each step.
#include <algorithm>
#include <vector>

#include "matrix.h"
#include "operator.h"
#include "winograd.h"

namespace mxopt {
namespace {

constexpr long kFactors = kWindow * kWindow, kFilter = kTaps * kTaps;

struct Convolution {
  long images, inputs, filters, height, width;
  Axis down, across;

  Convolution(const Attributes& attributes, const MXTensor& x, const MXTensor& weight)
      : images(x.shape[0]), inputs(x.shape[1]), filters(weight.shape[0]), height(x.shape[2]),
        width(x.shape[3]), down(height, attribute(attributes, "dilation", 1)),
        across(width, attribute(attributes, "dilation", 1)) {}

  long pixels() const { return height * width; }
  // Rows of windows of all images, and how many are computed at once.
  long rows() const { return images * down.count; }
  long rows_at_once() const {
    constexpr long kFloats = 8 << 20;  // of factors and products: 32 MB, as much as a shared cache
    return std::min(rows(), std::max(1L, kFloats / (kFactors * (inputs + filters) * across.count)));
  }
  // Factors of inputs, and products, are (kFactors, channels, windows) with this distance of
  // channels; there is space for a vector behind the last window.
  long pitch() const { return row_pitch(rows_at_once() * across.count + kLanes); }
  // Factors of weights are (kFactors, filters, inputs) with these distances.
  long weight_pitch() const { return row_pitch(inputs); }
  long weight_step() const { return filters * weight_pitch(); }
};

// Some rows of windows.
struct Rows {
  const Convolution& own;
  long from, count;

  long windows() const { return count * own.across.count; }

  // Calls `use(image, row, at)` for each row of windows: which one of which image it is, and the number
  // of its first window.
  template <class Use>
  void for_each(Use use) const {
    for (long row = 0; row < count; ++row)
      use((from + row) / own.down.count, (from + row) % own.down.count, row * own.across.count);
  }
};

template <class Compute>
void for_rows(const Convolution& own, Compute compute) {
  const long rows = own.rows_at_once();
  for (long from = 0; from < own.rows(); from += rows)
    compute(Rows{own, from, std::min(rows, own.rows() - from)});
}

// Lines of a row of windows, (kWindow, kWindow or kOutputs, pitch), and a line of an image.
struct Lines {
  std::vector<float> between, parts, line;

  explicit Lines(const Convolution& own)
      : between(kFactors * own.across.pitch), parts(kWindow * own.across.pitch + 1),
        line(own.width + 1) {}
};

// Transforms a channel of images to lines of kWindow x kWindow: `In` rows and columns of each window,
// from its position `skip` on.
template <long In, void (*compute)(const Vector*, Vector*)>
void take(const Rows& rows, const float* images, long channels, long skip, float* to, long step) {
  const Convolution& own = rows.own;
  const long pitch = own.across.pitch;
  const int* const window = own.across.window.data() + skip * pitch;
  Lines lines(own);
  float *const between = lines.between.data(), *const parts = lines.parts.data();
  rows.for_each([&](long image, long row, long at) {
    for (long n = 0; n < In; ++n) {
      const long y = own.down.at(skip + n, row);
      if (y == own.height) {
        std::fill_n(between + n * kWindow * pitch, kWindow * pitch, 0.0f);
        continue;
      }
      std::copy_n(images + image * channels * own.pixels() + y * own.width, own.width,
                  lines.line.data());
      const float* const line = lines.line.data();
      for (long i = 0; i < In * pitch; ++i) parts[i] = line[window[i]];
      transform<In, kWindow, compute>(pitch, parts, pitch, between + n * kWindow * pitch, pitch);
    }
    for (long n = 0; n < kWindow; ++n)
      transform<In, kWindow, compute>(pitch, between + n * pitch, kWindow * pitch,
                                      to + n * step + at, kWindow * step);
  });
}

// Transforms lines of kWindow x kWindow, and calls `use(image, y, parts)` for each line of a channel
// of the images that is written: `Out` lines of columns of windows.
template <long Out, void (*compute)(const Vector*, Vector*), class Use>
void give(const Rows& rows, const float* from, long step, long skip, Use use) {
  const Convolution& own = rows.own;
  const long pitch = own.across.pitch;
  Lines lines(own);
  float *const between = lines.between.data(), *const parts = lines.parts.data();
  parts[Out * pitch] = 0;
  rows.for_each([&](long image, long row, long at) {
    for (long n = 0; n < kWindow; ++n)
      transform<kWindow, Out, compute>(pitch, from + n * step + at, kWindow * step,
                                       between + n * pitch, kWindow * pitch);
    for (long n = 0; n < Out; ++n) {
      const long y = own.down.at(skip + n, row);
      if (y == own.height) continue;
      transform<kWindow, Out, compute>(pitch, between + n * kWindow * pitch, pitch, parts, pitch);
      use(image, y, parts);
    }
  });
}

void take_inputs(const Rows& rows, long channel, const float* x, float* to, long step) {
  const Convolution& own = rows.own;
  take<kWindow, input_factors>(rows, x + channel * own.pixels(), own.inputs, 0, to, step);
}

void take_gradients(const Rows& rows, long channel, const float* dout, float* to, long step) {
  const Convolution& own = rows.own;
  take<kOutputs, output_gradients>(rows, dout + channel * own.pixels(), own.filters, 1, to, step);
}

void give_outputs(const Rows& rows, long channel, const float* from, long step, float* out) {
  const Convolution& own = rows.own;
  const int* const output = own.across.output.data();
  give<kOutputs, outputs_of>(rows, from, step, 1, [&](long image, long y, const float* parts) {
    float* to = out + (image * own.filters + channel) * own.pixels() + y * own.width;
    for (long x = 0; x < own.width; ++x) to[x] = parts[output[x]];
  });
}

// Adds to the gradients of the inputs.
void give_gradients(const Rows& rows, long channel, const float* from, long step, float* dx) {
  const Convolution& own = rows.own;
  const int *const first = own.across.first.data(), *const second = own.across.second.data();
  give<kWindow, input_gradients>(rows, from, step, 0, [&](long image, long y, const float* parts) {
    float* to = dx + (image * own.inputs + channel) * own.pixels() + y * own.width;
    for (long x = 0; x < own.width; ++x) to[x] += parts[first[x]] + parts[second[x]];
  });
}

// Computes the factors of all weights.
void take_weights(const Convolution& own, const float* weight, float* to) {
  const long line = own.weight_pitch(), step = own.weight_step();
#pragma omp parallel
  {
    std::vector<float> taps(kFilter * line), between(kTaps * kWindow * line);
#pragma omp for schedule(static)
    for (long filter = 0; filter < own.filters; ++filter) {
      const float* from = weight + filter * own.inputs * kFilter;
      for (long c = 0; c < own.inputs; ++c)
        for (long tap = 0; tap < kFilter; ++tap) taps[tap * line + c] = from[c * kFilter + tap];
      for (long n = 0; n < kTaps; ++n)
        transform<kTaps, kWindow, tap_factors>(line, taps.data() + n * kTaps * line, line,
                                  between.data() + n * kWindow * line, line);
      for (long n = 0; n < kWindow; ++n)
        transform<kTaps, kWindow, tap_factors>(line, between.data() + n * line, kWindow * line,
                                  to + n * step + filter * line, kWindow * step);
    }
  }
}

// Computes the gradients of the weights from those of their factors.
void give_weights(const Convolution& own, const float* from, float* dweight) {
  const long line = own.weight_pitch(), step = own.weight_step();
#pragma omp parallel
  {
    std::vector<float> taps(kFilter * line), between(kTaps * kWindow * line);
#pragma omp for schedule(static)
    for (long filter = 0; filter < own.filters; ++filter) {
      for (long n = 0; n < kWindow; ++n)
        transform<kWindow, kTaps, tap_gradients>(line, from + n * step + filter * line, kWindow * step,
                                  between.data() + n * line, kWindow * line);
      for (long n = 0; n < kTaps; ++n)
        transform<kWindow, kTaps, tap_gradients>(line, between.data() + n * kWindow * line, line,
                                  taps.data() + n * kTaps * line, line);
      float* to = dweight + filter * own.inputs * kFilter;
      for (long c = 0; c < own.inputs; ++c)
        for (long tap = 0; tap < kFilter; ++tap) to[c * kFilter + tap] = taps[tap * line + c];
    }
  }
}

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Convolution own(attributes, (*inputs)[0], (*inputs)[1]);
  const float* x = (*inputs)[0].data<float>();
  float* out = (*outputs)[0].data<float>();
  const long pitch = own.pitch(), in_step = own.inputs * pitch, out_step = own.filters * pitch;
  const long weights = kFactors * own.weight_step();
  float* const w = lent(weights + kFactors * (in_step + out_step));
  float *const in = w + weights, *const products = in + kFactors * in_step;
  take_weights(own, (*inputs)[1].data<float>(), w);
  for_rows(own, [&](const Rows& rows) {
#pragma omp parallel
    {
#pragma omp for schedule(static)
      for (long channel = 0; channel < own.inputs; ++channel)
        take_inputs(rows, channel, x, in + channel * pitch, in_step);
      static thread_local Panels panels;
#pragma omp for schedule(static)
      for (long n = 0; n < kFactors; ++n) {
        panels.take(own.inputs, rows.windows(), in + n * in_step, pitch);
        product(own.filters, rows.windows(), own.inputs,
                {w + n * own.weight_step(), own.weight_pitch(), 1}, panels,
                products + n * out_step, pitch, false);
      }
#pragma omp for schedule(static)
      for (long channel = 0; channel < own.filters; ++channel)
        give_outputs(rows, channel, products + channel * pitch, out_step, out);
    }
  });
  return MX_SUCCESS;
}

MXReturnValue backward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Convolution own(attributes, (*inputs)[1], (*inputs)[2]);
  const float *dout = (*inputs)[0].data<float>(), *x = (*inputs)[1].data<float>();
  float* const dx = (*outputs)[0].data<float>();
  const long pitch = own.pitch(), in_step = own.inputs * pitch, out_step = own.filters * pitch;
  const long weights = kFactors * own.weight_step();
  float* const w = lent(2 * weights + kFactors * (in_step + out_step));
  float *const dw = w + weights, *const in = dw + weights, *const dout_factors = in + kFactors * in_step;
  take_weights(own, (*inputs)[2].data<float>(), w);
  if (own.rows() == 0) std::fill_n(dw, weights, 0.0f);
#pragma omp parallel for schedule(static)
  for (long plane = 0; plane < own.images * own.inputs; ++plane)
    std::fill_n(dx + plane * own.pixels(), own.pixels(), 0.0f);
  for_rows(own, [&](const Rows& rows) {
    const long windows = rows.windows();
#pragma omp parallel
    {
#pragma omp for schedule(static) nowait
      for (long channel = 0; channel < own.inputs; ++channel)
        take_inputs(rows, channel, x, in + channel * pitch, in_step);
#pragma omp for schedule(static)
      for (long channel = 0; channel < own.filters; ++channel)
        take_gradients(rows, channel, dout, dout_factors + channel * pitch, out_step);
      static thread_local Panels panels;
#pragma omp for schedule(static)
      for (long n = 0; n < kFactors; ++n) {
        const float *dout_n = dout_factors + n * out_step, *w_n = w + n * own.weight_step();
        panels.take_transposed(windows, own.inputs, in + n * in_step, pitch);
        product(own.filters, own.inputs, windows, {dout_n, pitch, 1}, panels,
                dw + n * own.weight_step(), own.weight_pitch(), rows.from > 0);
        // The factors of the inputs make place for their gradients.
        panels.take(own.filters, windows, dout_n, pitch);
        product(own.inputs, windows, own.filters, {w_n, 1, own.weight_pitch()}, panels,
                in + n * in_step, pitch, false);
      }
#pragma omp for schedule(static)
      for (long channel = 0; channel < own.inputs; ++channel)
        give_gradients(rows, channel, in + channel * pitch, in_step, dx);
    }
  });
  give_weights(own, dw, (*outputs)[1].data<float>());
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes&, int* inputs, int* outputs) {
  *inputs = 2, *outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes&, std::vector<Shape>* inputs, std::vector<Shape>* outputs) {
  const Shape &x = (*inputs)[0], &weight = (*inputs)[1];
  if (x.size() != 4 || weight.size() != 4 || weight[1] != x[1] || weight[2] != kTaps ||
      weight[3] != kTaps) {
    MX_ERROR_MSG << "mxopt_winograd takes images (samples, channels, height, width) and 3 x 3 filters";
    return MX_FAIL;
  }
  (*outputs)[0] = {x[0], weight[0], x[2], x[3]};
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(mxopt_winograd)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(count)
    .setInferType(float32)
    .setInferShape(shapes);

}  // namespace mxopt
