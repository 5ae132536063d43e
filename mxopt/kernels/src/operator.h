// What the operators share: reading of attributes, types of their inputs, and errors.
#ifndef MXOPT_OPERATOR_H_
#define MXOPT_OPERATOR_H_

#include <omp.h>

#include <locale>
#include <sstream>
#include <stdexcept>
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

// Says why an operator cannot compute, by an exception that MXNet passes on. Its list of messages for
// libraries is never emptied. Must not be called in a parallel region.
[[noreturn]] inline MXReturnValue refused(const std::string& why) {
  throw std::invalid_argument(why);
}

// Returns a number, or `otherwise` if it is not given; Python's True and False are 1 and 0.
inline double number(const Attributes& attributes, const char* name, double otherwise) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return otherwise;
  if (found->second == "True" || found->second == "False") return found->second == "True";
  std::istringstream text(found->second);
  text.imbue(std::locale::classic());  // a point in every language
  double value = 0;
  if (!(text >> value) || !text.eof())
    throw std::invalid_argument(std::string(name) + "=" + found->second + " must be a number");
  return value;
}

inline float attribute(const Attributes& attributes, const char* name, double otherwise) {
  return number(attributes, name, otherwise);
}

// Returns a whole number.
inline long attribute(const Attributes& attributes, const char* name, int otherwise) {
  const double value = number(attributes, name, otherwise);
  if (value != long(value))
    throw std::invalid_argument(std::string(name) + "=" + attributes.at(name) +
                                " must be a whole number");
  return value;
}

// Returns the numbers of an attribute, which are divided by spaces; none if it is not given.
inline std::vector<double> numbers(const Attributes& attributes, const char* name) {
  const auto found = attributes.find(name);
  std::istringstream text(found == attributes.end() ? "" : found->second);
  text.imbue(std::locale::classic());
  std::vector<double> values;
  for (double value; text >> value;) values.push_back(value);
  if (!text.eof())
    throw std::invalid_argument(std::string(name) + "=" + found->second + " must be numbers");
  return values;
}

// All inputs and outputs are float32.
inline MXReturnValue float32(const Attributes&, std::vector<int>* inputs,
                             std::vector<int>* outputs) {
  for (int& type : *inputs) {
    if (type != mxnet::ext::kFloat32 && type != -1)
      return refused("mxopt's kernels compute in float32 only");
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
