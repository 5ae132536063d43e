// Winograd's minimal filtering F(4, 3): four outputs of a filter of three taps by six products instead
// of twelve (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016).
//
// The products are values of polynomials at 0, a, -a, b, -b and infinity. In float32 the error is four
// times that of adding up the usual products if a = 1 and b = 2, and twice that if a = 3/4 and b = 3/2
// (Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural
// Networks", 2020, on the choice of points).
#ifndef MXOPT_WINOGRAD_H_
#define MXOPT_WINOGRAD_H_

#include "matrix.h"
#include "windows.h"

namespace mxopt {

constexpr long kTaps = 3;
constexpr float kA = 0.75f, kB = 1.5f, kA2 = kA * kA, kB2 = kB * kB;
constexpr float kOfZero = 1 / (kA2 * kB2);             // scales of the factors of taps
constexpr float kOfA = 1 / (2 * kA2 * (kA2 - kB2)), kOfB = 1 / (2 * kB2 * (kB2 - kA2));

// From a window of inputs to factors of products: the matrix B^T of Lavin and Gray.
inline void input_factors(const Vector* x, Vector* f) {
  const Vector even_a = x[4] - kB2 * x[2], odd_a = kA * (x[3] - kB2 * x[1]);
  const Vector even_b = x[4] - kA2 * x[2], odd_b = kB * (x[3] - kA2 * x[1]);
  f[0] = kA2 * kB2 * x[0] - (kA2 + kB2) * x[2] + x[4];
  f[1] = even_a + odd_a, f[2] = even_a - odd_a;
  f[3] = even_b + odd_b, f[4] = even_b - odd_b;
  f[5] = kA2 * kB2 * x[1] - (kA2 + kB2) * x[3] + x[5];
}

// From gradients of the factors to gradients of the inputs: B.
inline void input_gradients(const Vector* f, Vector* x) {
  const Vector even_a = f[1] + f[2], odd_a = f[1] - f[2], even_b = f[3] + f[4], odd_b = f[3] - f[4];
  x[0] = kA2 * kB2 * f[0];
  x[1] = kA2 * kB2 * f[5] - kA * kB2 * odd_a - kB * kA2 * odd_b;
  x[2] = -(kA2 + kB2) * f[0] - kB2 * even_a - kA2 * even_b;
  x[3] = kA * odd_a + kB * odd_b - (kA2 + kB2) * f[5];
  x[4] = f[0] + even_a + even_b;
  x[5] = f[5];
}

// From products to outputs: A^T.
inline void outputs_of(const Vector* f, Vector* y) {
  const Vector even_a = f[1] + f[2], odd_a = f[1] - f[2], even_b = f[3] + f[4], odd_b = f[3] - f[4];
  y[0] = f[0] + even_a + even_b;
  y[1] = kA * odd_a + kB * odd_b;
  y[2] = kA2 * even_a + kB2 * even_b;
  y[3] = kA * kA2 * odd_a + kB * kB2 * odd_b + f[5];
}

// From gradients of the outputs to gradients of the products: A.
inline void output_gradients(const Vector* y, Vector* f) {
  const Vector even_a = y[0] + kA2 * y[2], odd_a = kA * y[1] + kA * kA2 * y[3];
  const Vector even_b = y[0] + kB2 * y[2], odd_b = kB * y[1] + kB * kB2 * y[3];
  f[0] = y[0], f[1] = even_a + odd_a, f[2] = even_a - odd_a;
  f[3] = even_b + odd_b, f[4] = even_b - odd_b, f[5] = y[3];
}

// From taps to factors: G.
inline void tap_factors(const Vector* g, Vector* f) {
  const Vector even_a = kOfA * (g[0] + kA2 * g[2]), odd_a = kOfA * kA * g[1];
  const Vector even_b = kOfB * (g[0] + kB2 * g[2]), odd_b = kOfB * kB * g[1];
  f[0] = kOfZero * g[0], f[1] = even_a + odd_a, f[2] = even_a - odd_a;
  f[3] = even_b + odd_b, f[4] = even_b - odd_b, f[5] = g[2];
}

// From gradients of the factors to gradients of the taps: G^T.
inline void tap_gradients(const Vector* f, Vector* g) {
  const Vector even_a = kOfA * (f[1] + f[2]), odd_a = kOfA * (f[1] - f[2]);
  const Vector even_b = kOfB * (f[3] + f[4]), odd_b = kOfB * (f[3] - f[4]);
  g[0] = kOfZero * f[0] + even_a + even_b;
  g[1] = kA * odd_a + kB * odd_b;
  g[2] = kA2 * even_a + kB2 * even_b + f[5];
}

// Transforms lines of `length` floats, vector by vector: `In` lines, `from_step` apart, to `Out` lines.
template <long In, long Out, void (*compute)(const Vector*, Vector*)>
inline void transform(long length, const float* from, long from_step, float* to, long to_step) {
  for (long i = 0; i < length; i += kLanes) {
    Vector in[In], out[Out];
#pragma GCC unroll 6
    for (long n = 0; n < In; ++n) in[n] = load(from + n * from_step + i);
    compute(in, out);
#pragma GCC unroll 6
    for (long n = 0; n < Out; ++n) store(to + n * to_step + i, out[n]);
  }
}

}  // namespace mxopt

#endif  // MXOPT_WINOGRAD_H_
