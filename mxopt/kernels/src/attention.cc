// Scaled dot-product attention of several heads as one operator (Vaswani et al., 2017, section 3.2):
// scores, mask, softmax, dropout, product. Queries, keys and values stay as the dense layer before
// them wrote them, so nothing is transposed: those of a word beside each other in one array, or, if
// the queries are of other words, keys and values beside each other in a second one. Samples are
// padded to one length, or one after the other in a batch of one row, with padding behind the last one
// only. The scores of one head of one sample are in the cache, a row for each key, so that a vector holds
// those of several queries. The backward pass computes them again.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "operator.h"
#include "random.h"

namespace mxopt {
namespace {

// One head of one sample: where its arrays begin, and how many queries and keys it has.
struct Task {
  long query, key, out;     // numbers of elements before it
  long queries, keys, seen; // the first `seen` keys are seen by a query
  long pitch;               // of a key's scores
  uint32_t number;          // of its first score, for dropout
};

struct Heads {
  const float *query, *key, *value, *draws;
  long samples, units, heads, width, size = 0;  // of the largest task's scores
  long query_row, key_row;  // from a word's queries to the next word's; the same of keys and values
  bool own, causal;
  long query_rest = 0, key_rest = 0;  // words behind the last sample of a row
  float probability, scale;
  long salt;
  std::vector<Task> tasks;

  Heads(const Attributes& attributes, std::vector<MXTensor>& tensors, size_t first) {
    own = attribute(attributes, "own", 0);
    const MXTensor &asking = tensors[first], &asked = tensors[own ? first : first + 1];
    query_row = asking.shape[2], key_row = asked.shape[2];
    units = key_row / (own ? 3 : 2);
    query = tensors[first].data<float>();
    key = own ? query + units : tensors[first + 1].data<float>();
    value = key + units;
    const size_t after = own ? first + 1 : first + 2;
    draws = tensors[own ? after + 1 : after + 2].data<float>();
    heads = attribute(attributes, "heads", 1);
    width = units / heads;
    causal = attribute(attributes, "causal", 0);
    probability = dropout_of(attributes);
    salt = attribute(attributes, "salt", 0);
    scale = 1 / std::sqrt(static_cast<float>(width));
    samples = tensors[after].shape[0];
    divide(asking.shape, asked.shape, tensors[after].data<float>(),
           tensors[own ? after : after + 1].data<float>());
  }

  // Lists the tasks, from the lengths of the samples' queries and keys.
  void divide(const std::vector<int64_t>& asking, const std::vector<int64_t>& asked,
              const float* query_lengths, const float* key_lengths) {
    const bool packed = asking[0] != samples;
    bool whole = true;  // the samples' words are in the arrays
    long query_at = 0, key_at = 0;
    uint32_t number = 0;
    for (long sample = 0; sample < samples; ++sample) {
      Task task;
      task.keys = packed ? static_cast<long>(key_lengths[sample]) : asked[1];
      task.queries = packed ? static_cast<long>(query_lengths[sample]) : asking[1];
      const long real = causal ? task.queries : static_cast<long>(key_lengths[sample]);
      task.seen = std::max(0L, std::min(task.keys, real));
      whole = whole && task.keys >= 0 && task.keys <= asked[1] && task.queries >= 0 &&
              task.queries <= asking[1];
      task.pitch = in_vectors(task.queries);
      size = std::max(size, task.keys * task.pitch);
      for (long head = 0; head < heads; ++head, number += task.keys * task.pitch) {
        task.query = query_at * query_row + head * width;
        task.key = key_at * key_row + head * width;
        task.out = query_at * units + head * width;
        task.number = number;
        tasks.push_back(task);
      }
      query_at += task.queries, key_at += task.keys;
    }
    if (packed) query_rest = asking[1] - query_at, key_rest = asked[1] - key_at;
    whole = whole && query_rest >= 0 && key_rest >= 0;
    if (!whole)
      refused("mxopt_attention: the lengths of samples in one row must not add up to more than its "
              "length, and none may be negative");
  }

  // The softmax of the scores of a task, (keys seen, pitch), 0 where a query does not see a key.
  void weights(const Task& task, Panels& panels, float* to) const {
    const long keys = task.seen, pitch = task.pitch;
    panels.take_transposed(width, task.queries, query + task.query, query_row);
    product(keys, pitch, width, {key + task.key, key_row, 1}, panels, to, pitch, false);
    for (long from = 0; from < pitch; from += kLanes) {
      const long last = causal ? std::min(keys, from + kLanes) : keys;
      Vector most = Vector{} - 1e30f, total = {};
      for (long k = 0; k < last; ++k) {
        const Vector scores = load(to + k * pitch + from);
        most = sees(k, from) && scores > most ? scores : most;
      }
      for (long k = 0; k < last; ++k) {
        float* const at = to + k * pitch + from;
        const Vector powers = exponential((load(at) - most) * scale);
        const Vector seen = sees(k, from) ? powers : Vector{};
        store(at, seen);
        total += seen;
      }
      const Vector inverse = 1 / total;  // a query sees the first key at least
      for (long k = 0; k < keys; ++k) {
        float* const at = to + k * pitch + from;
        store(at, k < last ? load(at) * inverse : Vector{});
      }
    }
  }

  // Which of the queries from one on see a key, if it is no padding.
  Lanes sees(long key, long query) const {
    static constexpr Places kNumbers = places([](int lane) { return lane; });
    return kNumbers.lanes() >= static_cast<int>(causal ? key - query : 0);
  }

  // Applies dropout to a task's (keys seen, pitch).
  void drop(const Dropout& dropout, const Task& task, const float* from, float* to) const {
    for (long n = 0; n < task.seen * task.pitch; n += kLanes) {
      const Vector v = load(from + n);
      store(to + n, dropout.active() ? dropout(v, task.number + n) : v);
    }
  }
};

// Returns memory for so many arrays of the largest task's scores in each thread. It is allocated before
// the threads begin, in which a failure would end the process.
std::unique_ptr<float[]> for_scores(const Heads& all, long arrays) {
  return std::unique_ptr<float[]>(new float[omp_get_max_threads() * arrays * all.size]);
}

// Writes zeros to the last words of an array, whose rows have so many numbers.
void clear_rest(MXTensor& tensor, long words, long row) {
  float* const end = tensor.data<float>() + tensor.size();
  std::fill(end - words * row, end, 0.0f);
}

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  const Heads all(attributes, *inputs, 0);
  const Dropout dropout(all.draws, all.probability, all.salt);
  float* out = (*outputs)[0].data<float>();
  clear_rest((*outputs)[0], all.query_rest, all.units);
  const auto memory = for_scores(all, 1);
#pragma omp parallel
  {
    float* const scores = memory.get() + omp_get_thread_num() * all.size;
    Panels panels;
#pragma omp for schedule(static)
    for (size_t number = 0; number < all.tasks.size(); ++number) {
      const Task& task = all.tasks[number];
      all.weights(task, panels, scores);
      all.drop(dropout, task, scores, scores);
      panels.take(task.seen, all.width, all.value + task.key, all.key_row);
      product(task.queries, all.width, task.seen, {scores, 1, task.pitch}, panels,
              out + task.out, all.units, false);
    }
  }
  return MX_SUCCESS;
}

MXReturnValue backward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Heads all(attributes, *inputs, 1);
  const Dropout dropout(all.draws, all.probability, all.salt);
  const float* dout = (*inputs)[0].data<float>();
  float* dquery = (*outputs)[0].data<float>();
  float* dkey = all.own ? dquery + all.units : (*outputs)[1].data<float>();
  float* dvalue = dkey + all.units;
  clear_rest((*outputs)[0], all.query_rest, all.query_row);
  if (!all.own) clear_rest((*outputs)[1], all.key_rest, all.key_row);
  const auto memory = for_scores(all, 3);
#pragma omp parallel
  {
    float* const weights = memory.get() + omp_get_thread_num() * 3 * all.size;
    float *dropped = weights + all.size, *gradient = dropped + all.size;
    Panels panels;
#pragma omp for schedule(static)
    for (size_t number = 0; number < all.tasks.size(); ++number) {
      const Task& task = all.tasks[number];
      const long queries = task.queries, keys = task.seen, pitch = task.pitch;
      const float* douts = dout + task.out;
      float *const dkeys = dkey + task.key, *const dvalues = dvalue + task.key;
      all.weights(task, panels, weights);
      all.drop(dropout, task, weights, dropped);
      panels.take(queries, all.width, douts, all.units);
      product(keys, all.width, queries, {dropped, pitch, 1}, panels, dvalues, all.key_row, false);
      panels.take_transposed(all.width, queries, douts, all.units);
      product(keys, pitch, all.width, {all.value + task.key, all.key_row, 1}, panels, gradient, pitch,
              false);
      all.drop(dropout, task, gradient, gradient);
      for (long from = 0; from < pitch; from += kLanes) {
        Vector mean = {};
        for (long n = from; n < keys * pitch; n += pitch)
          mean += load(weights + n) * load(gradient + n);
        for (long n = from; n < keys * pitch; n += pitch)
          store(gradient + n, load(weights + n) * (load(gradient + n) - mean) * all.scale);
      }
      panels.take(keys, all.width, all.key + task.key, all.key_row);
      product(queries, all.width, keys, {gradient, 1, pitch}, panels, dquery + task.query,
              all.query_row, false);
      panels.take(queries, all.width, all.query + task.query, all.query_row);
      product(keys, all.width, queries, {gradient, pitch, 1}, panels, dkeys, all.key_row, false);
      for (long unseen = keys; unseen < task.keys; ++unseen) {
        std::fill_n(dkeys + unseen * all.key_row, all.width, 0.0f);
        std::fill_n(dvalues + unseen * all.key_row, all.width, 0.0f);
      }
    }
  }
  // The lengths and the draws have no gradient.
  for (MXTensor& output : *outputs)
    if (output.shape.size() == 1)
      std::fill(output.data<float>(), output.data<float>() + output.shape[0], 0.0f);
  return MX_SUCCESS;
}

MXReturnValue count(const Attributes& attributes, int* inputs, int* outputs) {
  *inputs = attribute(attributes, "own", 0) ? 3 : 5, *outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue shapes(const Attributes& attributes, std::vector<Shape>* inputs,
                     std::vector<Shape>* outputs) {
  const bool own = attribute(attributes, "own", 0);
  const long heads = attribute(attributes, "heads", 1);
  const Shape &asking = (*inputs)[0], &asked = (*inputs)[own ? 0 : 1];
  const Shape &lengths = (*inputs)[own ? 1 : 2], &others = (*inputs)[own ? 1 : 3];
  const unsigned parts = own ? 3 : 2;
  dropout_of(attributes);
  if (heads < 1 || asking.size() != 3 || asked.size() != 3 || asking[0] != asked[0] ||
      asked[2] % parts || (asked[2] / parts) % heads || (!own && asking[2] != asked[2] / parts) ||
      lengths.size() != 1 || others != lengths || (asking[0] != 1 && asking[0] != lengths[0]) ||
      inputs->back() != Shape{kDraws}) {
    return refused("mxopt_attention takes queries, keys and values side by side (samples, length, "
                   "3 units) with own=1, or queries (samples, queries, units) and keys and values "
                   "(samples, keys, 2 units), or all samples one after the other in one row; the "
                   "samples' lengths, of queries and of keys unless own=1; and 64 draws. units "
                   "must be a multiple of the heads");
  }
  (*outputs)[0] = {asking[0], asking[1], asked[2] / parts};
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(mxopt_attention)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(count)
    .setInferType(float32)
    .setInferShape(shapes);

}  // namespace mxopt
