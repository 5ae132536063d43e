// The depthwise 3 x 3 filter of one channel of a strip, forward and backward.
//
// It reads planes: the channel's rows with zeros around them. At stride 2 each row is a zero, the odd
// columns of the image, a zero if there is one more even column, and the even columns, so that every
// tap of the filter reads consecutive numbers.
#ifndef MXOPT_DEPTHWISE_H_
#define MXOPT_DEPTHWISE_H_

#include "matrix.h"
#include "strips.h"

namespace mxopt {

constexpr long kTaps = 9;

// How planes of a strip lie in memory, and where the filter's taps read them.
struct Planes {
  long pitch, size;  // floats from row to row, and of all rows
  long taps[kTaps];  // what each tap reads, relative to the first one

  Planes(const Block& block, const Strip& strip) {
    const long d = block.dilation, columns[] = {0, block.across + 1, 1};  // odd, even, odd
    pitch = block.stride == 1 ? block.width + 2 * d : 2 * block.across + 1;
    size = strip.rows * pitch;
    for (long tap = 0; tap < kTaps; ++tap)
      taps[tap] = tap / 3 * d * pitch + (block.stride == 1 ? tap % 3 * d : columns[tap % 3]);
  }
};

// The same for the gradients of the filter's output, with zeros around them, on the right up to the
// end of a vector.
struct OutputPlane {
  long padded, pitch, size;  // floats of a row without zeros on the left; from row to row; of all
  long first;                // where the first gradient is

  OutputPlane(const Block& block, const Strip& strip) {
    const long d = block.dilation, over = block.stride == 1 ? 2 * d : 1;
    padded = in_vectors(block.across);
    pitch = padded + (block.stride == 1 ? 2 * d : kLanes);
    size = (strip.outs + 2 * over) * pitch;
    first = over * pitch + (block.stride == 1 ? d : 0);
  }
};

// Writes zeros up to the end of a vector; what is written later may begin before that.
inline void clear(float* to, long count) {
  for (long i = 0; i < count; i += kLanes) store(to + i, Vector{});
}

// Copies rows, as `take_rows` orders them, into a plane, each vector changed by `change`.
template <class Change>
void into_plane(const Block& block, const Strip& strip, const Planes& planes, const float* from,
                Change change, float* plane) {
  const long pitch = planes.pitch, width = block.width, d = block.dilation;
  const auto copy = [&](const float* some, long count, float* to) {
    for (long x = 0; x < count; x += kLanes) store(to + x, change(load(some + x)));
  };
  std::fill(plane, plane + strip.above * pitch + d, 0.0f);
  for (long y = 0; y < strip.ins; ++y) {
    float* to = plane + (y + strip.above) * pitch;
    if (block.stride == 1) {
      copy(from + y * width, width, to + d);
      clear(to + d + width, 2 * d);
    } else {
      copy(from + y * width + block.across, width / 2, to + 1);
      clear(to + 1 + width / 2, 1);
      copy(from + y * width, block.across, to + 1 + block.across);
      clear(to + pitch, 1);
    }
  }
  std::fill(plane + (strip.above + strip.ins) * pitch, plane + planes.size, 0.0f);
}

// Calls `use(i, sums)` with vectors of the sums over N taps of w[tap] * from[offsets[tap] + i].
template <int N, class Use>
inline void weighted(const float* __restrict from, const long* offsets, const float* w, long count,
                     Use use) {
  for (long i = 0; i < count; i += kLanes) {
    Vector total = w[0] * load(from + offsets[0] + i);
#pragma GCC unroll 8
    for (int tap = 1; tap < N; ++tap) total += w[tap] * load(from + offsets[tap] + i);
    use(i, total);
  }
}

// Calls `use(x, gradients)` with vectors of the gradients of one row of a plane, from its pixel x on,
// in the order of `take_rows`; `dy` is the plane of the output's gradients.
template <class Use>
void filter_backward(const Block& block, const OutputPlane& output, const float* dy, const float* w,
                     long row, Use use) {
  const long pitch = output.pitch, d = block.dilation, across = block.across;
  if (block.stride == 1) {
    long taps[kTaps];
    for (long tap = 0; tap < kTaps; ++tap)
      taps[tap] = (2 - tap / 3) * d * pitch + (2 - tap % 3) * d;
    weighted<kTaps>(dy + row * pitch, taps, w, block.width, use);
    return;
  }
  // The middle tap of a row reads even columns; the last one odd columns, and the first one odd
  // columns for the next output. Likewise the middle row of taps reads odd rows of the plane.
  dy += row / 2 * pitch;
  const auto odd = [&](long x, Vector v) { use(across + x, v); };
  if (row % 2) {
    const long taps[] = {pitch, pitch + 1};
    const float sides[] = {w[5], w[3]};
    weighted<1>(dy, taps, w + 4, across, use);
    weighted<2>(dy, taps, sides, block.width / 2, odd);
  } else {
    const long rows[] = {0, pitch}, taps[] = {0, 1, pitch, pitch + 1};
    const float middle[] = {w[7], w[1]}, sides[] = {w[8], w[6], w[2], w[0]};
    weighted<2>(dy, rows, middle, across, use);
    weighted<4>(dy, taps, sides, block.width / 2, odd);
  }
}

// Adds the gradients of the filter and of its bias; `dy` is the first gradient in its plane.
inline void add_taps(const Block& block, const Strip& strip, const Planes& planes,
                     const float* plane, const OutputPlane& output, const float* dy, float* dw,
                     float* db) {
  Vector sums[kTaps] = {}, all = {};
  for (long y = 0; y < strip.outs; ++y) {
    const float* from = plane + y * block.stride * planes.pitch;
    for (long x = 0; x < block.across; x += kLanes) {
      const Vector gradient = load(dy + y * output.pitch + x);
      all += gradient;
#pragma GCC unroll 9
      for (int tap = 0; tap < kTaps; ++tap)
        sums[tap] += gradient * load(from + planes.taps[tap] + x);
    }
  }
  for (long tap = 0; tap < kTaps; ++tap) dw[tap] += sum(sums[tap]);
  *db += sum(all);
}

}  // namespace mxopt

#endif  // MXOPT_DEPTHWISE_H_
