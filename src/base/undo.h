// SPDX-License-Identifier: Apache-2.0
// Undo: takes back what a function has begun, on whatever way it leaves, unless it commits.
#pragma once

#include <utility>

namespace rlx {

template <class F>
class Undo {
 public:
  explicit Undo(F undo) : undo_(std::move(undo)) {}
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  ~Undo() {
    if (!is_committed_) undo_();
  }
  void commit() { is_committed_ = true; }

 private:
  F undo_;
  bool is_committed_ = false;
};

}  // namespace rlx
