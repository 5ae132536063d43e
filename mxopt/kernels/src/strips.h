// A block of MobileNetV2, and the strips of rows that it is computed in.
#ifndef MXOPT_STRIPS_H_
#define MXOPT_STRIPS_H_

#include <omp.h>

#include <algorithm>

namespace mxopt {

struct Block {
  long images, inputs, expanded, outputs, height, width, below, across;  // below x across: output
  long stride, dilation;
  bool expands, residual, six, clips;  // clips: its input is activated first
  const float *x, *w1, *b1, *w2, *b2, *w3, *b3;

  long pixels() const { return height * width; }
  long positions() const { return below * across; }
};

// Some rows of a block's output, and the rows of its input that they are computed from.
struct Strip {
  long image, outs, out_from;  // output rows
  long ins, in_from;           // input rows inside of the image
  long above;                  // rows of zeros above them
  long rows;                   // of zeros, of the input, and of zeros below

  Strip(const Block& block, long image, long first, long count)
      : image(image), outs(count), out_from(first) {
    const long d = block.dilation, top = first * block.stride - d;
    rows = (count - 1) * block.stride + 1 + 2 * d;
    in_from = std::max(0L, top);
    ins = std::min(block.height, top + rows) - in_from;
    above = in_from - top;
  }

  long pixels(const Block& block) const { return ins * block.width; }
  long positions(const Block& block) const { return outs * block.across; }
};

// How many output rows a strip has. Its overlap with the next one should be small beside it, and it
// has to be so high that strips with another one between them do not overlap.
inline long strip_rows(const Block& block, long threads) {
  constexpr long kPositions = 2048;
  const long least = std::min(block.below, std::max(8 * block.dilation, kPositions / block.across));
  long strips = std::max(1L, block.below / least);
  if (block.images < threads)
    strips = std::max(strips, std::min(2 * threads, block.below / (2 * block.dilation)));
  return (block.below + strips - 1) / strips;
}

// Calls `compute(strip)` for all strips of all images: first the even ones, then the odd ones, so
// that no two threads write the same rows.
template <class Compute>
void for_strips(const Block& block, Compute compute) {
  if (block.positions() == 0) return;
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

// Calls `use(image, strip)` for each row of a strip of the block's input, in an array of the images'
// shape and in one of the strip's.
template <class Image, class Use>
void for_input_rows(const Block& block, const Strip& strip, Image* images, Use use) {
  images += strip.image * block.inputs * block.pixels() + strip.in_from * block.width;
  for (long channel = 0; channel < block.inputs; ++channel)
    for (long y = 0; y < strip.ins; ++y)
      use(images + channel * block.pixels() + y * block.width,
          (channel * strip.ins + y) * block.width);
}

// Copies the input of a strip. At stride 2 the even columns of each row come first, then the odd
// ones: the filter reads each of them at stride 1, and to the convolutions before it the order of
// pixels does not matter.
inline void take_rows(const Block& block, const Strip& strip, const float* images, float* to) {
  for_input_rows(block, strip, images, [&](const float* row, long at) {
    if (block.stride == 1) {
      std::copy_n(row, block.width, to + at);
      return;
    }
    for (long n = 0; n < block.across; ++n) to[at + n] = row[2 * n];
    for (long n = 0; n < block.width / 2; ++n) to[at + block.across + n] = row[2 * n + 1];
  });
}

// Adds rows in this order to those of the images.
inline void add_rows(const Block& block, const Strip& strip, const float* from, float* images) {
  for_input_rows(block, strip, images, [&](float* row, long at) {
    if (block.stride == 1) {
      for (long n = 0; n < block.width; ++n) row[n] += from[at + n];
      return;
    }
    for (long n = 0; n < block.across; ++n) row[2 * n] += from[at + n];
    for (long n = 0; n < block.width / 2; ++n) row[2 * n + 1] += from[at + block.across + n];
  });
}

}  // namespace mxopt

#endif  // MXOPT_STRIPS_H_
