// Cross entropy with label smoothing of a network's last layer. Its scores are computed for some rows
// and some classes at a time, and again in the backward pass (as by Wijmans et al., "Cut Your Losses in
// Large-Vocabulary Language Models", 2024) unless they are few enough to be kept until then. With V
// classes, smoothing e and the scores s = W x + b, the loss of a row x of class y is
//     log(sum exp s) - (1 - e) s[y] - e mean(s).
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "factor.h"
#include "operator.h"

namespace mxopt {
namespace {

// What is multiplied at once: factors, scores and sums stay in L2.
constexpr long kSomeRows = 256, kSomeClasses = 256;
// Scores are kept up to this number, which are 128 MiB.
constexpr long kMostKept = 1L << 25;

// The scores of the last forward pass in this thread, for the backward pass that has its number; any
// other one computes them again.
class Kept {
 public:
  // Returns memory for the scores of a new pass, (rows, classes), or nothing if they are too many.
  float* begin(long rows, long classes) {
    static std::atomic<long> passes{0};
    number_ = ++passes % (1L << 24);  // a whole number of float32
    if (rows * classes > kMostKept) return nullptr;
    if (long(scores_.size()) < rows * classes) {
      scores_ = {};  // no copy of what is in it
      scores_.resize(rows * classes);
    }
    return scores_.data();
  }

  float number() const { return number_; }

  const float* find(float number, long rows, long classes) const {
    return number == number_ && rows * classes <= kMostKept ? scores_.data() : nullptr;
  }

 private:
  std::vector<float> scores_;
  long number_ = 0;
};

Kept& kept() {
  static thread_local Kept all;
  return all;
}

struct Problem {
  const float *x, *weight, *bias, *labels;
  long rows, units, classes;
  float smoothing, share;  // share: what every class gets of the target

  Problem(const Attributes& attributes, std::vector<MXTensor>& tensors, size_t first) {
    x = tensors[first].data<float>(), weight = tensors[first + 1].data<float>();
    labels = tensors[first + 2].data<float>();
    bias = attribute(attributes, "no_bias", 0) ? nullptr : tensors[first + 3].data<float>();
    classes = tensors[first + 1].shape[0], units = tensors[first + 1].shape[1];
    rows = tensors[first + 2].size();
    smoothing = attribute(attributes, "smoothing", 0.0);
    share = smoothing / classes;
  }

  // Returns the first label that is no class, or the end of the labels.
  const float* unknown() const {
    return std::find_if(labels, labels + rows,
                        [this](float label) { return !(label >= 0 && label < classes); });
  }

  // What all classes take from the loss of a row whose scores have this total. A score of -infinity
  // is a class that is left out, unless it has a share; what is not a number is never hidden.
  float spread(float total) const {
    return share > 0 || std::isnan(total) ? share * total : 0;
  }

  // Takes the weights of some classes.
  template <class Factor>
  void take(long first, long count, Factor& to) const {
    to.take(units, count, {weight + first * units, units, 1});
  }

  // Computes the scores of some rows and of the classes that were taken, (rows, kSomeClasses).
  template <class Factor>
  void scores(long row, long some, long first, long count, const Factor& taken, float* to) const {
    product(some, count, units, {x + row * units, units, 1}, taken, bias ? bias + first : nullptr, 0,
            to, kSomeClasses);
  }
};

// What is known of a row's scores so far.
struct Row {
  float largest = -1e30f, powers = 0, total = 0, chosen = 0;

  // Adds the scores of the classes from `first` on; writes behind the last one.
  void add(float* scores, long first, long count, long label) {
    if (label >= first && label < first + count) chosen = scores[label - first];
    total += mxopt::sum(scores, count);
    std::fill(scores + count, scores + in_vectors(count), -1e30f);
    const float most = std::max(largest, mxopt::largest(scores, in_vectors(count)));
    Vector sums = {};
    for (long n = 0; n < count; n += kLanes) sums += exponential(load(scores + n) - most);
    powers = powers * std::exp(largest - most) + mxopt::sum(sums);
    largest = most;
  }
};

// `keeps` gets the scores, (rows, classes), if it is not null.
template <int parts>
void losses(const Problem& of, float* loss, float* log_sum, float* keeps) {
  // Each thread computes some rows, of all classes.
  const long threads = omp_get_max_threads();
  const long most = (of.rows + threads - 1) / threads;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (long thread = 0; thread < threads; ++thread) {
    static thread_local Right<parts> taken;
    std::vector<float> scores(kSomeRows * kSomeClasses);
    const long begin = thread * most, end = std::min(of.rows, begin + most);
    if (begin >= end) continue;
    std::vector<Row> found(end - begin);
    for (long first = 0; first < of.classes; first += kSomeClasses) {
      const long count = std::min(kSomeClasses, of.classes - first);
      of.take(first, count, taken);
      for (long row = begin; row < end; row += kSomeRows) {
        const long some = std::min(kSomeRows, end - row);
        of.scores(row, some, first, count, taken, scores.data());
        for (long n = 0; n < some; ++n) {
          float* const own = scores.data() + n * kSomeClasses;
          if (keeps) std::copy_n(own, count, keeps + (row + n) * of.classes + first);
          found[row + n - begin].add(own, first, count, of.labels[row + n]);
        }
      }
    }
    for (long row = begin; row < end; ++row) {
      const Row& all = found[row - begin];
      log_sum[row] = all.largest + std::log(all.powers);
      loss[row] = log_sum[row] - (1 - of.smoothing) * all.chosen - of.spread(all.total);
    }
  }
}

// Computes the gradients of the scores from these: dloss (probability - target). What it writes behind
// the last class, up to the end of a vector, is not read.
void slopes(const Problem& of, long row, long some, long first, long count, const float* dloss,
            const float* log_sum, float* scores) {
  for (long n = row; n < row + some; ++n, scores += kSomeClasses) {
    const long label = of.labels[n];
    for (long k = 0; k < count; k += kLanes)
      store(scores + k, dloss[n] * (exponential(load(scores + k) - log_sum[n]) - of.share));
    if (label >= first && label < first + count)
      scores[label - first] -= dloss[n] * (1 - of.smoothing);
  }
}

// `known` are the scores, (rows, classes), or null.
template <int parts>
void gradients(const Problem& of, const float* known, const float* dloss, const float* log_sum,
               float* dx, float* dweight, float* dbias) {
  const long size = of.rows * of.units, threads = omp_get_max_threads();
  // Each thread computes some classes, and their sums for dx.
  std::vector<std::vector<float>> sums(threads);
#pragma omp parallel num_threads(threads)
  {
    static thread_local Right<parts> weights, across, rows;
    std::vector<float> scores(kSomeRows * kSomeClasses);
    std::vector<float>& own = sums[omp_get_thread_num()];
#pragma omp for schedule(static)
    for (long first = 0; first < of.classes; first += kSomeClasses) {
      const long count = std::min(kSomeClasses, of.classes - first);
      if (own.empty()) own.resize(size);
      if (!known) of.take(first, count, weights);
      across.take(count, of.units, {of.weight + first * of.units, 1, of.units});
      float* const to = dweight + first * of.units;
      if (of.rows == 0) std::fill_n(to, count * of.units, 0.0f);
      if (dbias) std::fill_n(dbias + first, count, 0.0f);
      for (long row = 0; row < of.rows; row += kSomeRows) {
        const long some = std::min(kSomeRows, of.rows - row);
        if (!known) of.scores(row, some, first, count, weights, scores.data());
        for (long n = 0; known && n < some; ++n)
          std::copy_n(known + (row + n) * of.classes + first, count, scores.data() + n * kSomeClasses);
        slopes(of, row, some, first, count, dloss, log_sum, scores.data());
        float* const sum = own.data() + row * of.units;
        product(some, of.units, count, {scores.data(), kSomeClasses, 1}, across, sum, of.units, sum,
                of.units);
        rows.take(some, of.units, {of.x + row * of.units, 1, of.units});
        product(count, of.units, some, {scores.data(), 1, kSomeClasses}, rows, row ? to : nullptr,
                of.units, to, of.units);
        for (long n = 0; dbias && n < some; ++n)
          for (long k = 0; k < count; ++k) dbias[first + k] += scores[n * kSomeClasses + k];
      }
    }
#pragma omp for schedule(static)
    for (long n = 0; n < size; ++n) {
      float total = 0;
      for (const auto& each : sums)
        if (!each.empty()) total += each[n];
      dx[n] = total;
    }
  }
}

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Problem of(attributes, *inputs, 0);
  if (const float* label = of.unknown(); label != of.labels + of.rows) {
    std::ostringstream why;
    why << "mxopt_cross_entropy: a label is " << *label << "; it must be one of the " << of.classes
        << " classes, from 0 on";
    return refused(why.str());
  }
  const auto compute = attribute(attributes, "parts", 3) == 1 ? losses<1> : losses<3>;
  float* const keeps = kept().begin(of.rows, of.classes);
  compute(of, (*outputs)[0].data<float>(), (*outputs)[1].data<float>(), keeps);
  *(*outputs)[2].data<float>() = kept().number();
  return MX_SUCCESS;
}

MXReturnValue backward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Problem of(attributes, *inputs, 3);  // behind the gradients of all outputs
  const float* const log_sum = (*inputs)[inputs->size() - 2].data<float>();
  const float* const known = kept().find(*inputs->back().data<float>(), of.rows, of.classes);
  const auto compute = attribute(attributes, "parts", 3) == 1 ? gradients<1> : gradients<3>;
  float* const dbias = of.bias ? (*outputs)[3].data<float>() : nullptr;
  compute(of, known, (*inputs)[0].data<float>(), log_sum, (*outputs)[0].data<float>(),
          (*outputs)[1].data<float>(), dbias);
  std::fill_n((*outputs)[2].data<float>(), of.rows, 0.0f);  // the labels have no gradient
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes& attributes, int* inputs, int* outputs) {
  *inputs = attribute(attributes, "no_bias", 0) ? 3 : 4, *outputs = 3;
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes& attributes, std::vector<Shape>* inputs,
                     std::vector<Shape>* outputs) {
  const Shape &x = (*inputs)[0], &weight = (*inputs)[1], &labels = (*inputs)[2];
  const long parts = attribute(attributes, "parts", 3);
  if (x.empty() || weight.size() != 2 || weight[0] == 0 || x.back() != weight[1] ||
      labels != Shape(x.begin(), x.end() - 1) || (parts != 1 && parts != 3) ||
      (inputs->size() > 3 && (*inputs)[3] != Shape{weight[0]})) {
    return refused("mxopt_cross_entropy takes rows (..., n), a weight (classes, n), labels (...), "
                   "a bias (classes,) unless no_bias=1, and parts=1 or 3");
  }
  (*outputs)[0] = (*outputs)[1] = labels, (*outputs)[2] = {1};
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(mxopt_cross_entropy)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(count)
    .setInferType(float32)
    .setInferShape(shapes);

}  // namespace mxopt
