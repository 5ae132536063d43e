// What the operators share: reading of attributes, and types of their inputs.
#ifndef MXOPT_OPERATOR_H_
#define MXOPT_OPERATOR_H_

#include <omp.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "mxnet/lib_api.h"

namespace mxopt {

using mxnet::ext::MX_FAIL;
using mxnet::ext::MX_SUCCESS;
using mxnet::ext::MXReturnValue;
using mxnet::ext::MXTensor;
using mxnet::ext::OpResource;
using Attributes = std::unordered_map<std::string, std::string>;
using Shape = std::vector<unsigned int>;

// Returns a whole-number attribute, or `otherwise` if it is not given.
inline long attribute(const Attributes& attributes, const char* name, int otherwise) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? otherwise : std::stol(found->second);
}

// Returns a number.
inline float attribute(const Attributes& attributes, const char* name, double otherwise) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? otherwise : std::stod(found->second);
}

// All inputs and outputs are float32.
inline MXReturnValue float32(const Attributes&, std::vector<int>* inputs,
                             std::vector<int>* outputs) {
  for (int& type : *inputs) {
    if (type != mxnet::ext::kFloat32 && type != -1) {
      MX_ERROR_MSG << "mxopt's kernels compute in float32 only";
      return MX_FAIL;
    }
    type = mxnet::ext::kFloat32;
  }
  for (int& type : *outputs) type = mxnet::ext::kFloat32;
  return MX_SUCCESS;
}

// Memory for so many numbers until the next call in this thread, for operators that need much of it.
// MXNet's own (`OpResource::alloc_cpu`) comes from one of four places in turn, so it would take four
// times as much.
inline float* lent(size_t count) {
  static thread_local std::vector<float> kept;
  if (kept.size() < count) {
    kept = std::vector<float>();  // no copy of what is in it
    kept.resize(count);
  }
  return kept.data();
}

}  // namespace mxopt

#endif  // MXOPT_OPERATOR_H_
