// The position of each word in its sentence, -1 for padding. Sentences are padded to one length, or one
// after the other in a batch of one row, with padding behind the last one only.
#include <algorithm>

#include "operator.h"

namespace mxopt {
namespace {

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  MXTensor &ids = (*inputs)[0], &lengths = (*inputs)[1];
  const long longest = attribute(attributes, "longest", 0);
  const bool packed = ids.shape[0] != lengths.shape[0];
  const long words = ids.shape[1], sentences = lengths.shape[0];
  float* to = (*outputs)[0].data<float>();
  std::fill(to, to + ids.shape[0] * words, -1.0f);
  long at = 0;
  for (long sentence = 0; sentence < sentences; ++sentence) {
    const long length = lengths.data<float>()[sentence];
    if (length < 0 || length > longest || (packed && at + length > words))
      return refused("a sentence of " + std::to_string(length) + " words: it must have at least 0, "
                     "at most the " + std::to_string(longest) + " that this network has positions "
                     "for, and fit into its batch");
    for (long word = 0; word < std::min(length, words); ++word) to[at + word] = word;
    at += packed ? length : words;
  }
  return MX_SUCCESS;
}

MXReturnValue backward(const Attributes&, std::vector<MXTensor>*, std::vector<MXTensor>* outputs,
                       const OpResource&) {
  for (MXTensor& output : *outputs)
    std::fill(output.data<float>(), output.data<float>() + output.size(), 0.0f);
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes&, int* inputs, int* outputs) {
  *inputs = 2, *outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes&, std::vector<Shape>* inputs, std::vector<Shape>* outputs) {
  const Shape &ids = (*inputs)[0], &lengths = (*inputs)[1];
  if (ids.size() != 2 || lengths.size() != 1 || (ids[0] != 1 && ids[0] != lengths[0])) {
    return refused("mxopt_positions takes ids (sentences, length), or all sentences one after the "
                   "other in one row, and the lengths (sentences,)");
  }
  (*outputs)[0] = ids;
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(mxopt_positions)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(count)
    .setInferType(float32)
    .setInferShape(shapes);

}  // namespace mxopt
