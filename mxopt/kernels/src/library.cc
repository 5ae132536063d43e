// What MXNet, and mxopt.kernels, ask the library itself.
#include "factor.h"
#include "operator.h"

mxnet::ext::MXReturnValue initialize(int version) {
  return version >= 10700 ? mxopt::MX_SUCCESS : mxopt::MX_FAIL;
}

// Whether products are computed by tiles.
extern "C" int mxopt_multiplies_by_tiles() {
#if defined(MXOPT_TILES)
  return 1;
#else
  return 0;
#endif
}

// Whether `mxopt_dense` is meant to multiply numbers of float32. By AVX-512 without tiles, MXNet's own
// dense layer does.
extern "C" int mxopt_multiplies_float32() {
#if defined(MXOPT_TILES) || !defined(__AVX512F__)
  return 1;
#else
  return 0;
#endif
}

// Whether `mxopt_dense` multiplies numbers that are rounded to bfloat16.
extern "C" int mxopt_multiplies_bfloat16() {
#if defined(__AVX512BF16__)
  return 1;
#else
  return 0;
#endif
}
