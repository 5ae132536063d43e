// What MXNet, and mxopt.kernels, ask the library itself.
#include "operator.h"
#include "tiles.h"

mxnet::ext::MXReturnValue initialize(int version) {
  return version >= 10700 ? mxopt::MX_SUCCESS : mxopt::MX_FAIL;
}

// Whether `mxopt_dense` multiplies by tiles, and takes parts=3.
extern "C" int mxopt_multiplies_by_tiles() {
#if defined(MXOPT_TILES)
  return 1;
#else
  return 0;
#endif
}
