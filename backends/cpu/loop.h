// SPDX-License-Identifier: Apache-2.0
// The form of every CPU kernel: pure loops over raw pointers. The work of a Loop is divided into parts whose borders
// depend only on the sizes in its arguments; `run` computes parts [begin, end). Parts do not depend on each other or on
// the thread that runs them, so any split over threads gives the same bits. It allocates nothing, starts no thread, and
// needs at most 128 KiB of stack.
#pragma once

#include <cstdint>

namespace rlx::cpu {

template <class Args>
struct Loop {
  int64_t (*parts)(const Args&);
  void (*run)(const Args&, int64_t begin, int64_t end);
};

}  // namespace rlx::cpu
