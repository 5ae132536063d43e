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
  long images, inputs, filters, height, width, dilation;
  Axis down, across;

  Convolution(const Attributes& attributes, const MXTensor& x, const MXTensor& weight)
      : images(x.shape[0]), inputs(x.shape[1]), filters(weight.shape[0]), height(x.shape[2]),
        width(x.shape[3]), dilation(attribute(attributes, "dilation", 1)), down(height, dilation),
        across(width, dilation) {}

  long pixels() const { return height * width; }
  // Rows of windows of all images, and how many are computed at once.
  long rows() const { return images * down.windows(); }
  long rows_at_once() const {
    // Factors and products of 4 MB, or twice the factors of the weights, which are read each time.
    const long floats = std::max(1L << 20, 2 * kFactors * inputs * filters);
    const long row = kFactors * (inputs + filters) * std::max(1L, across.windows());
    return std::min(rows(), std::max(1L, floats / row));
  }
  // How many of them are transformed at once: some vectors of windows.
  long group_rows() const { return 64 / std::clamp(across.windows(), 1L, 64L); }
  // Factors of inputs, and products, are (kFactors, channels, windows) with this distance of
  // channels; there is space for a vector behind the last window.
  long pitch() const { return row_pitch(rows_at_once() * across.windows() + kLanes); }
  // Factors of weights are (kFactors, filters, inputs) with these distances.
  long weight_pitch() const { return row_pitch(inputs); }
  long weight_step() const { return filters * weight_pitch(); }
};

// Consecutive rows of windows that are transformed together, to fill vectors.
struct Group {
  const Convolution& own;
  long from, count, at;  // `at`: the number of the first window

  // Calls `use(image, y, at)` for each row: a line of an image at a position of the window (y is the
  // height if it is outside), and the row's first window in the group.
  template <class Use>
  void for_lines(long in_window, Use use) const {
    for (long row = from; row < from + count; ++row)
      use(row / own.down.windows(), own.down.at(in_window, row % own.down.windows()),
          (row - from) * own.across.windows());
  }

  long windows() const { return count * own.across.windows(); }
};

// Some rows of windows.
struct Rows {
  const Convolution& own;
  long from, count;

  long windows() const { return count * own.across.windows(); }

  template <class Use>
  void for_groups(Use use) const {
    for (long row = 0; row < count; row += own.group_rows())
      use(Group{own, from + row, std::min(own.group_rows(), count - row), row * own.across.windows()});
  }
};

template <class Compute>
void for_rows(const Convolution& own, Compute compute) {
  const long rows = own.rows_at_once();
  for (long from = 0; from < own.rows(); from += rows)
    compute(Rows{own, from, std::min(rows, own.rows() - from)});
}

// What lies between the steps of transforming a group: two arrays of windows, (kWindow, kWindow or
// kOutputs, pitch) and (kWindow, pitch), and a line of an image.
struct Between {
  long pitch;
  std::vector<float> first, second, line;

  explicit Between(const Convolution& own)
      : pitch(in_vectors(own.group_rows() * own.across.windows()) + kLanes), first(kFactors * pitch),
        second(kWindow * pitch), line(own.across.line()) {}
};

// Transforms a channel of images to factors: `In` rows and columns of each window, from its position
// `skip` on.
template <long In, void (*compute)(const Vector*, Vector*)>
void take(const Rows& rows, const float* images, long channels, long skip, float* to, long step) {
  const Convolution& own = rows.own;
  Between between(own);
  const long pitch = between.pitch;
  float *const first = between.first.data(), *const second = between.second.data();
  float* const line = between.line.data();
  rows.for_groups([&](const Group& group) {
    for (long n = 0; n < In; ++n) {
      group.for_lines(skip + n, [&](long image, long y, long at) {
        if (y == own.height) {
          for (long i = 0; i < In; ++i)
            std::fill_n(second + i * pitch + at, own.across.windows(), 0.0f);
          return;
        }
        own.across.copy(images + image * channels * own.pixels() + y * own.width, line);
        own.across.take<In>(line, skip, second + at, pitch);
      });
      transform<In, kWindow, compute>(group.windows(), second, pitch, first + n * kWindow * pitch,
                                      pitch);
    }
    for (long n = 0; n < kWindow; ++n)
      transform<In, kWindow, compute>(group.windows(), first + n * pitch, kWindow * pitch,
                                      to + n * step + group.at, kWindow * step);
  });
}

// Transforms factors of a channel, and calls `use(image, y, line)` for each line of its images.
template <long Out, void (*compute)(const Vector*, Vector*), class Use>
void give(const Rows& rows, const float* from, long step, long skip, Use use) {
  const Convolution& own = rows.own;
  Between between(own);
  const long pitch = between.pitch;
  float *const first = between.first.data(), *const second = between.second.data();
  float* const line = between.line.data();
  rows.for_groups([&](const Group& group) {
    for (long n = 0; n < kWindow; ++n)
      transform<kWindow, Out, compute>(group.windows(), from + n * step + group.at, kWindow * step,
                                       first + n * pitch, kWindow * pitch);
    for (long n = 0; n < Out; ++n) {
      transform<kWindow, Out, compute>(group.windows(), first + n * kWindow * pitch, pitch, second,
                                       pitch);
      group.for_lines(skip + n, [&](long image, long y, long at) {
        if (y == own.height) return;
        own.across.give<Out>(second + at, pitch, line);
        use(image, y, line);
      });
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
  give<kOutputs, outputs_of>(rows, from, step, 1, [&](long image, long y, const float* line) {
    std::copy_n(line, own.width,
                out + (image * own.filters + channel) * own.pixels() + y * own.width);
  });
}

// Adds to the gradients of the inputs.
void give_gradients(const Rows& rows, long channel, const float* from, long step, float* dx) {
  const Convolution& own = rows.own;
  give<kWindow, input_gradients>(rows, from, step, 0, [&](long image, long y, const float* line) {
    float* to = dx + (image * own.inputs + channel) * own.pixels() + y * own.width;
    for (long x = 0; x < own.width; ++x) to[x] += line[x + own.dilation];
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
  // If all rows are computed at once, gradients of the weights' factors take the place of the factors.
  const long between = own.rows_at_once() < own.rows() ? weights : 0;
  float* const w = lent(weights + between + kFactors * (in_step + out_step));
  float *const dw = w + between, *const in = dw + weights, *const dout_factors = in + kFactors * in_step;
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
      static thread_local Panels of_inputs, of_gradients;
#pragma omp for schedule(static)
      for (long n = 0; n < kFactors; ++n) {
        const float *dout_n = dout_factors + n * out_step, *w_n = w + n * own.weight_step();
        of_inputs.take_transposed(windows, own.inputs, in + n * in_step, pitch);
        of_gradients.take(own.filters, windows, dout_n, pitch);
        // The factors of the inputs make place for their gradients.
        product(own.inputs, windows, own.filters, {w_n, 1, own.weight_pitch()}, of_gradients,
                in + n * in_step, pitch, false);
        product(own.filters, own.inputs, windows, {dout_n, pitch, 1}, of_inputs,
                dw + n * own.weight_step(), own.weight_pitch(), rows.from > 0);
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

MXReturnValue shapes(const Attributes& attributes, std::vector<Shape>* inputs,
                     std::vector<Shape>* outputs) {
  const Shape &x = (*inputs)[0], &weight = (*inputs)[1];
  if (attribute(attributes, "dilation", 1) < 1)
    return refused("mxopt_winograd takes a dilation of 1 or more");
  if (x.size() != 4 || weight.size() != 4 || weight[1] != x[1] || weight[2] != kTaps ||
      weight[3] != kTaps) {
    return refused("mxopt_winograd takes images (samples, channels, height, width) and 3 x 3 filters");
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
