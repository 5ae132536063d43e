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

// Whether `mxopt_dense` multiplies numbers of float32 in another way than by our own loops.
extern "C" int mxopt_multiplies_float32() {
#if defined(MXOPT_TILES) || defined(MXOPT_BLAS)
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
