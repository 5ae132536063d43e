// The positions of an axis in windows, and lines of an image as these windows.
#ifndef MXOPT_WINDOWS_H_
#define MXOPT_WINDOWS_H_

#include <algorithm>

#include "matrix.h"

namespace mxopt {

constexpr long kOutputs = 4, kWindow = 6;  // a window: the inputs of four outputs

// Each window is that of four outputs `dilation` positions apart: their positions, and one more on both
// sides. Windows are numbered by the fours that a position falls into, then by where they start.
class Axis {
 public:
  Axis(long side, long dilation)
      : side_(side), dilation_(dilation), starts_(std::min(dilation, side)),
        fours_((side + kOutputs * dilation - 1) / (kOutputs * dilation)) {
    for (long lane = 0; lane < kGroup; ++lane) {
      const long from = lane / dilation * kOutputs * dilation + lane % dilation;
      take_.set(lane, from / kGroup, from % kGroup);
      for (long part = 0; part < kOutputs; ++part) {
        const long to = part * kGroup + lane, four = to / (kOutputs * dilation);
        give_[part].set(lane, to / dilation % kOutputs, four * dilation + to % dilation);
      }
    }
  }

  long windows() const { return starts_ * fours_; }

  // The position that a window has at one of its own; `side` outside of the axis.
  long at(long in_window, long window) const {
    const long four = window / starts_, start = window % starts_;
    const long position = (four * kOutputs + in_window - 1) * dilation_ + start;
    return position < 0 ? side_ : std::min(position, side_);
  }

  // The floats of a line: zeros for as many positions as the dilation, the positions of the axis, and
  // zeros up to the end of the last window and of what is computed at once.
  long line() const { return (kOutputs * fours_ + kWindow) * dilation_ + 2 * kOutputs * kGroup; }

  // Copies the positions of the axis to such a line.
  void copy(const float* from, float* line) const {
    float* const to = line + dilation_;
    if (side_ < kLanes) {
      std::copy_n(from, side_, to);
      return;
    }
    for (long n = 0; n + kLanes < side_; n += kLanes) store(to + n, load(from + n));
    store(to + side_ - kLanes, load(from + side_ - kLanes));
  }

  // Copies `In` positions of each window, from its position `skip` on, to as many rows. What is behind
  // the last window of a row, up to seven numbers, is overwritten.
  template <long In>
  void take(const float* line, long skip, float* to, long pitch) const {
    for (long n = 0; n < In; ++n, to += pitch) {
      const float* const from = line + (skip + n) * dilation_;
      if (grouped())
        for (long window = 0; window < windows(); window += kGroup)
          group(to + window) = take_.of(&group(from + window * kOutputs));
      else
        for (long four = 0; four < fours_; ++four)
          std::copy_n(from + four * kOutputs * dilation_, starts_, to + four * starts_);
    }
  }

  // Writes `Out` positions of each window to a line, which begins with the first one: four, or all six,
  // of which two are added to those of the next window.
  template <long Out>
  void give(const float* from, long pitch, float* line) const {
    std::fill_n(line + kOutputs * fours_ * dilation_, (Out - kOutputs) * dilation_, 0.0f);
    if (grouped()) {
      for (long window = 0; window < windows(); window += kGroup)
        for_parts(from + window, pitch, kOutputs, windows() - window, [&](long part, Group v) {
          group(line + window * kOutputs + part * kGroup) = v;
        });
      if (Out > kOutputs)
        for (long window = 0; window < windows(); window += kGroup)
          for_parts(from + kOutputs * pitch + window, pitch, Out - kOutputs, windows() - window,
                    [&](long part, Group v) {
                      group(line + (window + dilation_) * kOutputs + part * kGroup) += v;
                    });
      return;
    }
    for (long n = 0; n < Out; ++n, from += pitch)
      for (long four = 0; four < fours_; ++four) {
        float* const to = line + (four * kOutputs + n) * dilation_;
        for (long start = 0; start < starts_; ++start)
          to[start] = (n < kOutputs ? 0 : to[start]) + from[four * starts_ + start];
      }
  }

 private:
  static constexpr long kGroup = std::min(kLanes, 8);  // windows at once
  typedef float Group __attribute__((vector_size(4 * kGroup), aligned(4), may_alias));
  typedef int Places __attribute__((vector_size(4 * kGroup), aligned(4)));

  // A choice of `kGroup` numbers of four groups.
  class Choice {
   public:
    void set(long lane, long group, long place) {
      const int from = group % 2 * kGroup + place;
      first_[lane] = second_[lane] = from;
      which_[lane] = group / 2 * kGroup + lane;
    }
    Group of(const Group* groups) const {
      return __builtin_shuffle(__builtin_shuffle(groups[0], groups[1], first_),
                               __builtin_shuffle(groups[2], groups[3], second_), which_);
    }

   private:
    Places first_, second_, which_;
  };

  static Group& group(float* p) { return *reinterpret_cast<Group*>(p); }
  static const Group& group(const float* p) { return *reinterpret_cast<const Group*>(p); }

  // Whether a group of windows is that of four groups of positions.
  bool grouped() const { return starts_ == dilation_ && kGroup % dilation_ == 0; }

  // Calls `use` for four groups of positions that some rows of a group of windows fill.
  template <class Use>
  void for_parts(const float* from, long pitch, long rows, long windows, Use use) const {
    Group groups[kOutputs] = {};
    for (long n = 0; n < rows; ++n) {
      groups[n] = group(from + n * pitch);
      for (long lane = windows; lane < kGroup; ++lane) groups[n][lane] = 0;
    }
#pragma GCC unroll 4
    for (long part = 0; part < kOutputs; ++part) use(part, give_[part].of(groups));
  }

  long side_, dilation_, starts_, fours_;
  Choice take_, give_[kOutputs];
};

}  // namespace mxopt

#endif  // MXOPT_WINDOWS_H_
